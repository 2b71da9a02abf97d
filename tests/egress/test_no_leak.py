"""What is withheld is nowhere in the request, and what is kept is there once.

Every thought, signature and ciphertext of a history is a canary: a text that stands nowhere
else. The body that would be sent is searched for each, whatever form it takes there. Foreign
metadata on texts and calls is a canary, too: it belongs to who made it.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.egress import request, selection
from tests.egress.targets import TARGETS, Target, sealed, sealed_call, sealed_compat_call
from tests.properties import each, examples

POLICIES = [
    {
        "reasoning.includeInContext": include,
        "reasoning.stripFromContext": strip,
        "reasoning.floor": floor,
    }
    for include, strip, floor in itertools.product(
        (False, True), ("all", "allButLast", "none", "priorTurns"), ("provider", "off")
    )
]
DEEPSEEK = next(target for target in TARGETS if target.model == "deepseek-v4")
HERE = TARGETS.index(DEEPSEEK)
each_target = each("target", TARGETS)


@dataclass(frozen=True)
class Part:
    """One message of a history, before its canaries are numbered."""

    maker: int
    thinks: bool = True
    text: str = "So."
    calls: int = 0
    spoil: str = "as it came"


SPOILED: dict[str, Callable[[rs.ThinkingBlock], rs.ThinkingBlock]] = {
    "as it came": lambda block: block,
    "interrupted": lambda block: replace(block, interrupted=True),
    "unsigned": lambda block: replace(block, signature=None, encrypted=None, redacted=False),
    "without a field": lambda block: replace(block, source_field=None),
    "of another field": lambda block: replace(block, source_field="thinking"),
    "without metadata": lambda block: replace(block, provider_metadata=None),
    "hidden": lambda block: replace(block, is_hidden=True),
}
ON_MESSAGES = ("no origin", "no text", "died", "by the user")
parts = st.builds(
    Part,
    maker=st.integers(0, len(TARGETS) - 1),
    thinks=st.booleans(),
    text=st.sampled_from(["So.", "", "Look: \u00e9\u6f22"]),
    calls=st.integers(0, 2),
    spoil=st.sampled_from([*SPOILED, *ON_MESSAGES]),
)
histories = st.lists(parts | st.none(), min_size=1, max_size=6)
"""Replies of anyone's, as they came or spoiled; ``None`` is a question."""


def written(history: Sequence[Part | None]) -> list[rs.Message]:
    """Return the messages, every thought and seal of them a canary."""
    out: list[rs.Message] = [rs.user("Begin.")]
    for n, part in enumerate(history):
        if part is None:
            out.append(rs.user(f"Question {n}?"))
            continue
        name = f"canary{n:05d}x"
        thought = f"Thought {name}." if part.thinks else ""
        reply = TARGETS[part.maker].reply(name, thought=thought, text=part.text, calls=part.calls)
        spoil = SPOILED.get(part.spoil, SPOILED["as it came"])
        blocks = tuple(
            spoil(block) if isinstance(block, rs.ThinkingBlock) else block
            for block in reply.blocks
            if part.spoil != "no text" or block.type == "thinking"
        )
        reply = replace(reply, blocks=blocks)
        if part.spoil == "no origin":
            reply = replace(reply, origin=None)
        if part.spoil == "died":
            reply = replace(reply, status="interrupted", finish_reason=None)
        if part.spoil == "by the user":
            reply = replace(reply, role="user", origin=None)
        if not reply.blocks:
            continue
        out.append(reply)
        out += [
            rs.tool(rs.ToolResponseBlock(call_id=call.id, tool_name=call.name, result="It is."))
            for call in reply.tool_calls
        ]
    return out if out[-1].role == "tool" else [*out, rs.user("And now?")]


def canaries(block: rs.ThinkingBlock) -> list[str]:
    return [mark for mark in (block.thought, block.signature, block.encrypted) if mark]


def leaks(built: rs.Request, messages: Sequence[rs.Message]) -> Iterator[str]:
    """Say what of the reasoning is where it must not be, or is not where it must."""
    body = json.dumps(built.body, ensure_ascii=False)
    for verdict in built.verdicts:
        block = messages[verdict.message].blocks[verdict.block]
        assert isinstance(block, rs.ThinkingBlock)
        for canary in canaries(block):
            times = body.count(canary)
            if times != int(verdict.kept):
                yield f"{verdict.rule}: {canary!r} {times} times in {body}"


@examples(1_840)
@given(target=st.sampled_from(TARGETS), history=histories, policy=st.sampled_from(POLICIES))
def test_withheld_is_nowhere_and_kept_is_there_once(
    target: Target, history: list[Part | None], policy: dict[str, Any]
) -> None:
    """For every protocol, policy and history, in whatever form a protocol would say it."""
    messages = written(history)
    built = rs.build_request(messages, settings={**target.asks, **policy}, **target.to)

    assert list(leaks(built, messages)) == []


def with_thinking_as_text(message: rs.Message) -> rs.Message:
    blocks = [
        rs.TextBlock(text=block.thought) if isinstance(block, rs.ThinkingBlock) else block
        for block in message.blocks
    ]
    return replace(message, blocks=tuple(blocks))


def without_thinking(message: rs.Message) -> rs.Message:
    return replace(message, blocks=tuple(b for b in message.blocks if b.type != "thinking"))


BROKEN: dict[str, Callable[[rs.Message], rs.Message]] = {
    "nothing is taken out": lambda message: message,
    "everything is taken out": without_thinking,
    "what is withheld becomes text": with_thinking_as_text,
}


@pytest.mark.parametrize("how", BROKEN)
def test_the_property_fails_where_a_rule_is_broken(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search that finds nothing is worth what it finds when there is something."""
    messages = written([Part(HERE), None, Part(HERE, calls=1)])
    settings = {"reasoning.includeInContext": True, "reasoning.stripFromContext": "priorTurns"}
    sound = rs.build_request(messages, settings=settings, **DEEPSEEK.to)

    def broken(*args: Any) -> rs.results.Selection:
        left = tuple(map(BROKEN[how], messages))
        return replace(selection.select(*args), messages=left, owed=(False,) * len(left))

    monkeypatch.setattr(request, "select", broken)
    built = rs.build_request(messages, settings=settings, **DEEPSEEK.to)

    assert {verdict.kept for verdict in sound.verdicts} == {True, False}
    assert list(leaks(sound, messages)) == []
    assert list(leaks(built, messages)) != []


SEALS = {
    "thoughtSignature": "canary-one",
    "extra_content": {"google": {"thought_signature": "canary-two"}},
    "item_id": "msg_canary-three",
    "provider_specific_fields": {"thought_signature": "canary-four"},
    "note": ["canary-five"],
}


@each_target
@each("maker", [t for t in TARGETS if t.provider], thinned=5)
def test_signatures_on_texts_and_calls_are_sent_only_to_their_maker(
    target: Target, maker: Target
) -> None:
    """Strip and include leave it, for it is no reasoning; a foreign origin takes it off.

    Where no one knows who made a message, what is on it is no one's, and stays.
    """
    reply = maker.reply("a", text="So.", calls=1)
    marked = replace(
        reply,
        blocks=tuple(replace(block, provider_metadata=dict(SEALS)) for block in reply.blocks),
    )
    (call,) = reply.tool_calls
    answer = rs.tool(rs.ToolResponseBlock(call_id=call.id, tool_name=call.name, result="It is."))
    built = rs.build_request(
        [rs.user("Begin."), marked, answer],
        settings={**target.asks, "reasoning.stripFromContext": "all"},
        **target.to,
    )
    foreign = maker.provider != target.provider or maker.api != target.api

    assert not foreign or "canary" not in json.dumps(built.body)


@each_target
@each("maker", [t for t in TARGETS if t.provider], thinned=5)
def test_a_block_of_another_protocol_is_foreign_even_from_the_same_model(
    target: Target, maker: Target
) -> None:
    """A reply may have been recorded with ``api=`` alone: its protocol is known all the same."""
    reply = maker.reply("a", text="So.", thought="Hm.", calls=1)
    marked = replace(
        reply,
        origin=rs.Origin(api=maker.api),
        blocks=tuple(
            block if block.type == "thinking" else replace(block, provider_metadata=dict(SEALS))
            for block in reply.blocks
        ),
    )
    (call,) = reply.tool_calls
    answer = rs.tool(rs.ToolResponseBlock(call_id=call.id, tool_name=call.name, result="It is."))
    built = rs.build_request(
        [rs.user("Begin."), marked, answer],
        settings={**target.asks, "reasoning.includeInContext": True},
        **target.to,
    )
    seals = [block.signature or block.encrypted for block in marked.thinking]
    sent = json.dumps(built.body)
    differs = maker.api not in (target.api, "thinking_events")

    assert not differs or not any(mark in sent for mark in ["canary", *filter(None, seals)])


@pytest.mark.parametrize(
    "target",
    [t for t in TARGETS if t.call_metadata in (sealed_call, sealed_compat_call)],
    ids=str,
)
def test_a_seal_on_a_call_goes_back_whatever_is_stripped(target: Target) -> None:
    """It came with the call and returns with it, once."""
    reply = target.reply("a", thought="Hm.", calls=1)
    (call,) = reply.tool_calls
    answer = rs.tool(rs.ToolResponseBlock(call_id=call.id, tool_name=call.name, result="It is."))
    built = rs.build_request(
        [rs.user("Begin."), reply, answer],
        settings={"reasoning.stripFromContext": "all"},
        **target.to,
    )

    assert json.dumps(built.body).count(sealed("a_0")) == 1


def test_a_draft_is_not_sent() -> None:
    """What is still being written is no one's yet."""
    reply = replace(DEEPSEEK.reply("a", thought="canary", text="So."), status="streaming")
    messages = [rs.user("Begin."), reply]
    built = rs.build_request(messages, settings={"reasoning.includeInContext": True}, **DEEPSEEK.to)

    assert "canary" not in json.dumps(built.body)
    assert list(leaks(built, messages)) == []
