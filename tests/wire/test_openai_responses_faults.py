"""A fault in an event of the Responses protocol changes nothing else; whole responses, and rows."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.responses import Response
from pydantic import TypeAdapter

from reasoning_store.conversation.blocks import (
    RawBlock,
)
from reasoning_store.conversation.chunks import (
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
    UnknownChunk,
)
from reasoning_store.conversation.errors import WireError
from reasoning_store.ingress.normalizer import StreamNormalizer
from reasoning_store.wire import contract_lookup
from reasoning_store.wire.openai_responses.reader import (
    parse_response,
)
from tests.properties import each
from tests.wire.responses_events import (
    API,
    CONTRACT,
    FIRST,
    about,
    chunks_of,
    comparable,
    ended,
    item_event,
    reasoning,
    said,
    streamed,
    unknown_in,
    whole,
)
from tests.wire.steps import steps
from tests.wire.well_formed import assert_no_trace_of

# --- what cannot be read ----------------------------------------------------------------------

MALFORMED: list[Any] = [
    None,
    5,
    "response.completed",
    [],
    {},
    {"type": None},
    {"type": 5},
    {"type": "response.of_next_year", "delta": "x"},
    {"type": "response.output_text.delta"},
    about("output_text.delta", delta=None),
    about("output_text.delta", delta=5),
    about("output_text.delta", content_index=float("nan"), delta="x"),
    about("output_text.delta", content_index=-1, delta="x"),
    about("output_text.delta", place=True, delta="x"),
    {"type": "response.output_text.delta", "item_id": 5, "delta": "x"},
    about("reasoning_summary_text.delta", summary_index="0", delta="x"),
    about("reasoning_text.done", content_index=0),
    about("refusal.done", content_index=0, text="x"),
    about("content_part.done", content_index=0, part={"type": "output_text"}),
    about("content_part.done", content_index=0, part=[]),
    about("output_text.annotation.added", content_index=0, annotation="x"),
    about("function_call_arguments.delta", "fc_1", 1, delta={"x": 1}),
    about("function_call_arguments.done", "fc_1", 1),
    item_event("added", {"type": 5}),
    item_event("done", {"id": 5, "type": "reasoning"}),
    item_event("done", {"id": "fc_1", "type": "function_call", "arguments": "{}"}, 1),
    {"type": "response.output_item.done", "output_index": 0, "item": "rs_1"},
    {"type": "response.created"},
    {"type": "response.completed", "response": None},
    {"type": "response.completed", "response": {}},
    {"type": "response.failed", "response": []},
    {"type": "error"},
]


def test_a_malformed_event_is_one_unknown_chunk_and_leaves_no_trace() -> None:
    """However much of it is wrong, it counts once, and the good ones give what they give."""
    assert_no_trace_of(MALFORMED, "openai.responses", FIRST["stream"])


@each(
    "event, texts",
    [
        (item_event("done", {**said("One"), "content": [5, *said("One")["content"], {}]}), ["One"]),
        (item_event("done", {**said(), "content": 5}), []),
        (item_event("done", {**reasoning("A"), "content": 5, "encrypted_content": []}), ["A"]),
        (item_event("done", {**reasoning(), "summary": [None, {"text": "A"}, {"text": 5}]}), ["A"]),
        (ended(None, said("One"), {"type": "function_call"}, usage=5), ["One"]),
        (item_event("done", {**said(), "content": [{"type": "output_text", "text": 5}]}), []),
        ({"type": "response.completed", "response": {"id": "resp_1", "output": "x"}}, []),
        ({"type": "response.created", "response": {"id": 5, "model": {}}}, []),
    ],
)
def test_the_good_parts_of_an_event_count_and_its_bad_ones_are_one_unknown(
    event: dict[str, Any], texts: list[str]
) -> None:
    """One bad event is one unknown chunk, also when several parts of it are bad."""
    chunks = chunks_of([event])

    found = [c.text for c in chunks if isinstance(c, TextChunk | ReasoningChunk) and c.text]
    assert found == texts
    assert sum(isinstance(chunk, UnknownChunk) for chunk in chunks) == 1


def test_events_that_say_nothing_give_nothing() -> None:
    """Progress of hosted tools, empty deltas and announced parts are known."""
    quiet = [
        {"type": "keepalive"},
        about("web_search_call.searching", "ws_1"),
        about("image_generation_call.partial_image", "ig_1", partial_image_b64="aGk="),
        about("output_text.delta", delta=""),
        about("content_part.added", part={"type": "output_text", "text": ""}),
        {"type": "response.output_item.added", "output_index": 0, "item": None},
        {"type": "response.in_progress", "response": {"status": "in_progress"}},
    ]

    assert chunks_of(quiet) == []


def test_long_items_are_read_in_steps_in_proportion() -> None:
    """Deltas, annotations and repeated ends cost the same at the end as at the beginning."""

    def work(count: int) -> int:
        events = [about("output_text.delta", "msg_1", content_index=0, delta="word ")] * count
        events += [
            about("output_text.annotation.added", "msg_1", content_index=0, annotation={"n": 1})
        ] * count
        events += [about("reasoning_text.delta", "rs_1", 1, content_index=0, delta="word ")] * count
        events.append(item_event("done", said("word " * count)))
        return steps(lambda: chunks_of(events))

    assert work(8_000) < 10 * work(1_000)


# --- whole responses and rows -----------------------------------------------------------------


def test_a_list_of_output_items_is_a_response() -> None:
    """As applications keep it, objects of the SDK included."""
    body = TypeAdapter(Response).validate_python(FIRST["nonstream"])

    assert whole(body.output).blocks == whole(FIRST["nonstream"]).blocks
    assert whole(FIRST["nonstream"]["output"]).finish_reason is None


@each("body", [None, 5, {}, {"output": "secret"}, {"error": {"message": "secret"}}, ["secret", {}]])
def test_a_body_of_another_form_is_refused_without_its_content(body: Any) -> None:
    """The error names what is missing and repeats nothing of the conversation."""
    with pytest.raises(WireError) as caught:
        parse_response(body, CONTRACT)

    assert str(caught.value).startswith("openai.responses: ")
    assert "secret" not in str(caught.value)


def test_a_message_of_another_role_in_a_list_is_kept_but_not_said() -> None:
    """A list that an application extended may hold the user's own words."""
    theirs = {"type": "message", "role": "user", "content": "Hello"}

    assert whole([theirs, said("Yes")]).text == "Yes"
    assert whole([theirs, said("Yes")]).blocks[0] == RawBlock(data=theirs)


@each(
    "provider, echo, opaque, floor",
    [
        (None, "reasoning.content", True, "none"),
        ("openai", None, True, "open_turn_with_call"),
        ("azure", None, True, "open_turn_with_call"),
        ("xai", None, True, "none"),
        ("mistral", "reasoning.content", True, "none"),
        ("vllm", "reasoning.content", False, "none"),
        ("openrouter", "reasoning.content", True, "open_calls"),
    ],
)
def test_the_rows_of_the_protocol(
    provider: str | None, echo: str | None, opaque: bool, floor: str
) -> None:
    """Only a server without a parser mixes thinking into the text; what may go back differs."""
    row = contract_lookup.find_contract(provider, "m", API)

    assert (row.provider, row.reading.tags, row.reading.output_excludes_reasoning) == (
        provider,
        provider in (None, "vllm"),
        False,
    )
    assert (row.returning.returns_in, row.returning.opaque, row.returning.floor) == (
        echo,
        opaque,
        floor,
    )


def test_text_of_this_protocol_is_not_searched_for_delimiters() -> None:
    """A literal tag in an answer of OpenAI stays where it is."""
    assert whole({"output": [said("Use <think>x</think>.")]}).text == "Use <think>x</think>."


def test_tool_call_chunks_stream_as_they_come() -> None:
    """An application sees a call's name before its arguments, and its end once."""
    chunks = [chunk for chunk in chunks_of(FIRST["stream"]) if isinstance(chunk, ToolCallChunk)]

    assert [(c.name, c.arguments, c.is_complete) for c in chunks] == [
        ("get_weather", "", False),
        (None, '{"city":"Oslo"}', False),
        ("get_weather", "", True),
    ]


@pytest.mark.parametrize("content", [[3.5], {"x": 1}, [{"type": "output_text", "text": None}]])
def test_an_item_that_cannot_be_read_when_it_is_done_is_not_done(content: Any) -> None:
    """What the stream says of it before and after counts as if that event had not been."""
    bad = item_event("done", said("x") | {"content": content})
    good = [
        about("output_text.delta", "msg_1", delta="It is "),
        about("output_text.delta", "msg_1", delta="4 C."),
        item_event("done", said("It is 4 C.")),
        ended(said("It is 4 C.")),
    ]

    for place in range(3):
        message = streamed([*good[:place], bad, *good[place:]])
        assert comparable(message) == comparable(streamed(good))
        assert unknown_in(message) == 1


def test_fields_of_the_whole_response_are_kept_with_it() -> None:
    """Which conversation it belongs to, and what the application noted on it."""
    kept = {"conversation": {"id": "conv_1"}, "metadata": {"user": "7"}}
    event = ended(said("a"), conversation=kept["conversation"], metadata=kept["metadata"])

    for message in (streamed([event]), whole(event["response"])):
        assert message.metadata == {"providerMetadata": kept}


def test_a_text_is_said_once_whatever_its_content_index_counts() -> None:
    """Bedrock's gpt-oss counts over the items, and its list begins at 0."""
    item = {"id": "m", "type": "message", "role": "assistant", "status": "completed"}
    texts: list[Any] = [
        {"type": "output_text", "text": text, "annotations": []} for text in ("Hi", " you")
    ]
    place = {"item_id": "m", "output_index": 0}
    events: list[dict[str, Any]] = [
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        {"type": "response.output_text.delta", **place, "content_index": 1, "delta": "Hi"},
        {"type": "response.output_text.delta", **place, "content_index": 2, "delta": " you"},
        {
            "type": "response.output_item.done",
            "output_index": 0,
            "item": {**item, "content": texts},
        },
    ]
    normalizer = StreamNormalizer(api="openai.responses")
    chunks = [chunk for event in events for chunk in normalizer.feed(event)]

    assert normalizer.finish().text == "Hi you"
    assert "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk)) == "Hi you"


def test_parts_of_reasoning_and_of_a_patch_are_known() -> None:
    """The events of Bedrock's gpt-oss and of a patch that is being written."""
    place = {"item_id": "rs_1", "output_index": 0, "content_index": 0}
    part = {"type": "reasoning_text", "text": "Hm."}
    events: list[dict[str, Any]] = [
        {"type": "response.reasoning_part.added", **place, "part": {**part, "text": ""}},
        {"type": "response.reasoning_text.delta", **place, "delta": "Hm"},
        {"type": "response.reasoning_part.done", **place, "part": part},
        {"type": "response.apply_patch_call_operation_diff.delta", "delta": "+"},
        {"type": "response.apply_patch_call_operation_diff.done", "diff": "+x"},
    ]
    normalizer = StreamNormalizer(api="openai.responses")
    for event in events:
        normalizer.feed(event)
    message = normalizer.finish()

    assert [block.thought for block in message.thinking] == ["Hm."]
    assert message.metadata is None
