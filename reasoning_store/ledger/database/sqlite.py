"""SQLite as the ledger uses it: one thread writes, a few connections only read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from reasoning_store.conversation.errors import ReasoningStoreError, SchemaError
from reasoning_store.ledger.database import backup, files, scrubbing
from reasoning_store.ledger.database.checkpoints import Checkpoints, changed_timeout
from reasoning_store.ledger.database.driver_errors import Translated
from reasoning_store.ledger.database.guard import Guard
from reasoning_store.ledger.database.pool import Pool
from reasoning_store.ledger.database.sqlite_connections import Connections
from reasoning_store.ledger.database.statement import driver
from reasoning_store.ledger.database.writer import Writer, in_transaction

P = ParamSpec("P")
T = TypeVar("T")
_SCRUB_MS = 5000
"""How long an erasure waits for readers in other processes: other writers wait meanwhile."""


class SqliteDatabase:
    """One file, one writing connection and a few reading ones; or one in memory for all."""

    def __init__(self, path: str | None, *, busy_timeout: float, readers: int) -> None:
        self.path = path
        self._guard = Guard()
        self._connections = connections = Connections(path, busy_timeout=busy_timeout)
        self._engine = connections.engine()
        self._checkpoints = Checkpoints(connections.connect, busy_ms=connections.busy_ms)
        self._readers: Pool[Connection] | None = None
        self._reading = reading = connections.engine(reading=True)
        if path is not None:
            files.HOLDERS.add(self)
            self._readers = Pool(
                lambda: _detached(reading.connect()),
                Connection.close,
                size=readers,
                timeout=busy_timeout,
                is_fit=_is_at_rest,
            )
        self._writer = Writer(
            self._engine.connect,
            Connection.close if path is None else _drop,
            after_commit=(
                self._checkpoints.count_writes if connections.guards_checkpoints else None
            ),
            timeout=busy_timeout,
        )

    @property
    def is_read_only(self) -> bool:
        return False

    def held_files(self) -> Collection[tuple[int, int]]:
        return self._connections.held_files()

    def read(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        with self._guard:
            if self._readers is None:
                return self._writer.run(
                    lambda connection: in_snapshot(connection, work, *args, **kwargs)
                )
            with self._readers.lent() as connection, snapshot(connection):
                return work(connection, *args, **kwargs)

    def read_one(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        if self._readers is None:
            return self.read(work, *args, **kwargs)
        with self._guard, self._readers.lent() as connection:
            return work(connection, *args, **kwargs)

    def read_alone(self, work: Callable[[Connection], T]) -> T:
        if self._readers is None:
            return self.read(work)
        with self._guard, self._reading.connect() as connection, snapshot(connection):
            return work(connection)

    def write(
        self,
        work: Callable[[Connection], T],
        *,
        single: bool = False,
        again_when_lost: bool = False,
    ) -> T:
        """Run ``work`` in one transaction that holds the write lock from its start.

        With ``single`` it is short and may share the transaction with others that wait; if the
        shared one fails, it is run again in one of its own.
        """
        with self._guard:
            if single:
                return self._writer.run(work, shares=True)
            return self._writer.run(lambda connection: in_transaction(connection, work))

    def change_schema(self, work: Callable[[Connection], T]) -> T:
        """Run ``work``, which may rebuild tables, in one transaction.

        To rebuild a table is to drop it. With foreign keys on, that deletes every row that
        refers to it, in all tables; and inside a transaction they cannot be turned off. A view
        that reads the table has none for a moment, which only the legacy rules allow.
        """

        def changed(connection: Connection) -> T:
            raw = driver(connection)
            raw.execute("PRAGMA foreign_keys=OFF")
            raw.execute("PRAGMA legacy_alter_table=ON")
            try:
                return _in_known_transaction(connection, lambda it: _without_strays(it, work))
            finally:
                raw.execute("PRAGMA legacy_alter_table=OFF")
                raw.execute("PRAGMA foreign_keys=ON")

        with self._guard:
            return self._writer.run(changed)

    def require_scrub(self, connection: Connection) -> None:
        """Note in a transaction that erases that ``scrub`` is to follow."""
        if self.path is not None:
            scrubbing.note_rewrite(driver(connection))

    def unerased(self) -> tuple[str, ...]:
        """Return the files that may hold what an erasure took; none is rewritten."""
        if self.path is None:
            return ()
        needed = self.read_one(lambda connection: scrubbing.is_needed(driver(connection)))
        return scrubbing.files_of(self.path) if needed else ()

    def scrub(self, *, wait: bool = True) -> tuple[str, ...]:
        """Remove erased text from the file and its WAL; return the files that may still hold it.

        The file is rewritten only after an erasure. ``wait`` for other processes, for a while.
        """
        if self.path is None:
            return ()
        path = self.path

        def scrubbed(connection: Connection) -> tuple[str, ...]:
            raw = driver(connection)
            if not scrubbing.is_needed(raw):
                return ()
            patience = min(self._connections.busy_ms, _SCRUB_MS) if wait else 0
            with changed_timeout(raw, patience, usual=self._connections.busy_ms):
                is_rewritten = scrubbing.rewrite_file(raw, path, self._connections)
            return () if is_rewritten else scrubbing.files_of(path)

        with self._guard:
            left = self._writer.run(scrubbed)
            return (*left, *backup.copies_of(Path(path)))

    def empty_log(self) -> None:
        """Let what was deleted leave the log, unless another connection needs the log now.

        Then a later deletion empties it, or the last connection that closes.
        """
        if self.path is None:
            return

        def emptied(connection: Connection) -> None:
            raw = driver(connection)
            with suppress(self._connections.module.OperationalError):
                if self._connections.guards_checkpoints:
                    self._checkpoints.copy_pages(connection)
                    return
                with changed_timeout(raw, 0, usual=self._connections.busy_ms):
                    scrubbing.empty_log(raw)

        with self._guard:
            self._writer.run(emptied)

    def copy_to(
        self, target: Path, *, replace: bool, wanted: Callable[[Any], bool] = lambda _: True
    ) -> Mapping[str, int]:
        """Write a copy while others write; return how many rows each table has in it.

        If by then the database is not as ``wanted``, no copy is made.
        """
        module = self._connections.module

        def copied(source: Any) -> Mapping[str, int]:
            return backup.write_copy(source, target, module, replace=replace, wanted=wanted).rows

        with self._guard:
            if self.path is None:
                backup.check_target(target, None, replace=replace)
                return self._writer.run(lambda connection: copied(driver(connection)))
            backup.check_target(target, Path(self.path), replace=replace)
            with closing(self._connections.connect()) as source:
                return copied(source)

    def close(self) -> None:
        """Close every connection, after the writes that wait.

        If these take too long that is an error, and the connection closes after them.
        """
        if not self._guard.close():
            return
        try:
            if self._readers is not None:
                self._readers.close()
            with Translated():
                self._writer.close()
        finally:
            files.HOLDERS.discard(self)
        self._engine.dispose()


@contextmanager
def snapshot(connection: Connection) -> Iterator[None]:
    """Begin a transaction that reads; every read in it is of one moment."""
    raw = driver(connection)
    try:
        raw.execute("BEGIN")
        yield
    finally:
        raw.commit()  # nothing was written


def in_snapshot(
    connection: Connection,
    work: Callable[Concatenate[Connection, P], T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Run ``work`` in a transaction that reads."""
    with snapshot(connection):
        return work(connection, *args, **kwargs)


def _in_known_transaction(connection: Connection, work: Callable[[Connection], T]) -> T:
    """Run ``work`` in a transaction that SQLAlchemy knows of, as Alembic needs."""
    connection.rollback()  # of one that SQLAlchemy began by itself, and that ended past it
    known = connection.begin()
    try:
        result = work(connection)
        known.commit()
    except BaseException:
        known.rollback()
        # After a commit that failed SQLAlchemy thinks that there is nothing to roll back.
        raw = driver(connection)
        if raw.in_transaction:
            raw.rollback()
        raise
    return result


def _without_strays(connection: Connection, work: Callable[[Connection], T]) -> T:
    """Do what foreign keys would: refuse to leave rows that refer to nothing."""

    def strays() -> int:
        return len(driver(connection).execute("PRAGMA foreign_key_check").fetchall())

    before = strays()
    result = work(connection)
    if strays() > before:
        raise SchemaError("the change of the schema would leave rows that belong to nothing")
    return result


def _detached(connection: Connection) -> Connection:
    """Let a connection live as long as the pool has it, and no longer."""
    connection.detach()
    return connection


def _is_at_rest(connection: Connection, error: BaseException | None) -> bool:
    """Whether nothing is under way on a connection.

    A statement that was left in the middle keeps its snapshot as long as its traceback.
    """
    return error is None or isinstance(error, ReasoningStoreError)


def _drop(connection: Connection) -> None:
    connection.invalidate()
    connection.close()
