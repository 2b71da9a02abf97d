"""The lane of those who write an SQLite file, and how often they waited for the disk."""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.lending import Lending, Lent


def lane_of(ledger: Ledger) -> Lending[Any]:
    database: Any = ledger._database
    lane: Lending[Any] = database._lane
    return lane


def commits(path: Path) -> int:
    """Return how many transactions stand in the write-ahead log of a database."""
    log = Path(f"{path}-wal").read_bytes()
    (page,) = struct.unpack(">I", log[8:12])
    salt = log[16:24]
    frames = range(32, len(log) - 24 - page + 1, 24 + page)
    return sum(log[at + 8 : at + 16] == salt and log[at + 4 : at + 8] != bytes(4) for at in frames)


def aside(
    lane: Lending[Any], threads: list[threading.Thread], works: Sequence[Callable[[], object]]
) -> list[Any]:
    """Have threads wait for the lane, and return their turns, which are out of the queue.

    So whoever puts them back can be first.
    """

    def hold(lent: Lent[Any]) -> list[Any]:
        assert lent.one
        lent.fit = True
        for number, work in enumerate(works):
            threads.append(threading.Thread(target=work))
            threads[-1].start()
            while len(lane._waiting) <= number:
                pass
        turns = [*lane._waiting]
        lane._waiting.clear()
        return turns

    return lane.lend(hold)
