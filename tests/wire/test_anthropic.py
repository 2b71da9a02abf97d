"""The Messages protocol: blocks never merge, signatures survive, everything else is kept whole."""

from __future__ import annotations

from typing import Any, cast, get_args

import pytest
from anthropic._models import construct_type
from anthropic.lib.streaming._messages import accumulate_event, build_events
from anthropic.types import Message as SdkMessage
from anthropic.types import RawMessageStreamEvent
from anthropic.types.beta import BetaRawMessageStreamEvent

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import (
    Message,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Usage,
)
from reasoning_store.conversation.chunks import (
    ErrorChunk,
    ReasoningChunk,
)
from reasoning_store.ingress.normalizer import StreamNormalizer
from reasoning_store.wire.anthropic.reader import (
    AnthropicReader,
)
from tests.properties import each
from tests.wire.anthropic_events import (
    API,
    CASES,
    CITATIONS,
    FIRST,
    chunks_of,
    delta,
    start,
    stop,
    streamed,
    whole,
)

STREAMED = [case for case in CASES if case["stream"]]


NAMES = [case["name"] for case in STREAMED]


def thought(index: int, text: str, signature: str) -> list[dict[str, Any]]:
    return [
        start(index, type="thinking", thinking="", signature=""),
        delta(index, "thinking_delta", thinking=text),
        delta(index, "signature_delta", signature=signature),
        stop(index),
    ]


def comparable(message: Message) -> list[dict[str, Any]]:
    """Blocks as JSON, but for the string of arguments, which only a stream has."""
    return [
        {name: value for name, value in block.items() if name != "arguments"}
        for block in codec.blocks_to_json(message.blocks)
    ]


@pytest.mark.parametrize("case", STREAMED, ids=NAMES)
def test_a_case_gives_the_same_blocks_whole_and_streamed(case: dict[str, Any]) -> None:
    """A message is the same however it came."""
    assert comparable(whole(case["nonstream"])) == comparable(streamed(case["stream"]))


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_objects_of_the_official_sdk_read_like_dicts(case: dict[str, Any]) -> None:
    """The SDK's own types accept the captured shapes and give the same blocks."""
    body = SdkMessage.model_validate(case["nonstream"])

    assert comparable(whole(body)) == comparable(whole(case["nonstream"]))
    for union in (RawMessageStreamEvent, BetaRawMessageStreamEvent):
        events = [construct_type(type_=union, value=e) for e in case["stream"] or []]
        if events:
            assert comparable(streamed(events)) == comparable(streamed(case["stream"]))


@pytest.mark.parametrize("case", STREAMED, ids=NAMES)
def test_events_of_the_sdks_stream_helper_are_read_once(case: dict[str, Any]) -> None:
    """It yields events of its own next to the raw ones, and snapshots at the stops."""
    snapshot = None
    buffers: dict[int, bytes] = {}
    events: list[Any] = []
    for raw in case["stream"]:
        if raw["type"] == "ping":
            continue
        event = cast(Any, construct_type(type_=RawMessageStreamEvent, value=raw))
        snapshot = accumulate_event(event=event, current_snapshot=snapshot, json_bufs=buffers)
        events += build_events(event=event, message_snapshot=snapshot)

    message = streamed(events)

    assert {event.type for event in events} & {"thinking", "signature", "text", "input_json"}
    assert message.metadata is None
    assert comparable(message) == comparable(streamed(case["stream"]))


def test_every_event_and_delta_of_the_official_sdk_is_known() -> None:
    """A type that the SDK can yield is read or passed over, never counted as unknown."""
    events = {
        get_args(event.model_fields["type"].annotation)[0]
        for event in get_args(get_args(BetaRawMessageStreamEvent)[0])
    }
    derived = ["text", "citation", "thinking", "signature", "input_json", "compaction", "ping"]

    assert events - set(AnthropicReader.events) == set()
    assert chunks_of([{"type": kind} for kind in [*derived, "message_stop"]]) == []


# --- thinking --------------------------------------------------------------------------------


def test_an_empty_thought_with_a_signature_is_a_block() -> None:
    """EC-002: display=omitted sends no text, and the block must go back."""
    events = [
        start(0, type="thinking", thinking="", signature=""),
        delta(0, "signature_delta", signature="sig"),
        stop(0),
    ]

    expected = ThinkingBlock(source_field="thinking", signature="sig", is_hidden=True)
    assert streamed(events).blocks == (expected,)
    assert whole(
        {"content": [{"type": "thinking", "thinking": "", "signature": "sig"}]}
    ).blocks == (expected,)


def test_a_thought_with_neither_text_nor_signature_is_no_block() -> None:
    """EC-002: there is nothing to show and nothing to send back."""
    assert streamed([start(0, type="thinking", thinking=""), stop(0)]).blocks == ()
    assert whole({"content": [{"type": "thinking", "thinking": ""}]}).blocks == ()


def test_a_later_signature_replaces_an_earlier_one() -> None:
    """Signatures are whole; they are never pieces of one another."""
    events = [
        start(0, type="thinking", thinking="Hm", signature="first"),
        delta(0, "signature_delta", signature="second"),
        stop(0),
    ]

    assert [block.signature for block in streamed(events).thinking] == ["second"]


def test_a_thought_that_lost_its_signature_is_unsigned() -> None:
    """A stream that dies before it leaves a block that must not go back signed."""
    events = [start(0, type="thinking", thinking="", signature=""), thought(0, "Hm", "s")[1]]

    [block] = streamed(events, interrupted=True).blocks

    assert isinstance(block, ThinkingBlock)
    assert (block.thought, block.signature, block.interrupted) == ("Hm", None, True)


def test_redacted_thinking_is_whole_when_it_opens() -> None:
    """It has no deltas, and survives a stream that dies right after."""
    event = start(0, type="redacted_thinking", data="RU5D")

    [block] = streamed([event], interrupted=True).blocks

    assert isinstance(block, ThinkingBlock)
    assert (block.encrypted, block.redacted, block.is_hidden) == ("RU5D", True, True)


def test_blocks_that_follow_one_another_never_merge() -> None:
    """Thoughts stay apart and in order, between texts and side by side."""
    events = [
        *thought(0, "One", "s1"),
        *thought(1, "Two", "s2"),
        start(2, type="text", text=""),
        delta(2, "text_delta", text="Checking."),
        stop(2),
        *thought(3, "Three", "s3"),
        start(4, type="text", text=""),
        delta(4, "text_delta", text="Done."),
        stop(4),
    ]

    blocks = streamed(events).blocks

    assert [getattr(b, "thought", None) or getattr(b, "text", None) for b in blocks] == [
        "One",
        "Two",
        "Checking.",
        "Three",
        "Done.",
    ]
    assert [b.signature for b in blocks if isinstance(b, ThinkingBlock)] == ["s1", "s2", "s3"]


def test_blocks_of_one_index_are_two_blocks_still() -> None:
    """Some proxies number every block alike, and some forget the stop."""
    events = [
        *thought(0, "One", "s1")[:3],
        *thought(0, "Two", "s2"),
        start(0, type="text", text=""),
        delta(0, "text_delta", text="A"),
        stop(0),
        start(0, type="text", text=""),
        delta(0, "text_delta", text="B"),
    ]

    message = streamed(events)

    assert [block.thought for block in message.thinking] == ["One", "Two"]
    assert [block.text for block in message.blocks if isinstance(block, TextBlock)] == ["A", "B"]


def test_a_stream_joined_in_the_middle_keeps_what_it_hears() -> None:
    """Deltas of thinking and text need no opening; those of a call do."""
    events = [
        delta(1, "thinking_delta", thinking="Hm"),
        delta(1, "signature_delta", signature="sig"),
        stop(1),
        delta(2, "input_json_delta", partial_json="{"),
        stop(2),
        delta(3, "text_delta", text="Yes"),
    ]

    message = streamed(events)

    assert [(b.thought, b.signature) for b in message.thinking] == [("Hm", "sig")]
    assert (message.text, message.tool_calls) == ("Yes", ())
    assert (message.metadata or {})["unknownChunks"] == 1


def test_a_delta_that_does_not_fit_its_block_is_no_part_of_it() -> None:
    """The thought stays as it was, and what was said is not lost."""
    events = thought(0, "Hm", "sig")
    events.insert(2, delta(0, "text_delta", text="Yes"))

    message = streamed(events)

    assert [(b.thought, b.signature) for b in message.thinking] == [("Hm", "sig")]
    assert message.text == "Yes"


def test_each_thought_has_one_start_and_one_end() -> None:
    """Also a redacted one."""
    chunks = [c for c in chunks_of(FIRST["stream"]) if isinstance(c, ReasoningChunk)]

    phases = [(chunk.content_index, chunk.phase) for chunk in chunks if chunk.phase != "delta"]
    assert phases == [(0, "start"), (0, "end"), (1, "start"), (1, "end")]


# --- text, calls, other blocks ---------------------------------------------------------------


def test_citations_stay_with_their_text() -> None:
    """They are kept in order, also of a stream that died."""
    events = [
        start(0, type="text", text="", citations=[]),
        delta(0, "citations_delta", citation=CITATIONS[0]),
        delta(0, "text_delta", text="As written."),
        delta(0, "citations_delta", citation=CITATIONS[1]),
    ]
    expected = (TextBlock(text="As written.", provider_metadata={"citations": CITATIONS}),)

    body = {"content": [{"type": "text", "text": "As written.", "citations": CITATIONS}]}
    assert streamed([*events, stop(0)]).blocks == expected
    assert streamed(events, interrupted=True).blocks == expected
    assert whole(body).blocks == expected


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([], {}),
        ([""], {}),
        (["{}"], {}),
        (["", '{"city', '":"Oslo"}'], {"city": "Oslo"}),
        (['{"city'], None),
    ],
)
def test_input_comes_in_pieces_or_not_at_all(pieces: list[str], expected: Any) -> None:
    """A call without pieces has the input that it opened with; one cut short has none."""
    events = [
        start(0, type="tool_use", id="toolu_1", name="f", input={}),
        *(delta(0, "input_json_delta", partial_json=piece) for piece in pieces),
        stop(0),
    ]

    [block] = streamed(events).blocks

    assert isinstance(block, ToolCallBlock)
    assert (block.id, block.name, block.parameters) == ("toolu_1", "f", expected)


def test_input_that_is_there_at_the_opening_is_kept() -> None:
    """Some proxies send a call in one piece."""
    events = [start(0, type="tool_use", id="toolu_1", name="f", input={"x": 1}), stop(0)]

    assert streamed(events).tool_calls[0].parameters == {"x": 1}


def test_other_fields_of_a_call_survive() -> None:
    """A call out of code says who made it, and is sent back so."""
    caller = {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}
    block = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}, "caller": caller}

    for message in (streamed([start(0, **block), stop(0)]), whole({"content": [block]})):
        assert message.tool_calls[0].provider_metadata == {"caller": caller}


RAW: list[tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]] = [
    (
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        [
            {"type": "input_json_delta", "partial_json": ""},
            {"type": "input_json_delta", "partial_json": '{"query":'},
            {"type": "input_json_delta", "partial_json": '"x"}'},
        ],
        {
            "type": "server_tool_use",
            "id": "srvtoolu_1",
            "name": "web_search",
            "input": {"query": "x"},
        },
    ),
    (
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"url": "u"}]},
        [],
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"url": "u"}]},
    ),
    (
        {"type": "mcp_tool_use", "id": "m_1", "name": "f", "server_name": "s", "input": {}},
        [{"type": "input_json_delta", "partial_json": '{"x":1}'}],
        {"type": "mcp_tool_use", "id": "m_1", "name": "f", "server_name": "s", "input": {"x": 1}},
    ),
    (
        {"type": "mcp_tool_result", "tool_use_id": "m_1", "is_error": False, "content": []},
        [],
        {"type": "mcp_tool_result", "tool_use_id": "m_1", "is_error": False, "content": []},
    ),
    (
        {"type": "container_upload", "file_id": "file_1"},
        [],
        {"type": "container_upload", "file_id": "file_1"},
    ),
    (
        {"type": "compaction", "content": None},
        [{"type": "compaction_delta", "content": "Summary.", "encrypted_content": "x"}],
        {"type": "compaction", "content": "Summary.", "encrypted_content": "x"},
    ),
    (
        {"type": "block_of_next_year", "text": ""},
        [{"type": "citations_delta", "citation": CITATIONS[0]}],
        {"type": "block_of_next_year", "text": "", "citations": [CITATIONS[0]]},
    ),
]


@each("opening, deltas, expected", RAW)
def test_every_other_block_is_kept_whole_with_its_deltas(
    opening: dict[str, Any], deltas: list[dict[str, Any]], expected: dict[str, Any]
) -> None:
    """Streamed in pieces it is what a whole message would have held, in its place."""
    pieces = [{"type": "content_block_delta", "index": 0, "delta": piece} for piece in deltas]
    events = [start(0, **opening), *pieces, stop(0), *thought(1, "Hm", "s")]

    assert streamed(events).blocks[0] == RawBlock(data=expected)
    assert whole({"content": [expected]}).blocks == (RawBlock(data=expected),)
    assert streamed(events).metadata is None


def test_a_delta_of_an_unknown_kind_is_kept_with_its_block() -> None:
    """What cannot be put in is not thrown away, and what can be sent back stays sendable."""
    strange = {"type": "delta_of_next_year", "more": 1}
    cut = {"type": "input_json_delta", "partial_json": '{"query'}
    opening = {"type": "server_tool_use", "id": "s_1", "name": "n", "input": {}}
    events = [start(0, **opening)]
    events += [{"type": "content_block_delta", "index": 0, "delta": d} for d in (strange, cut)]

    [block] = streamed([*events, stop(0)]).blocks

    assert block == RawBlock(data=opening, provider_metadata={"deltas": [strange, cut]})


# --- the message: origin, usage, end, errors --------------------------------------------------


def test_usage_grows_with_each_report() -> None:
    """Counts are cumulative: the last of each stands, and one that is absent stays."""
    first = {
        "input_tokens": 20,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 5,
        "output_tokens": 1,
    }
    last = {"output_tokens": 30, "output_tokens_details": {"thinking_tokens": 18}}
    events = [
        {"type": "message_start", "message": {"id": "msg_1", "usage": first}},
        {"type": "message_delta", "delta": {"stop_reason": None}, "usage": {"output_tokens": 9}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": last},
    ]

    usage = streamed(events).usage

    raw = {**first, **last}
    assert usage == Usage(input=125, output=30, reasoning=18, cached=100, cache_write=5, raw=raw)


def test_a_later_report_of_the_input_keeps_the_cache_of_an_earlier_one() -> None:
    """The input has what the first event said of the cache, the one who repeats the rest of it."""
    cached = {"input_tokens": 1, "cache_read_input_tokens": 100}
    events = [
        {"type": "message_start", "message": {"id": "msg_1", "usage": cached}},
        {"type": "message_delta", "delta": {}, "usage": {"input_tokens": 20}},
    ]

    usage = streamed(events).usage

    assert usage is not None
    assert (usage.input, usage.cached) == (120, 100)


@each(
    "reported, expected",
    [
        ({"output_tokens": 30}, (None, 30, None, None)),
        ({"input_tokens": 4, "cache_read_input_tokens": 18135}, (18139, None, None, 18135)),
        ({"cache_read_input_tokens": 3}, (None, None, None, 3)),
        ({"input_tokens": 0, "cache_read_input_tokens": None}, (0, None, None, None)),
        ({"output_tokens_details": {"thinking_tokens": 0}}, (None, None, 0, None)),
        ({"output_tokens": float("nan"), "input_tokens": True}, (None, None, None, None)),
    ],
)
def test_usage_is_what_was_reported(
    reported: dict[str, Any], expected: tuple[int | None, ...]
) -> None:
    """Thinking is inside the output count, and absent is not zero."""
    usage = whole({"content": [], "usage": reported}).usage

    assert usage is not None
    assert (usage.input, usage.output, usage.reasoning, usage.cached) == expected


@pytest.mark.parametrize("reason", ["end_turn", "tool_use", "max_tokens", "refusal", "pause_turn"])
def test_a_stop_reason_is_kept_as_it_came(reason: str) -> None:
    """A refusal is an end like any other."""
    event = {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {}}

    assert streamed([event]).finish_reason == reason
    assert whole({"content": [], "stop_reason": reason}).finish_reason == reason


def test_the_message_is_named() -> None:
    """Its id and the model that answered."""
    normalizer = StreamNormalizer(api=API)
    for event in FIRST["stream"]:
        normalizer.feed(event)

    origin = normalizer.finish().origin

    assert origin is not None
    assert (origin.response_id, origin.model) == ("msg_1", "claude-opus-5")


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        {"error": {"message": "x"}},
    ],
)
def test_an_error_inside_the_stream_is_an_error(event: dict[str, Any]) -> None:
    """What came before it survives, as an interrupted message."""
    assert chunks_of([event]) == [ErrorChunk(raw=event)]

    message = streamed([*thought(0, "Hm", "s"), event])

    assert (message.status, message.thinking[0].signature) == ("interrupted", "s")
