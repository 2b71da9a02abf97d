"""What the reader of already normalised events promises: hosts' own and the AI SDK's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reasoning_store.conversation.blocks import (
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Usage,
)
from reasoning_store.conversation.chunks import (
    Chunk,
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
)
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.ui_messages.reader import (
    UIMessageReader,
    parse_event,
)
from tests.properties import each
from tests.wire.thinking_streams import ANSWER, SIGNATURE, THOUGHT, host_events, snapshot, streamed

# One event, one meaning


def test_start_says_that_a_block_begins() -> None:
    """thinking_start is a chunk of phase start without text."""
    (chunk,) = parse_event({"type": "thinking_start", "contentIndex": 3}, "deepseek")
    expected = ReasoningChunk(
        provider="deepseek",
        phase="start",
        content_index=3,
        metadata={"sourceField": "thinking"},
    )

    assert chunk == expected


def test_delta_carries_its_text_as_it_came() -> None:
    """thinking_delta is a chunk of phase delta; its text is not trimmed or changed (P09)."""
    (chunk,) = parse_event(
        {"type": "thinking_delta", "contentIndex": 0, "delta": "  a <b>\n"}, "openai"
    )

    assert isinstance(chunk, ReasoningChunk)
    assert (chunk.phase, chunk.text, chunk.is_complete) == ("delta", "  a <b>\n", False)


def test_end_is_complete_and_repeats_the_whole_text() -> None:
    """thinking_end is a chunk of phase end that states the whole thought."""
    (chunk,) = parse_event(
        {"type": "thinking_end", "contentIndex": 0, "content": THOUGHT}, "anthropic"
    )

    assert isinstance(chunk, ReasoningChunk)
    assert (chunk.phase, chunk.text, chunk.is_complete) == ("end", THOUGHT, True)


@each(
    "event",
    [
        {"type": "thinking_delta", "contentIndex": 0, "delta": ""},
        {"type": "text_start", "contentIndex": 0},
        {"type": "text_delta", "contentIndex": 0, "delta": ""},
        {"type": "text_end", "contentIndex": 0, "content": "said already"},
        {"type": "toolcall_start", "contentIndex": 0},
        {"type": "start"},
        {"type": "start-step"},
        {"type": "finish-step"},
        {"type": "text-start", "id": "t"},
        {"type": "text-end", "id": "t"},
        {"type": "reasoning-delta", "id": "r", "delta": ""},
        {"type": "message-metadata", "messageMetadata": {"a": 1}},
        {"type": "data-status", "data": 1, "transient": True},
        {"type": "tool-output-available", "toolCallId": "c", "output": 1, "preliminary": True},
    ],
)
def test_event_that_says_nothing_gives_nothing(event: dict[str, Any]) -> None:
    """Known events without content are neither chunks nor unknown."""
    assert parse_event(event, "") == []


def test_end_that_repeats_does_not_double() -> None:
    """Deltas and an end with the same text are one thought, once."""
    message = streamed(host_events("Need the ", "weather tool."))

    assert message.blocks == (ThinkingBlock(thought=THOUGHT, source_field="thinking"),)


def test_end_fills_in_what_deltas_lacked() -> None:
    """A host that sends no deltas still gives the thought at its end."""
    events = host_events("Need the ", "weather tool.")
    message = streamed([events[0], events[1], events[-1]])

    assert [block.thought for block in message.thinking] == [THOUGHT]


def test_blocks_with_different_places_stay_apart() -> None:
    """Two consecutive thoughts are two blocks, in their order."""
    message = streamed([*host_events("one", place=0), *host_events("two", place=1)])

    assert [block.thought for block in message.thinking] == ["one", "two"]


def test_interleaved_blocks_stay_apart() -> None:
    """Pieces go to the block that their place names."""
    first, second = host_events("a1", "a2", place=0), host_events("b1", "b2", place=1)
    interleaved = [event for pair in zip(first, second, strict=True) for event in pair]

    assert [block.thought for block in streamed(interleaved).thinking] == ["a1a2", "b1b2"]


@pytest.mark.parametrize(
    ("event", "chunk"),
    [
        ({"delta": "x"}, "x"),
        ({"text": "x"}, "x"),
        ({"delta": "x", "contentIndex": 2}, "x"),
        ({"delta": "x", "content_index": 2}, "x"),
    ],
    ids=["no place", "text", "camel case", "snake case"],
)
def test_hosts_that_spell_a_delta_differently_are_read(event: dict[str, Any], chunk: str) -> None:
    """Field names are camel or snake case; a place may be missing."""
    (given,) = parse_event({"type": "thinking_delta"} | event, "")

    assert isinstance(given, ReasoningChunk)
    assert given.text == chunk
    assert given.content_index == (2 if len(event) == 2 else None)


# What a snapshot adds


def test_seal_is_taken_from_the_entry_that_ends() -> None:
    """The signature stands only in the snapshot's entry for the block."""
    message = streamed(host_events("Need the ", "weather tool.", seal=SIGNATURE))

    assert message.blocks == (
        ThinkingBlock(thought=THOUGHT, source_field="thinking", signature=SIGNATURE),
    )


def test_seal_on_the_event_itself_is_taken() -> None:
    """Hosts that send no snapshot put the signature next to the content."""
    message = streamed(
        [{"type": "thinking_end", "contentIndex": 0, "content": "t", "signature": SIGNATURE}]
    )

    assert message.thinking[0].signature == SIGNATURE


def test_a_field_name_is_no_seal() -> None:
    """Where a thought has no seal its place names the field that it came in."""
    message = streamed(host_events("t", seal="reasoning_content"))

    assert message.blocks == (ThinkingBlock(thought="t", source_field="thinking"),)


def test_redacted_block_is_its_data_without_the_placeholder() -> None:
    """The host's stand-in text for a redacted block is no one's thought."""
    entry = {
        "type": "thinking",
        "thinking": "[Reasoning redacted]",
        "thinkingSignature": SIGNATURE,
        "redacted": True,
    }
    end = {
        "type": "thinking_end",
        "contentIndex": 0,
        "content": "[Reasoning redacted]",
        "partial": snapshot(entry),
    }
    expected = ThinkingBlock(
        source_field="thinking", is_hidden=True, encrypted=SIGNATURE, redacted=True
    )

    assert streamed([{"type": "thinking_start", "contentIndex": 0}, end]).blocks == (expected,)


def test_the_rest_of_a_snapshot_is_not_said_again() -> None:
    """What was said before stands in every snapshot and counts once."""
    said = snapshot({"type": "thinking", "thinking": "t"}, {"type": "text", "text": ANSWER})
    message = streamed(
        [
            *host_events("t"),
            {"type": "text_start", "contentIndex": 1, "partial": said},
            {"type": "text_delta", "contentIndex": 1, "delta": ANSWER, "partial": said},
            {"type": "text_end", "contentIndex": 1, "content": ANSWER, "partial": said},
            {"type": "done", "reason": "stop", "message": said},
        ]
    )

    assert message.text == ANSWER
    assert [block.thought for block in message.thinking] == ["t"]


def test_seal_of_a_text_goes_with_the_text() -> None:
    """A text's own opaque data survives on its block."""
    entry = {"type": "text", "text": "a", "textSignature": "msg_1"}
    message = streamed(
        [
            {"type": "text_delta", "contentIndex": 0, "delta": "a"},
            {"type": "text_end", "contentIndex": 0, "content": "a", "partial": snapshot(entry)},
        ]
    )

    assert message.blocks == (TextBlock(text="a", provider_metadata={"textSignature": "msg_1"}),)


# Calls, end, error


def test_tool_call_is_built_from_its_pieces() -> None:
    """Start, pieces of the arguments and the end give one call with all its fields."""
    call = {"id": "c1", "name": "get_weather", "arguments": {"city": "Oslo"}}
    message = streamed(
        [
            {"type": "toolcall_start", "contentIndex": 1, "partial": snapshot({}, call)},
            {"type": "toolcall_delta", "contentIndex": 1, "delta": '{"city":'},
            {"type": "toolcall_delta", "contentIndex": 1, "delta": '"Oslo"}'},
            {
                "type": "toolcall_end",
                "contentIndex": 1,
                "toolCall": call | {"thoughtSignature": SIGNATURE},
            },
        ]
    )
    expected = ToolCallBlock(
        id="c1",
        name="get_weather",
        parameters={"city": "Oslo"},
        arguments='{"city":"Oslo"}',
        provider_metadata={"thoughtSignature": SIGNATURE},
    )

    assert message.blocks == (expected,)


def test_call_that_only_ends_is_whole() -> None:
    """The end alone carries id, name and arguments."""
    (chunk,) = parse_event(
        {"type": "toolcall_end", "toolCall": {"id": "c1", "name": "f", "arguments": {"a": 1}}}, ""
    )

    assert isinstance(chunk, ToolCallChunk)
    assert (chunk.id, chunk.name, chunk.parameters, chunk.is_complete) == (
        "c1",
        "f",
        {"a": 1},
        True,
    )


def test_done_reports_reason_usage_and_model() -> None:
    """The last event says why it ended, what it used and who answered."""
    usage = {"input": 20, "output": 30, "cacheRead": 5, "totalTokens": 55}
    done = {"role": "assistant", "content": [], "model": "m-1", "usage": usage}
    message = streamed([*host_events("t"), {"type": "done", "reason": "toolUse", "message": done}])

    assert message.finish_reason == "toolUse"
    assert message.usage == Usage(input=25, output=30, cached=5, raw=usage)
    assert message.origin is not None
    assert message.origin.model == "m-1"


def test_error_interrupts_and_does_not_keep_a_second_copy() -> None:
    """The message in an error event repeats what was said: only the error of it is kept."""
    failed = snapshot({"type": "thinking", "thinking": "t"}) | {"errorMessage": "overloaded"}
    message = streamed([*host_events("t"), {"type": "error", "reason": "error", "error": failed}])

    assert message.status == "interrupted"
    assert [block.thought for block in message.thinking] == ["t"]
    assert "content" not in json.dumps(message.metadata)
    assert "overloaded" in json.dumps(message.metadata)


# The adapter


def test_adapter_reads_what_parse_event_reads() -> None:
    """The protocol's adapter adds nothing to an event's meaning."""
    adapter = UIMessageReader(Contract(api="thinking_events", provider="vercel-ai-sdk"))
    events = host_events("a", "b", seal=SIGNATURE)
    expected: list[Chunk] = [chunk for e in events for chunk in parse_event(e, "vercel-ai-sdk")]

    assert [chunk for event in events for chunk in adapter.parse_chunk(event)] == expected


def test_reset_forgets_the_steps() -> None:
    """After a reset the next event is the first of another stream."""
    adapter = UIMessageReader(Contract(api="thinking_events"))
    piece = {"type": "text-delta", "id": "0", "delta": "a"}
    first = adapter.parse_chunk(piece)
    for _ in range(3):
        adapter.parse_chunk({"type": "start-step"})
    later = adapter.parse_chunk(piece)
    adapter.reset()

    assert later != first
    assert adapter.parse_chunk(piece) == first


def test_text_delta_is_visible_text() -> None:
    """text_delta is text, in the block that its place names."""
    assert parse_event({"type": "text_delta", "contentIndex": 1, "delta": "a"}, "") == [
        TextChunk(text="a", content_index=1)
    ]
