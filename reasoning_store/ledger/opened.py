"""A database held open: by whom, until when, and the two ways to work on it.

Knows processes and the life of a handle; knows no verb.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Self, TypeVar

from sqlalchemy import URL, Connection

from reasoning_store.errors import UsageError
from reasoning_store.ledger import engine, faults, keys, migrate
from reasoning_store.ledger.values import MOST

T = TypeVar("T")


class Opened:
    """An open database. Safe in threads; it belongs to the process that opened it."""

    def __init__(self, database: engine.Database) -> None:
        self._database = database
        self._clock: Callable[[], int] = keys.now
        self._new_id: Callable[[], str] = keys.new_id
        self._process = os.getpid()
        self._open = True

    @classmethod
    def open(cls, url: str | URL, *, connections: int = 8) -> Self:
        """Open a database; an SQLite file is created and upgraded, a server is checked.

        ``connections`` is the size of the pool: of the readers on SQLite, of all on
        PostgreSQL.
        """
        return cls(faults.guarded(lambda: engine.connect(url, connections=connections)))

    @property
    def revision(self) -> str:
        """The revision of the database's schema."""
        return migrate.REVISIONS[-1]

    def close(self) -> None:
        """Close every connection; a second time is nothing."""
        if self._open and os.getpid() == self._process:
            self._open = False
            faults.guarded(self._database.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check(self) -> None:
        if not self._open:
            raise UsageError("the store is closed", hint="open it again: rs.Store(url)")
        if os.getpid() != self._process:
            # SQLite's locks and a server's connection do not survive a fork.
            raise UsageError(
                "the store was opened by the process that this one was forked from",
                hint="open the store after the fork, in each process",
            )

    def _time(self, given: int | None) -> int:
        at = self._clock() if given is None else given
        if not -MOST <= at <= MOST:
            raise UsageError("created_at: out of range")
        return at

    def _read(self, work: Callable[[Connection], T], *, single: bool = False) -> T:
        self._check()
        return faults.guarded(lambda: self._database.read(work, single=single))

    def _write(
        self,
        work: Callable[[Connection], T],
        *,
        single: bool = False,
        again_when_lost: bool = False,
    ) -> T:
        self._check()
        return faults.guarded(
            lambda: self._database.write(work, single=single, again_when_lost=again_when_lost)
        )
