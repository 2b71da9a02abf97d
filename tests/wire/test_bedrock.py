"""Bedrock's Converse protocol: thinking that no one announces, bytes that come in pieces."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import botocore.session  # type: ignore[import-untyped]
import pytest
from botocore.eventstream import EventStream  # type: ignore[import-untyped]
from botocore.parsers import EventStreamJSONParser  # type: ignore[import-untyped]
from botocore.validate import ParamValidator  # type: ignore[import-untyped]

from reasoning_store.conversation import codec
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
    ErrorChunk,
)
from reasoning_store.ingress.normalizer import normalize_response
from reasoning_store.wire.bedrock.reader import (
    BedrockReader,
)
from tests.properties import each
from tests.wire.bedrock_events import (
    CASES,
    MODEL,
    chunks_of,
    delta,
    start,
    stop,
    streamed,
    thinking,
    whole,
)

NAMES = [case["name"] for case in CASES]


@pytest.fixture(scope="module")
def service() -> Any:
    return botocore.session.Session().get_service_model("bedrock-runtime")


def comparable(message: Message) -> list[dict[str, Any]]:
    """Blocks as JSON, but for the string of arguments, which only a stream has."""
    return [
        {name: value for name, value in block.items() if name != "arguments"}
        for block in codec.blocks_to_json(message.blocks)
    ]


def as_the_sdk_has_it(value: Any) -> Any:
    """A case's JSON with its marked bytes as bytes."""
    if isinstance(value, dict):
        if "$bytes_b64" in value:
            return base64.b64decode(value["$bytes_b64"])
        return {name: as_the_sdk_has_it(item) for name, item in value.items()}
    return [as_the_sdk_has_it(item) for item in value] if isinstance(value, list) else value


def on_the_wire(value: Any) -> Any:
    """A case's JSON as Bedrock writes it: bytes are plain base64."""
    if isinstance(value, dict):
        marked = value.get("$bytes_b64")
        return marked or {name: on_the_wire(item) for name, item in value.items()}
    return [on_the_wire(item) for item in value] if isinstance(value, list) else value


def through_botocore(service: Any, events: list[dict[str, Any]]) -> Iterator[Any]:
    """The events in the binary frames of AWS, decoded by botocore's own parser."""

    class Body:
        def stream(self) -> Iterator[bytes]:
            for event in events:
                ((name, payload),) = event.items()
                yield _frame(name, json.dumps(on_the_wire(payload)).encode())

    shape = service.shape_for("ConverseStreamOutput")
    stream: Iterator[Any] = iter(
        EventStream(Body(), shape, EventStreamJSONParser(), "ConverseStream")
    )
    return stream


def _frame(name: str, payload: bytes) -> bytes:
    values = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(
        struct.pack("!B", len(key))
        + key.encode()
        + struct.pack("!BH", 7, len(text))
        + text.encode()
        for key, text in values.items()
    )
    prelude = struct.pack("!II", 16 + len(headers) + len(payload), len(headers))
    message = prelude + struct.pack("!I", zlib.crc32(prelude)) + headers + payload
    return message + struct.pack("!I", zlib.crc32(message))


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_a_case_gives_the_same_blocks_whole_and_streamed(case: dict[str, Any]) -> None:
    """A message is the same however it came."""
    body = normalize_response(case["nonstream"], provider="aws", model=MODEL)

    assert comparable(body) == comparable(streamed(case["stream"]))


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_the_service_model_of_botocore_accepts_the_captured_shapes(
    case: dict[str, Any], service: Any
) -> None:
    """The cases are what the service can send, and the same with bytes as bytes."""
    body = as_the_sdk_has_it(case["nonstream"])
    body.setdefault("metrics", {"latencyMs": 1})  # required of a response, of no use to us
    events = service.shape_for("ConverseStreamOutput").members
    validator = ParamValidator()

    reports = [validator.validate(body, service.shape_for("ConverseResponse"))]
    for event in as_the_sdk_has_it(case["stream"]):
        ((name, payload),) = event.items()
        reports.append(validator.validate(payload, events[name]))

    assert [report.generate_report() for report in reports if report.has_errors()] == []


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_events_that_botocore_decodes_read_like_dicts(case: dict[str, Any], service: Any) -> None:
    """From AWS's binary frames to the same blocks; redacted content arrives as bytes."""
    events = list(through_botocore(service, case["stream"]))

    assert any(isinstance(value, bytes) for value in _leaves(events))
    assert comparable(streamed(events)) == comparable(streamed(case["stream"]))
    assert comparable(streamed(on_the_wire(case["stream"]))) == comparable(streamed(case["stream"]))


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item)
    else:
        yield value


def test_every_event_of_the_service_model_is_known(service: Any) -> None:
    """A member that the service can send is read; its exceptions are errors."""
    members = service.shape_for("ConverseStreamOutput").members

    exceptions = {name for name, shape in members.items() if shape.metadata.get("exception")}
    assert set(members) - set(BedrockReader.events) == exceptions
    for name in exceptions:
        assert chunks_of([{name: {"message": "x"}}]) == [ErrorChunk(raw={name: {"message": "x"}})]


# --- thinking --------------------------------------------------------------------------------


def test_thinking_opens_with_the_first_delta_of_its_index() -> None:
    """Nothing announces it, and a later index is another thought."""
    events = [
        thinking(0, text="One"),
        thinking(0, signature="s1"),
        stop(0),
        thinking(1, text="Two"),
        thinking(1, signature="s2"),
        stop(1),
    ]

    assert [(b.thought, b.signature) for b in streamed(events).thinking] == [
        ("One", "s1"),
        ("Two", "s2"),
    ]


def test_an_empty_thought_with_a_signature_is_a_block() -> None:
    """EC-002: a text that was left out must still go back, signed."""
    expected = ThinkingBlock(
        source_field="reasoningContent.reasoningText", signature="sig", is_hidden=True
    )
    events = [thinking(0, text=""), thinking(0, signature="sig"), stop(0)]
    block = {"reasoningContent": {"reasoningText": {"text": "", "signature": "sig"}}}

    assert streamed(events).blocks == (expected,)
    assert whole(block).blocks == (expected,)


def test_a_later_signature_replaces_an_earlier_one() -> None:
    """Signatures are whole; they are never pieces of one another."""
    events = [thinking(0, text="Hm", signature="a"), thinking(0, signature="b"), stop(0)]

    assert streamed(events).thinking[0].signature == "b"


def test_unsigned_thinking_is_kept_unsigned() -> None:
    """DeepSeek and gpt-oss sign nothing: the block is portable."""
    [block] = whole({"reasoningContent": {"reasoningText": {"text": "Hm"}}}).blocks

    assert isinstance(block, ThinkingBlock)
    assert (block.thought, block.opaque) == ("Hm", False)
    assert streamed([thinking(0, text="H"), thinking(0, text="m"), stop(0)]).blocks == (block,)


@pytest.mark.parametrize("form", [bytes, str, dict])
def test_redacted_content_in_pieces_is_joined_as_bytes(form: type) -> None:
    """The base64 of pieces is not the pieces of the base64."""
    data = b"cipher text of no length that base64 likes"
    pieces: list[Any] = [data[:5], data[5:6], data[6:]]
    if form is not bytes:
        pieces = [base64.b64encode(piece).decode() for piece in pieces]
    if form is dict:
        pieces = [{"$bytes_b64": piece} for piece in pieces]

    [block] = streamed([*(thinking(0, redactedContent=p) for p in pieces), stop(0)]).blocks

    assert isinstance(block, ThinkingBlock)
    assert block.encrypted == base64.b64encode(data).decode()
    assert (block.redacted, block.is_hidden) == (True, True)


def test_redacted_content_keeps_its_place() -> None:
    """It stands where it began, though it is only known at its stop."""
    events = [
        thinking(0, redactedContent=b"x"),
        delta(1, text="Yes"),
        {"messageStop": {"stopReason": "end_turn"}},
    ]

    assert [block.type for block in streamed(events).blocks] == ["thinking", "text"]


def test_a_part_of_a_ciphertext_is_no_ciphertext() -> None:
    """A stream that dies in it leaves nothing that could be sent back."""
    assert streamed([thinking(0, redactedContent=b"par")], interrupted=True).blocks == ()


def test_a_delta_that_does_not_fit_its_block_is_no_part_of_it() -> None:
    """The thought stays as it was, and what was said is not lost."""
    events = [thinking(0, text="Hm"), delta(0, text="Yes"), thinking(0, signature="s"), stop(0)]

    message = streamed(events)

    assert [(b.thought, b.signature) for b in message.thinking] == [("Hm", "s")]
    assert message.text == "Yes"


# --- text, calls, other blocks ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [([], {}), ([""], {}), (['{"city', '":"Oslo"}'], {"city": "Oslo"}), (['{"city'], None)],
)
def test_input_comes_in_pieces_or_not_at_all(pieces: list[str], expected: Any) -> None:
    """A call without pieces has no parameters; one cut short has none that can be read."""
    events = [
        start(0, toolUse={"toolUseId": "tu_1", "name": "f"}),
        *(delta(0, toolUse={"input": piece}) for piece in pieces),
        stop(0),
    ]

    [block] = streamed(events).blocks

    assert isinstance(block, ToolCallBlock)
    assert (block.id, block.name, block.parameters) == ("tu_1", "f", expected)


@pytest.mark.parametrize("kind", [{}, {"type": "tool_use"}])
def test_a_call_of_the_application_is_a_tool_call_whatever_its_type_says(
    kind: dict[str, str],
) -> None:
    """Claude 4.5 and later name the type of a call that is not a server's."""
    use = {"toolUseId": "tu_1", "name": "get_weather", **kind}
    events = [start(0, toolUse=use), delta(0, toolUse={"input": '{"city":"Oslo"}'}), stop(0)]
    call = ToolCallBlock(id="tu_1", name="get_weather", parameters={"city": "Oslo"})

    assert streamed(events).blocks == (replace(call, arguments='{"city":"Oslo"}'),)
    assert whole({"toolUse": {**use, "input": {"city": "Oslo"}}}).blocks == (call,)


def test_citations_stay_with_their_text() -> None:
    """Streamed next to the text, or whole in a block that holds both."""
    cited = [{"title": "A", "location": {"web": {"url": "https://a"}}}, {"title": "B"}]
    events = [
        delta(0, text="As "),
        delta(0, citation=cited[0]),
        delta(0, text="written."),
        delta(0, citation=cited[1]),
        stop(0),
    ]
    said = [{"text": "As "}, {"text": "written."}]
    block = {"citationsContent": {"content": said, "citations": cited}}

    expected = (TextBlock(text="As written.", provider_metadata={"citations": cited}),)
    assert streamed(events).blocks == expected
    assert whole(block).blocks == expected


def test_an_image_is_media_whole_and_in_pieces() -> None:
    """Bytes of its pieces are joined; an address is an address."""
    png = b"\x89PNG\r\n"
    expected = (MediaBlock(kind="image", mime_type="image/png", data=png),)
    events = [
        start(0, image={"format": "png"}),
        delta(0, image={"source": {"bytes": png[:3]}}),
        delta(0, image={"source": {"bytes": png[3:]}}),
        stop(0),
    ]

    assert streamed(events).blocks == expected
    assert whole({"image": {"format": "png", "source": {"bytes": png}}}).blocks == expected
    assert whole(
        {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://b/k"}}}}
    ).blocks == (MediaBlock(kind="image", mime_type="image/png", url="s3://b/k"),)


RAW: list[tuple[list[dict[str, Any]], dict[str, Any]]] = [
    (
        [
            start(0, toolUse={"toolUseId": "t", "name": "search", "type": "server_tool_use"}),
            delta(0, toolUse={"input": '{"q":'}),
            delta(0, toolUse={"input": "1}"}),
        ],
        {
            "toolUse": {
                "toolUseId": "t",
                "name": "search",
                "type": "server_tool_use",
                "input": {"q": 1},
            }
        },
    ),
    (
        [
            start(0, toolResult={"toolUseId": "t", "status": "success"}),
            delta(0, toolResult=[{"text": "4 C"}]),
            delta(0, toolResult=[{"json": {"x": 1}}]),
        ],
        {
            "toolResult": {
                "toolUseId": "t",
                "status": "success",
                "content": [{"text": "4 C"}, {"json": {"x": 1}}],
            }
        },
    ),
    (
        [start(0, image={"format": "png"}), delta(0, image={"error": {"message": "blocked"}})],
        {"image": {"format": "png", "error": {"message": "blocked"}}},
    ),
    ([start(0, blockOfNextYear={"x": 1})], {"blockOfNextYear": {"x": 1}}),
    (
        [start(0, image={"format": "png", "source": {"s3Location": {}}})],
        {"image": {"format": "png", "source": {"s3Location": {}}}},
    ),
]


@pytest.mark.parametrize(("events", "expected"), RAW, ids=[str(r[1])[:40] for r in RAW])
def test_every_other_block_is_kept_whole_with_its_deltas(
    events: list[dict[str, Any]], expected: dict[str, Any]
) -> None:
    """Streamed in pieces it is what a whole message would have held."""
    assert streamed([*events, stop(0)]).blocks == (RawBlock(data=expected),)
    assert whole(expected).blocks == (RawBlock(data=expected),)


def test_what_does_not_fit_a_block_that_is_kept_whole_is_not_put_in() -> None:
    """Input that is cut short stays the text that it is; a strange delta is unknown."""
    tool = {"toolUseId": "t", "name": "search", "type": "server_tool_use"}
    events = [
        start(0, toolUse=tool),
        delta(0, toolUse={"input": '{"q'}),
        delta(0, deltaOfNextYear={}),
        stop(0),
    ]

    message = streamed(events)

    assert message.blocks == (RawBlock(data={"toolUse": {**tool, "input": '{"q'}}),)
    assert (message.metadata or {})["unknownChunks"] == 1


def test_bytes_in_a_block_that_is_kept_whole_are_marked() -> None:
    """What is stored is JSON, and says which of its strings are bytes."""
    block = {"video": {"source": {"bytes": b"hi"}}}

    assert whole(block).blocks == (
        RawBlock(data={"video": {"source": {"bytes": {"$bytes_b64": "aGk="}}}}),
    )


# --- the message: usage, end, errors ----------------------------------------------------------


def test_usage_comes_after_the_end() -> None:
    """And stands, though later metadata has none."""
    reported = {
        "inputTokens": 20,
        "outputTokens": 30,
        "totalTokens": 62,
        "cacheReadInputTokens": 8,
        "cacheWriteInputTokens": 4,
    }
    events = [
        {"messageStart": {"role": "assistant"}},
        delta(0, text="Yes"),
        stop(0),
        {"messageStop": {"stopReason": "end_turn"}},
        {"metadata": {"usage": reported, "metrics": {"latencyMs": 1}}},
        {"metadata": {"metrics": {"latencyMs": 2}}},
    ]

    message = streamed(events)

    assert message.usage == Usage(input=32, output=30, cached=8, cache_write=4, raw=reported)
    assert whole({"text": "Yes"}, usage=reported).usage == message.usage
    assert message.finish_reason == "end_turn"


def test_usage_that_is_absent_is_not_zero() -> None:
    """The protocol has no count of reasoning."""
    usage = whole({"text": "Yes"}, usage={"outputTokens": 30}).usage

    assert usage == Usage(output=30, raw={"outputTokens": 30})


@each(
    "name",
    [
        "internalServerException",
        "modelStreamErrorException",
        "throttlingException",
        "validationException",
        "serviceUnavailableException",
        "modelTimeoutException",
    ],
)
def test_an_exception_in_the_stream_is_an_error(name: str) -> None:
    """What came before it survives, as an interrupted message."""
    event = {name: {"message": "Too many requests"}}

    message = streamed([thinking(0, text="Hm"), event])

    assert (message.status, message.thinking[0].thought) == ("interrupted", "Hm")
    assert (message.metadata or {})["error"] == event
