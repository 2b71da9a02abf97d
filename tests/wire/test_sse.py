"""What the decoders of event streams and JSON lines promise, however the bytes are cut."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.wire.sse import (
    OVERSIZED,
    JSONEvents,
    NDJSONDecoder,
)
from tests.properties import each, examples


def values(
    pieces: Iterable[bytes], make: type[JSONEvents | NDJSONDecoder] = JSONEvents, **options: Any
) -> list[Any]:
    decoder = make(**options)
    given_out = [value for piece in pieces for value in decoder.feed(piece)]
    return given_out + decoder.finish()


def single(data: bytes) -> list[bytes]:
    return [data[i : i + 1] for i in range(len(data))]


# Lines and fields


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
def test_any_line_end_ends_a_line(end: bytes) -> None:
    """All three line ends of the standard give the same events."""
    stream = end.join([b"event: a", b"data: 1", b"", b"data: 2", b"", b""])

    assert values([stream]) == values(single(stream)) == [1, 2]


def test_line_end_split_between_pieces_is_one() -> None:
    """A line feed after a carriage return of the piece before is no second line."""
    assert values([b"data: a\r", b"\ndata: b\r", b"\n\r", b"\n"]) == ["a\nb"]


def test_event_is_given_with_the_carriage_return_that_ends_it() -> None:
    """No one waits for a line feed that may never come."""
    assert JSONEvents().feed(b"data: 1\r\r") == [1]


def test_empty_pieces_change_nothing() -> None:
    """A read of no bytes is no line end and no end."""
    assert values([b"data: 1\r", b"", b"\n", b"", b"\n"]) == [1]


def test_data_lines_are_joined() -> None:
    """Several data fields of one event are its lines."""
    assert values([b"data: a\ndata:\ndata: b\n\n"]) == ["a\n\nb"]


def test_one_blank_after_the_colon_is_not_data() -> None:
    """One, and not two."""
    assert values([b"data:a\n\ndata: a\n\ndata:  a\n\n"]) == ["a", "a", " a"]


def test_field_without_a_colon_is_empty() -> None:
    """A line may be the name of a field alone."""
    assert values([b"data: a\ndata\ndata\n\n"]) == ["a\n\n"]


def test_comments_and_unknown_fields_say_nothing() -> None:
    """Heartbeats do not become events."""
    stream = b": ping\n\n:\nfoo: 1\nid: 7\nretry: 10\n data: no\ndata: 1\n\n"

    assert values([stream]) == [1]


def test_event_without_data_is_none() -> None:
    """A name alone is dropped and does not colour the next event."""
    assert values([b"event: a\n\ndata: 1\n\n"]) == [1]


def test_byte_order_mark_is_no_part_of_the_first_field() -> None:
    """Once, at the beginning, even byte by byte."""
    stream = b"\xef\xbb\xbfdata: 1\n\n\xef\xbb\xbfdata: 2\n\n"

    assert values(single(stream)) == [1]


def test_character_split_between_pieces_is_whole() -> None:
    """Four bytes in four pieces are one character."""
    assert values(single("data: \U0001f9e0\n\n".encode())) == ["\U0001f9e0"]


def test_invalid_bytes_are_replaced() -> None:
    """Bytes that are no UTF-8 never raise."""
    assert values([b"data: a\xffb\xe2\x82\n\n"]) == ["a\ufffdb\ufffd"]


@pytest.mark.parametrize("end", [b"", b"\n", b"\r"])
def test_stream_that_just_ends_loses_nothing(end: bytes) -> None:
    """The last event needs no blank line after it."""
    assert values([b"data: 1\n\ndata: 2" + end]) == [1, 2]


def test_finished_decoder_takes_nothing_more() -> None:
    """Bytes after the end are a mistake of the caller's."""
    decoder = JSONEvents()
    decoder.finish()

    with pytest.raises(InvalidCall):
        decoder.feed(b"x")


# The bound


@pytest.mark.parametrize("split", [lambda data: [data], single], ids=["whole", "bytes"])
def test_oversized_line_costs_one_event(split: Any) -> None:
    """The event is reported without its data; its neighbours are as they were."""
    stream = b"data: 1\n\nevent: big\ndata: " + b"x" * 100 + b"\n\ndata: 2\n\n"

    assert values(split(stream), max_line=50) == [1, OVERSIZED, 2]


def test_oversized_event_of_short_lines_is_dropped_too() -> None:
    """Many lines are no way around the bound."""
    stream = b"data: 1234567\n" * 10 + b"\ndata: 2\n\n"

    assert values([stream], max_line=50) == [OVERSIZED, 2]


def test_oversized_comment_costs_nothing() -> None:
    """A comment is no event, however long."""
    stream = b"data: 1\n:" + b"x" * 100 + b"\n\n"

    assert values([stream], max_line=50) == [1]


def test_line_at_the_bound_is_whole() -> None:
    """The bound itself is allowed."""
    assert values([b"data: 1234\n\n"], max_line=10) == [1234]


def test_endless_line_is_not_kept() -> None:
    """Memory does not grow with a line that never ends."""
    decoder = JSONEvents(max_line=64)
    for _ in range(1000):
        decoder.feed(b"data: " + b"x" * 64)

        assert len(decoder._lines._buffer) <= 64


def test_line_fed_byte_by_byte_is_collected_in_place() -> None:
    """The buffer grows and is never made anew, so a long line costs no more in small pieces."""
    decoder = JSONEvents()
    buffer = decoder._lines._buffer
    for byte in single(b"data: " + b"x" * 1000):
        decoder.feed(byte)

    assert decoder._lines._buffer is buffer
    assert len(buffer) == 1006


# JSON in events


def test_events_become_json_values() -> None:
    """Each payload is decoded, whatever its kind."""
    stream = b'data: {"a": 1}\n\nevent: x\ndata: [1,\ndata: 2]\n\ndata: "s"\n\n'

    assert values([stream]) == [{"a": 1}, [1, 2], "s"]


def test_done_ends_the_values() -> None:
    """What follows the end mark is not read, and the end is known."""
    decoder = JSONEvents()

    assert decoder.feed(b"data: 1\n\ndata: [DONE]\n\ndata: 2\n\n") == [1]
    assert decoder.done
    assert decoder.feed(b"data: 3\n\n") + decoder.finish() == []


def test_stream_without_done_is_not_done() -> None:
    """A stream that breaks off can be told from one that is complete."""
    decoder = JSONEvents()

    assert decoder.feed(b"data: 1\n\n") + decoder.finish() == [1]
    assert not decoder.done


@each("payload", ['{"a": ', "oops", "{'a': 1}", "[" * 100_000, "9" * 5000, "[DONE] x"])
def test_malformed_payload_comes_out_as_it_is(payload: str) -> None:
    """It is the string itself, between its good neighbours, and nothing raises."""
    stream = f"data: 1\n\ndata: {payload}\n\ndata: 2\n\n".encode()

    assert values([stream]) == [1, payload, 2]


def test_empty_payload_says_nothing() -> None:
    """A heartbeat is not malformed."""
    assert values([b"data:\n\ndata:  \n\ndata: 1\n\n"]) == [1]


def test_json_is_read_leniently() -> None:
    """What Python servers write by mistake is still read."""
    (value,) = values([b'data: {"a": 1, "a": 2, "b": NaN, "c": -Infinity}\n\n'])

    assert (value["a"], value["c"]) == (2, -math.inf)
    assert math.isnan(value["b"])


# JSON lines


def test_lines_become_json_values() -> None:
    """LF or CRLF, blank lines between, and the last line without an end."""
    stream = b'\xef\xbb\xbf{"a": 1}\n\n{"b":\r2}\r\n  \n3'

    assert values([stream], NDJSONDecoder) == [{"a": 1}, {"b": 2}, 3]
    assert values(single(stream), NDJSONDecoder) == [{"a": 1}, {"b": 2}, 3]


def test_malformed_line_comes_out_as_it_is() -> None:
    """It is the string itself, and the next line is read as if nothing had been."""
    assert values([b'1\n{"a": \r\n2\n'], NDJSONDecoder) == [1, '{"a": ', 2]


def test_oversized_line_is_malformed() -> None:
    """It is reported in its place."""
    stream = b"1\n" + b"2" * 100 + b"\n3\n"

    assert values([stream], NDJSONDecoder, max_line=50) == [1, OVERSIZED, 3]


# Properties


LINES = [
    *(b"data: 1", b"data: {", b"data", b"data: [DONE]", b"event: e", b"id: 1", b"retry: 5"),
    *(b": c", b"", b"", b"x", "data: \u601d\U0001f9e0".encode(), b"data: \xff\xe2\x82"),
    *(b"data: " + b"y" * 40, b":" + b"z" * 40, b"\xef\xbb\xbf", b'{"a": 1}', b"\xe2"),
]
streams = st.lists(
    st.tuples(st.sampled_from(LINES), st.sampled_from([b"\n", b"\r\n", b"\r"])), max_size=14
).map(lambda lines: b"".join(line + end for line, end in lines))
cuts = st.lists(st.integers(0, 200), max_size=8).map(sorted)


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    return [stream[i:j] for i, j in zip([0, *places], [*places, len(stream)], strict=True)]


@examples(300)
@given(
    streams | st.binary(max_size=60),
    cuts,
    st.sampled_from([20, 1000]),
    st.sampled_from([JSONEvents, NDJSONDecoder]),
)
def test_any_cut_gives_the_values_of_the_whole(
    stream: bytes, at: list[int], bound: int, make: type[JSONEvents | NDJSONDecoder]
) -> None:
    """Where the bytes were cut cannot be seen in the values."""
    whole = values([stream], make, max_line=bound)

    assert values(cut(stream, at), make, max_line=bound) == whole
    assert values(single(stream), make, max_line=bound) == whole


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@given(st.lists(json_values, max_size=5), st.booleans(), cuts)
def test_what_a_server_wrote_is_what_is_read(
    written: list[Any], escaped: bool, at: list[int]
) -> None:
    """Every JSON value comes through both framings."""
    texts = [json.dumps(value, ensure_ascii=escaped).encode() for value in written]
    stream = b"".join(b"data: " + text + b"\n\n" for text in texts)

    assert values(cut(stream, at)) == written
    assert values(cut(b"\n".join(texts), at), NDJSONDecoder) == written
