"""How SQLite is connected to: which library, and what is set on every connection.

The driver never opens a transaction: ``isolation_level`` is None and we say ``BEGIN``,
``IMMEDIATE`` for writes, so that no reader has to become a writer in the middle. Every
setting that the promises rest on is made on every connection.

The library. From 3.7.0 to 3.51.2 a checkpoint that runs while another connection resets
the WAL can lose pages. ``pysqlite3`` brings a fixed one where its project builds a wheel;
elsewhere nothing checkpoints by itself (``sqlite`` says who does, and when).

Two libraries in one process do not see each other's locks: a program that opens our file
with another one while a store is open endangers it.

Knows SQLite, and the file that is to be there; knows neither who works with a connection nor
any table.
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

from reasoning_store.errors import UsageError
from reasoning_store.ledger import sqlite_file, sqlite_forks
from reasoning_store.ledger.sql import driver

_PRAGMAS = (
    "synchronous=FULL",
    "foreign_keys=ON",
    "trusted_schema=OFF",
    "cell_size_check=ON",
    "secure_delete=ON",
    "journal_size_limit=67108864",
    "temp_store=MEMORY",
    "mmap_size=0",
    # KiB. SQLite's own 2 000 do not hold a thousand messages with their thinking, which are then
    # read from the file each time; what holds ten thousand costs more memory than it saves time.
    "cache_size=-8192",
)
_OLDEST = (3, 37, 0)


def library() -> ModuleType:
    """Return the DB-API module with the newer library: pysqlite3 where it is installed."""
    try:
        return import_module("pysqlite3.dbapi2")
    except ImportError:
        return import_module("sqlite3.dbapi2")


def vulnerable(version: tuple[int, ...]) -> bool:
    """Whether this library can lose data when two connections checkpoint."""
    if version[:2] == (3, 44):
        return version < (3, 44, 6)
    if version[:2] == (3, 50):
        return version < (3, 50, 7)
    return (3, 7, 0) <= version < (3, 51, 3)


def _require(module: Any) -> None:
    if module.sqlite_version_info < _OLDEST:
        raise UsageError(
            f"the SQLite library {module.sqlite_version} is older than 3.37",
            hint="run: pip install pysqlite3",
        )


class Connections:
    """What connects to one file, or to one database in memory."""

    def __init__(self, path: str | None, *, busy_timeout: float) -> None:
        self.module: Any = library()
        _require(self.module)
        self.path = path
        self.busy_ms = int(busy_timeout * 1000)
        self.guards_checkpoints = path is not None and vulnerable(self.module.sqlite_version_info)
        """Nothing is to checkpoint but under the write lock."""
        self._file: os.stat_result | None = None
        """What stood there when it was opened first."""

    def engine(self, *, reading: bool = False) -> Engine:
        """Return an engine of our recipe: one that writes, or one that only reads."""
        # SQLAlchemy keeps alive what is connected, and so the pool: through this it would keep
        # every connection of a store that nobody has any more.
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
            # What SQLAlchemy begins by itself (see migrate) may be in a snapshot already.
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
        with sqlite_forks.opening(self.path):
            path = Path(self.path)
            if self._file is not None:
                sqlite_file.check_same(path, self._file)
            raw = self._connected(sqlite_file.uri(path, "mode=rw"))
            if self._file is None:
                # Behind that: where a file was only read so far, opening it may copy it.
                with suppress(OSError):
                    self._file = path.stat()
            return raw

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
        (mode,) = raw.execute("PRAGMA journal_mode=WAL").fetchone()
        if mode != "wal" and self.path is not None:
            raise UsageError(
                "the file system cannot hold a database that is written in WAL mode",
                hint="put the file on a local disk, or use PostgreSQL",
            )
        for pragma in _PRAGMAS:
            raw.execute(f"PRAGMA {pragma}").fetchall()
        if self.guards_checkpoints:
            raw.execute("PRAGMA wal_autocheckpoint=0").fetchall()
