"""Connections to SQLite: the library, and the settings of every connection.

The driver never opens a transaction: ``isolation_level`` is None and ours is ``BEGIN``,
``IMMEDIATE`` for writes, so that no reader has to become a writer in the middle.
``pysqlite3`` brings a library without the faults that ``checkpoints`` guards against.

Two libraries in one process do not see each other's locks: a program that opens our file
with another one while a store is open endangers it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any
from weakref import WeakMethod

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import NullPool, StaticPool

from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.ledger.database import backup, checkpoints, files, sqlite_file
from reasoning_store.ledger.database.statement import driver

_READING = (
    "trusted_schema=OFF",
    "cell_size_check=ON",
    "temp_store=MEMORY",
    "mmap_size=0",
    # KiB. SQLite's own 2 000 do not hold a thousand messages with their thinking, which are then
    # read from the file each time; what holds ten thousand costs more memory than it saves time.
    "cache_size=-8192",
)
_PRAGMAS = (
    *_READING,
    "synchronous=FULL",
    "foreign_keys=ON",
    "secure_delete=ON",
    "journal_size_limit=67108864",
)
_PAGE = 8192
"""The bytes of a page of a new file: a row of half a page would leave the other half empty."""
_OLDEST = (3, 37, 0)


def library() -> ModuleType:
    """Return the DB-API module with the newer library: pysqlite3 where it is installed."""
    try:
        return import_module("pysqlite3.dbapi2")
    except ImportError:
        return import_module("sqlite3.dbapi2")


def _require(module: Any) -> None:
    if module.sqlite_version_info < _OLDEST:
        raise InvalidCall(
            f"the SQLite library {module.sqlite_version} is older than 3.37",
            hint="run: pip install pysqlite3",
        )


class Connections:
    """The connections to one file, or to one database in memory."""

    def __init__(self, path: str | None, *, busy_timeout: float, how: str = "mode=rw") -> None:
        self.module: Any = library()
        _require(self.module)
        self.path = path
        self.busy_ms = int(busy_timeout * 1000)
        self._how = how
        """The settings of SQLite's own by which the file is opened."""
        self.guards_checkpoints = path is not None and checkpoints.is_vulnerable(
            self.module.sqlite_version_info
        )
        """Nothing is to checkpoint but under the write lock."""
        self._file: os.stat_result | None = None
        """The file that was there when it was opened first."""

    def engine(self, *, reading: bool = False) -> Engine:
        """Return an engine of our recipe: one that writes, or one that only reads."""
        # SQLAlchemy keeps alive what is connected, and so the pool: through this it would keep
        # every connection of a store that nothing refers to any more.
        connect = WeakMethod(self.connect)

        def connected() -> Any:
            method = connect()
            assert method is not None
            return method()

        engine = create_engine(
            "sqlite://",
            module=self.module,
            creator=connected,
            hide_parameters=True,
            pool_reset_on_return=None,  # every transaction here ends itself
            poolclass=NullPool if reading else StaticPool,
        )

        @event.listens_for(engine, "begin")
        def _begin(connection: Connection) -> None:
            raw = driver(connection)
            # SQLAlchemy begins one by itself (see schema_version), perhaps in a snapshot of ours.
            if not raw.in_transaction:
                raw.execute("BEGIN" if reading else "BEGIN IMMEDIATE")

        if reading:

            @event.listens_for(engine, "connect")
            def _only_read(raw: Any, _: object) -> None:
                raw.execute("PRAGMA query_only=ON")

        return engine

    def connect(self) -> Any:
        """Return a connection of the driver's, set as every one is."""
        # Connections pass from thread to thread, one at a time; the library is serialized.
        # A file that is gone meanwhile is not made anew.
        if self.path is None:
            return self._connected(":memory:")
        files.check_not_inherited(self.path)
        path = Path(self.path)
        if self._file is not None:
            sqlite_file.check_same(path, self._file)
        raw = self._connected(sqlite_file.uri(path, self._how))
        if self._file is None:
            # After that: where a file was only read so far, opening it may copy it.
            with suppress(OSError):
                self._file = path.stat()
        return raw

    def held_files(self) -> set[tuple[int, int]]:
        """Return the device and inode of the file that was opened and of those that go with it."""
        if self.path is None:
            return set()
        found = [] if self._file is None else [self._file]
        for end in backup.BESIDE:
            with suppress(OSError):
                found.append(os.stat(f"{self.path}{end}"))
        return {(at.st_dev, at.st_ino) for at in found}

    def _connected(self, name: str) -> Any:
        raw = self.module.connect(
            name,
            timeout=self.busy_ms / 1000,
            isolation_level=None,
            check_same_thread=False,
            uri=self.path is not None,
        )
        try:
            self._configure(raw)
        except BaseException:
            raw.close()
            raise
        return raw

    def _configure(self, raw: Any) -> None:
        if self._how.startswith("mode=ro"):
            for pragma in _READING:
                raw.execute(f"PRAGMA {pragma}").fetchall()
            return
        raw.execute(f"PRAGMA page_size={_PAGE}").fetchall()
        (mode,) = raw.execute("PRAGMA journal_mode=WAL").fetchone()
        if mode != "wal" and self.path is not None:
            raise InvalidCall(
                "the file system cannot hold a database that is written in WAL mode",
                hint="put the file on a local disk, or use PostgreSQL",
            )
        for pragma in _PRAGMAS:
            raw.execute(f"PRAGMA {pragma}").fetchall()
        if self.guards_checkpoints:
            raw.execute("PRAGMA wal_autocheckpoint=0").fetchall()
