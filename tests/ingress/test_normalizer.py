"""The door: what one stream costs, what is kept next to the blocks, what never gets in."""

from __future__ import annotations

import json
import math
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.conversation import codec
from reasoning_store.ingress.reply_counters import COUNTERS, Counters, read_counters
from reasoning_store.testing import stream
from reasoning_store.wire import contract_lookup
from tests.properties import each
from tests.wire.steps import steps

PIECE = 4_096


def delta(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields}]}


def pieces(size: int, verb: str = "Weigh") -> Iterator[str]:
    """Text in pieces of 4 KB, no two of them alike, so that each takes its own memory."""
    for number in range(size // PIECE):
        yield (f"{number:06} {verb} it, \n " * PIECE)[:PIECE]


def native(size: int) -> Iterator[dict[str, Any]]:
    return (delta(reasoning_content=piece) for piece in pieces(size))


def mirrored(size: int) -> Iterator[dict[str, Any]]:
    return (delta(reasoning_content=piece, reasoning=piece) for piece in pieces(size))


def tagged(size: int) -> Iterator[dict[str, Any]]:
    yield delta(content="<think>")
    yield from (delta(content=piece) for piece in pieces(size, "Think"))


def tagged_then_native(size: int) -> Iterator[dict[str, Any]]:
    yield from tagged(size // 2)
    yield delta(content="</think>")
    yield from native(size // 2)


def blocks(size: int) -> Iterator[dict[str, Any]]:
    """Many short thoughts, tagged ones first, each followed by a little text."""
    for number in range(size // 256):
        yield delta(content=f"<think>t{number}</think>x")
    for number in range(size // 256):
        yield delta(reasoning_content=f"n{number}")
        yield delta(content="x")


def mirrored_entries(size: int) -> Iterator[dict[str, Any]]:
    """Entries that never end, each with a signed copy in another array."""
    for number in range(size // 256):
        entry = {"type": "reasoning.text", "index": number, "text": "a"}
        copy = {"type": "thinking", "thinking": "a", "signature": "c2ln"}
        yield delta(reasoning_details=[entry], thinking_blocks=[copy])


def read(events: Iterator[dict[str, Any]]) -> rs.Message:
    normalizer = rs.StreamNormalizer(api="openai.chat")
    for event in events:
        normalizer.feed(event)
    return normalizer.finish()


LONG = [native, mirrored, tagged, tagged_then_native]
MANY = [blocks, mirrored_entries]


@each("stream", [*LONG, *MANY])
def test_work_grows_with_the_text_and_no_faster(stream: Any) -> None:
    """Four times the reasoning is four times the calls, in one block or in thousands."""
    once, four_times = (
        steps(lambda size=size: read(stream(size)))  # type: ignore[misc]
        for size in (1 << 17, 1 << 19)
    )

    assert four_times < 4.5 * once


@pytest.mark.parametrize("stream", LONG)
def test_memory_is_that_of_the_text(stream: Any) -> None:
    """The pieces and, at the end, the whole that they are joined to; nothing else grows."""
    size = 1 << 23
    read(stream(PIECE))  # what is made once
    tracemalloc.start()
    try:
        message = read(stream(size))
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert sum(len(block.thought) for block in message.thinking) == size
    assert kept < 1.1 * size
    assert peak < 2.8 * size


def test_a_finished_stream_holds_its_text_once() -> None:
    """The message is what is left of a stream: its pieces are let go."""
    size = 1 << 22
    normalizer = rs.StreamNormalizer(api="openai.chat")
    tracemalloc.start()
    try:
        for event in native(size):
            normalizer.feed(event)
        message = normalizer.finish()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert kept < 1.1 * size
    assert normalizer.snapshot() == normalizer.finish() == message
    assert normalizer.close() == []


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_are_kept_as_their_names(number: float) -> None:
    """JSON has no NaN; what a host put where a number belongs is reported all the same."""
    normalizer = rs.StreamNormalizer(api="openai.chat")
    normalizer.feed({"choices": [{"index": 0, "delta": number}]})
    normalizer.feed(delta(content="y") | {"usage": {"completion_tokens": 1, "cost": number}})
    message = normalizer.finish()

    text = codec.dumps(codec.message_to_json(message))
    assert codec.message_from_json(json.loads(text, parse_constant=pytest.fail)) == message
    assert (message.metadata or {})["unknownEvents"][0]["choices"][0]["delta"] == str(number)
    assert message.usage is not None
    assert message.usage.raw["cost"] == str(number)


@pytest.mark.parametrize("odd", [math.nan, b"x", {1}], ids=["nan", "bytes", "set"])
def test_a_block_of_a_kind_unknown_can_be_stored_whatever_is_in_it(odd: Any) -> None:
    """What came of it piece by piece, too: a reply is not lost for a value JSON has not."""
    normalizer = rs.StreamNormalizer(api="anthropic.messages")
    block = {"type": "hologram", "seen": odd}
    normalizer.feed({"type": "content_block_start", "index": 0, "content_block": block})
    delta = {"type": "hologram_delta", "more": odd}
    normalizer.feed({"type": "content_block_delta", "index": 0, "delta": delta})
    normalizer.feed({"type": "content_block_stop", "index": 0})
    message = normalizer.finish()

    text = codec.dumps(codec.message_to_json(message))
    assert codec.message_from_json(json.loads(text, parse_constant=pytest.fail)) == message
    assert "hologram_delta" in text


@each(
    "arguments",
    [
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": 1e999}',
        '{"a": ' * 301 + "1" + "}" * 301,
        '{"a": ' + "9" * 4_000 + "}",
        '{"a": 1}{',
        '{"a": 1, "a": 2}',
    ],
)
def test_arguments_that_are_no_portable_json_are_kept_raw(arguments: str) -> None:
    """What one parser takes and the next one refuses is no value: the string alone is kept."""
    function = {"name": "f", "arguments": arguments}
    (call,) = read(
        iter([delta(tool_calls=[{"index": 0, "id": "c", "function": function}])])
    ).tool_calls

    assert (call.arguments, call.parameters) == (arguments, None)


@each(
    "given, kept",
    [
        ("https://api.example.org/v1", "https://api.example.org/v1"),
        ("https://user:hunter2@api.example.org:8443/v1", "https://api.example.org:8443/v1"),
        ("https://hunter2@api.example.org", "https://api.example.org"),
        ("user:hunter2@api.example.org/v1", "api.example.org/v1"),
        ("https://api.example.org/v1?key=hunter2", "https://api.example.org/v1"),
        ("https://api.example.org/v1#hunter2", "https://api.example.org/v1"),
        ("https://api.example.org/@cf/model", "https://api.example.org/@cf/model"),
    ],
)
def test_an_address_is_kept_without_the_login_in_it(given: str, kept: str) -> None:
    """Where a message came from is a place: user, password and query stay with the caller."""
    message = rs.normalize_response("Hello.", base_url=given)

    assert message.origin is not None
    assert message.origin.base_url == kept
    assert rs.Origin(base_url=given) == rs.Origin(base_url=kept)


def test_a_body_of_another_protocol_is_refused_with_what_helps() -> None:
    """Who forgot to name the protocol learns which one it was read as, and how to name one."""
    body: dict[str, Any] = {"output": []}

    with pytest.raises(rs.WireError) as refused:
        rs.normalize_response(body, provider="openai")
    assert refused.value.hint == "it was read as openai.chat; api= names another protocol"
    assert rs.normalize_response(body, provider="openai", api="openai.responses").blocks == ()


@pytest.mark.parametrize(
    "named", [{"provider": "openai"}, {"base_url": "https://api.openai.com/v1/responses/resp_1"}]
)
def test_a_whole_body_that_names_itself_is_read_as_what_it_says_it_is(
    named: dict[str, Any],
) -> None:
    """A stored response that is fetched later, by its address or by its provider alone."""
    content = [{"type": "output_text", "text": "Hi", "annotations": []}]
    item = {"type": "message", "id": "m", "role": "assistant", "content": content}
    body = {"id": "resp_1", "object": "response", "status": "completed", "output": [item]}
    message = rs.normalize_response(body, **named)

    assert (message.text, message.finish_reason) == ("Hi", "completed")
    assert message.origin is not None
    assert message.origin.api == "openai.responses"


SAID: dict[str, tuple[str, dict[str, Any]]] = {
    "a message": (
        "anthropic.messages",
        {
            **{"type": "message", "role": "assistant", "stop_reason": "end_turn"},
            "content": [{"type": "text", "text": "Hi"}],
        },
    ),
    "choices": ("openai.chat", {"choices": [{"message": {"role": "assistant", "content": "Hi"}}]}),
    "an output": (
        "bedrock.converse",
        {
            "output": {"message": {"role": "assistant", "content": [{"text": "Hi"}]}},
            "stopReason": "end_turn",
        },
    ),
}


@each("provider", [None, "anthropic", "aws", "deepseek", "google", "openai"])
@each("name", SAID)
def test_a_body_is_read_by_its_form_where_a_host_speaks_several_protocols(
    name: str, provider: str | None
) -> None:
    """Many hosts also speak Anthropic's protocol, or OpenAI's."""
    api, body = SAID[name]
    message = rs.normalize_response(body, provider=provider)

    assert message.text == "Hi"
    assert message.origin is None or message.origin.api == api


def test_an_item_of_a_response_is_no_message_of_another_protocol() -> None:
    """It would be read as a message without text."""
    content = [{"type": "output_text", "text": "Hi", "annotations": []}]

    with pytest.raises(rs.WireError):
        rs.normalize_response({"type": "message", "role": "assistant", "content": content})


def test_counters_are_read_by_the_names_they_are_written_by() -> None:
    """One table has the names."""
    events = [delta(reasoning_content="A"), delta(content="<think>A</think></think>B"), {"odd": 1}]
    message = read(iter(events))

    assert read_counters(message.metadata) == Counters(
        stripped_delimiters=3, extracted_blocks=1, suppressed_duplicates=1, unknown_chunks=1
    )
    assert {*(message.metadata or {})} == {*COUNTERS.values(), "unknownEvents"}


# A stream that is not understood


OTHERS = [{"kind": "delta", "say": piece} for piece in ("The ", "whole ", "answer.")]


def test_a_stream_of_which_nothing_was_understood_is_no_complete_message() -> None:
    """It is interrupted, says so, and every event is there to be read again."""
    normalizer = rs.StreamNormalizer(provider="openai")
    chunks = [chunk for event in OTHERS for chunk in normalizer.feed(event)]
    message = normalizer.finish()

    assert chunks == [rs.UnknownChunk(raw=event) for event in OTHERS]
    assert (message.blocks, message.status, message.finish_reason) == ((), "interrupted", "unread")
    assert message.metadata == {"unknownChunks": 3, "unknownEvents": OTHERS}


@each("spoken", contract_lookup.apis())
def test_no_protocol_named_by_mistake_gives_a_complete_empty_message(spoken: str) -> None:
    """The answer, or a message that says that it was not read and holds every event."""
    events = list(stream(rs.assistant("The whole answer."), api=spoken))

    for named in contract_lookup.apis():
        message = read_as(events, named)
        if message.text != "The whole answer.":
            assert (message.status, message.finish_reason) == ("interrupted", "unread"), named
            kept = (message.metadata or {})["unknownEvents"]
            assert read_as(kept, spoken).text == "The whole answer.", named


def read_as(events: list[Any], api: str) -> rs.Message:
    normalizer = rs.StreamNormalizer(api=api)
    for event in events:
        normalizer.feed(event)
    return normalizer.finish()


def test_events_are_kept_within_a_size_and_not_a_number() -> None:
    """Of a stream that was understood fewer, since no one needs them to have the answer."""
    small = [{"stray": number} for number in range(1_000)]
    large = [{"stray": "x" * 60_000} for _ in range(4)]

    def kept(events: list[Any]) -> int:
        normalizer = rs.StreamNormalizer()
        for event in events:
            normalizer.feed(event)
        return len((normalizer.finish().metadata or {})["unknownEvents"])

    answer = {"choices": [{"index": 0, "delta": {"content": "Hi"}}]}
    assert kept(small) == kept([answer, *small]) == 1_000
    assert (kept(large), kept([answer, *large])) == (4, 1)
    assert kept([{"stray": "x" * 2_000_000}] * 3) == 2


def test_a_stream_that_ends_without_an_answer_was_read() -> None:
    """Its end was understood, whatever strange events came with it."""
    normalizer = rs.StreamNormalizer()
    normalizer.feed({"stray": 1})
    normalizer.feed({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    message = normalizer.finish()

    assert (message.status, message.finish_reason) == ("complete", "stop")
