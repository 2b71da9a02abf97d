"""The checkpoints of an SQLite library that can lose pages.

From 3.7.0 to 3.51.2 a checkpoint that runs while another connection resets the WAL can lose
pages. With such a library nothing checkpoints by itself: a second connection does while the
first one holds the write lock, so that no connection can reset the WAL meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from typing import Any

from sqlalchemy import Connection

from reasoning_store.ledger.database.statement import driver

_CHECKPOINT_PAGES = 1000
_PAGES_A_WRITE = 12


def is_vulnerable(version: tuple[int, ...]) -> bool:
    """Whether this library can lose data when two connections checkpoint."""
    if version[:2] == (3, 44):
        return version < (3, 44, 6)
    if version[:2] == (3, 50):
        return version < (3, 50, 7)
    return (3, 7, 0) <= version < (3, 51, 3)


@contextmanager
def changed_timeout(raw: Any, milliseconds: int, *, usual: int) -> Generator[None]:
    """Let a connection wait for other processes for another time than it usually does."""
    raw.execute(f"PRAGMA busy_timeout={milliseconds}")
    try:
        yield
    finally:
        raw.execute(f"PRAGMA busy_timeout={usual}")


class Checkpoints:
    """When the WAL of one file is copied into it."""

    def __init__(self, connect: Callable[[], Any], *, busy_ms: int) -> None:
        self._connect = connect
        self._busy_ms = busy_ms
        self._pages = 0

    def count_writes(self, connection: Connection, writes: int) -> None:
        """Checkpoint when about a thousand pages were written since the last time."""
        # Pages are not known without a question; a write of ours is of about a dozen.
        self._pages += _PAGES_A_WRITE * writes
        if self._pages >= _CHECKPOINT_PAGES:
            self._pages = 0
            self.copy_pages(connection)

    def copy_pages(self, connection: Connection) -> None:
        """Copy the WAL into the file under the write lock; an error where that is taken."""
        raw = driver(connection)
        # It can be done another time: writers wait for it.
        with changed_timeout(raw, 0, usual=self._busy_ms):
            raw.execute("BEGIN IMMEDIATE")
            try:
                with closing(self._connect()) as second:
                    second.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            finally:
                raw.rollback()
