"""What the reader of already normalised events promises: hosts' own and the AI SDK's."""

from __future__ import annotations

import json
from collections.abc import Iterable
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
    Usage,
)
from reasoning_store.conversation.chunks import (
    Chunk,
    ErrorChunk,
    FinishChunk,
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
    UnknownChunk,
)
from reasoning_store.conversation.errors import WireError
from reasoning_store.ingress.normalizer import StreamNormalizer, normalize_response
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.ui_messages.reader import (
    UIMessageReader,
    parse_event,
    parse_response,
)
from tests.properties import each

CASES = Path(__file__).parents[1] / "cases" / "wire"
SIGNATURE = "c2lnLWFiYw=="
THOUGHT = "Need the weather tool."
ANSWER = "It is 4 C in Oslo."


def streamed(events: Iterable[Any]) -> Message:
    normalizer = StreamNormalizer(api="thinking_events")
    for event in events:
        normalizer.feed(event)
    return normalizer.finish()


def whole(body: Any) -> Message:
    return normalize_response(body, api="thinking_events")


def snapshot(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(entries), "model": "m-1", "usage": {"input": 0}}


def host_events(
    *pieces: str, seal: str | None = None, place: int = 0, repeats: bool = True
) -> list[dict[str, Any]]:
    """One thinking block as such hosts send it."""
    entry = {"type": "thinking", "thinking": "".join(pieces)}
    sealed = entry | ({"thinkingSignature": seal} if seal else {})
    end: dict[str, Any] = {"type": "thinking_end", "contentIndex": place}
    if repeats:
        end |= {"content": "".join(pieces)}
    content = [{"type": "text", "text": ""}] * place + [sealed]
    return [
        {"type": "thinking_start", "contentIndex": place, "partial": snapshot()},
        *(
            {"type": "thinking_delta", "contentIndex": place, "delta": piece, "partial": {}}
            for piece in pieces
        ),
        end | {"partial": snapshot(*content)},
    ]


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


@each("event", MALFORMED)
def test_malformed_event_is_one_unknown_chunk(event: Any) -> None:
    """Wrong types, missing fields and unknown events are counted one by one."""
    assert [type(chunk) for chunk in parse_event(event, "")] == [UnknownChunk]


@pytest.mark.parametrize(
    "good", [[*host_events("Need the ", "weather tool.", seal=SIGNATURE)], case()["stream"]]
)
def test_malformed_events_do_not_change_the_good_ones(good: list[Any]) -> None:
    """With bad events between all good ones the blocks are the same, and each is counted."""
    mixed = [event for one in good for event in (*MALFORMED, one)]
    message = streamed(mixed)

    assert message.blocks == streamed(good).blocks
    assert message.metadata is not None
    assert message.metadata["unknownChunks"] == len(MALFORMED) * len(good)


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


@pytest.mark.parametrize(
    ("provider", "expected"),
    [("vercel-ai-sdk", True), ("openai", False), ("nobody", False), ("", False), (None, False)],
)
def test_adapter_handles_only_hosts_that_speak_it(provider: str | None, expected: bool) -> None:
    """A host is known to send such events, or it is not."""
    assert UIMessageReader(Contract(api="thinking_events")).can_handle("m", provider) is expected


def test_text_delta_is_visible_text() -> None:
    """text_delta is text, in the block that its place names."""
    assert parse_event({"type": "text_delta", "contentIndex": 1, "delta": "a"}, "") == [
        TextChunk(text="a", content_index=1)
    ]
