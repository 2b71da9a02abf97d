"""Anthropic's histories: thoughts with their signatures, in their places."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.conversation.blocks import (
    MediaBlock,
    Message,
    RawBlock,
    TextBlock,
    ToolResponseBlock,
)
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.formats import Conversation
from reasoning_store.importers import formats

from . import dirty


def read(*values: Any, **options: Any) -> list[Conversation]:
    return list(formats.conversations(dirty.lines(values), **options, format="anthropic"))


def messages(*values: Any, **options: Any) -> list[Message]:
    (one,) = read(*values, **options)
    return [item.message for item in one.items]


def test_a_dirty_history_is_counted_to_the_last_delimiter() -> None:
    """Reasoning in, reasoning stored, texts unchanged and cleaned, as counted by hand."""
    (one,) = read(dirty.MESSAGES)

    assert dirty.counts(one.report, dirty.MESSAGE_COUNTS) == dirty.MESSAGE_COUNTS
    assert one.report.skipped == ()
    assert (one.id, one.title) == ("claude-3", "Primes")
    assert one.created_at is not None
    assert one.created_at.isoformat() == "2026-01-02T03:04:05+00:00"


def test_thoughts_keep_signatures_data_and_order() -> None:
    """EC-002: also a thought whose text is empty and whose signature is not."""
    reply = messages(dirty.MESSAGES)[2]

    assert [
        (block.thought, block.signature, block.encrypted, block.redacted)
        for block in reply.thinking
    ] == [
        ("I see 91.", dirty.SIGNATURE, None, False),
        ("", None, dirty.CIPHER, True),
        ("", dirty.SIGNATURE, None, False),
    ]
    assert [block.type for block in reply.blocks] == [*["thinking"] * 3, "text", "tool_call"]
    assert (reply.text, reply.finish_reason) == ("Let me check.", "tool_use")
    assert reply.usage is not None
    assert (reply.usage.input, reply.usage.output) == (20, 30)


def test_roles_are_what_they_hold() -> None:
    """A user's message of answers alone is a tool's; the prompt is a system message."""
    found = messages(dirty.MESSAGES)

    assert [message.role for message in found] == [
        *("system", "user", "assistant", "tool", "assistant", "user", "assistant"),
    ]
    assert found[0].blocks == (TextBlock(text="Be brief."),)
    assert found[1].blocks == (
        MediaBlock(kind="image", mime_type="image/png", data=b"\x89PNG"),
        TextBlock(text="<thinking>Is this prime?</thinking>"),
    )
    assert found[3].blocks == (
        ToolResponseBlock(
            call_id="toolu_1", tool_name="factor", result="7 x 13</thinking>", is_error=True
        ),
    )
    assert found[4].blocks[-1] == RawBlock(data={"type": "oracle", "said": "yes"})


def test_what_was_sent_can_be_sent_again() -> None:
    """Imported thoughts go back as they were, to the protocol that they came from."""
    history = [item for item in messages(dirty.MESSAGES) if item.role != "system"]
    request = rs.build_request(
        history[:3],
        provider="anthropic",
        model="claude-opus-5",
        settings={"reasoning.includeInContext": True, "reasoning.stripFromContext": "none"},
    )

    assert request.body["messages"][1]["content"][:3] == [
        {"type": "thinking", "thinking": "I see 91.", "signature": dirty.SIGNATURE},
        {"type": "redacted_thinking", "data": dirty.CIPHER},
        {"type": "thinking", "thinking": "", "signature": dirty.SIGNATURE},
    ]


def test_a_cache_mark_belongs_to_one_request_and_is_not_imported() -> None:
    """Four of them in a history would be refused."""
    marked = {"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}
    found = messages(
        {"role": "user", "content": [marked]}, {"role": "assistant", "content": [marked]}
    )

    assert [message.blocks for message in found] == [(TextBlock(text="Hi"),)] * 2


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_a_users_and_a_tools_text_is_never_touched(text: str) -> None:
    """Neither tags nor NUL are taken out of what users and tools send."""
    said = text + "</think><think>"
    answer = {"type": "tool_result", "tool_use_id": "t", "content": said}
    one, two = messages({"role": "user", "content": said}, {"role": "user", "content": [answer]})

    assert one.text == said
    assert two.blocks == (ToolResponseBlock(call_id="t", result=said),)


def test_what_a_tool_answered_in_parts_stays_in_parts() -> None:
    """A picture among them is not turned into text."""
    answer = [{"type": "text", "text": "See"}, {"type": "image", "source": {"type": "url"}}]
    (found,) = messages(
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t", "content": answer}],
        }
    )

    assert found.blocks == (ToolResponseBlock(call_id="t", result=answer),)


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_message_of_no_form_is_refused_by_its_line(role: str) -> None:
    """The line is named, and nothing that stands there."""
    with pytest.raises(InvalidCall, match=r"^line 2: content is neither"):
        read({"role": "user", "content": "a"}, {"role": role, "content": 7})
