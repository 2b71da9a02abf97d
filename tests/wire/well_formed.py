"""The rules of every stream of chunks, whatever it was read from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import reasoning_store as rs


def assert_well_formed(chunks: list[rs.Chunk]) -> None:
    phases: dict[tuple[int, int | None], str] = {}
    finished: set[int] = set()
    for chunk in chunks:
        if isinstance(chunk, rs.UsageChunk | rs.OriginChunk | rs.ErrorChunk):
            continue
        assert chunk.choice not in finished, f"{chunk} follows the finish"
        if isinstance(chunk, rs.FinishChunk):
            finished.add(chunk.choice)
        elif isinstance(chunk, rs.ReasoningChunk):
            key = (chunk.choice, chunk.content_index)
            before = phases.get(key)
            if before == "end" and chunk.phase == "delta" and not chunk.text:
                continue  # a seal that came late
            allowed = {"start": (None,), "delta": ("start", "delta"), "end": ("start", "delta")}
            assert before in allowed[chunk.phase], f"{chunk.phase} after {before}"
            phases[key] = chunk.phase
    assert set(phases.values()) <= {"end"}, "a block was never ended"


def assert_no_trace_of(malformed: Sequence[Any], api: str, good: Sequence[Any]) -> None:
    """Refuse malformed events that are not unknown, or that change what good ones give."""
    for event in malformed:
        assert [*map(type, rs.StreamNormalizer(api=api).feed(event))] == [rs.UnknownChunk], event
    alone = _read(good, api)
    mixed = _read([event for one in good for event in (*malformed, one)], api)

    assert mixed.blocks == alone.blocks
    assert (mixed.usage, mixed.finish_reason) == (alone.usage, alone.finish_reason)
    assert (mixed.metadata or {})["unknownChunks"] == len(malformed) * len(good)


def _read(events: Iterable[Any], api: str) -> rs.Message:
    normalizer = rs.StreamNormalizer(api=api)
    for event in events:
        normalizer.feed(event)
    return normalizer.finish()
