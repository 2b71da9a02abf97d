"""What the reader of Google's Interactions API promises."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from google.genai import interactions
from pydantic import TypeAdapter

from reasoning_store.conversation.blocks import (
    MediaBlock,
    Message,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from reasoning_store.conversation.chunks import (
    Chunk,
    ReasoningChunk,
)
from reasoning_store.conversation.errors import WireError
from reasoning_store.ingress.normalizer import StreamNormalizer, normalize_response
from reasoning_store.wire import contract_lookup
from reasoning_store.wire.gemini.reader import parse_response
from tests.wire.well_formed import assert_no_trace_of

CASES = Path(__file__).parents[1] / "cases" / "wire"
CASE: dict[str, Any] = json.loads((CASES / "gemini_interactions.json").read_text())["variants"][0]
SIGNATURE = "c2lnLWFiYw=="
CONTRACT = contract_lookup.find_contract("google")
STEP_TYPE = {"step_type": "thought"}


def start(index: int, step: Any) -> dict[str, Any]:
    return {"event_type": "step.start", "index": index, "step": step}


def delta(index: int, kind: str, **more: Any) -> dict[str, Any]:
    return {"event_type": "step.delta", "index": index, "delta": {"type": kind} | more}


def stop(index: int) -> dict[str, Any]:
    return {"event_type": "step.stop", "index": index}


def completed(**more: Any) -> dict[str, Any]:
    return {"event_type": "interaction.completed", "interaction": {"id": "i1"} | more}


def summary(text: str) -> dict[str, Any]:
    return {"content": {"type": "text", "text": text}}


def streamed(events: Iterable[Any], api: str | None = None) -> Message:
    normalizer = StreamNormalizer(provider="google", api=api)
    for event in events:
        normalizer.feed(event)
    return normalizer.finish()


def whole(*steps: Any, **more: Any) -> Message:
    body = {"id": "i1", "object": "interaction", "status": "completed", "steps": list(steps)}
    return normalize_response(body | more, provider="google")


def test_events_and_body_are_recognised_by_their_form() -> None:
    """The provider alone is enough; the api's own name is an alias."""
    by_form = streamed(CASE["stream"])

    assert by_form.blocks == streamed(CASE["stream"], api="gemini.interactions").blocks
    assert by_form.blocks == normalize_response(CASE["nonstream"], provider="google").blocks


def test_sdk_objects_give_what_dicts_give() -> None:
    """The SDK's own types accept the captured shapes, and read the same."""
    body = interactions.Interaction.model_validate(CASE["nonstream"])
    make: TypeAdapter[Any] = TypeAdapter(interactions.InteractionSSEEvent)
    events = [make.validate_python(event) for event in CASE["stream"]]

    assert normalize_response(body, provider="google") == normalize_response(
        CASE["nonstream"], provider="google"
    )
    assert streamed(events) == streamed(CASE["stream"])


def test_start_may_bring_part_of_a_step() -> None:
    """Deltas go on where the start left off."""
    message = streamed(
        [
            start(
                0, {"type": "thought", "signature": SIGNATURE, "summary": [summary("a")["content"]]}
            ),
            delta(0, "thought_summary", **summary("b")),
            stop(0),
            start(1, {"type": "model_output", "content": [{"type": "text", "text": "c"}]}),
            delta(1, "text", text="d"),
            stop(1),
        ]
    )

    assert message.blocks == (
        ThinkingBlock(
            thought="ab",
            source_field="thought.summary",
            signature=SIGNATURE,
            provider_metadata=STEP_TYPE,
        ),
        TextBlock(text="cd"),
    )


def test_thought_with_nothing_but_a_signature_is_real() -> None:
    """A thought without a summary has to go back all the same (EC-002)."""
    expected = (
        ThinkingBlock(
            source_field="thought.summary",
            is_hidden=True,
            signature=SIGNATURE,
            provider_metadata=STEP_TYPE,
        ),
    )

    assert whole({"type": "thought", "signature": SIGNATURE}).blocks == expected
    assert streamed(
        [start(0, {"type": "thought"}), delta(0, "thought_signature", signature=SIGNATURE), stop(0)]
    ).blocks == (expected)


def test_steps_may_interleave() -> None:
    """Pieces go to the step that their index names."""
    message = streamed(
        [
            start(7, {"type": "model_output"}),
            delta(7, "text", text="a"),
            start(2, {"type": "model_output"}),
            delta(2, "text", text="b"),
            stop(2),
            delta(7, "text", text="c"),
            stop(7),
        ]
    )

    assert message.blocks == (TextBlock(text="ac"), TextBlock(text="b"))


def test_thought_ends_with_its_step() -> None:
    """The end of the step is the end of the block."""
    normalizer = StreamNormalizer(provider="google")
    chunks: list[Chunk] = [
        piece for event in CASE["stream"][:4] for piece in normalizer.feed(event)
    ]
    phases = [piece.phase for piece in chunks if isinstance(piece, ReasoningChunk)]

    assert phases == ["start", "delta", "delta", "end"]


def test_call_in_pieces_and_call_at_once_are_the_same_call() -> None:
    """Arguments stream as pieces of a string and stand as an object."""
    step = {"type": "function_call", "id": "c1", "name": "f", "arguments": {"city": "Oslo"}}
    at_once = whole(step).tool_calls
    (in_pieces,) = streamed(
        [
            start(0, step | {"arguments": {}}),
            delta(0, "arguments_delta", arguments='{"city":'),
            delta(0, "arguments_delta", arguments='"Oslo"}'),
            stop(0),
        ]
    ).tool_calls

    assert at_once == (ToolCallBlock(id="c1", name="f", parameters={"city": "Oslo"}),)
    assert (in_pieces.id, in_pieces.name, in_pieces.parameters) == ("c1", "f", {"city": "Oslo"})


def test_text_around_a_picture_stays_apart() -> None:
    """A picture stands between the texts that it came between."""
    picture = {"type": "image", "data": "QQ==", "mime_type": "image/png"}
    a, b = ({"type": "text", "text": text} for text in "ab")
    expected = (
        TextBlock(text="a"),
        MediaBlock(kind="image", mime_type="image/png", data=b"A"),
        TextBlock(text="b"),
    )
    events = [
        start(0, {"type": "model_output"}),
        delta(0, **{"kind": "text", "text": "a"}),
        {"event_type": "step.delta", "index": 0, "delta": picture},
        delta(0, **{"kind": "text", "text": "b"}),
        stop(0),
    ]

    assert whole({"type": "model_output", "content": [a, picture, b]}).blocks == expected
    assert streamed(events).blocks == expected


def test_annotations_stay_with_their_text() -> None:
    """Citations go with the text, whole or streamed."""
    notes = [{"type": "url_citation", "url": "https://example.test"}]
    content = {"type": "text", "text": "a", "annotations": notes}
    expected = (TextBlock(text="a", provider_metadata={"annotations": notes}),)
    events = [
        delta(0, "text", text="a"),
        delta(0, "text_annotation_delta", annotations=notes),
        stop(0),
    ]

    assert whole({"type": "model_output", "content": [content]}).blocks == expected
    assert streamed([start(0, {"type": "model_output"}), *events]).blocks == expected


def test_steps_of_the_server_are_kept() -> None:
    """A search that the server made stands in the message as it came, signature and all."""
    step = {
        "type": "google_search_call",
        "id": "s1",
        "arguments": {"queries": ["weather"]},
        "signature": SIGNATURE,
    }
    events = [
        start(0, {"type": "google_search_call", "id": "s1"}),
        delta(0, "google_search_call", arguments=step["arguments"], signature=SIGNATURE),
        stop(0),
    ]

    assert whole(step).blocks == (RawBlock(data=step),)
    assert streamed(events).blocks == (RawBlock(data=step),)


def test_step_that_never_stopped_is_there_at_the_end() -> None:
    """The end of the interaction ends what is still open."""
    step = {"type": "code_execution_call", "id": "s1"}

    assert streamed([start(0, step), completed()]).blocks == (RawBlock(data=step),)


@pytest.mark.parametrize("kind", ["user_input", "function_result"])
def test_what_the_application_sent_is_not_an_answer(kind: str) -> None:
    """An interaction may list its input steps; they are not the model's."""
    step = {"type": kind, "content": [{"type": "text", "text": "hello"}]}

    assert whole(step).blocks == ()
    assert streamed([start(0, step), stop(0)]).blocks == ()


def test_completion_reports_usage_and_status() -> None:
    """Usage has the thoughts next to the output; the status is the finish reason."""
    message = streamed(
        [*CASE["stream"], completed(status="completed", usage=CASE["nonstream"]["usage"])]
    )
    usage = message.usage

    assert usage is not None
    assert (usage.input, usage.output, usage.reasoning) == (20, 30, 18)
    assert message.finish_reason == "completed"
    assert message.origin is not None
    assert message.origin.response_id == "i1"


def test_deltas_of_a_step_that_never_started_are_read() -> None:
    """A lost start loses nothing else."""
    message = streamed([event for event in CASE["stream"] if event["event_type"] != "step.start"])

    assert message.blocks == streamed(CASE["stream"]).blocks


def test_error_interrupts() -> None:
    """What arrived before the error is kept."""
    error = {"event_type": "error", "error": {"code": "internal", "message": "x"}}
    message = streamed([*CASE["stream"], error])

    assert message.status == "interrupted"
    assert message.blocks == streamed(CASE["stream"]).blocks


MALFORMED: list[Any] = [
    {"event_type": "interaction.unheard_of"},
    {"event_type": None},
    {"event_type": ["step.start"]},
    {"event_type": "interaction.created"},
    start(0, None),
    start(0, {"type": 1}),
    start(-1, {"type": "thought"}),
    start(0, {"type": "thought", "summary": "x"}),
    start(0, {"type": "thought", "summary": [1]}),
    start(0, {"type": "model_output", "content": "x"}),
    start(0, {"type": "function_call", "name": 1}),
    start(0, {"type": "function_call", "name": "f", "arguments": "{}"}),
    {"event_type": "step.delta", "index": 0},
    {"event_type": "step.delta", "index": float("nan"), "delta": {"type": "text", "text": "x"}},
    delta(0, "text"),
    delta(0, "text", text=1),
    delta(0, "thought_summary", content="x"),
    delta(0, "thought_signature", signature=1),
    delta(9, "arguments_delta", arguments="{}"),
    delta(0, "image", data="not base64!"),
    delta(0, "image"),
    {"event_type": "step.stop"},
]


def test_a_malformed_event_is_one_unknown_chunk_and_leaves_no_trace() -> None:
    """However much of it is wrong, it counts once, and the good ones give what they give."""
    assert_no_trace_of(MALFORMED, "gemini.interactions", CASE["stream"])


def test_bad_step_leaves_the_others() -> None:
    """A whole interaction with a bad step is its good steps."""
    output = {"type": "model_output", "content": [{"type": "text", "text": "a"}, {"type": "text"}]}
    message = whole(None, output, {"type": 1})

    assert message.text == "a"
    assert message.metadata is not None
    assert message.metadata["unknownChunks"] == 3


def test_interaction_without_steps_is_refused() -> None:
    """It has not the protocol's form."""
    with pytest.raises(WireError):
        parse_response({"object": "interaction", "status": "completed"}, CONTRACT)


def test_an_interaction_that_still_runs_is_read_as_far_as_it_is() -> None:
    """An agent's has no step yet; the message says that it is not the whole answer."""
    body = {"id": "v1_x", "object": "interaction", "status": "in_progress", "agent": "a"}
    message = normalize_response(body, provider="google", api="gemini.interactions")

    assert (message.blocks, message.status, message.finish_reason) == (
        (),
        "interrupted",
        "in_progress",
    )
    assert message.origin is not None
    assert message.origin.response_id == "v1_x"


def test_what_waited_for_the_end_of_its_step_is_kept_when_the_stream_dies() -> None:
    """A text's annotations and a server's own step are said at their end, which never came."""
    note = {"type": "url_citation", "url": "u"}
    events = [
        start(0, {"type": "model_output"}),
        delta(0, "text", text="Oslo"),
        delta(0, "text_annotation_delta", annotations=[note]),
        start(1, {"type": "google_search_call", "id": "g1", "queries": ["Oslo"]}),
    ]

    assert streamed(events).blocks == (
        TextBlock(text="Oslo", provider_metadata={"annotations": [note]}),
        RawBlock(data={"type": "google_search_call", "id": "g1", "queries": ["Oslo"]}),
    )


def test_an_interaction_of_the_first_form_is_read() -> None:
    """Its contents and its other steps were in one list, ``outputs``."""
    thought = {
        "type": "thought",
        "signature": SIGNATURE,
        "summary": [{"type": "text", "text": "T"}],
    }
    call = {"type": "function_call", "id": "c1", "name": "f", "arguments": {"a": 1}}
    text = {"type": "text", "text": "Hi"}
    body = {"id": "v1_x", "status": "completed", "outputs": [thought, text, call]}
    message = normalize_response(body, provider="google")

    assert [type(block) for block in message.blocks] == [ThinkingBlock, TextBlock, ToolCallBlock]
    assert [(block.thought, block.signature) for block in message.thinking] == [("T", SIGNATURE)]
    assert (message.text, message.tool_calls[0].parameters) == ("Hi", {"a": 1})
    assert message.finish_reason == "completed"
