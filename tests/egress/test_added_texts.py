"""Texts of a request that no message holds: each has a warning."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.wire import contract_tables
from tests.egress.histories import TARGETS
from tests.properties import each, examples

ADDING = {
    "no_result": "a result that is missing",
    "text_added": "a text that is refused empty",
    "turn_begun": "a user's message before a turn",
    "media_left_out": "a note on an attachment",
    "floor_unmet": "a placeholder",
}
"""The warnings of what is put in, with what that is."""
_TEXTS = ("content", "text", "thinking", "reasoning", "reasoning_content", "thought", "output")
_SAID = re.compile(r"[A-Z]\d+")

Target = tuple[str | None, str | None, str | None]


def texts_of(value: Any, *, is_text: bool = False) -> Iterator[str]:
    """The strings under the keys that hold what was said."""
    if isinstance(value, str):
        yield from [value] if is_text else ()
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from texts_of(item, is_text=key in _TEXTS)
    elif isinstance(value, list):
        for item in value:
            yield from texts_of(item, is_text=is_text)


def added(body: dict[str, Any]) -> list[str]:
    """What is left of the texts without what was said, blanks and the tags of thoughts."""
    messages = next(body[name] for name in ("messages", "input", "contents") if name in body)
    texts = (re.sub(r"</?think>", "", text) for text in texts_of(messages))
    return [rest for text in texts if (rest := _SAID.sub("", text).strip())]


numbers = st.integers(0, 99)
thoughts = st.builds(lambda n: rs.ThinkingBlock(thought=f"T{n}"), numbers)
said = st.builds(lambda n: rs.TextBlock(text=f"S{n}"), numbers) | st.just(rs.TextBlock(text=""))
calls = st.builds(
    lambda n: rs.ToolCallBlock(id=f"call_{n}", name="f", parameters={}, arguments="{}"), numbers
)
results = st.builds(
    lambda n, text: rs.tool(rs.ToolResponseBlock(call_id=f"call_{n}", tool_name="f", result=text)),
    numbers,
    st.sampled_from(["R1", ""]),
)
replies = st.lists(thoughts | said | calls, max_size=3).map(lambda blocks: rs.assistant(*blocks))
histories = st.lists(
    st.builds(rs.user, st.sampled_from(["U1", "U2", "", " "])) | replies | results, max_size=6
)


@examples(300)
@given(histories, st.sampled_from(TARGETS), st.booleans())
def test_every_text_that_no_message_holds_has_a_warning(
    history: list[rs.Message], target: Target, include: bool
) -> None:
    """Whatever the messages and the host: what a repair puts in is said."""
    provider, model, api = target
    settings = {"reasoning.includeInContext": include}
    request = rs.build_request(history, provider=provider, model=model, api=api, settings=settings)

    if texts := added(request.body):
        assert {warning.code for warning in request.warnings} & ADDING.keys(), texts


EMPTY = {
    "a reply without text at Kimi": (
        [rs.user("U1"), rs.assistant(rs.ThinkingBlock(thought="T1")), rs.user("U2")],
        ("moonshot", "kimi-k3", None),
    ),
    "a conversation that the model begins": (
        [rs.assistant("S1"), rs.user("U1")],
        ("anthropic", "claude-opus-5", None),
    ),
    "a user's blank message": (
        [rs.user("U1"), rs.assistant("S1"), rs.user(" ")],
        ("anthropic", "claude-opus-5", None),
    ),
}


@each("name", EMPTY)
def test_a_text_in_place_of_none_is_named(name: str) -> None:
    """The warning quotes it."""
    messages, (provider, model, _) = EMPTY[name]
    request = rs.build_request(
        messages, provider=provider, model=model, settings={"reasoning.includeInContext": True}
    )
    (warning,) = (one for one in request.warnings if one.code == "text_added")

    assert added(request.body) == ["."]
    assert "'.'" in warning.text


def test_the_warning_quotes_the_text_of_every_contract() -> None:
    """A row with another text needs another sentence."""
    assert {row.messages.blank_text_as for row in contract_tables.shipped_contracts().rows} == {
        None,
        ".",
    }
