"""Every provider's recorded shapes become the blocks that their cases state.

Whole, streamed, and as the bytes of an event stream cut anywhere.
"""

from __future__ import annotations

import copy
import json
import math
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.conversation.chunks import UnknownChunk
from reasoning_store.wire import contract_lookup
from reasoning_store.wire.sse import JSONEvents, NDJSONDecoder
from tests.properties import examples
from tests.wire.cases import Case, bound, expected, expected_usage, params, reports_usage, usage_of
from tests.wire.well_formed import assert_well_formed


def streamed(case: Case, events: list[Any] | None = None) -> rs.Message:
    normalizer = case.normalizer()
    for event in case.variant["stream"] if events is None else events:
        normalizer.feed(event)
    return normalizer.finish()


def framed(case: Case) -> bytes:
    """Return a case's stream as the bytes that its API sends."""
    lines = [json.dumps(event) for event in case.variant["stream"]]
    if case.provider == "ollama":
        return "".join(line + "\n" for line in lines).encode()
    return "".join(f"data: {line}\r\n\r\n" for line in [*lines, "[DONE]"]).encode()


def decoder(case: Case) -> JSONEvents | NDJSONDecoder:
    return NDJSONDecoder() if case.provider == "ollama" else JSONEvents()


@pytest.mark.parametrize("case", params("nonstream"))
def test_a_whole_response_gives_the_blocks_of_its_case(case: Case) -> None:
    """Number, order, kind and binding fields, as cases/README states them."""
    message = case.whole()

    assert bound(message) == expected(case)
    assert message.metadata is None or "unknownChunks" not in message.metadata


@pytest.mark.parametrize("case", params("nonstream"))
def test_a_whole_response_gives_the_usage_of_its_case(case: Case) -> None:
    """Output always includes reasoning; what is not reported is absent, not zero."""
    stated = expected_usage(case)
    reported = usage_of(case.whole())

    assert reported == stated or (stated is None and reported is None)


@pytest.mark.parametrize("case", params("stream"))
def test_a_stream_gives_the_blocks_of_its_case(case: Case) -> None:
    """The same blocks as the whole response, event by event."""
    message = streamed(case)

    assert bound(message) == expected(case)
    assert message.metadata is None or "unknownChunks" not in message.metadata


@pytest.mark.parametrize(
    "case", [item for item in params("stream") if reports_usage(item.values[0])]
)
def test_a_stream_gives_the_usage_of_its_case(case: Case) -> None:
    """Usage is taken from wherever in the stream it stands."""
    assert usage_of(streamed(case)) == expected_usage(case)


@pytest.mark.parametrize("case", params("stream"))
@examples(15)
@given(seed=st.integers(0, 2**32))
def test_the_bytes_of_a_stream_may_be_cut_anywhere(case: Case, seed: int) -> None:
    """Network packets know no events, no lines and no characters."""
    data = framed(case)
    cutter = random.Random(seed)
    cuts = sorted(cutter.randrange(len(data) + 1) for _ in range(cutter.randrange(1, 60)))
    read = decoder(case)
    events = [
        event
        for first, last in zip([0, *cuts], [*cuts, len(data)], strict=True)
        for event in read.feed(data[first:last])
    ]

    assert bound(streamed(case, [*events, *read.finish()])) == expected(case)


@pytest.mark.parametrize("case", params("stream"))
def test_the_chunks_of_a_stream_are_well_formed(case: Case) -> None:
    """One start before its deltas, one end, nothing after the finish."""
    normalizer = case.normalizer()
    chunks = [chunk for event in case.variant["stream"] for chunk in normalizer.feed(event)]
    chunks += normalizer.close()

    assert_well_formed(chunks)


junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(["choices", "delta", "index", "content_block_delta", "error"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "choices", "delta", "index", "content", "message", "event", "zz", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("case", params("stream"))
@examples(25)
@given(bad=st.lists(st.tuples(st.integers(0, 12), junk), max_size=6))
def test_bad_events_never_raise_and_never_change_the_good_ones(
    case: Case, bad: list[tuple[int, Any]]
) -> None:
    """An event that is not the protocol's is counted, and the rest is as without it."""
    strays = [(place, {"nobody": event}) for place, event in bad]
    events: list[Any] = list(case.variant["stream"])
    for place, event in sorted(strays, key=lambda item: item[0], reverse=True):
        events.insert(min(place, len(events)), event)
    message = streamed(case, events)

    assert bound(message) == expected(case)
    counted = (message.metadata or {}).get("unknownChunks", 0)
    assert counted == len(strays)


ODD: list[Any] = [None, True, -1, 2**70, math.nan, "", "x", "\ud800", [], {}, [[]], {"x": 1}, b"x"]
"""Values that stand where another kind of value belongs."""


def spoiled(event: Any, cutter: random.Random) -> Any:
    """Return an event in which one value, however deep, is gone or of another kind."""
    event = copy.deepcopy(event)
    holder, key = cutter.choice(list(places(event)))
    if isinstance(holder, dict) and cutter.random() < 0.2:
        del holder[key]
    else:
        holder[key] = copy.deepcopy(cutter.choice(ODD))
    return event


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key])


AT_ONCE = [
    item
    for item in params("stream")
    if not contract_lookup.find_contract(
        item.values[0].provider, None, item.values[0].api
    ).reading.cumulative
]
"""The cases in which no good piece waits for the next one to explain it."""


def read_with(case: Case, place: int, stray: Any) -> tuple[rs.Message, list[rs.Chunk]]:
    """Return the message of a stream with a stray event in it, and what was made of that event."""
    normalizer = case.normalizer()
    made: list[rs.Chunk] = []
    for number, event in enumerate([*case.variant["stream"], None]):
        if number == place:
            made = normalizer._adapter.parse_chunk(stray)
            normalizer._add_chunks(made)
        if event is not None:
            normalizer.feed(event)
    return normalizer.finish(), made


@pytest.mark.parametrize("case", AT_ONCE)
@examples(30)
@given(seed=st.integers(0, 2**32))
def test_a_spoiled_unknown_event_has_no_effect(case: Case, seed: int) -> None:
    """One wrong value in an event of the protocol's own: counted, and no trace of it is left.

    An event that still says something is another matter: the good in it counts.
    """
    cutter = random.Random(seed)
    events = case.variant["stream"]
    stray = spoiled(cutter.choice(events), cutter)
    message, made = read_with(case, cutter.randrange(len(events) + 1), stray)
    if not made or any(not isinstance(chunk, UnknownChunk) for chunk in made):
        return

    alone = streamed(case)
    assert (message.metadata or {})["unknownChunks"] == 1
    assert replace(message, metadata=None) == replace(alone, metadata=None)


@pytest.mark.parametrize("case", params("stream"))
@examples(25)
@given(events=st.lists(junk, max_size=8))
def test_no_event_at_all_raises(case: Case, events: list[Any]) -> None:
    """Whatever JSON a stream holds, reading it ends with a message."""
    normalizer = case.normalizer()
    chunks = [chunk for event in events for chunk in normalizer.feed(event)]
    chunks += normalizer.close()

    assert_well_formed(chunks)
    assert isinstance(normalizer.finish(), rs.Message)
