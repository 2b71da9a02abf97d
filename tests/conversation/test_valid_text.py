"""Text is made valid at the door: what is stored, counted and sent, UTF-8 can write."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.conversation.json_values import json_value, make_json, parse, valid_text
from tests.properties import each, examples

HIGH, LOW = "\ud83d", "\ude00"
MENDED = {
    "two halves that meet": (f"a{HIGH}{LOW}b", "a\U0001f600b"),
    "a first half alone": (f"a{HIGH}", "a\ufffd"),
    "a second half alone": (f"{LOW}b", "\ufffdb"),
    "the wrong way round": (LOW + HIGH, "\ufffd\ufffd"),
    "NUL": ("a\0b", "a\0b"),
}
torn = st.text(st.characters() | st.sampled_from([HIGH, LOW]), max_size=6)
values = st.recursive(
    torn | st.none() | st.integers() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(torn, inner, max_size=3),
    max_leaves=8,
)


@each("case", MENDED)
def test_every_text_of_a_message_is_mended_when_it_is_appended(case: str) -> None:
    """Two halves that meet are their character, one left alone is U+FFFD, NUL stays."""
    text, mended = MENDED[case]
    given_by = {text: [text]}
    call = rs.ToolCallBlock(id=text, name=text, parameters=given_by, arguments=text)
    messages = [
        rs.user(rs.TextBlock(text=text, provider_metadata=given_by), metadata=given_by),
        rs.assistant(rs.ThinkingBlock(thought=text), call, origin=rs.Origin(model=text)),
        rs.tool(rs.ToolResponseBlock(call_id=text, tool_name=text, result=given_by)),
    ]
    with rs.Store("sqlite://") as store:
        session = store.session("s", create=True)
        returned = [row.message for row in session.append(messages)]
        stored = [row.message for row in session.history()]

    assert returned == stored
    assert stored[0].text == mended
    assert stored[0].metadata == stored[2].blocks[0].result == {mended: [mended]}  # type: ignore[union-attr]
    assert stored[1].thinking[0].thought == mended
    assert stored[1].origin == rs.Origin(model=mended)
    (called,) = stored[1].tool_calls
    assert (called.id, called.name, called.arguments) == (mended, mended, mended)


def test_two_halves_in_two_deltas_are_their_character() -> None:
    """In text, thoughts and arguments; the application gets valid chunks, too."""
    normalizer = rs.StreamNormalizer(api="openai.chat")
    deltas: list[dict[str, Any]] = [
        {"reasoning_content": f"a{HIGH}"},
        {"reasoning_content": f"{LOW}b"},
        {"content": f"a{HIGH}"},
        {"content": f"{LOW}b"},
        {
            "tool_calls": [
                {"index": 0, "id": "c", "function": {"name": "f", "arguments": f'"{HIGH}'}}
            ]
        },
        {"tool_calls": [{"index": 0, "function": {"arguments": f'{LOW}"'}}]},
    ]
    chunks = [
        chunk
        for delta in deltas
        for chunk in normalizer.feed({"choices": [{"index": 0, "delta": delta}]})
    ]
    message = normalizer.finish()

    assert "".join(one.text for one in chunks if isinstance(one, rs.TextChunk)) == "a\U0001f600b"
    assert message.text == message.thinking[0].thought == "a\U0001f600b"
    assert message.tool_calls[0].parameters == "\U0001f600"


def pieces(text: str, size: int) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))


@examples(100)
@given(
    texts=st.lists(st.tuples(st.sampled_from(["content", "reasoning_content"]), torn), max_size=4)
)
def test_any_chunking_of_half_characters_gives_the_same_message(
    texts: list[tuple[str, str]],
) -> None:
    """A half at the end of one block is not joined to the next block."""

    def message(size: int) -> rs.Message:
        normalizer = rs.StreamNormalizer(api="openai.chat")
        shown = []
        for field, text in texts:
            for piece in pieces(text, size):
                delta = {"choices": [{"index": 0, "delta": {field: piece}}]}
                shown += normalizer.feed(delta)
        for chunk in shown:
            getattr(chunk, "text", "").encode()
        return normalizer.finish()

    whole = message(100)
    assert message(1) == whole
    json.dumps([block.text for block in whole.blocks if isinstance(block, rs.TextBlock)]).encode()


def test_a_half_at_the_end_of_a_stream_is_stored_as_the_replacement_character() -> None:
    """A cut stream ends in the middle of an emoji."""
    with rs.Store("sqlite://") as store:
        session = store.session("s", create=True)
        session.append(rs.user("Hi"))
        with session.record(
            [{"choices": [{"index": 0, "delta": {"content": f"So{HIGH}"}}]}]
        ) as reply:
            list(reply)

        assert session.get(2).message.text == "So\ufffd"


def test_half_of_a_character_in_a_sealed_thought_is_refused_by_its_place() -> None:
    """Its signature fits no other text."""
    sealed = rs.ThinkingBlock(thought=f"Hm{HIGH}", signature="c2ln")
    with rs.Store("sqlite://") as store:
        session = store.session("s", create=True)
        with pytest.raises(rs.InvalidCall, match=r"blocks\.1\.thought: half of a character"):
            session.append(rs.assistant("So.", sealed))
        assert session.history() == []


NAMED: dict[str, Callable[[rs.Store], Any]] = {
    "session": lambda store: store.session(HIGH, create=True),
    "owner": lambda store: store.for_owner(HIGH).session("s", create=True),
    "title": lambda store: store.session("s", create=True, title=HIGH),
    "key": lambda store: store.session("s", create=True).append(
        rs.user("Hi"), idempotency_key=HIGH
    ),
}


@each("name", NAMED)
def test_half_of_a_character_in_a_name_is_refused(name: str) -> None:
    """Two names must not become one."""
    with rs.Store("sqlite://") as store, pytest.raises(rs.InvalidCall, match="UTF-8 can write"):
        NAMED[name](store)


@each("value", [float("nan"), float("-inf"), 10**5000])
def test_a_number_that_json_cannot_hold_is_refused_by_its_place(value: float) -> None:
    """Where messages enter, stored or not."""
    response = rs.ToolResponseBlock(call_id="c", result={"a": [value]})
    for verb in (rs.build_request, rs.select, rs.effective_tokens):
        with pytest.raises(rs.InvalidCall, match=r"messages\[0\]\.blocks\.0\.result: a number"):
            verb([rs.tool(response)])
    with pytest.raises(rs.InvalidCall, match=r"^extra\['a'\]: a number"):
        rs.build_request([rs.user("Hi")], extra={"a": value})


@given(values)
def test_a_mended_value_can_be_written_and_is_mended_once(value: Any) -> None:
    """A value that needs nothing is returned itself."""
    mended = json_value(value)
    json.dumps(mended, ensure_ascii=False).encode()

    assert json_value(mended) is mended
    assert make_json(value) == mended


@given(values)
def test_json_from_elsewhere_has_valid_text(value: Any) -> None:
    """Escapes of half characters too."""
    assert parse(json.dumps(value)) == json_value(json.loads(json.dumps(value)))


@given(torn)
def test_a_valid_text_stays_itself(text: str) -> None:
    """And what is mended is valid."""
    valid_text(text).encode()
    assert valid_text("\U0001f600") == valid_text(HIGH + LOW) == "\U0001f600"
