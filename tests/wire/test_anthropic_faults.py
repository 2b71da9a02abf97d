"""A fault in an event of the Messages protocol changes nothing else; and its rows."""

from __future__ import annotations

from typing import Any

import pytest

from reasoning_store.conversation.blocks import (
    RawBlock,
)
from reasoning_store.conversation.errors import WireError
from reasoning_store.wire import contract_lookup
from reasoning_store.wire.anthropic.reader import (
    parse_response,
)
from reasoning_store.wire.contract import ReturnRules
from tests.properties import each
from tests.wire.anthropic_events import (
    API,
    CITATIONS,
    CONTRACT,
    FIRST,
    chunks_of,
    delta,
    start,
    stop,
    streamed,
    whole,
)
from tests.wire.steps import steps
from tests.wire.well_formed import assert_no_trace_of

# --- what cannot be read ----------------------------------------------------------------------

MALFORMED: list[Any] = [
    None,
    5,
    "ping",
    [],
    {},
    {"type": None},
    {"type": "event_of_next_year"},
    {"type": "message_start"},
    {"type": "message_start", "message": 5},
    {"type": "message_delta", "usage": {"output_tokens": 1}},
    {"type": "error"},
    {"type": "error", "error": "x"},
    {"type": "content_block_start", "index": 0},
    {"type": "content_block_start", "content_block": {"type": "text", "text": ""}},
    start(0, type=5),
    start(0, type="text"),
    start(0, type="text", text=5),
    start(0, type="thinking", thinking=5),
    start(0, type="thinking", thinking="", signature=[]),
    start(0, type="redacted_thinking"),
    start(0, type="tool_use", id=None, name="f"),
    start(0, type="tool_use", id="toolu_1"),
    {"type": "content_block_delta", "index": 0},
    {"type": "content_block_delta", "index": 0, "delta": []},
    delta(0, "delta_of_next_year", thinking="x"),
    delta(0, "thinking_delta"),
    delta(0, "thinking_delta", thinking=None),
    delta(0, "signature_delta", signature=5),
    delta(0, "text_delta", text=5),
    delta(0, "citations_delta", citation="x"),
    delta(7, "input_json_delta", partial_json="{}"),
    {**delta(0, "text_delta", text="x"), "index": float("nan")},
    {**delta(0, "text_delta", text="x"), "index": True},
    {**delta(0, "text_delta", text="x"), "index": -1},
    {"type": "content_block_stop"},
    {"type": "content_block_stop", "index": "0"},
]


def test_a_malformed_event_is_one_unknown_chunk_and_leaves_no_trace() -> None:
    """However much of it is wrong, it counts once, and the good ones give what they give."""
    assert_no_trace_of(MALFORMED, "anthropic.messages", FIRST["stream"])


@pytest.mark.parametrize(
    "event",
    [
        {"type": "message_start", "message": {"id": 5, "usage": {"output_tokens": 7}}},
        {
            "type": "message_start",
            "message": {"model": [], "id": [], "usage": {"output_tokens": 7}},
        },
        {"type": "message_delta", "delta": {"stop_reason": 5}, "usage": {"output_tokens": 7}},
    ],
)
def test_the_good_parts_of_an_event_count(event: dict[str, Any]) -> None:
    """The usage of an event stands, whatever else is wrong with it; the rest is one unknown."""
    message = streamed([event])

    assert message.usage is not None
    assert message.usage.output == 7
    assert (message.metadata or {})["unknownChunks"] == 1


def test_the_good_blocks_of_a_message_count_and_each_bad_one_is_unknown() -> None:
    """As if they had streamed."""
    content = [None, {"type": "text", "text": "Yes"}, {"type": "thinking", "thinking": 5}, {}]

    message = whole({"content": content, "stop_reason": "end_turn"})

    assert (message.text, message.finish_reason) == ("Yes", "end_turn")
    assert (message.metadata or {})["unknownChunks"] == 3


def test_long_blocks_are_read_in_steps_in_proportion() -> None:
    """The last of many deltas and citations costs what the first one did."""

    def work(count: int) -> int:
        events = [start(0, type="text", text=""), start(1, type="server_tool_use", input={})]
        events += [delta(0, "text_delta", text="word ")] * count
        events += [delta(0, "citations_delta", citation=CITATIONS[0])] * count
        events += [delta(1, "input_json_delta", partial_json="word ")] * count
        return steps(lambda: chunks_of([*events, stop(0), stop(1)]))

    assert work(8_000) < 10 * work(1_000)


@each(
    "body",
    [
        None,
        5,
        [],
        {},
        {"content": "secret"},
        {"content": [], "role": "user"},
        {"type": "error", "error": {"message": "secret"}},
    ],
)
def test_a_body_of_another_form_is_refused_without_its_content(body: Any) -> None:
    """The error names what is missing and repeats nothing of the conversation."""
    with pytest.raises(WireError) as caught:
        parse_response(body, CONTRACT)

    assert str(caught.value).startswith("anthropic.messages: ")
    assert "secret" not in str(caught.value)


def test_the_rows_of_the_protocol() -> None:
    """Anthropic refuses unsigned thoughts and demands its own; other hosts sign nothing."""
    other, own = (
        contract_lookup.find_contract(None, None, API),
        contract_lookup.find_contract("anthropic", "claude-x"),
    )

    assert (other.reading.tags, own.reading.tags) == (False, False)
    assert other.returning == ReturnRules(
        returns_in="thinking", opaque=True, known_sources=("thinking", "redacted_thinking")
    )
    assert (own.provider, own.family) == ("anthropic", "claude")
    assert own.returning == ReturnRules(
        returns_in="thinking",
        opaque=True,
        known_sources=("thinking", "redacted_thinking"),
        signed=True,
        floor="open_turn_with_call",
    )


def test_fields_of_the_whole_message_are_kept_with_it() -> None:
    """A container is named in the next request, a thought that was dropped by its place."""
    container = {"id": "container_1", "expires_at": "2026-11-18T12:00:00Z"}
    edits = {"applied_edits": [{"type": "clear_thinking_20251015", "cleared_thinking_turns": 1}]}
    path, reason = "messages.1.content.0", "prefix_binding_mismatch"
    dropped = [{"type": "thinking_dropped", "path": path, "reason": reason}]
    events = [
        {"type": "message_start", "message": {"id": "msg_1", "content": [], "container": None}},
        {
            "type": "message_delta",
            "delta": {
                "stop_reason": "stop_sequence",
                "stop_sequence": "##",
                "container": container,
            },
            "context_management": edits,
            "input_transformations": dropped,
        },
    ]
    body = {
        "id": "msg_1",
        "content": [],
        "stop_reason": "stop_sequence",
        "stop_sequence": "##",
        "container": container,
        "context_management": edits,
        "input_transformations": dropped,
    }
    kept = {
        "container": container,
        "stop_sequence": "##",
        "context_management": edits,
        "input_transformations": dropped,
    }

    for message in (streamed(events), whole(body)):
        assert message.metadata == {"providerMetadata": kept}
        assert message.origin is not None
        assert message.origin.response_id == "msg_1"


def test_a_block_of_a_hosted_tool_that_was_cut_off_is_kept() -> None:
    """It is stated whole at its end, and the stream has none: what came of it is there."""
    block = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    piece = {"type": "input_json_delta", "partial_json": '{"query": "Os'}
    events = [
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": piece},
    ]

    assert streamed(events, interrupted=True).blocks == (
        RawBlock(data=block, provider_metadata={"deltas": [piece]}),
    )
