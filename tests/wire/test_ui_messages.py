"""The AI SDK's stream and its whole messages, and the faults in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reasoning_store.conversation.blocks import (
    MediaBlock,
    Message,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from reasoning_store.conversation.chunks import (
    ErrorChunk,
    FinishChunk,
    ReasoningChunk,
    UnknownChunk,
)
from reasoning_store.conversation.errors import WireError
from reasoning_store.ingress.normalizer import normalize_response
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.ui_messages.reader import (
    parse_event,
    parse_response,
)
from tests.properties import each
from tests.wire.thinking_streams import ANSWER, SIGNATURE, THOUGHT, host_events, streamed
from tests.wire.well_formed import assert_no_trace_of

CASES = Path(__file__).parents[1] / "cases" / "wire"


def whole(body: Any) -> Message:
    return normalize_response(body, api="thinking_events")


# The AI SDK's stream


def case() -> dict[str, Any]:
    variant: dict[str, Any] = json.loads((CASES / "vercel_ai_ui.json").read_text())["variants"][0]
    return variant


def test_ui_stream_and_ui_message_are_the_same_blocks() -> None:
    """A UI message as it streams and as it is afterwards give one result."""
    assert streamed(case()["stream"]).blocks == whole(case()["nonstream"]).blocks


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"anthropic": {"signature": "s"}}, {"signature": "s"}),
        ({"anthropic": {"redactedData": "d"}}, {"encrypted": "d", "redacted": True}),
        ({"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "e"}}, {"encrypted": "e"}),
        ({"azure": {"itemId": "rs_1", "reasoningEncryptedContent": None}}, {}),
        ({"google": {"thoughtSignature": "g"}}, {"signature": "g"}),
    ],
    ids=["anthropic", "redacted", "openai", "nothing sealed", "google"],
)
def test_every_providers_seal_is_found(data: dict[str, Any], expected: dict[str, Any]) -> None:
    """Signatures and ciphertext are read from the provider's metadata, which is kept too."""
    text = "" if expected.get("redacted") else "t"
    part = {"type": "reasoning", "text": text, "providerMetadata": data}
    events = [
        {"type": "reasoning-start", "id": "r"},
        {"type": "reasoning-delta", "id": "r", "delta": text},
        {"type": "reasoning-end", "id": "r", "providerMetadata": data},
    ]
    block = ThinkingBlock(
        thought=text,
        source_field="reasoning",
        is_hidden=not text,
        provider_metadata={"vercel": data},
        **expected,
    )

    assert streamed(events).blocks == (block,)
    assert whole({"role": "assistant", "parts": [part]}).blocks == (block,)


def test_signature_on_an_empty_delta_is_kept() -> None:
    """Some providers seal a thought with a delta that has no text."""
    seal = {"anthropic": {"signature": SIGNATURE}}
    message = streamed(
        [
            {"type": "reasoning-start", "id": "r"},
            {"type": "reasoning-delta", "id": "r", "delta": "t"},
            {"type": "reasoning-delta", "id": "r", "delta": "", "providerMetadata": seal},
            {"type": "reasoning-end", "id": "r"},
        ]
    )

    assert message.thinking[0].signature == SIGNATURE


def test_opaque_data_on_text_survives() -> None:
    """A text part's provider metadata stays with its block."""
    data = {"openai": {"itemId": "msg_1"}}
    events = [
        {"type": "text-start", "id": "t", "providerMetadata": data},
        {"type": "text-delta", "id": "t", "delta": "a"},
        {"type": "text-end", "id": "t"},
    ]
    expected = (TextBlock(text="a", provider_metadata={"vercel": data}),)

    assert streamed(events).blocks == expected
    assert whole({"parts": [{"type": "text", "text": "a", "providerMetadata": data}]}).blocks == (
        expected
    )


def test_ids_may_interleave() -> None:
    """Pieces go to the part that their id names."""
    events = [
        {"type": "reasoning-start", "id": "a"},
        {"type": "reasoning-start", "id": "b"},
        {"type": "reasoning-delta", "id": "a", "delta": "a1"},
        {"type": "reasoning-delta", "id": "b", "delta": "b1"},
        {"type": "reasoning-delta", "id": "a", "delta": "a2"},
        {"type": "reasoning-end", "id": "b"},
        {"type": "reasoning-end", "id": "a"},
    ]

    assert [block.thought for block in streamed(events).thinking] == ["a1a2", "b1"]


def test_an_id_used_again_in_the_next_step_is_another_part() -> None:
    """Ids are unique only within a step: the second text is a text of its own."""
    step = [
        {"type": "start-step"},
        {"type": "text-start", "id": "0"},
        {"type": "text-delta", "id": "0", "delta": "said"},
        {"type": "text-end", "id": "0"},
        {"type": "finish-step"},
    ]

    assert [block.text for block in streamed(step * 2).blocks if block.type == "text"] == [
        "said",
        "said",
    ]


def test_tool_input_is_a_call_and_its_output_is_kept() -> None:
    """A call that the host ran stands in the message with what came of it."""
    output = {"type": "tool-output-available", "toolCallId": "c1", "output": {"t": 4}}
    data = {"google": {"thoughtSignature": SIGNATURE}}
    streamed_message = streamed(
        [
            {"type": "tool-input-start", "toolCallId": "c1", "toolName": "get_weather"},
            {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": '{"city":"Oslo"}'},
            {
                "type": "tool-input-available",
                "toolCallId": "c1",
                "toolName": "get_weather",
                "input": {"city": "Oslo"},
                "providerMetadata": data,
            },
            output,
        ]
    )
    part = {
        "type": "tool-get_weather",
        "toolCallId": "c1",
        "state": "output-available",
        "input": {"city": "Oslo"},
        "output": {"t": 4},
        "callProviderMetadata": data,
    }
    call = ToolCallBlock(
        id="c1",
        name="get_weather",
        parameters={"city": "Oslo"},
        provider_metadata={"vercel": data},
    )

    assert whole({"parts": [part]}).blocks == (call, RawBlock(data=output))
    assert streamed_message.tool_calls[0].parameters == call.parameters
    assert streamed_message.tool_calls[0].provider_metadata == call.provider_metadata
    assert streamed_message.blocks[1:] == (RawBlock(data=output),)


def test_failed_output_is_kept() -> None:
    """An error of a tool is what came of the call."""
    part = {
        "type": "dynamic-tool",
        "toolName": "f",
        "toolCallId": "c1",
        "state": "output-error",
        "input": {},
        "errorText": "no network",
    }
    error = {"type": "tool-output-error", "toolCallId": "c1", "errorText": "no network"}

    assert whole({"parts": [part]}).blocks == (
        ToolCallBlock(id="c1", name="f", parameters={}),
        RawBlock(data=error),
    )


@pytest.mark.parametrize(
    "part",
    [
        {"type": "data-weather", "id": "d1", "data": {"t": 4}},
        {"type": "source-url", "sourceId": "s1", "url": "https://example.test"},
        {"type": "source-document", "sourceId": "s2", "mediaType": "text/plain", "title": "x"},
    ],
    ids=lambda part: part["type"],
)
def test_parts_without_a_block_of_ours_are_kept_as_they_came(part: dict[str, Any]) -> None:
    """Data and source parts survive whole, streamed or not."""
    assert streamed([part]).blocks == (RawBlock(data=part),)
    assert whole({"parts": [part]}).blocks == (RawBlock(data=part),)


def test_file_is_media() -> None:
    """A file part is a media block with its address."""
    part = {"type": "file", "mediaType": "image/png", "url": "https://example.test/a.png"}
    expected = MediaBlock(kind="image", mime_type="image/png", url="https://example.test/a.png")

    assert streamed([part]).blocks == (expected,)
    assert whole({"parts": [part]}).blocks == (expected,)


def test_finish_carries_the_reason_where_there_is_one() -> None:
    """The reason is the host's; a finish without one still ends the message."""
    assert parse_event({"type": "finish", "finishReason": "stop"}, "") == [
        FinishChunk(reason="stop")
    ]
    assert parse_event({"type": "finish"}, "") == [FinishChunk(reason=None)]


@pytest.mark.parametrize(
    "event", [{"type": "error", "errorText": "x"}, {"type": "abort", "reason": "user"}]
)
def test_error_and_abort_interrupt(event: dict[str, Any]) -> None:
    """What arrived before them is kept, as an interrupted message."""
    message = streamed([{"type": "text-delta", "id": "t", "delta": "half"}, event])

    assert (message.status, message.text) == ("interrupted", "half")
    assert parse_event(event, "") == [ErrorChunk(raw=event)]


# Whole messages of older and other forms


def test_version_4_details_are_blocks_of_their_own() -> None:
    """Each detail has its own seal; the flat string only repeats them."""
    part = {
        "type": "reasoning",
        "reasoning": "onetwo",
        "details": [
            {"type": "text", "text": "one", "signature": SIGNATURE},
            {"type": "redacted", "data": "ZGF0YQ=="},
            {"type": "text", "text": "two"},
        ],
    }

    assert whole({"role": "assistant", "parts": [part]}).blocks == (
        ThinkingBlock(thought="one", source_field="reasoning", signature=SIGNATURE),
        ThinkingBlock(
            source_field="reasoning", is_hidden=True, encrypted="ZGF0YQ==", redacted=True
        ),
        ThinkingBlock(thought="two", source_field="reasoning"),
    )


def test_version_4_reasoning_without_details_is_its_string() -> None:
    """The flat string is the thought where nothing else holds it."""
    part = {"type": "reasoning", "reasoning": THOUGHT, "details": []}

    assert whole({"parts": [part]}).blocks == (
        ThinkingBlock(thought=THOUGHT, source_field="reasoning"),
    )


def test_version_4_invocation_is_a_call() -> None:
    """A tool invocation is a call, and its result is kept."""
    invocation = {
        "state": "result",
        "toolCallId": "c1",
        "toolName": "f",
        "args": {"a": 1},
        "result": 2,
    }
    message = whole({"parts": [{"type": "tool-invocation", "toolInvocation": invocation}]})

    assert message.tool_calls == (ToolCallBlock(id="c1", name="f", parameters={"a": 1}),)
    assert message.blocks[1] == RawBlock(
        data={"toolCallId": "c1", "type": "tool-output-available", "output": 2}
    )


def test_a_whole_message_gives_the_blocks_of_its_stream() -> None:
    """The content list of a finished message says what its events said."""
    body = {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": THOUGHT, "thinkingSignature": SIGNATURE},
            {"type": "text", "text": ANSWER},
            {"type": "toolCall", "id": "c1", "name": "f", "arguments": {"a": 1}},
        ],
        "stopReason": "toolUse",
        "usage": {"input": 1, "output": 2},
    }
    message = whole(body)

    assert message.blocks == (
        ThinkingBlock(thought=THOUGHT, source_field="thinking", signature=SIGNATURE),
        TextBlock(text=ANSWER),
        ToolCallBlock(id="c1", name="f", parameters={"a": 1}),
    )
    assert message.finish_reason == "toolUse"


def test_model_message_is_read_like_a_ui_message() -> None:
    """The SDK's model messages have a content list, and options instead of metadata."""
    options = {"anthropic": {"signature": SIGNATURE}}
    body = {
        "role": "assistant",
        "content": [
            {"type": "reasoning", "text": THOUGHT, "providerOptions": options},
            {"type": "text", "text": ANSWER},
            {"type": "tool-call", "toolCallId": "c1", "toolName": "f", "input": {}},
        ],
    }

    assert [block.type for block in whole(body).blocks] == ["thinking", "text", "tool_call"]
    assert whole(body).thinking[0].signature == SIGNATURE


@each("body", [None, [], "x", {}, {"parts": 1}, {"parts": [], "role": "user"}])
def test_body_of_another_form_is_refused(body: Any) -> None:
    """What is no message is a WireError, not an empty message."""
    with pytest.raises(WireError):
        parse_response(body, Contract(api="thinking_events"))


# What is wrong is counted, and changes nothing


MALFORMED: list[Any] = [
    None,
    7,
    "thinking_delta",
    [],
    {},
    {"type": None},
    {"type": ["thinking_delta"]},
    {"type": "thinking_delta"},
    {"type": "thinking_delta", "delta": None},
    {"type": "thinking_delta", "delta": 3},
    {"type": "thinking_delta", "delta": "x", "contentIndex": float("nan")},
    {"type": "thinking_delta", "delta": "x", "contentIndex": "0"},
    {"type": "thinking_delta", "delta": "x", "contentIndex": -1},
    {"type": "thinking_start", "contentIndex": True},
    {"type": "thinking_end", "content": ["x"]},
    {"type": "text_delta", "delta": {}},
    {"type": "toolcall_delta", "contentIndex": None, "delta": "x"},
    {"type": "toolcall_end", "contentIndex": 0},
    {"type": "toolcall_end", "contentIndex": 0, "toolCall": "x"},
    {"type": "toolcall_end", "contentIndex": 0, "toolCall": {"id": 1}},
    {"type": "done", "reason": {}},
    {"type": "reasoning-delta", "id": 1, "delta": "x"},
    {"type": "reasoning-delta", "id": "r"},
    {"type": "reasoning-end", "id": "r", "providerMetadata": []},
    {"type": "text-delta", "id": "t", "delta": None},
    {"type": "tool-input-start", "toolCallId": None, "toolName": "f"},
    {"type": "tool-input-available", "toolCallId": "c", "toolName": 1},
    {"type": "finish", "finishReason": 1},
    {"type": "file", "mediaType": "image/png", "data": "not base64!"},
    {"type": "never_heard_of"},
    {"type": "x" * 1000},
]


def test_a_malformed_event_is_one_unknown_chunk_and_leaves_no_trace() -> None:
    """However much of it is wrong, it counts once, and the good ones give what they give."""
    for good in ([*host_events("Need the ", "weather tool.", seal=SIGNATURE)], case()["stream"]):
        assert_no_trace_of(MALFORMED, "thinking_events", good)


@each("part", [None, 1, {}, {"type": 1}, {"type": "text"}, {"type": "reasoning", "text": 1}])
def test_malformed_part_leaves_the_others(part: Any) -> None:
    """A whole message with a bad part is its good parts."""
    message = whole({"parts": [{"type": "text", "text": "a"}, part]})

    assert message.text == "a"
    assert message.metadata is not None
    assert message.metadata["unknownChunks"] == 1


def test_bad_detail_leaves_the_other_details() -> None:
    """One broken entry of a list is not the end of the list."""
    part = {"type": "reasoning", "details": [{"type": "text", "text": "a"}, {"type": "text"}, 3]}
    chunks = parse_response({"parts": [part]}, Contract(api="thinking_events"))
    kinds = [type(chunk) for chunk in chunks]

    assert kinds == [ReasoningChunk, UnknownChunk, UnknownChunk, FinishChunk]
