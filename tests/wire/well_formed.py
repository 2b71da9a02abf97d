"""What every stream of chunks keeps to, whatever it was read from."""

from __future__ import annotations

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
            allowed = {"start": (None,), "delta": ("start", "delta"), "end": ("start", "delta")}
            assert before in allowed[chunk.phase], f"{chunk.phase} after {before}"
            phases[key] = chunk.phase
    assert set(phases.values()) <= {"end"}, "a block was never ended"
