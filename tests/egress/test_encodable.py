"""Half of a character cannot be sent: U+FFFD goes in its place, and what is stored stays."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.egress.encodable import mended, mended_block, needs_mending
from reasoning_store.surrogates import is_encodable
from reasoning_store.testing import refusal
from tests.egress.targets import TARGETS, Target

HALF = "\ud83d"
KEEP = {"reasoning.includeInContext": True}
each_target = pytest.mark.parametrize("target", TARGETS, ids=str)


def sent(body: Any) -> str:
    """Return a body as HTTP clients encode it."""
    return json.dumps(body, ensure_ascii=False, allow_nan=False).encode().decode()


def codes(found: rs.Request) -> list[str]:
    return [warning.code for warning in found.warnings]


def torn(target: Target) -> list[rs.Message]:
    """Return a loop in which every text has lost half of a character."""
    reply = target.reply("a", thought="Hm.", text="So.", calls=1)
    blocks = [
        replace(block, text=block.text + HALF)
        if isinstance(block, rs.TextBlock)
        else replace(block, parameters={HALF: [HALF]}, arguments=json.dumps({HALF: [HALF]}))
        if isinstance(block, rs.ToolCallBlock)
        else block
        for block in reply.blocks
    ]
    (call,) = reply.tool_calls
    result = rs.ToolResponseBlock(call_id=call.id, tool_name=call.name, result={"a": HALF})
    return [
        rs.user("Look: " + HALF),
        replace(reply, blocks=tuple(blocks)),
        rs.tool(result),
    ]


@each_target
def test_a_conversation_that_lost_half_a_character_can_be_sent(target: Target) -> None:
    """In every text, result and argument, and in what is given along."""
    messages = torn(target)
    tools = [{"name": "look_up", "description": HALF, "parameters": {"type": "object"}}]
    found = rs.build_request(
        messages, settings={**KEEP, **target.asks}, **target.to, system="Be " + HALF, tools=tools
    )

    assert HALF not in sent(found.body)
    assert "Look: \ufffd" in sent(found.body)
    assert codes(found).count("half_character") == 1
    assert refusal(
        found.body, provider=target.provider or "", model=target.model, api=target.api
    ) in (None,)
    assert messages == torn(target)


def test_what_is_mended_counts_as_it_is_stored() -> None:
    """A repair changes no count."""
    target = TARGETS[0]
    messages = torn(target)
    tools = [{"name": HALF}]
    built = rs.build_request(messages, **target.to, system=HALF, tools=tools)

    assert built.tokens == rs.effective_tokens(messages, **target.to, system=HALF, tools=tools)


def test_extra_is_mended_too() -> None:
    """Whatever is laid over the body is sent with it."""
    found = rs.build_request([rs.user("Hi")], extra={"metadata": {"user": HALF}})

    assert found.body["metadata"] == {"user": "\ufffd"}
    assert codes(found) == ["half_character"]


def test_a_plain_thought_is_mended() -> None:
    """Its words are anybody's."""
    thought = rs.ThinkingBlock(thought="Hm" + HALF, source_field="reasoning_content")
    found = rs.build_request([rs.user("Hi"), rs.assistant(thought, "So.")], settings=KEEP)

    assert found.body["messages"][1]["reasoning_content"] == "Hm\ufffd"
    assert codes(found) == ["half_character"]


def test_a_sealed_thought_is_mended_and_the_sender_warned() -> None:
    """Its seal fits no other text: nothing can be sent that is taken for sure."""
    origin = rs.Origin(provider="anthropic", api="anthropic.messages", model="claude-opus-5")
    thought = rs.ThinkingBlock(thought="Hm" + HALF, source_field="thinking", signature="c2ln")
    found = rs.build_request(
        [rs.user("Hi"), rs.assistant(thought, "So.", origin=origin), rs.user("Go on.")],
        settings=KEEP,
        provider="anthropic",
        model="claude-opus-5",
    )
    (warning,) = found.warnings

    assert found.body["messages"][1]["content"][0]["thinking"] == "Hm\ufffd"
    assert warning.code == "seal_broken"
    assert "strip" in warning.text


@each_target
def test_the_field_that_a_thought_came_in_is_not_sent_and_needs_no_mending(target: Target) -> None:
    """Nothing is sent otherwise than it is stored, so nobody is warned."""
    reply = target.reply("a", thought="Hm.", text="So.")
    blocks = [
        replace(block, source_field=HALF) if isinstance(block, rs.ThinkingBlock) else block
        for block in reply.blocks
    ]
    messages = [rs.user("Hi"), replace(reply, blocks=tuple(blocks)), rs.user("Go on.")]
    found = rs.build_request(messages, settings={**KEEP, **target.asks}, **target.to)

    assert not {"half_character", "seal_broken"} & {*codes(found)}
    assert sent(found.body)


def test_a_digest_of_torn_system_and_tools_can_be_made() -> None:
    """It tells them apart as they were given."""
    one, other = (rs.build_request([rs.user("Hi")], system=HALF + tail) for tail in ("", "\ufffd"))

    assert one.digest != other.digest


torn_texts = st.text(st.characters(), max_size=6)
values = st.recursive(
    torn_texts | st.none() | st.integers() | st.booleans() | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(torn_texts, inner, max_size=3),
    max_leaves=8,
)


@given(values)
def test_any_value_can_be_sent_once_it_is_mended(value: Any) -> None:
    """And is itself where it could be sent before."""
    sent(mended(value))
    try:
        sent(value)
    except ValueError:
        assert repr(mended(value)) != repr(value)
    else:
        assert mended(value) is value


@given(torn_texts)
def test_two_halves_that_meet_are_the_character_they_spell(text: str) -> None:
    """UTF-16 knows what they are."""
    assert mended("\ud83d\ude00" + text).startswith("\U0001f600")
    assert is_encodable(mended(text))


@given(
    st.builds(rs.TextBlock, text=torn_texts)
    | st.builds(rs.TextBlock, text=torn_texts, provider_metadata=st.just({"id": HALF}))
    | st.builds(rs.ThinkingBlock, thought=torn_texts, signature=st.none() | torn_texts)
    | st.builds(rs.ToolResponseBlock, call_id=torn_texts, result=values)
)
def test_what_needs_mending_is_what_is_changed_by_it(block: rs.Block) -> None:
    """The quick look and the careful one see the same."""
    assert needs_mending(block) == (mended_block(block) is not block)
    assert not needs_mending(mended_block(block))
