"""What the reader of Cohere's v2 chat promises."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from cohere import V2ChatResponse
from cohere.core.unchecked_base_model import construct_type
from cohere.v2.types import V2ChatStreamResponse

from reasoning_store.conversation.blocks import (
    Message,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Usage,
)
from reasoning_store.conversation.chunks import (
    Chunk,
    ReasoningChunk,
)
from reasoning_store.conversation.errors import WireError
from reasoning_store.ingress.normalizer import StreamNormalizer, normalize_response
from reasoning_store.wire import contract_lookup
from reasoning_store.wire.cohere import CohereReader, parse_response
from tests.wire.well_formed import assert_no_trace_of

CASES = Path(__file__).parents[1] / "cases" / "wire"
CASE: dict[str, Any] = json.loads((CASES / "cohere_v2.json").read_text())["variants"][0]
CONTRACT = contract_lookup.find_contract("cohere")

CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "get_weather", "arguments": '{"city":"Oslo"}'},
}


def event(kind: str, index: Any = 0, **message: Any) -> dict[str, Any]:
    return {"type": kind, "index": index, "delta": {"message": message}}


def content(kind: str, index: int, **fields: Any) -> dict[str, Any]:
    return event(f"content-{kind}", index, content=fields)


def text_events(text: str, index: int = 0) -> list[dict[str, Any]]:
    return [
        content("start", index, type="text", text=""),
        content("delta", index, text=text),
        {"type": "content-end", "index": index},
    ]


def end(**delta: Any) -> dict[str, Any]:
    return {"type": "message-end", "delta": {"finish_reason": "COMPLETE"} | delta}


def streamed(events: Iterable[Any]) -> Message:
    normalizer = StreamNormalizer(provider="cohere")
    for item in events:
        normalizer.feed(item)
    return normalizer.finish()


def whole(**message: Any) -> Message:
    body = {"id": "1", "finish_reason": "COMPLETE", "message": {"role": "assistant"} | message}
    return normalize_response(body, provider="cohere")


def sdk_event(item: dict[str, Any]) -> Any:
    kind: Any = V2ChatStreamResponse  # a union, which the SDK's own signature leaves out
    return construct_type(type_=kind, object_=item)


def test_sdk_objects_give_what_dicts_give() -> None:
    """The SDK's own types accept the captured shapes, and read the same."""
    body = construct_type(type_=V2ChatResponse, object_=CASE["nonstream"])

    assert isinstance(body, V2ChatResponse)
    assert (
        normalize_response(body, provider="cohere").blocks
        == whole(**CASE["nonstream"]["message"]).blocks
    )
    assert streamed(map(sdk_event, CASE["stream"])).blocks == streamed(CASE["stream"]).blocks


def test_thinking_begins_and_ends_with_its_item() -> None:
    """The protocol's own start and end are the block's."""
    normalizer = StreamNormalizer(provider="cohere")
    chunks: list[Chunk] = [piece for item in CASE["stream"][:5] for piece in normalizer.feed(item)]
    phases = [piece.phase for piece in chunks if isinstance(piece, ReasoningChunk)]

    assert phases == ["start", "delta", "delta", "end"]


def test_start_may_bring_the_first_piece() -> None:
    """What a start holds is stated like what a delta holds."""
    message = streamed(
        [
            content("start", 0, type="thinking", thinking="a"),
            content("delta", 0, thinking="b"),
            {"type": "content-end", "index": 0},
            content("start", 1, type="text", text="c"),
            content("delta", 1, text="d"),
        ]
    )

    assert message.blocks == (
        ThinkingBlock(thought="ab", source_field="content.thinking"),
        TextBlock(text="cd"),
    )


def test_items_with_different_indexes_stay_apart() -> None:
    """Two texts are two blocks, in their order."""
    items = [{"type": "text", "text": text} for text in "ab"]

    assert whole(content=items).blocks == (TextBlock(text="a"), TextBlock(text="b"))
    assert (
        streamed([*text_events("a", 0), *text_events("b", 1)]).blocks == whole(content=items).blocks
    )


def test_content_may_be_a_string() -> None:
    """A plain string is one text."""
    assert whole(content="a").blocks == (TextBlock(text="a"),)


def test_tool_plan_is_thinking_before_the_call() -> None:
    """Older models say their plan in a field of its own (EC-006: before its call)."""
    events = [
        event("tool-plan-delta", None, tool_plan="I will "),
        event("tool-plan-delta", None, tool_plan="look."),
        event("tool-call-start", 0, tool_calls=CALL | {"function": {"name": "get_weather"}}),
        event("tool-call-delta", 0, tool_calls={"function": {"arguments": '{"city":'}}),
        event("tool-call-delta", 0, tool_calls={"function": {"arguments": '"Oslo"}'}}),
        {"type": "tool-call-end", "index": 0},
    ]
    expected = (
        ThinkingBlock(thought="I will look.", source_field="tool_plan"),
        ToolCallBlock(
            id="c1",
            name="get_weather",
            parameters={"city": "Oslo"},
            arguments='{"city":"Oslo"}',
        ),
    )

    assert streamed(events).blocks == expected
    assert whole(tool_plan="I will look.", tool_calls=[CALL]).blocks == expected
    assert streamed(map(sdk_event, events)).blocks == expected


def test_parallel_calls_stay_apart() -> None:
    """Pieces of arguments go to the call that their index names."""
    events = [
        event("tool-call-start", 0, tool_calls=CALL | {"function": {"name": "f"}}),
        event("tool-call-start", 1, tool_calls=CALL | {"id": "c2", "function": {"name": "g"}}),
        event("tool-call-delta", 1, tool_calls={"function": {"arguments": "[1]"}}),
        event("tool-call-delta", 0, tool_calls={"function": {"arguments": "[0]"}}),
    ]

    assert [(call.id, call.parameters) for call in streamed(events).tool_calls] == [
        ("c1", [0]),
        ("c2", [1]),
    ]


def test_citations_stay_with_their_text() -> None:
    """Where the answer comes from is kept on the text, whole or streamed."""
    cited = [
        {
            "start": 0,
            "end": 1,
            "text": "a",
            "sources": [],
            "type": "TEXT_CONTENT",
            "content_index": 0,
        },
        {"start": 1, "end": 2, "text": "b", "sources": []},
    ]
    start, delta, stop = text_events("ab")
    notes = [event("citation-start", n, citations=item) for n, item in enumerate(cited)]
    expected = (TextBlock(text="ab", provider_metadata={"citations": cited}),)

    assert whole(content="ab", citations=cited).blocks == expected
    assert streamed([start, delta, *notes, stop, end()]).blocks == expected
    assert streamed([start, delta, notes[0], stop, notes[1], end()]).blocks == expected


def test_citations_of_a_plan_or_a_thought_are_kept_apart() -> None:
    """They belong to no text, and are not lost."""
    citation = {"start": 0, "end": 1, "text": "a", "type": "PLAN"}
    events = [
        event("tool-plan-delta", 0, tool_plan="a"),
        event("citation-start", 0, citations=citation),
        end(),
    ]
    kept = RawBlock(data={"citations": [citation]})

    assert streamed(events).blocks[1:] == (kept,)
    assert whole(tool_plan="a", citations=[citation]).blocks[1:] == (kept,)


def test_unknown_content_is_kept_as_it_came() -> None:
    """An item of a kind that is newer than this code survives whole."""
    item = {"type": "hologram", "data": "x"}

    assert whole(content=[item]).blocks == (RawBlock(data=item),)


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        ({"tokens": {"input_tokens": 20.0, "output_tokens": 30.0}}, (20, 30, None)),
        ({"billed_units": {"input_tokens": 20, "output_tokens": 30}}, (20, 30, None)),
        (
            {
                "tokens": {"input_tokens": 21, "output_tokens": 31},
                "billed_units": {"input_tokens": 20, "output_tokens": 30},
                "cached_tokens": 5,
            },
            (21, 31, 5),
        ),
        ({"tokens": {"output_tokens": "many"}}, (None, None, None)),
        ({}, (None, None, None)),
    ],
    ids=["floats", "only billed", "both", "no numbers", "empty"],
)
def test_usage_is_what_was_counted(
    reported: dict[str, Any], expected: tuple[int | None, ...]
) -> None:
    """Tokens rather than billed units; thinking is in the output and not apart."""
    usage = streamed([*text_events("a"), end(usage=reported)]).usage

    assert usage == Usage(input=expected[0], output=expected[1], cached=expected[2], raw=reported)


def test_no_usage_is_no_usage() -> None:
    """A message without usage has none, rather than zeros."""
    assert streamed([*text_events("a"), end()]).usage is None


def test_message_names_itself_and_its_end() -> None:
    """The id is the origin's; the finish reason is the provider's own."""
    message = streamed([{"type": "message-start", "id": "m1"}, *text_events("a"), end()])

    assert message.origin is not None
    assert message.origin.response_id == "m1"
    assert message.finish_reason == "COMPLETE"


def test_citations_of_a_text_that_was_cut_off_are_kept() -> None:
    """They wait for the end of their text, and the stream has none."""
    citation = {"start": 0, "end": 4, "text": "Oslo", "content_index": 0, "type": "TEXT_CONTENT"}
    plan = {"start": 0, "end": 4, "text": "Plan", "type": "PLAN"}
    events = [
        content("start", 0, type="text", text=""),
        content("delta", 0, text="Oslo is"),
        event("citation-start", 0, citations=citation),
        event("citation-start", 1, citations=plan),
    ]

    assert streamed(events).blocks == (
        TextBlock(text="Oslo is", provider_metadata={"citations": [citation]}),
        RawBlock(data={"citations": [plan]}),
    )


def test_the_reason_of_an_error_at_the_end_is_kept() -> None:
    """And the mark of the stream's end is no event."""
    message = streamed([*text_events("a"), end(finish_reason="ERROR", error="x"), "[DONE]"])

    assert (message.status, message.finish_reason) == ("interrupted", "ERROR")
    assert "unknownChunks" not in (message.metadata or {})


def test_error_at_the_end_interrupts() -> None:
    """What arrived before the error is kept."""
    message = streamed([*text_events("a"), end(finish_reason="ERROR", error="overloaded")])

    assert (message.status, message.text) == ("interrupted", "a")


@pytest.mark.parametrize(
    "item",
    [
        {"type": "debug", "prompt": "x"},
        {"type": "citation-end", "index": 0},
        content("start", 0, type="text", text=""),
        content("delta", 0, text=""),
        event("tool-plan-delta", None, tool_plan=""),
    ],
    ids=lambda item: item["type"],
)
def test_event_that_says_nothing_gives_nothing(item: dict[str, Any]) -> None:
    """Known events without content are neither chunks nor unknown."""
    assert CohereReader(CONTRACT).parse_chunk(item) == []


MALFORMED: list[Any] = [
    None,
    3,
    [],
    {},
    {"type": 1},
    {"type": "unheard-of"},
    {"type": "message-start", "id": 1},
    {"type": "content-start", "index": 0},
    content("start", 0),
    content("start", 0, type=1),
    content("start", 0, type="thinking", thinking=1),
    content("delta", 0),
    content("delta", 0, text=1),
    content("delta", 0, thinking=["x"]),
    event("content-delta", float("nan"), content={"text": "x"}),
    event("content-delta", None, content={"text": "x"}),
    event("content-delta", -1, content={"thinking": "x"}),
    event("content-delta", 0, content="x"),
    {"type": "content-delta", "index": 0, "delta": "x"},
    {"type": "content-end"},
    event("tool-plan-delta", None, tool_plan=1),
    event("tool-plan-delta", None),
    event("tool-call-start", 0, tool_calls="x"),
    event("tool-call-start", 0, tool_calls={"id": "c", "function": {}}),
    event("tool-call-start", 0, tool_calls={"id": 1, "function": {"name": "f"}}),
    event("tool-call-delta", 0, tool_calls={"function": {}}),
    event("tool-call-delta", 7, tool_calls={"function": {"arguments": "{}"}}),
    event("tool-call-end", 7),
    event("tool-call-end", True),
    event("citation-start", 0, citations="x"),
    event("citation-start", 0, citations={"content_index": "x"}),
]


def test_a_malformed_event_is_one_unknown_chunk_and_leaves_no_trace() -> None:
    """However much of it is wrong, it counts once, and the good ones give what they give."""
    assert_no_trace_of(MALFORMED, "cohere.chat", CASE["stream"])


def test_bad_parts_leave_the_good_ones() -> None:
    """A whole message with bad items and calls is its good ones."""
    message = whole(
        content=[{"type": "text", "text": "a"}, {"type": "text", "text": 1}], tool_calls=[CALL]
    )

    assert message.text == "a"
    assert len(message.tool_calls) == 1
    assert message.metadata is not None
    assert message.metadata["unknownChunks"] == 1


@pytest.mark.parametrize(
    "body", [None, [], {}, {"message": "invalid request"}, {"message": {"content": 1}}], ids=repr
)
def test_body_of_another_form_is_refused(body: Any) -> None:
    """What is no response is a WireError, not an empty message."""
    with pytest.raises(WireError):
        parse_response(body, CONTRACT)


def test_reset_forgets_the_stream() -> None:
    """After a reset the next event is the first of another message."""
    adapter = CohereReader(CONTRACT)
    note = event("citation-start", 0, citations={"text": "a"})
    for item in (*text_events("a")[:2], note, {"type": "message-start", "id": "m1"}):
        adapter.parse_chunk(item)
    adapter.reset()

    assert adapter.parse_chunk(note) == []
    assert len(adapter.parse_chunk({"type": "message-start", "id": "m1"})) == 1
