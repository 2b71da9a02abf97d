"""Bedrock's Converse protocol: thinking that no one announces, bytes that come in pieces."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

# botocore has no types of its own.
import botocore.session  # type: ignore[import-untyped]
import pytest
from botocore.eventstream import EventStream  # type: ignore[import-untyped]
from botocore.parsers import EventStreamJSONParser  # type: ignore[import-untyped]
from botocore.validate import ParamValidator  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

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
    Chunk,
    ErrorChunk,
    TextChunk,
    UnknownChunk,
)
from reasoning_store.conversation.errors import WireError
from reasoning_store.ingress.normalizer import StreamNormalizer, normalize_response
from reasoning_store.wire import contracts
from reasoning_store.wire.bedrock.reader import (
    BedrockReader,
    parse_response,
)
from tests.properties import each
from tests.wire.steps import steps

API = "bedrock.converse"
CASES = json.loads(
    (Path(__file__).parents[1] / "cases/wire/bedrock_converse.json").read_text(encoding="utf-8")
)["variants"]
NAMES = [case["name"] for case in CASES]
FIRST = CASES[0]
FIELD = "reasoningContent.reasoningText"
MODEL = "us.anthropic.claude-opus-5-v1:0"
CONTRACT = contracts.resolve("aws", MODEL)


@pytest.fixture(scope="module")
def service() -> Any:
    return botocore.session.Session().get_service_model("bedrock-runtime")


def streamed(events: list[Any], *, interrupted: bool = False) -> Message:
    normalizer = StreamNormalizer(provider="aws", model=MODEL)
    for event in events:
        normalizer.feed(event)
    return normalizer.finish(interrupted=interrupted)


def whole(*content: Any, **fields: Any) -> Message:
    body = {"output": {"message": {"role": "assistant", "content": list(content)}}, **fields}
    return normalize_response(body, provider="aws", model=MODEL)


def chunks_of(events: list[Any]) -> list[Chunk]:
    adapter = BedrockReader(CONTRACT)
    return [chunk for event in events for chunk in adapter.parse_chunk(event)]


def start(index: int, **block: Any) -> dict[str, Any]:
    return {"contentBlockStart": {"contentBlockIndex": index, "start": block}}


def delta(index: int, **fields: Any) -> dict[str, Any]:
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": fields}}


def thinking(index: int, **fields: Any) -> dict[str, Any]:
    return delta(index, reasoningContent=fields)


def stop(index: int) -> dict[str, Any]:
    return {"contentBlockStop": {"contentBlockIndex": index}}


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


# --- what cannot be read ----------------------------------------------------------------------

MALFORMED: list[Any] = [
    None,
    5,
    "messageStart",
    [],
    {},
    {"type": "text_delta"},
    {"SDK_UNKNOWN_MEMBER": {"name": "eventOfNextYear"}},
    {"messageStart": None},
    {"messageStart": {}},
    {"messageStop": {"stopReason": None}},
    {"messageStop": {"stopReason": "a"}, "metadata": {}},
    {"metadata": 5},
    {"throttlingException": "x"},
    {"contentBlockStart": {"contentBlockIndex": 0}},
    start(0, toolUse={"toolUseId": 5, "name": "f"}),
    start(0, toolUse={"toolUseId": "tu_1"}),
    start(0, toolUse="x"),
    {"contentBlockDelta": {"contentBlockIndex": 0}},
    {"contentBlockDelta": {"delta": {"text": "x"}}},
    delta(0),
    delta(0, text=5),
    delta(0, text="a", toolUse={"input": "b"}),
    delta(0, deltaOfNextYear="x"),
    delta(0, citation=5),
    delta(7, toolUse={"input": "{}"}),
    delta(0, toolUse={}),
    thinking(0),
    thinking(0, ofNextYear="x"),
    thinking(0, text=5),
    thinking(0, signature=[]),
    thinking(0, text="a", redactedContent=b"b"),
    thinking(0, redactedContent=5),
    thinking(0, redactedContent="not base64!"),
    delta(0, reasoningContent="x"),
    {"contentBlockDelta": {"contentBlockIndex": float("nan"), "delta": {"text": "x"}}},
    {"contentBlockDelta": {"contentBlockIndex": True, "delta": {"text": "x"}}},
    {"contentBlockStop": {}},
    {"contentBlockStop": {"contentBlockIndex": -1}},
]


@each("event", MALFORMED)
def test_a_malformed_event_is_one_unknown_chunk(event: Any) -> None:
    """However much of it is wrong, it counts once, and nothing is raised."""
    assert chunks_of([event]) == [UnknownChunk(raw=event)]


@each("event", MALFORMED)
def test_a_malformed_event_leaves_no_trace(event: Any) -> None:
    """The good events around it give the message that they give without it."""
    good = FIRST["stream"]

    clean = streamed(good)
    message = streamed([event, *(item for one in good for item in (one, event))])

    assert message.blocks == clean.blocks
    assert (message.usage, message.finish_reason) == (clean.usage, clean.finish_reason)
    assert (message.metadata or {})["unknownChunks"] == len(good) + 1


def test_the_good_parts_of_a_response_count_and_its_bad_ones_are_one_unknown() -> None:
    """A whole response is one event."""
    bad = [
        5,
        {},
        {"text": 5},
        {"reasoningContent": {}},
        {"citationsContent": {}},
        {"image": {"format": "png", "source": {"bytes": 5}}},
    ]

    message = whole({"text": "Yes"}, *bad, usage=5, stopReason=5)

    assert (message.text, len(message.blocks)) == ("Yes", 1)
    assert (message.metadata or {})["unknownChunks"] == 1


def test_events_that_a_host_normalised_already_are_read() -> None:
    """The hosts' own vocabulary is not this protocol's, and is understood all the same."""
    message = streamed(
        [
            {"type": "thinking_delta", "contentIndex": 0, "delta": "Hm"},
            {"type": "thinking_end", "contentIndex": 0, "content": "Hm"},
            {"type": "text_delta", "contentIndex": 1, "delta": "Yes"},
        ]
    )

    assert ([block.thought for block in message.thinking], message.text) == (["Hm"], "Yes")


def test_reset_forgets_the_stream() -> None:
    """The next stream numbers its blocks anew, and starts from nothing."""
    adapter = BedrockReader(CONTRACT)
    first = [adapter.parse_chunk(event) for event in FIRST["stream"][:4]]
    adapter.reset()

    assert [adapter.parse_chunk(event) for event in FIRST["stream"][:4]] == first


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.binary()
NESTED = st.recursive(
    VALUES,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                [
                    "text",
                    "signature",
                    "redactedContent",
                    "toolUse",
                    "toolResult",
                    "image",
                    "input",
                    "citation",
                    "source",
                    "bytes",
                    "reasoningContent",
                    "toolUseId",
                    "name",
                ]
            ),
            inner,
            max_size=2,
        )
    ),
    max_leaves=6,
)


@given(
    st.lists(
        st.builds(
            lambda name, index, field, value: {name: {"contentBlockIndex": index, field: value}},
            st.sampled_from([*BedrockReader.events, "throttlingException"]),
            st.integers(0, 2) | VALUES,
            st.sampled_from(["start", "delta", "usage", "stopReason", "role"]),
            NESTED,
        ),
        max_size=8,
    )
)
def test_no_event_raises_and_none_is_unknown_twice(events: list[dict[str, Any]]) -> None:
    """Whatever stands in the members of a known event."""
    adapter = BedrockReader(CONTRACT)

    for event in events:
        assert sum(chunk.type == "unknown" for chunk in adapter.parse_chunk(event)) <= 1


def test_long_blocks_are_read_in_steps_in_proportion() -> None:
    """The last of many deltas and pieces of bytes costs what the first one did."""

    def work(count: int) -> int:
        events = [delta(0, text="word ")] * count
        events += [delta(0, citation={"title": "A"})] * count
        events += [thinking(1, redactedContent=b"bytes ")] * count
        return steps(lambda: chunks_of([*events, stop(0), stop(1)]))


@each(
    "body",
    [None, 5, [], {}, {"output": "secret"}, {"output": {"message": {"content": "secret"}}}],
)
def test_a_body_of_another_form_is_refused_without_its_content(body: Any) -> None:
    """The error names what is missing and repeats nothing of the conversation."""
    with pytest.raises(WireError) as caught:
        parse_response(body, CONTRACT)

    assert str(caught.value).startswith("bedrock.converse: ")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("provider", "model", "echo", "opaque", "signed", "floor"),
    [
        (None, None, "reasoningContent.reasoningText", True, False, "none"),
        ("aws", MODEL, "reasoningContent.reasoningText", True, True, "open_turn_with_call"),
        ("aws", "us.deepseek.r1-v1:0", None, False, False, "none"),
        (
            "bedrock",
            "openai.gpt-oss-120b-1:0",
            "reasoningContent.reasoningText",
            True,
            False,
            "none",
        ),
    ],
)
def test_the_rows_of_the_protocol(
    provider: str | None,
    model: str | None,
    echo: str | None,
    opaque: bool,
    signed: bool,
    floor: str,
) -> None:
    """Claude refuses unsigned thoughts, DeepSeek any, the others neither."""
    row = contracts.resolve(provider, model, API)

    assert (row.provider, row.reading.tags) == (None if provider is None else "aws", False)
    assert (
        row.returning.returns_in,
        row.returning.opaque,
        row.returning.signed,
        row.returning.floor,
    ) == (echo, opaque, signed, floor)


def test_claude_on_bedrock_is_a_family_of_its_own() -> None:
    """Its signatures are not read by the other models there."""
    claude, other = contracts.resolve("aws", MODEL), contracts.resolve("aws", "amazon.nova-2")

    assert contracts.family(claude) != contracts.family(other)


def test_the_adapter_is_for_hosts_that_speak_the_protocol() -> None:
    """AWS under each of its names."""
    adapter = BedrockReader(CONTRACT)

    assert adapter.id == API
    assert adapter.can_handle(MODEL, "aws")
    assert adapter.can_handle(None, "bedrock")
    assert not adapter.can_handle(MODEL, "anthropic")
    assert not adapter.can_handle(MODEL, None)


def test_fields_of_the_whole_response_are_kept_with_it() -> None:
    """Fields that were asked for by path, and what a guardrail found, belong to no block."""
    fields, trace = {"stop_sequence": "##"}, {"guardrail": {"modelOutput": ["x"]}}
    events = [
        {"messageStop": {"stopReason": "end_turn", "additionalModelResponseFields": fields}},
        {"metadata": {"metrics": {"latencyMs": 1}, "trace": trace}},
    ]
    body = whole(stopReason="end_turn", additionalModelResponseFields=fields, trace=trace)
    kept = {"additionalModelResponseFields": fields, "trace": trace}

    assert streamed(events).metadata == body.metadata == {"providerMetadata": kept}


def test_a_block_of_a_hosted_tool_that_was_cut_off_is_kept() -> None:
    """It is stated whole at its end, and the stream has none: what came of it is there."""
    start = {"toolUseId": "t1", "name": "nova_grounding", "type": "server_tool_use"}
    events = [
        {"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": start}}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"toolUse": {"input": '{"q'}}}},
    ]

    assert streamed(events, interrupted=True).blocks == (
        RawBlock(data={"toolUse": {**start, "input": '{"q'}}),
    )


# --- thoughts in the text

NOVA, KIMI = "us.amazon.nova-micro-v1:0", "moonshot.kimi-k2-thinking"
IN_TEXT = {
    "Nova": (
        NOVA,
        "<thinking> I should call. </thinking>\n\nDone.",
        "end_turn",
        ([" I should call. "], "Done."),
    ),
    "Nova, cut off": (NOVA, "<thinking> I should", "max_tokens", ([" I should"], "")),
    "Kimi": (KIMI, "<think>Plan.</think>\n\n42", "end_turn", (["Plan."], "42")),
    "Kimi, a stray open": (KIMI, " <think> It is 30 C.", "end_turn", ([], "  It is 30 C.")),
    "Kimi, cut off": (KIMI, "<think>Plan", "max_tokens", (["Plan"], "")),
    "Kimi, before a call": (KIMI, "<think>Plan", "tool_use", (["Plan"], "")),
    "Claude": ("us.anthropic.claude-sonnet-5", "a <think>b</think>", "end_turn", ([], None)),
}


@each("case", IN_TEXT)
def test_models_that_write_their_thoughts_into_the_text_have_them_taken_out(case: str) -> None:
    """And no others; a stray open delimiter does not swallow the answer after it."""
    model, text, reason, (thoughts, answer) = IN_TEXT[case]
    body = {
        "output": {"message": {"role": "assistant", "content": [{"text": text}]}},
        "stopReason": reason,
    }
    whole = normalize_response(body, provider="aws", model=model)
    normalizer = StreamNormalizer("aws", model)
    shown = [
        chunk
        for event in (
            *(
                {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": letter}}}
                for letter in text
            ),
            {"contentBlockStop": {"contentBlockIndex": 0}},
            {"messageStop": {"stopReason": reason}},
        )
        for chunk in normalizer.feed(event)
    ]

    assert [block.thought for block in whole.thinking] == thoughts
    assert whole.text == (text if answer is None else answer)
    assert normalizer.finish().blocks == whole.blocks
    assert "".join(c.text for c in shown if isinstance(c, TextChunk)) == whole.text


def test_citations_that_cite_no_text_are_all_kept() -> None:
    """Nova's grounding sends them by themselves, whole and streamed alike."""
    cited = [{"location": {"web": {"url": f"https://{name}.example"}}} for name in "ab"]
    content = [{"text": "Oslo."}, *({"citationsContent": {"citations": [one]}} for one in cited)]
    body = {"output": {"message": {"role": "assistant", "content": content}}}
    message = normalize_response(body, provider="aws", model=NOVA)

    assert [block.provider_metadata for block in message.blocks[1:]] == [
        {"citations": [one]} for one in cited
    ]
    assert message.metadata is None


def test_a_block_that_is_announced_as_nothing_is_not_unknown() -> None:
    """Its first delta opens it."""
    announced = {"contentBlockStart": {"contentBlockIndex": 0, "start": {}}}
    said = {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "Hi"}}}
    message = streamed([announced, said])

    assert (message.text, message.metadata) == ("Hi", None)
