"""The item of a response that an event is about; its messages and calls."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reasoning_store.conversation.blocks import (
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from tests.properties import each
from tests.wire.responses_events import (
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
    unknown_in,
    whole,
)

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


@pytest.mark.parametrize("name", ["output_text.annotation.added", "output_text_annotation.added"])
def test_a_citation_that_streams_is_that_of_the_whole_response(name: str) -> None:
    """OpenAI's documents and its streams spell the event differently."""
    cited = {"type": "url_citation", "url": "https://met.no", "start_index": 0, "end_index": 3}
    item = said("Oslo is cold.")
    item["content"][0]["annotations"] = [cited]
    part: dict[str, Any] = {"content_index": 0, "annotation_index": 0, "annotation": cited}
    message = streamed(
        [
            item_event("added", said(status="in_progress")),
            about("output_text.delta", "msg_1", content_index=0, delta="Oslo is cold."),
            about(name, "msg_1", **part),
            ended(),
        ]
    )

    assert (message.blocks[0].provider_metadata or {})["annotations"] == [cited]
    assert unknown_in(message) == 0
    assert message.text == whole(ended(item)["response"]).text


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
