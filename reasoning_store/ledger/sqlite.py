"""SQLite as the ledger uses it: who works with which connection, and when the WAL is copied.

One connection writes, a few only read, and what is made beside them is made with one of its
own. With a library that can lose pages where two connections checkpoint nothing does so by
itself: we do, while holding the write lock, so that nobody can reset the WAL meanwhile.

How a connection is made is ``sqlite_connections``', the file ``sqlite_file``'s, how a
transaction begins and ends ``sqlite_transactions``'. Knows SQLite; knows no table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from reasoning_store.errors import ReasoningStoreError
from reasoning_store.ledger import copies, sqlite_forks
from reasoning_store.ledger.lending import Lending, Lent
from reasoning_store.ledger.sql import driver
from reasoning_store.ledger.sqlite_connections import Connections
from reasoning_store.ledger.sqlite_transactions import (
    Write,
    snapshot,
    transaction,
    without_strays,
    written,
    written_together,
)

T = TypeVar("T")

_CHECKPOINT_PAGES = 1000
_PAGES_A_WRITE = 12
_BESIDE = 8
_SCRUB_MS = 5000
"""How long an erasure waits for readers in other processes: they hold the lane up."""


class SqliteDatabase:
    """One file, one writing connection and a few reading ones; or one in memory for all."""

    def __init__(self, path: str | None, *, busy_timeout: float, readers: int) -> None:
        self.path = path
        self._connections = Connections(path, busy_timeout=busy_timeout)
        self._pages = 0
        self._writer = self._connections.engine()
        # SQLite's own busy handler sleeps and retries: under load somebody starves. So the
        # writers of a process queue here, and only the first meets the file's lock.
        self._lane = Lending(
            self._writer.connect,
            self._let_go,
            most=1,
            timeout=busy_timeout,
            busy="the writers before this one took longer than the busy timeout",
        )
        self._readers: Lending[Connection] | None = None
        in_use = "every connection was in use for longer than the busy timeout"
        self._beside: Lending[Any] = Lending(
            self._connections.connect,
            lambda raw: raw.close(),
            most=_BESIDE,
            timeout=busy_timeout,
            busy=in_use,
        )
        """What copies and checkpoints are made with, once: it is not given back as fit."""
        if path is not None:
            reading = self._connections.engine(reading=True)

            def reader() -> Connection:
                connection = reading.connect()
                # Or SQLAlchemy would close it as soon as the collector has found the store, of
                # which what a recording has left to do is done afterwards (see collected).
                connection.detach()
                return connection

            self._readers = Lending(
                reader,
                Connection.close,
                most=readers,
                timeout=busy_timeout,
                busy=in_use,
            )
            sqlite_forks.register(self)

    @contextmanager
    def let_go(self, until: float) -> Iterator[None]:
        """Have no connection to the file open, as long as this is entered; see sqlite_forks."""
        with ExitStack() as emptied:
            # Who writes may need one of those beside to come to an end: they are the last.
            for lending in (self._lane, self._readers, self._beside):
                if lending is not None:
                    emptied.enter_context(lending.emptied(until))
            yield

    def write(
        self,
        work: Callable[[Connection], T],
        *,
        single: bool = False,
        again_when_lost: bool = False,
    ) -> T:
        """Run ``work`` in one transaction that holds the write lock from its start.

        Short ones that wait for the lane at the same time share a transaction, and the wait
        for the disk at its end; ``single`` says that it is short. Where a shared one came to
        nothing, ``work`` is run again in one of its own.
        """
        job = Write(work, alone=not single)

        def done(lent: Lent[Connection], others: Sequence[Write[Any]]) -> None:
            connection = lent.one
            try:
                if others:
                    written_together(connection, [job, *others])
                if not job.done:
                    job.value = written(connection, work)
                if self._connections.guards_checkpoints:
                    self._checkpoint_when_due(connection, 1 + len(others))
            except Exception:
                # What was begun is taken back; where even that failed, it is not lent again.
                lent.fit = not driver(connection).in_transaction
                raise
            lent.fit = True

        self._lane.do(job, done)
        return job.value

    def change_schema(self, work: Callable[[Connection], T]) -> T:
        """Run ``work``, which may rebuild tables, in one transaction.

        To rebuild a table is to drop it. With foreign keys on, that deletes every row that
        refers to it, in all tables; and inside a transaction they cannot be turned off.
        """

        def changed(lent: Lent[Connection]) -> T:
            raw = driver(lent.one)
            raw.execute("PRAGMA foreign_keys=OFF")
            try:
                result = transaction(lent.one, lambda it: without_strays(it, work))
            finally:
                raw.execute("PRAGMA foreign_keys=ON")
            lent.fit = True
            return result

        return self._lane.lend(changed)

    def read(self, work: Callable[[Connection], T], *, single: bool = False) -> T:
        """Run ``work`` on one snapshot; ``single`` says that it is one statement."""
        if self._readers is None:
            return self._lane.lend(_kept(lambda connection: transaction(connection, work)))

        def read(lent: Lent[Connection]) -> T:
            # Until it is known to be at rest it is not lent again. An interrupted one is not:
            # as long as anybody keeps the traceback, a statement in the middle keeps its
            # snapshot.
            try:
                result = work(lent.one) if single else snapshot(lent.one, work)
            except ReasoningStoreError:  # an answer, too
                lent.fit = True
                raise
            lent.fit = True
            return result

        return self._readers.lend(read)

    def _checkpoint_when_due(self, connection: Connection, writes: int) -> None:
        # Pages are not known without asking; a write of ours is of about a dozen.
        self._pages += _PAGES_A_WRITE * writes
        if self._pages >= _CHECKPOINT_PAGES:
            self._pages = 0
            try:
                self.checkpoint(connection)
            except (DBAPIError, self._connections.module.Error):
                # The disk refused, or another process was writing for long. What was to be
                # written is committed; the WAL is copied another time.
                return

    def checkpoint(self, connection: Connection) -> None:
        """Copy the WAL into the file while the write lock keeps everyone from resetting it."""

        def copied(lent: Lent[Any]) -> None:
            lent.one.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

        # It can be done another time: whoever waits behind it waits for no other process.
        raw = driver(connection)
        raw.execute("PRAGMA busy_timeout=0")
        try:
            with connection.begin() as transaction:
                self._beside.lend(copied)
                transaction.rollback()
        finally:
            raw.execute(f"PRAGMA busy_timeout={self._connections.busy_ms}")

    def scrub(self) -> tuple[str, ...]:
        """Let what was deleted leave the file and its WAL; return the files that it did not."""
        if self.path is None:
            return ()
        path = self.path

        def scrubbed(lent: Lent[Connection]) -> list[str]:
            left: list[str] = []
            raw = driver(lent.one)
            raw.execute(f"PRAGMA busy_timeout={min(self._connections.busy_ms, _SCRUB_MS)}")
            try:
                raw.execute("VACUUM")
            except (
                self._connections.module.OperationalError
            ):  # no room, or another process is writing
                left = [path]
            try:
                # It holds the write lock while it copies, unless another process held that
                # for all of the time it waits: no commit of ours can get in between.
                (blocked, _, _) = raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if blocked:
                    left.append(f"{path}-wal")
            except self._connections.module.OperationalError:  # the disk refused
                left = [path, f"{path}-wal"]
            raw.execute(f"PRAGMA busy_timeout={self._connections.busy_ms}")
            lent.fit = True
            return left

        return (*self._lane.lend(scrubbed), *self.copies())

    def copies(self) -> tuple[str, ...]:
        """Return the files beside that hold a copy of this one as it once was."""
        return () if self.path is None else copies.beside(Path(self.path))

    def copy_to(
        self, target: Path, *, replace: bool, wanted: Callable[[Any], bool] = lambda _: True
    ) -> Mapping[str, int]:
        """Write a copy while others write; return how many rows each table has in it.

        Where the database is not ``wanted`` as it stands by then, there is no copy.
        """
        path = None if self.path is None else Path(self.path)
        copies.check_target(target, path, replace=replace)

        def copied(source: Any) -> Mapping[str, int]:
            made = copies.write(
                source, target, self._connections.module, replace=replace, wanted=wanted
            )
            return made.rows

        if path is not None:
            return self._beside.lend(lambda lent: copied(lent.one))
        return self._lane.lend(_kept(lambda connection: copied(driver(connection))))

    def _let_go(self, connection: Connection) -> None:
        """Write with another connection from now on.

        A statement that was interrupted keeps its snapshot, as above, and whoever has an old
        one may not write. In memory the one connection is the database.
        """
        if self.path is not None:
            connection.invalidate()
        connection.close()

    def close(self) -> None:
        """Close every connection; a write that is under way is waited for.

        Where it takes too long, what it writes with closes behind it.
        """

        def closed(_: object) -> None:
            for lending in (self._lane, self._readers, self._beside):
                if lending is not None:
                    lending.close()

        try:
            self._lane.lend(closed)
        finally:
            closed(None)  # again, where it was not our turn; else it is nothing
        self._writer.dispose()


def _kept(work: Callable[[Connection], T]) -> Callable[[Lent[Connection]], T]:
    """Return what works with a connection and leaves it at rest."""

    def run(lent: Lent[Connection]) -> T:
        result = work(lent.one)
        lent.fit = True
        return result

    return run
