"""The lane of those who write an SQLite file, and how often they waited for the disk."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.lending import Lending


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
