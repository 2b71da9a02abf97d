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
    ServerSentEvent,
    SSEDecoder,
)
from tests.properties import each, examples


def events(pieces: Iterable[bytes], **options: Any) -> list[ServerSentEvent]:
    decoder = SSEDecoder(**options)
    given_out = [event for piece in pieces for event in decoder.feed(piece)]
    return given_out + decoder.finish()


def values(
    pieces: Iterable[bytes], make: type[JSONEvents | NDJSONDecoder] = JSONEvents, **options: Any
) -> list[Any]:
    decoder = make(**options)
    given_out = [value for piece in pieces for value in decoder.feed(piece)]
    return given_out + decoder.finish()


def single(data: bytes) -> list[bytes]:
    return [data[i : i + 1] for i in range(len(data))]


def data_of(text: bytes) -> list[str]:
    return [event.data for event in events([text])]


# Lines and fields


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
def test_any_line_end_ends_a_line(end: bytes) -> None:
    """All three line ends of the standard give the same events."""
    stream = end.join([b"event: a", b"data: 1", b"", b"data: 2", b"", b""])
    expected = [("a", "1"), ("message", "2")]

    assert [(event.event, event.data) for event in events([stream])] == expected
    assert [(event.event, event.data) for event in events(single(stream))] == expected


def test_line_end_split_between_pieces_is_one() -> None:
    """A line feed after a carriage return of the piece before is no second line."""
    assert len(events([b"data: 1\r", b"\ndata: 2\r", b"\n\r", b"\n"])) == 1


def test_event_is_given_with_the_carriage_return_that_ends_it() -> None:
    """No one waits for a line feed that may never come."""
    assert len(SSEDecoder().feed(b"data: 1\r\r")) == 1


def test_empty_pieces_change_nothing() -> None:
    """A read of no bytes is no line end and no end."""
    assert events([b"data: 1\r", b"", b"\n", b"", b"\n"]) == events([b"data: 1\r\n\n"])


def test_data_lines_are_joined() -> None:
    """Several data fields of one event are its lines."""
    assert data_of(b"data: a\ndata:\ndata: b\n\n") == ["a\n\nb"]


def test_one_blank_after_the_colon_is_not_data() -> None:
    """One, and not two."""
    assert data_of(b"data:a\n\ndata: a\n\ndata:  a\n\n") == ["a", "a", " a"]


def test_field_without_a_colon_is_empty() -> None:
    """A line may be the name of a field alone."""
    assert data_of(b"data\n\ndata\ndata\n\n") == ["", "\n"]


def test_comments_and_unknown_fields_say_nothing() -> None:
    """Heartbeats do not become events."""
    assert data_of(b": ping\n\n:\nfoo: 1\n data: no\ndata: 1\n\n") == ["1"]


def test_event_without_data_is_none() -> None:
    """A name alone is dropped and does not colour the next event."""
    assert [event.event for event in events([b"event: a\n\ndata: 1\n\n"])] == ["message"]


def test_id_lasts_and_retry_does_not() -> None:
    """The last id holds until the next one, as the standard says."""
    stream = b"id: 7\nretry: 10\ndata: 1\n\ndata: 2\n\nid\ndata: 3\n\n"

    assert [(event.id, event.retry) for event in events([stream])] == [
        ("7", 10),
        ("7", None),
        ("", None),
    ]


@pytest.mark.parametrize(
    "field", [b"id: a\0b", b"retry: 1x", b"retry: -1", b"retry: " + b"9" * 5000]
)
def test_bad_id_and_retry_are_ignored(field: bytes) -> None:
    """A field that the standard forbids leaves the event as it is."""
    assert events([field + b"\ndata: 1\n\n"]) == events([b"data: 1\n\n"])


def test_byte_order_mark_is_no_part_of_the_first_field() -> None:
    """Once, at the beginning, even byte by byte."""
    stream = b"\xef\xbb\xbfdata: 1\n\n\xef\xbb\xbfdata: 2\n\n"

    assert [event.data for event in events(single(stream))] == ["1"]


def test_character_split_between_pieces_is_whole() -> None:
    """Four bytes in four pieces are one character."""
    assert [event.data for event in events(single("data: \U0001f9e0\n\n".encode()))] == [
        "\U0001f9e0"
    ]


def test_invalid_bytes_are_replaced() -> None:
    """Bytes that are no UTF-8 never raise."""
    assert data_of(b"data: a\xffb\xe2\x82\n\n") == ["a\ufffdb\ufffd"]


@pytest.mark.parametrize("end", [b"", b"\n", b"\r"])
def test_stream_that_just_ends_loses_nothing(end: bytes) -> None:
    """The last event needs no blank line after it."""
    assert data_of(b"data: 1\n\ndata: 2" + end) == ["1", "2"]


def test_finished_decoder_takes_nothing_more() -> None:
    """Bytes after the end are a mistake of the caller's."""
    decoder = SSEDecoder()
    decoder.finish()

    with pytest.raises(InvalidCall):
        decoder.feed(b"x")


# The bound


@pytest.mark.parametrize("split", [lambda data: [data], single], ids=["whole", "bytes"])
def test_oversized_line_costs_one_event(split: Any) -> None:
    """The event is reported without its data; its neighbours are as they were."""
    stream = b"data: 1\n\nevent: big\ndata: " + b"x" * 100 + b"\n\ndata: 2\n\n"

    assert [
        (event.event, event.data, event.oversized) for event in events(split(stream), max_line=50)
    ] == [("message", "1", False), ("big", OVERSIZED, True), ("message", "2", False)]


def test_oversized_event_of_short_lines_is_dropped_too() -> None:
    """Many lines are no way around the bound."""
    stream = b"data: 1234567\n" * 10 + b"\ndata: 2\n\n"

    assert [event.oversized for event in events([stream], max_line=50)] == [True, False]


def test_oversized_comment_costs_nothing() -> None:
    """A comment is no event, however long."""
    stream = b"data: 1\n:" + b"x" * 100 + b"\n\n"

    assert [event.data for event in events([stream], max_line=50)] == ["1"]


def test_line_at_the_bound_is_whole() -> None:
    """The bound itself is allowed."""
    assert events([b"data: 1234\n\n"], max_line=10) == events([b"data: 1234\n\n"])


def test_endless_line_is_not_kept() -> None:
    """Memory does not grow with a line that never ends."""
    decoder = SSEDecoder(max_line=64)
    for _ in range(1000):
        decoder.feed(b"data: " + b"x" * 64)

        assert len(decoder._lines._buffer) <= 64


def test_line_fed_byte_by_byte_is_collected_in_place() -> None:
    """The buffer grows and is never made anew, so a long line costs no more in small pieces."""
    decoder = SSEDecoder()
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


def test_oversized_payload_is_malformed() -> None:
    """It is reported in its place."""
    stream = b"data: 1\n\ndata: " + b"2" * 100 + b"\n\ndata: 3\n\n"

    assert values([stream], max_line=50) == [1, OVERSIZED, 3]


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
@given(streams | st.binary(max_size=60), cuts, st.sampled_from([20, 1000]))
def test_any_cut_gives_the_events_of_the_whole(stream: bytes, at: list[int], bound: int) -> None:
    """Where the bytes were cut cannot be seen in the events."""
    whole = events([stream], max_line=bound)

    assert events(cut(stream, at), max_line=bound) == whole
    assert events(single(stream), max_line=bound) == whole


@examples(300)
@given(streams | st.binary(max_size=60), cuts, st.sampled_from([JSONEvents, NDJSONDecoder]))
def test_any_cut_gives_the_values_of_the_whole(
    stream: bytes, at: list[int], make: type[JSONEvents | NDJSONDecoder]
) -> None:
    """Where the bytes were cut cannot be seen in the values."""
    whole = values([stream], make, max_line=30)

    assert values(cut(stream, at), make, max_line=30) == whole
    assert values(single(stream), make, max_line=30) == whole


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
