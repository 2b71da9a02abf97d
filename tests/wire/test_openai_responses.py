"""The Responses protocol: what is sent twice is kept once, what is sent once is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import omit
from openai._models import construct_type
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

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
    Chunk,
    ErrorChunk,
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
    UnknownChunk,
    UsageChunk,
)
from reasoning_store.conversation.errors import WireError
from reasoning_store.ingress.normalizer import StreamNormalizer, normalize_response
from reasoning_store.wire import contracts
from reasoning_store.wire.contract import Contract, ReadingRules
from reasoning_store.wire.openai_responses.reader import (
    _SILENT,
    ResponsesReader,
    parse_response,
)
from tests.properties import each
from tests.wire.steps import steps

API = "openai.responses"
CASES = json.loads(
    (Path(__file__).parents[1] / "cases/wire/openai_responses.json").read_text(encoding="utf-8")
)["variants"]
NAMES = [case["name"] for case in CASES]
FIRST = CASES[0]
CONTRACT = contracts.resolve("openai", "gpt-5.6", API)


def streamed(events: list[Any], *, interrupted: bool = False) -> Message:
    normalizer = StreamNormalizer(provider="openai", model="gpt-5.6", api=API)
    for event in events:
        normalizer.feed(event)
    return normalizer.finish(interrupted=interrupted)


def whole(body: Any) -> Message:
    return normalize_response(body, provider="openai", model="gpt-5.6", api=API)


def chunks_of(events: list[Any], contract: Contract = CONTRACT) -> list[Chunk]:
    adapter = ResponsesReader(contract)
    return [chunk for event in events for chunk in adapter.parse_chunk(event)]


def unknown_in(message: Message) -> int:
    return int((message.metadata or {}).get("unknownChunks", 0))


def about(kind: str, item: str = "rs_1", place: int = 0, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "item_id": item, "output_index": place, **fields}


def item_event(kind: str, item: dict[str, Any], place: int = 0) -> dict[str, Any]:
    return {"type": f"response.output_item.{kind}", "output_index": place, "item": item}


def ended(*output: Any, kind: str = "completed", **fields: Any) -> dict[str, Any]:
    response = {"id": "resp_1", "status": kind, "output": list(output), **fields}
    return {"type": f"response.{kind}", "response": response}


def reasoning(*summary: str, **fields: Any) -> dict[str, Any]:
    parts = [{"type": "summary_text", "text": text} for text in summary]
    return {"id": "rs_1", "type": "reasoning", "summary": parts, **fields}


def said(*texts: str, item: str = "msg_1", **fields: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {
        "id": item,
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": content,
        **fields,
    }


def call(name: str = "f", arguments: Any = "{}", number: int = 1) -> dict[str, Any]:
    return {
        "id": f"fc_{number}",
        "type": "function_call",
        "call_id": f"call_{number}",
        "name": name,
        "arguments": arguments,
    }


def comparable(message: Message) -> list[dict[str, Any]]:
    return codec.blocks_to_json(message.blocks)


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


# --- which item an event is about -------------------------------------------------------------


def test_ids_that_change_with_every_event_do_not_tear_an_item_apart() -> None:
    """GitHub Copilot rotates them; the place in the output stays."""
    events = json.loads(json.dumps(FIRST["stream"]))
    for number, event in enumerate(events):
        if "item_id" in event:
            event["item_id"] = f"rotated-{number}"
        if "item" in event:
            event["item"]["id"] = f"rotated-item-{number}"

    message = streamed(events)

    assert [block.type for block in message.blocks] == ["thinking", "tool_call"]
    assert message.thinking[0].thought == "Plan A.\n\nPlan B."
    assert message.thinking[0].encrypted == "gAAAAAB-enc"
    assert message.tool_calls[0].arguments == '{"city":"Oslo"}'


def test_places_that_several_items_share_do_not_mix_them() -> None:
    """Some gateways give every item of a stream the same output_index."""
    events = [
        about("reasoning_summary_text.delta", "rs_1", 0, summary_index=0, delta="Hm"),
        about("output_text.delta", "msg_1", 0, content_index=0, delta="Yes"),
        item_event("added", call("a", "", 1), 0),
        about("function_call_arguments.delta", "fc_1", 0, delta='{"x":1}'),
        item_event("done", call("a", '{"x":1}', 1), 0),
        item_event("added", call("b", "", 2), 0),
        about("function_call_arguments.delta", "fc_2", 0, delta='{"y":2}'),
        item_event("done", call("b", '{"y":2}', 2), 0),
    ]

    message = streamed(events)

    assert message.thinking[0].thought == "Hm"
    assert message.text == "Yes"
    assert [(c.name, c.parameters) for c in message.tool_calls] == [
        ("a", {"x": 1}),
        ("b", {"y": 2}),
    ]


def test_a_stream_without_ids_and_places_is_still_read() -> None:
    """A minimal server's events say only what kind of text they hold."""
    events = [
        {"type": "response.reasoning_text.delta", "delta": "Hm"},
        {"type": "response.output_text.delta", "delta": "Ye"},
        {"type": "response.output_text.delta", "delta": "s"},
        ended(
            {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "Hm"}]},
            {"type": "message", "role": "assistant", "content": said("Yes")["content"]},
        ),
    ]

    message = streamed(events)

    assert message.thinking[0].thought == "Hm"
    assert message.text == "Yes"
    assert len(message.blocks) == 2


def test_a_list_with_ids_and_places_of_its_own_is_matched_in_order() -> None:
    """Some servers make new ids for the response that repeats the stream."""
    events = [
        about("output_text.delta", "msg_a", 4, content_index=0, delta="One"),
        item_event("done", said("One", item="msg_a"), 4),
        about("output_text.delta", "msg_b", 5, content_index=0, delta="Two"),
        item_event("done", said("Two", item="msg_b"), 5),
        ended(said("One", item="msg_x"), said("Two", item="msg_y")),
    ]

    assert [block.text for block in streamed(events).blocks if isinstance(block, TextBlock)] == [
        "One",
        "Two",
    ]


def test_a_reasoning_item_whose_parts_are_called_output_text_is_reasoning() -> None:
    """vLLM announces and ends the parts of a reasoning item so."""
    part = {"type": "output_text", "text": "", "annotations": []}
    events = [
        item_event("added", reasoning()),
        about("content_part.added", content_index=0, part=part),
        about("reasoning_text.delta", content_index=0, delta="Hm"),
        about("content_part.done", content_index=0, part={**part, "text": "Hmm"}),
    ]

    [block] = streamed(events).blocks

    assert isinstance(block, ThinkingBlock)
    assert block.thought == "Hmm"


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_a_stream_of_which_only_the_end_was_seen_gives_the_whole_message(
    case: dict[str, Any],
) -> None:
    """Items that are only in response.completed are not lost."""
    assert comparable(streamed(case["stream"][-1:])) == comparable(whole(case["nonstream"]))


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_items_that_are_only_told_when_done_are_whole(case: dict[str, Any]) -> None:
    """Neither the announcement of an item nor its deltas are needed."""
    last = ("response.output_item.done", "response.completed")
    events = [event for event in case["stream"] if event["type"] in last]

    assert comparable(streamed(events)) == comparable(streamed(case["stream"]))


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_a_stream_joined_between_two_items_is_completed_by_its_end(case: dict[str, Any]) -> None:
    """What was missed is filled in, and a thought stands before what it led to (EC-006)."""
    events = case["stream"]
    joints = [n for n, event in enumerate(events) if event["type"] == "response.output_item.done"]

    for joint in joints:
        assert comparable(streamed(events[joint + 1 :])) == comparable(streamed(events))


def test_a_text_joined_in_its_middle_is_not_doubled() -> None:
    """Its end does not continue what was heard, so nothing is stated twice."""
    events = [
        about("output_text.delta", "msg_1", content_index=0, delta="world"),
        about("output_text.done", "msg_1", content_index=0, text="Hello world"),
        item_event("done", said("Hello world")),
        ended(said("Hello world")),
    ]

    assert streamed(events).text == "world"


def test_a_place_far_away_costs_nothing() -> None:
    """A stream may begin anywhere; only a few places before it are kept."""
    events = [about("output_text.delta", "msg_1", 10**12, delta="Yes"), ended(said("Yes"))]

    assert len(chunks_of(events[:1])) <= 10
    assert comparable(streamed(events)) == comparable(streamed([ended(said("Yes"))]))


def test_ends_of_parts_that_come_after_the_end_of_their_item_add_nothing() -> None:
    """Some servers end the item first."""
    part = {"type": "output_text", "text": "Yes"}
    events = [
        item_event("done", said("Yes")),
        about("output_text.done", "msg_1", content_index=0, text="Yes"),
        about("content_part.done", "msg_1", content_index=0, part=part),
        item_event("done", said("Yes")),
    ]

    assert streamed(events).text == "Yes"


def test_what_a_part_lacks_is_not_put_behind_the_parts_that_followed_it() -> None:
    """The list of parts, which goes back to the provider, is right all the same."""
    events = [
        about("reasoning_summary_text.delta", summary_index=0, delta="A"),
        about("reasoning_summary_text.delta", summary_index=1, delta="B"),
        about("reasoning_summary_text.done", summary_index=0, text="A, cut off."),
        item_event("done", reasoning("A, cut off.", "B")),
        ended(reasoning("A, cut off.", "B", encrypted_content="")),
    ]

    [block] = streamed(events).blocks

    assert isinstance(block, ThinkingBlock)
    assert (block.thought, block.encrypted) == ("A, cut off.\n\nB", None)
    assert (block.provider_metadata or {})["summary"] == ["A, cut off.", "B"]


# --- messages --------------------------------------------------------------------------------


def test_each_content_part_of_a_message_is_a_text_of_its_own() -> None:
    """Parts keep their order, and each carries the id and phase of its message."""
    events = [
        item_event("added", {**said(phase="commentary"), "status": "in_progress"}),
        about("output_text.delta", "msg_1", content_index=0, delta="One"),
        about("output_text.delta", "msg_1", content_index=1, delta="Two"),
    ]
    beside = {"item_id": "msg_1", "phase": "commentary"}

    unfinished = streamed(events, interrupted=True)
    finished = streamed([*events, item_event("done", said("One", "Two", phase="commentary"))])

    expected = (
        TextBlock(text="One", provider_metadata=beside),
        TextBlock(text="Two", provider_metadata=beside),
    )
    assert unfinished.blocks == expected
    assert finished.blocks == expected


def test_annotations_stay_with_their_text() -> None:
    """They are kept when the part is done, and of a stream that died before."""
    cited = [{"type": "url_citation", "url": "https://a"}, {"type": "file_path", "file_id": "f"}]
    events = [
        about("output_text.delta", "msg_1", content_index=0, delta="See"),
        *(
            about(
                "output_text.annotation.added",
                "msg_1",
                content_index=0,
                annotation_index=number,
                annotation=annotation,
            )
            for number, annotation in enumerate(cited)
        ),
    ]
    item = said("See")
    item["content"][0]["annotations"] = cited

    for message in (streamed(events), streamed([*events, item_event("done", item)])):
        [block] = message.blocks
        assert (block.provider_metadata or {})["annotations"] == cited


def test_a_refusal_is_visible_text_that_says_what_it_is() -> None:
    """It is what the model answered, and goes back as a refusal."""
    item = {**said(), "content": [{"type": "refusal", "refusal": "No."}]}
    events = [
        about("refusal.delta", "msg_1", content_index=0, delta="N"),
        about("refusal.done", "msg_1", content_index=0, refusal="No."),
        item_event("done", item),
    ]

    [block] = streamed(events).blocks

    assert block == TextBlock(
        text="No.", provider_metadata={"item_id": "msg_1", "part_type": "refusal"}
    )
    assert whole({"output": [item]}).blocks == (block,)


def test_a_content_part_of_a_new_kind_is_kept_as_it_came() -> None:
    """It stands among the parts, and knows its message."""
    part = {"type": "output_sound", "data": "AAAA"}
    item = said("One")
    item["content"].append(part)

    blocks = streamed(
        [
            about("content_part.added", "msg_1", content_index=1, part=part),
            about("content_part.done", "msg_1", content_index=1, part=part),
            item_event("done", item),
            ended(item),
        ]
    ).blocks

    assert blocks[1:] == (RawBlock(data=part, provider_metadata={"item_id": "msg_1"}),)


# --- calls -----------------------------------------------------------------------------------


def test_parallel_calls_keep_their_own_arguments() -> None:
    """Deltas of two open calls may alternate."""
    events = [
        item_event("added", call("a", "", 1), 0),
        item_event("added", call("b", "", 2), 1),
        about("function_call_arguments.delta", "fc_2", 1, delta='{"y"'),
        about("function_call_arguments.delta", "fc_1", 0, delta='{"x":1}'),
        about("function_call_arguments.delta", "fc_2", 1, delta=":2}"),
        item_event("done", call("b", '{"y":2}', 2), 1),
        item_event("done", call("a", '{"x":1}', 1), 0),
    ]

    calls = streamed(events).tool_calls

    assert [(c.id, c.name, c.arguments) for c in calls] == [
        ("call_1", "a", '{"x":1}'),
        ("call_2", "b", '{"y":2}'),
    ]


def test_arguments_that_come_only_when_done_are_whole() -> None:
    """Also where the first deltas were missed, and where no item announced the call."""
    events = [
        about("function_call_arguments.delta", "fc_1", delta=':"Oslo"}'),
        about("function_call_arguments.done", "fc_1", arguments='{"city":"Oslo"}'),
        item_event("done", call("f", '{"city":"Oslo"}')),
    ]

    [block] = streamed(events).blocks

    assert isinstance(block, ToolCallBlock)
    assert (block.id, block.name, block.parameters) == ("call_1", "f", {"city": "Oslo"})


@pytest.mark.parametrize("arguments", [{"x": 1}, [1], 5, True, {}], ids=repr)
def test_arguments_that_a_server_sends_as_a_value_are_parameters(arguments: Any) -> None:
    """The value stands where JSON text belongs: a call of something is none of nothing."""
    for message in (
        whole({"output": [call("f", arguments)]}),
        streamed([item_event("added", call("f", "")), item_event("done", call("f", arguments))]),
    ):
        (found,) = message.tool_calls

        assert (found.parameters, found.arguments) == (arguments, None)
        assert unknown_in(message) == 0


def test_a_value_behind_arguments_that_came_in_pieces_is_kept_aside() -> None:
    """The pieces are the arguments; that something else was said too is not lost."""
    message = streamed(
        [
            item_event("added", call("f", "")),
            about("function_call_arguments.delta", "fc_1", delta='{"x":1}'),
            item_event("done", call("f", 5)),
        ]
    )

    assert message.tool_calls[0].parameters == {"x": 1}
    assert (message.metadata or {})["unknownEvents"] == [5]


def test_other_fields_of_a_call_survive() -> None:
    """Namespace and caller of a call are sent back with it."""
    item = {**call(), "namespace": "crm", "caller": {"type": "direct"}, "status": "completed"}

    assert whole({"output": [item]}).tool_calls[0].provider_metadata == {
        "item_id": "fc_1",
        "namespace": "crm",
        "caller": {"type": "direct"},
    }


def test_the_free_input_of_a_custom_tool_is_one_argument() -> None:
    """It is valid JSON however it was cut, and the call says what kind it is."""
    text = 'print("\u00e9\n\\")'
    item = {
        "id": "ctc_1",
        "type": "custom_tool_call",
        "call_id": "call_1",
        "name": "python",
        "input": text,
    }
    events = [
        item_event("added", {**item, "input": ""}),
        *(about("custom_tool_call_input.delta", "ctc_1", delta=letter) for letter in text[:-2]),
        about("custom_tool_call_input.done", "ctc_1", input=text),
        item_event("done", item),
        ended(item),
    ]

    [block] = streamed(events).blocks

    assert isinstance(block, ToolCallBlock)
    assert block.parameters == {"input": text}
    assert block.provider_metadata == {"item_id": "ctc_1", "item_type": "custom_tool_call"}
    assert whole({"output": [item]}).tool_calls[0] == block
    assert whole({"output": [{**item, "input": ""}]}).tool_calls[0].parameters == {"input": ""}


RAW_ITEMS: list[dict[str, Any]] = [
    {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"query": "q"}},
    {"id": "ci_1", "type": "code_interpreter_call", "code": "1+1", "outputs": [{"logs": "2"}]},
    {"id": "ig_1", "type": "image_generation_call", "result": "aGk=", "status": "completed"},
    {"id": "mcp_1", "type": "mcp_call", "name": "f", "arguments": "{}", "output": "1"},
    {"id": "mcpl_1", "type": "mcp_list_tools", "server_label": "s", "tools": []},
    {"id": "cmp_1", "type": "compaction", "encrypted_content": "gAAA"},
    {"id": "new_1", "type": "an_item_of_next_year", "anything": [1, None]},
]


@each("item", RAW_ITEMS)
def test_every_other_item_is_kept_whole_in_its_place(item: dict[str, Any]) -> None:
    """Hosted tools and compactions come back exactly as they came, once."""
    events = [
        item_event("added", {**item, "status": "in_progress"}, 0),
        item_event("done", item, 0),
        item_event("done", said("Yes"), 1),
        ended(item, said("Yes")),
    ]

    assert streamed(events).blocks[0] == RawBlock(data=item)
    assert len(streamed(events).blocks) == 2
    assert whole({"output": [item, said("Yes")]}).blocks[0] == RawBlock(data=item)


def test_a_call_with_a_type_of_its_own_is_a_tool_call_streamed_and_whole() -> None:
    """Once, in its place."""
    action = {"command": ["ls"]}
    item = {"id": "sh_1", "type": "local_shell_call", "call_id": "call_8", "action": action}
    events = [item_event("added", item, 0), item_event("done", item, 0), ended(item, said("Yes"))]
    call = ToolCallBlock(
        id="call_8",
        name="local_shell",
        parameters={"action": action},
        provider_metadata={"item_id": "sh_1", "item_type": "local_shell_call"},
    )

    assert streamed(events).tool_calls == whole({"output": [item]}).tool_calls == (call,)


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
    about("reasoning_summary_part.added", summary_index=0),
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


@each("event", MALFORMED)
def test_a_malformed_event_is_one_unknown_chunk(event: Any) -> None:
    """However much of it is wrong, it counts once, and nothing is raised."""
    assert chunks_of([event]) == [UnknownChunk(raw=event)]


@each("event", MALFORMED)
def test_a_malformed_event_leaves_no_trace(event: Any) -> None:
    """The good events around it give the message that they give without it."""
    good = FIRST["stream"]
    spoiled = [
        event,
        *(item for pair in zip(good, [event] * len(good), strict=True) for item in pair),
    ]

    clean, message = streamed(good), streamed(spoiled)

    assert message.blocks == clean.blocks
    assert (message.usage, message.finish_reason) == (clean.usage, clean.finish_reason)
    assert unknown_in(message) == len(good) + 1


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


def test_events_that_a_host_normalised_already_are_read() -> None:
    """The hosts' own vocabulary is not this protocol's, and is understood all the same."""
    message = streamed(
        [
            {"type": "thinking_start", "contentIndex": 0},
            {"type": "thinking_delta", "contentIndex": 0, "delta": "Hm"},
            {"type": "thinking_end", "contentIndex": 0, "content": "Hm"},
            {"type": "text_delta", "contentIndex": 1, "delta": "Yes"},
        ]
    )

    assert ([block.thought for block in message.thinking], message.text) == (["Hm"], "Yes")


def test_reset_forgets_the_stream() -> None:
    """The next stream may use the same ids, and starts from nothing."""
    adapter = ResponsesReader(CONTRACT)
    first = [adapter.parse_chunk(event) for event in FIRST["stream"]]
    adapter.reset()

    assert [adapter.parse_chunk(event) for event in FIRST["stream"]] == first


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "id",
                    "type",
                    "text",
                    "content",
                    "summary",
                    "output",
                    "part",
                    "delta",
                    "item",
                    "name",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"type": st.sampled_from([*ResponsesReader.events, "message"])},
            optional={
                name: JSON
                for name in (
                    "item",
                    "item_id",
                    "output_index",
                    "content_index",
                    "summary_index",
                    "delta",
                    "text",
                    "part",
                    "response",
                    "error",
                    "arguments",
                    "input",
                    "annotation",
                )
            },
        ),
        max_size=6,
    )
)
def test_no_event_raises_and_none_is_unknown_twice(events: list[dict[str, Any]]) -> None:
    """Whatever stands in the fields of a known event."""
    adapter = ResponsesReader(CONTRACT)

    for event in events:
        assert sum(chunk.type == "unknown" for chunk in adapter.parse_chunk(event)) <= 1


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
    """No host of this protocol mixes thinking into the text; what may go back differs."""
    row = contracts.resolve(provider, "m", API)

    assert (row.provider, row.reading.tags, row.reading.output_excludes_reasoning) == (
        provider,
        False,
        False,
    )
    assert (row.returning.returns_in, row.returning.opaque, row.returning.floor) == (
        echo,
        opaque,
        floor,
    )


def test_text_of_this_protocol_is_not_searched_for_delimiters() -> None:
    """A literal tag in an answer stays where it is."""
    assert whole({"output": [said("Use <think>x</think>.")]}).text == "Use <think>x</think>."


def test_the_adapter_is_for_hosts_that_speak_the_protocol_by_default() -> None:
    """OpenAI's usual protocol is another one; an explicit api wins over it."""
    adapter = ResponsesReader(CONTRACT)

    assert adapter.id == API
    assert not adapter.can_handle("gpt-5.6", "openai")
    assert not adapter.can_handle(None, None)
    assert not adapter.can_handle("m", "somebody")


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
