"""The Responses protocol: what is sent twice is kept once, what is sent once is kept."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from openai import omit
from openai._models import construct_type
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from reasoning_store.conversation.blocks import (
    ThinkingBlock,
    ToolCallBlock,
    Usage,
)
from reasoning_store.conversation.chunks import (
    ErrorChunk,
    ReasoningChunk,
    UsageChunk,
)
from reasoning_store.wire.contract import Contract, ReadingRules
from reasoning_store.wire.openai_responses.reader import (
    _SILENT,
    ResponsesReader,
)
from tests.properties import each
from tests.wire.responses_events import (
    API,
    CASES,
    FIRST,
    NAMES,
    about,
    call,
    chunks_of,
    comparable,
    ended,
    item_event,
    reasoning,
    said,
    streamed,
    whole,
)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_a_case_gives_the_same_blocks_whole_and_streamed(case: dict[str, Any]) -> None:
    """What the stream said and what the response repeats are one message."""
    from_stream, from_body = streamed(case["stream"]), whole(case["nonstream"])

    expected = [(block["type"], block.get("thought")) for block in case["expected_blocks"]]
    assert [(b["type"], b.get("thought")) for b in comparable(from_stream)] == expected
    assert comparable(from_body) == comparable(from_stream)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_what_must_survive_beside_a_block_is_under_the_keys_of_the_case(
    case: dict[str, Any],
) -> None:
    """Ids, phase and the list of summary parts are what a renderer gets back."""
    for block, expected in zip(
        comparable(streamed(case["stream"])), case["expected_blocks"], strict=True
    ):
        kept = block.get("providerMetadata", {})
        wanted = expected.get("providerMetadata", {})
        assert {name: kept.get(name) for name in wanted} == wanted


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_objects_of_the_official_sdk_read_like_dicts(case: dict[str, Any]) -> None:
    """The SDK's own types accept the captured shapes and give the same blocks."""
    body = TypeAdapter(Response).validate_python(case["nonstream"])
    events = [construct_type(type_=ResponseStreamEvent, value=event) for event in case["stream"]]

    assert all(not isinstance(event, dict) for event in events)
    assert comparable(whole(body)) == comparable(whole(case["nonstream"]))
    assert comparable(streamed(events)) == comparable(streamed(case["stream"]))


@pytest.mark.parametrize("case", [FIRST], ids=NAMES[:1])
def test_events_of_the_sdks_stream_helper_read_like_raw_ones(case: dict[str, Any]) -> None:
    """It adds snapshots and parsed values to them, and gives a parsed response at the end."""
    state: Any = ResponseStreamState(text_format=omit, input_tools=[])
    events = [
        derived
        for event in case["stream"]
        for derived in state.handle_event(construct_type(type_=ResponseStreamEvent, value=event))
    ]

    assert any(hasattr(event, "snapshot") for event in events)
    assert comparable(streamed(events)) == comparable(streamed(case["stream"]))


def test_every_event_of_the_official_sdk_is_known() -> None:
    """A type that the SDK can yield is read or passed over, never counted as unknown."""
    union = get_args(get_args(ResponseStreamEvent)[0])
    types = {get_args(event.model_fields["type"].annotation)[0] for event in union}

    assert {
        kind for kind in types - {*ResponsesReader.events} if not kind.startswith(_SILENT)
    } == set()


# --- reasoning -------------------------------------------------------------------------------


def test_summary_parts_are_one_block_and_their_list_is_kept() -> None:
    """Parts are joined by a blank line, as they come and when the item is done."""
    events = [
        about("reasoning_summary_text.delta", summary_index=0, delta="A"),
        about("reasoning_summary_text.delta", summary_index=1, delta="B"),
        item_event("done", reasoning("A", "B")),
    ]

    [block] = streamed(events).blocks

    assert isinstance(block, ThinkingBlock)
    assert block.thought == "A\n\nB"
    assert (block.provider_metadata or {})["summary"] == ["A", "B"]


def test_an_end_that_repeats_the_text_adds_nothing() -> None:
    """Part done, item done and response completed all repeat what the deltas said."""
    chunks = chunks_of(FIRST["stream"])

    start, *rest = [chunk for chunk in chunks if isinstance(chunk, ReasoningChunk)]
    texts = [chunk.text for chunk in rest]
    assert (start.phase, start.text) == ("start", "")
    assert texts == ["Plan ", "A.", "\n\nPlan B.", "Plan A.\n\nPlan B."]
    assert streamed(FIRST["stream"]).thinking[0].thought == "Plan A.\n\nPlan B."


@each(
    "event",
    [
        about("reasoning_summary_text.done", summary_index=0, text="Plan"),
        about(
            "reasoning_summary_part.done",
            summary_index=0,
            part={"type": "summary_text", "text": "Plan"},
        ),
        item_event("done", reasoning("Plan")),
        ended(reasoning("Plan")),
    ],
)
@each("before", ["", "Pl", "Plan"])
def test_each_repetition_fills_in_what_the_deltas_lacked(
    before: str, event: dict[str, Any]
) -> None:
    """Whatever part of a text was missed comes with the first event that has it."""
    deltas = [about("reasoning_summary_text.delta", summary_index=0, delta=before)] * bool(before)

    [block] = streamed([*deltas, event, event]).blocks

    assert isinstance(block, ThinkingBlock)
    assert block.thought == "Plan"


@pytest.mark.parametrize(
    ("event", "source"),
    [
        ("response.reasoning_summary_text", "reasoning.summary"),
        ("response.reasoning_summary", "reasoning.summary"),
        ("response.reasoning_text", "reasoning.content"),
        ("response.reasoning", "reasoning.content"),
        ("response.reasoning_content", "reasoning.content"),
    ],
)
def test_every_name_of_a_reasoning_event_is_read(event: str, source: str) -> None:
    """OpenAI's names, those of Open Responses and those of gateways mean the same."""
    events = [
        {"type": f"{event}.delta", "item_id": "rs_1", "output_index": 0, "delta": "Hm"},
        {"type": f"{event}.done", "item_id": "rs_1", "output_index": 0, "text": "Hmm"},
    ]

    [block] = streamed(events).blocks

    assert isinstance(block, ThinkingBlock)
    assert (block.thought, block.source_field) == ("Hmm", source)


def test_ciphertext_of_an_item_that_has_only_begun_is_not_kept() -> None:
    """What output_item.added carries may be cut short, and would be refused."""
    events = [
        item_event("added", reasoning(encrypted_content="gAAA-part")),
        about("reasoning_summary_text.delta", summary_index=0, delta="A"),
    ]

    [block] = streamed(events, interrupted=True).blocks

    assert isinstance(block, ThinkingBlock)
    assert (block.thought, block.encrypted, block.interrupted) == ("A", None, True)


def test_ciphertext_that_only_the_response_has_goes_to_its_item() -> None:
    """An item that was done without ciphertext is sealed by the last event."""
    done = item_event("done", reasoning("A"))

    chunks = chunks_of([done, ended(reasoning("A", encrypted_content="gAAA"))])

    item, sealed = [chunk for chunk in chunks if isinstance(chunk, ReasoningChunk)]
    assert sealed.content_index == item.content_index
    assert (sealed.text, sealed.metadata["encrypted"]) == ("", "gAAA")


@pytest.mark.parametrize("told", [("added",), ("done",), ("added", "done")], ids="+".join)
def test_ec_006_a_thought_that_only_the_response_has_stands_before_its_call(
    told: tuple[str, ...],
) -> None:
    """Its item was spoken of where it stood, though nothing of it was said there."""
    events = [
        *(item_event(kind, reasoning()) for kind in told),
        item_event("added", call(arguments=""), place=1),
        item_event("done", call(), place=1),
    ]
    sealed = reasoning(encrypted_content="gAAA")

    thought, asked = streamed([*events, ended(sealed, call())]).blocks

    assert isinstance(thought, ThinkingBlock)
    assert isinstance(asked, ToolCallBlock)
    assert (thought.encrypted, (thought.provider_metadata or {})["item_id"]) == ("gAAA", "rs_1")
    assert [block.type for block in streamed(events).blocks] == ["tool_call"]


def test_an_item_with_neither_text_nor_ciphertext_is_no_block() -> None:
    """EC-002: nothing was thought that could be shown or sent back."""
    assert streamed([item_event("done", reasoning()), ended(reasoning())]).blocks == ()
    assert whole({"output": [reasoning()]}).blocks == ()


def test_summary_and_content_of_one_item_are_one_block() -> None:
    """Both lists survive, so the item can be put together again."""
    item = reasoning("Plan", content=[{"type": "reasoning_text", "text": "Raw"}])
    events = [
        about("reasoning_summary_text.delta", summary_index=0, delta="Plan"),
        about("reasoning_text.delta", content_index=0, delta="Raw"),
        item_event("done", item),
    ]

    [block] = streamed(events).blocks

    assert isinstance(block, ThinkingBlock)
    assert (block.thought, block.source_field) == ("Plan\n\nRaw", "reasoning.summary")
    assert (block.provider_metadata or {})["summary"] == ["Plan"]
    assert (block.provider_metadata or {})["content"] == ["Raw"]
    assert whole({"output": [item]}).blocks == (block,)


def test_parts_that_a_server_leaves_out_of_the_done_item_are_kept() -> None:
    """Some servers stream a summary and then give an item without one."""
    events = [
        about("reasoning_summary_text.delta", summary_index=0, delta="A"),
        item_event("done", reasoning(encrypted_content="gAAA")),
    ]

    [block] = streamed(events).blocks

    assert isinstance(block, ThinkingBlock)
    assert (block.thought, block.source_field) == ("A", "reasoning.summary")
    assert (block.provider_metadata or {})["summary"] == ["A"]


def test_what_a_gateway_adds_to_an_item_survives() -> None:
    """OpenRouter's items carry a signature and the format of the upstream."""
    item = reasoning("A", signature="sig", format="anthropic-claude-v1")

    [block] = whole({"output": [item]}).blocks

    assert isinstance(block, ThinkingBlock)
    assert block.signature == "sig"
    assert (block.provider_metadata or {})["format"] == "anthropic-claude-v1"


# --- the response: origin, usage, end, errors -------------------------------------------------


@pytest.mark.parametrize(
    ("event", "reason", "status"),
    [
        (ended(), "completed", "complete"),
        (
            ended(kind="incomplete", incomplete_details={"reason": "max_output_tokens"}),
            "max_output_tokens",
            "complete",
        ),
        (ended(kind="cancelled"), "cancelled", "complete"),
        (
            ended(kind="failed", error={"code": "server_error", "message": "x"}),
            "failed",
            "interrupted",
        ),
        (ended(kind="failed"), "failed", "interrupted"),
    ],
)
def test_each_end_of_a_response_says_why(event: dict[str, Any], reason: str, status: str) -> None:
    """The provider's own reason; a failure leaves an interrupted message."""
    message = streamed([about("output_text.delta", "msg_1", delta="So"), event])

    assert (message.text, message.finish_reason, message.status) == ("So", reason, status)


def test_a_failed_response_still_gives_what_it_holds() -> None:
    """Items and usage of a failure are filled in like any other's."""
    usage = {"input_tokens": 1, "output_tokens": 2}
    event = ended(said("So"), kind="failed", error={"message": "x"}, usage=usage)

    message = streamed([event])

    assert message.text == "So"
    assert message.usage == Usage(input=1, output=2, raw=usage)


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "code": "server_error", "message": "x", "sequence_number": 3},
        {"type": "error", "error": {"type": "server_error", "message": "x"}},
        {"error": {"message": "x"}},
    ],
)
def test_an_error_inside_the_stream_is_an_error(event: dict[str, Any]) -> None:
    """What came before it survives, as an interrupted message."""
    assert chunks_of([event]) == [ErrorChunk(raw=event)]
    assert streamed([about("output_text.delta", delta="So"), event]).status == "interrupted"


def test_the_response_is_named_once() -> None:
    """Its id and the model that answered come with the first event that has them."""
    message = streamed(FIRST["stream"])

    assert message.origin is not None
    assert (message.origin.response_id, message.origin.api) == ("resp_1", API)
    assert sum(chunk.type == "origin" for chunk in chunks_of(FIRST["stream"])) == 1


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        (
            {
                "input_tokens": 20,
                "input_tokens_details": {"cached_tokens": 8},
                "output_tokens": 30,
                "output_tokens_details": {"reasoning_tokens": 18},
            },
            (20, 30, 18, 8),
        ),
        ({"input_tokens": 20, "output_tokens": 30}, (20, 30, None, None)),
        (
            {
                "input_tokens": 0,
                "output_tokens": 0,
                "output_tokens_details": {"reasoning_tokens": 0},
                "input_tokens_details": None,
            },
            (0, 0, 0, None),
        ),
        ({"output_tokens": -1, "input_tokens": "20"}, (None, None, None, None)),
    ],
)
def test_usage_is_what_was_reported(
    reported: dict[str, Any], expected: tuple[int | None, ...]
) -> None:
    """Reasoning is inside the output count; absent is not zero; the raw object is kept."""
    usage = streamed([ended(usage=reported)]).usage

    assert usage is not None
    assert (usage.input, usage.output, usage.reasoning, usage.cached) == expected
    assert usage.raw == reported


def test_a_contract_that_reports_reasoning_beside_the_output_has_it_added() -> None:
    """The row decides, not the protocol."""
    beside = Contract(api=API, reading=ReadingRules(output_excludes_reasoning=True))
    reported = {"output_tokens": 9, "output_tokens_details": {"reasoning_tokens": 5}}

    [usage] = [
        chunk for chunk in chunks_of([ended(usage=reported)], beside) if chunk.type == "usage"
    ]

    assert isinstance(usage, UsageChunk)
    assert usage.usage.output == 14


def test_a_response_without_usage_reports_none() -> None:
    """A null is no report."""
    assert streamed([ended(usage=None)]).usage is None
