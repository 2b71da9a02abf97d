"""An SQLite file that is only read, perhaps where nothing can be written next to it.

SQLite reads a file in WAL mode through its log and the log's index, and makes both where they
are not there, which a folder or a file system that cannot be written refuses. So a file without
a log is read as one that does not change (``immutable``), and read again where it did.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from reasoning_store.conversation.errors import InvalidCall, StoreBusy
from reasoning_store.ledger.database import backup, driver_errors, scrubbing
from reasoning_store.ledger.database.guard import Guard
from reasoning_store.ledger.database.sqlite import in_snapshot
from reasoning_store.ledger.database.sqlite_connections import Connections
from reasoning_store.ledger.database.statement import driver

P = ParamSpec("P")
T = TypeVar("T")
_ATTEMPTS = 5


class SqliteReading:
    """One file and no connection to it but while it is read."""

    def __init__(self, path: str, *, busy_timeout: float) -> None:
        self.path = path
        self._guard = Guard(read_only=True)
        # An engine keeps its connections' maker by a weak reference only.
        self._with_log = Connections(path, busy_timeout=busy_timeout, how="mode=ro")
        self._alone = Connections(path, busy_timeout=busy_timeout, how="mode=ro&immutable=1")
        self._engines = {one: one.engine(reading=True) for one in (self._with_log, self._alone)}

    @property
    def is_read_only(self) -> bool:
        return True

    def read(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run ``work`` on one snapshot; again where another process began to write meanwhile."""
        with self._guard:
            return self._unchanged(
                lambda connection: in_snapshot(connection, work, *args, **kwargs)
            )

    def read_one(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return self.read(work, *args, **kwargs)

    read_alone = read

    def _unchanged(self, work: Callable[[Connection], T]) -> T:
        for _ in range(_ATTEMPTS):
            before = self._unlogged()
            connections = self._with_log if before is None else self._alone
            try:
                with self._engines[connections].connect() as connection:
                    result = work(connection)
            except (DBAPIError, connections.module.Error) as error:
                if before is None:
                    self._check_log(error)
                elif self._unlogged() != before:
                    continue
                raise
            if before is None or self._unlogged() == before:
                return result
        raise StoreBusy("the file was written each time that it was read")

    def _unlogged(self) -> tuple[int, int, int] | None:
        """Return a value that changes when the file changes; None if it has a log."""
        with suppress(FileNotFoundError):
            if os.stat(f"{self.path}-wal").st_size:
                return None
        status = os.stat(self.path)
        return status.st_ino, status.st_size, status.st_mtime_ns

    def _check_log(self, error: Exception) -> None:
        """Refuse a log that can be read only by a user who may write in the folder."""
        if driver_errors.error_code(error).startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY")):
            name = Path(self.path).name
            raise InvalidCall(
                f"{name}-wal holds messages that are not in {name} yet,"
                " and the folder cannot be written, which reading them needs",
                hint=f"copy {name} and {name}-wal to a folder of your own, and read them there",
            ) from None

    def write(self, *_: object, **__: object) -> Any:
        self._guard.check_writable()

    def change_schema(self, work: Callable[[Connection], T]) -> T:
        raise AssertionError("a file that is only read is never upgraded")

    def require_scrub(self, connection: Connection) -> None:
        raise AssertionError("nothing is erased in a file that is only read")

    def unerased(self) -> tuple[str, ...]:
        needed = self.read(lambda connection: scrubbing.is_needed(driver(connection)))
        return scrubbing.files_of(self.path) if needed else ()

    def scrub(self, *, wait: bool = True) -> tuple[str, ...]:
        """Return the files that may hold what was erased; none is rewritten."""
        return (*self.unerased(), *backup.copies_of(Path(self.path)))

    def empty_log(self) -> None:
        """Do nothing: nothing was deleted."""

    def copy_to(self, target: Path, *, replace: bool) -> Mapping[str, int]:
        backup.check_target(target, Path(self.path), replace=replace)
        module = self._alone.module
        over = replace

        def copied(connection: Connection) -> Mapping[str, int]:
            nonlocal over
            rows = backup.write_copy(driver(connection), target, module, replace=over).rows
            over = True  # where it is done again, this copy is there
            return rows

        with self._guard:
            return self._unchanged(copied)

    def close(self) -> None:
        self._guard.close()
