"""What the reader of Ollama's own chat API promises."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import ollama as sdk
import pytest

from reasoning_store.conversation.blocks import (
    MediaBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    Usage,
)
from reasoning_store.conversation.chunks import OriginChunk
from reasoning_store.conversation.errors import WireError
from reasoning_store.ingress.normalizer import StreamNormalizer, normalize_response
from reasoning_store.wire import call_ids, contract_lookup
from reasoning_store.wire.ollama import OllamaReader, parse_response
from tests.wire.well_formed import assert_no_trace_of

CASES = Path(__file__).parents[1] / "cases" / "wire"
CASE: dict[str, Any] = json.loads((CASES / "ollama_native.json").read_text())["variants"][0]
CONTRACT = contract_lookup.find_contract("ollama")


def line(**message: Any) -> dict[str, Any]:
    """One line of a stream that is not its last."""
    return {
        "model": "qwen3",
        "created_at": "2026-11-18T00:00:00Z",
        "message": {"role": "assistant", "content": ""} | message,
        "done": False,
    }


def call(name: Any = "f", arguments: Any = None, **more: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": {} if arguments is None else arguments}} | more


def streamed(events: Iterable[Any]) -> Message:
    normalizer = StreamNormalizer(provider="ollama")
    for event in events:
        normalizer.feed(event)
    return normalizer.finish()


def whole(body: Any) -> Message:
    return normalize_response(body, provider="ollama")


def test_sdk_objects_give_what_dicts_give() -> None:
    """The SDK's own type accepts the captured shapes, and reads the same."""
    assert whole(sdk.ChatResponse(**CASE["nonstream"])) == whole(CASE["nonstream"])
    assert streamed(sdk.ChatResponse(**event) for event in CASE["stream"]) == streamed(
        CASE["stream"]
    )


def test_call_without_id_gets_the_same_one_whole_and_streamed() -> None:
    """The id made for it depends on the response and the call's place, on nothing else."""
    (at_once,) = whole(CASE["nonstream"]).tool_calls
    (one_by_one,) = streamed(CASE["stream"]).tool_calls

    assert call_ids.is_made_here(at_once.id)
    assert at_once == one_by_one


def test_parallel_calls_get_ids_of_their_own() -> None:
    """Two calls of the same name are two calls, in one line or in two."""
    together = streamed([line(tool_calls=[call(), call()])]).tool_calls
    apart = streamed([line(tool_calls=[call()]), line(tool_calls=[call()])]).tool_calls

    assert together == apart
    assert len({item.id for item in together}) == 2


def test_id_that_the_server_sends_is_kept() -> None:
    """Newer servers name their calls."""
    assert streamed([line(tool_calls=[call(id="call_1")])]).tool_calls[0].id == "call_1"


def test_arguments_may_be_an_object_or_a_string() -> None:
    """An object is the parameters; a string is kept as it came."""
    (first, second) = streamed(
        [line(tool_calls=[call(arguments={"a": 1}), call(arguments='{"a": 1}')])]
    ).tool_calls

    assert (first.parameters, first.arguments) == ({"a": 1}, None)
    assert (second.parameters, second.arguments) == ({"a": 1}, '{"a": 1}')


def test_switch_over_line_has_the_thought_first() -> None:
    """A line with both thinking and content ends the one and begins the other."""
    message = streamed([line(thinking="a"), line(thinking="b", content="c"), line(content="d")])

    assert message.blocks == (
        ThinkingBlock(thought="ab", source_field="thinking"),
        TextBlock(text="cd"),
    )


@pytest.mark.parametrize(
    ("data", "mime"),
    [
        (b"\x89PNG\r\n", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"RIFF....WEBP", "image/webp"),
        (b"what is this", "application/octet-stream"),
    ],
)
def test_pictures_are_media(data: bytes, mime: str) -> None:
    """A picture comes as base64 alone: its first bytes say what it is."""
    message = streamed([line(images=[b64encode(data).decode()])])

    assert message.blocks == (MediaBlock(kind="image", mime_type=mime, data=data),)


def test_last_line_reports_usage_and_reason() -> None:
    """Counts are on the last line; thinking is in the output count and not apart."""
    last = line() | {
        "done": True,
        "done_reason": "length",
        "prompt_eval_count": 20,
        "eval_count": 30,
        "total_duration": 5,
    }
    message = streamed([line(content="a"), last])
    raw = {"prompt_eval_count": 20, "eval_count": 30, "total_duration": 5}

    assert message.usage == Usage(input=20, output=30, raw=raw)
    assert message.finish_reason == "length"


def test_counts_that_are_absent_are_not_zero() -> None:
    """A prompt that was cached whole has no count of its own."""
    usage = streamed([line() | {"done": True, "eval_count": 30}]).usage

    assert usage is not None
    assert (usage.input, usage.output, usage.reasoning) == (None, 30, None)
    assert streamed([line(content="a") | {"done": True}]).usage is None


def test_error_line_interrupts() -> None:
    """What arrived before the error is kept."""
    message = streamed([line(content="a"), {"error": "model runner stopped"}])

    assert (message.status, message.text) == ("interrupted", "a")
    assert whole({"error": "model runner stopped"}).status == "interrupted"


def test_model_is_named_once() -> None:
    """Every line names the model; the origin is stated once."""
    adapter = OllamaReader(CONTRACT)
    chunks = [chunk for _ in range(3) for chunk in adapter.parse_chunk(line(content="a"))]

    assert [chunk for chunk in chunks if isinstance(chunk, OriginChunk)] == [
        OriginChunk(model="qwen3")
    ]


def test_tags_in_the_content_are_taken_out() -> None:
    """A model without thinking support in the server writes its thoughts into the text."""
    message = streamed([line(content="<think>a</th"), line(content="ink>b")])

    assert [block.type for block in message.blocks] == ["thinking", "text"]
    assert message.text == "b"


MALFORMED: list[Any] = [
    None,
    3,
    [],
    {},
    {"model": "qwen3"},
    {"message": "x"},
    {"message": ["x"], "done": True},
    {"type": "x", "message": {}},
    line(content=1),
    line(thinking=["x"]),
    line(tool_calls={"function": {}}),
    line(tool_calls=[None, 1, {}]),
    line(tool_calls=[{"function": {"arguments": {}}}]),
    line(tool_calls=[call(name=1)]),
    line(tool_calls=[call(arguments=[1])]),
    line(tool_calls=[call(id=1)]),
    line(images=["not base64!"]),
    line(images="QQ=="),
    line(content=1, thinking=2, tool_calls=3),
]


def test_a_malformed_event_is_one_unknown_chunk_and_leaves_no_trace() -> None:
    """However much of it is wrong, it counts once, and the good ones give what they give."""
    assert_no_trace_of(MALFORMED, "ollama.chat", CASE["stream"])


def test_bad_field_leaves_the_good_ones_of_its_line() -> None:
    """The good fields and calls count; of the line the bad field alone is kept aside, once."""
    message = streamed([line(content="a", thinking=1, tool_calls=[call(), None, call()])])

    assert message.text == "a"
    assert len(message.tool_calls) == 2
    assert message.metadata == {"unknownChunks": 1, "unknownEvents": [{"thinking": 1}]}


@pytest.mark.parametrize("body", [None, [], {}, {"message": "x"}, {"choices": []}], ids=repr)
def test_body_of_another_form_is_refused(body: Any) -> None:
    """What is no response is a WireError, not an empty message."""
    with pytest.raises(WireError):
        parse_response(body, CONTRACT)
