"""A process that records one long thought: python -m tests.ledger.long_thought URL CHARACTERS.

It prints, as JSON, whether the thought came back as it was said, and how many bytes a
character the process had needed at its peak, beyond what a short recording needs.
"""

from __future__ import annotations

import hashlib
import json
import resource
import sys
from collections.abc import Iterator
from typing import Any

import reasoning_store as rs

_PIECE = 16_384


def pieces(characters: int) -> Iterator[str]:
    """A thought in pieces, no two of them alike."""
    for n, start in enumerate(range(0, characters, _PIECE)):
        line = f"{n} is not divisible by seven, because a remainder is left. "
        yield (line * (_PIECE // 40))[: min(_PIECE, characters - start)]


def stream(characters: int) -> Iterator[dict[str, Any]]:
    for text in pieces(characters):
        yield {"choices": [{"index": 0, "delta": {"reasoning_content": text}}]}
    yield {"choices": [{"index": 0, "delta": {"content": "No."}, "finish_reason": "stop"}]}


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def record(session: rs.Session, characters: int) -> rs.results.Stored:
    with session.record(stream(characters), model="m") as reply:
        for _ in reply:
            pass
    assert reply.stored is not None
    return reply.stored


def main(url: str, characters: int) -> None:
    said = hashlib.sha256()
    for text in pieces(characters):
        said.update(text.encode())
    with rs.Store(url) as store:
        session = store.session("s", create=True)
        record(session, 10)
        before = peak()
        position = record(session, characters).position
    with rs.Store(url) as store:
        (thought,) = store.session("s").get(position).message.thinking
        after = peak()
    print(
        json.dumps(
            {
                "length": len(thought.thought),
                "same": hashlib.sha256(thought.thought.encode()).digest() == said.digest(),
                "bytes a character": (after - before) / characters,
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
