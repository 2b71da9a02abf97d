"""A URL to a database that is ours: created, checked or refused.

SQLite files are embedded: they are created and upgraded here, by themselves, a copy of the
older one kept. A PostgreSQL server belongs to somebody: it is only checked here, and
upgraded by command.

Knows URLs, files and the schema's age; knows no table.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, TypeVar

from sqlalchemy import URL, Connection, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError

from reasoning_store import files
from reasoning_store.errors import SchemaError, UsageError
from reasoning_store.ledger import (
    faults,
    making,
    migrate,
    sqlite_connections,
    sqlite_file,
)
from reasoning_store.ledger.postgres import DRIVER, PostgresDatabase
from reasoning_store.ledger.sqlite import SqliteDatabase

T = TypeVar("T")
_POSTGRES = ("postgresql", "postgres", DRIVER)
_SQLITE = ("sqlite", "sqlite+pysqlite")
BUSY_TIMEOUT = 30.0
"""How many seconds another writer is waited for where nobody says how many."""


class Database(Protocol):
    """Two kinds of transaction and no others; neither ever waits for a caller's code.

    ``single`` says that ``work`` is short: one statement on PostgreSQL, which needs no
    transaction around it; on SQLite several of them may share one.
    ``again_when_lost`` says that it may run a second time if nobody knows whether it ran.
    """

    def read(self, work: Callable[[Connection], T], *, single: bool = ...) -> T: ...

    def write(
        self, work: Callable[[Connection], T], *, single: bool = ..., again_when_lost: bool = ...
    ) -> T: ...

    def change_schema(self, work: Callable[[Connection], T]) -> T:
        """Run ``work``, which may rebuild tables, in one transaction."""
        ...

    def scrub(self) -> tuple[str, ...]:
        """Let what was deleted leave the files; return those that may still hold it."""
        ...

    def copies(self) -> tuple[str, ...]:
        """Return the files that hold the database as it once was."""
        ...

    def copy_to(self, target: Path, *, replace: bool) -> Mapping[str, int]:
        """Write a copy; return how many rows each table has in it."""
        ...

    def close(self) -> None: ...


def parse(url: str | URL) -> URL:
    """Return the URL of a supported engine, with the driver that we use."""
    try:
        made = make_url(url)
    except (ArgumentError, ValueError):
        # Without the text: there may be a password in it.
        raise UsageError("this is not a database URL", hint="sqlite:///chat.db") from None
    if made.drivername in _SQLITE:
        # What is behind a question mark and is no setting is dropped without a word.
        if made.host or made.query or (isinstance(url, str) and "?" in url):
            raise UsageError(
                "an SQLite URL is sqlite:/// and a path, and nothing else",
                hint="sqlite:///chat.db, or sqlite:////var/lib/chat.db",
            )
        return made
    if made.drivername in _POSTGRES:
        return made.set(drivername=DRIVER)
    raise UsageError(
        f"{made.drivername} is not supported",
        hint="use sqlite:///chat.db or postgresql+psycopg://...",
    )


def file_of(url: URL) -> Path | None:
    """Return the file of a database, wherever links lead; None: in memory, or on a server."""
    name = url.database
    if url.drivername == DRIVER or not name or name == ":memory:":
        return None
    files.check_name(name)
    # Else SQLite would make what a link leads to, and not we; and a link may be changed.
    return Path(os.path.realpath(name))


def connect(url: str | URL, *, connections: int = 8) -> Database:
    """Open a database and make sure that its schema is this version's."""
    made = parse(url)
    if made.drivername == DRIVER:
        return _server(made, connections)
    return _embedded(file_of(made), connections)


def _reached(url: URL, connections: int) -> PostgresDatabase:
    """Reach a server that is fit for a store; the schema on it may be of any age."""
    database = PostgresDatabase(url, busy_timeout=BUSY_TIMEOUT, pool_size=connections)
    try:
        database.write(database.check_server)
    except DBAPIError as error:
        database.close()
        if not faults.lost(error):
            raise
        raise UsageError(
            "no connection: the server is not there, or refuses the role or the database",
            hint="check the host, the role, the password and the name in the URL",
        ) from None
    except BaseException:
        database.close()
        raise
    return database


def _server(url: URL, connections: int) -> Database:
    database = _reached(url, connections)
    try:
        if database.read(migrate.age) is not migrate.Age.CURRENT:
            is_new = database.read(migrate.current) is None
            raise SchemaError(
                "this database has no schema of reasoning-store yet"
                if is_new
                else "the schema of this database is older than this version of reasoning-store",
                hint="run: reasoning-store upgrade",
            )
    except BaseException:
        database.close()
        raise
    return database


def as_it_is(url: str | URL) -> Database:
    """Open a database with the schema that it has: nothing is made or upgraded."""
    made = parse(url)
    path = file_of(made)
    if path is not None:
        sqlite_file.look(path, sqlite_connections.library())
    return _of_any_age(made, path)


def for_scripts(url: str | URL, work: Callable[[Connection], None]) -> None:
    """Run Alembic's own command in one transaction on a database of any age, or a new one."""

    def claimed(connection: Connection) -> None:
        migrate.claim(connection)
        work(connection)

    made = parse(url)
    path = file_of(made)
    if path is not None and not sqlite_file.look(path, sqlite_connections.library()):
        sqlite_file.create(
            path, lambda fresh: sqlite_file.make_ours(fresh, sqlite_connections.library())
        )
    database = _of_any_age(made, path)
    try:
        database.change_schema(claimed)
    finally:
        database.close()


def _of_any_age(url: URL, path: Path | None) -> Database:
    """Open a database for one connection that reads and one that writes."""
    if url.drivername == DRIVER:
        return _reached(url, 1)
    return _opened(path, readers=1)


def upgrade(url: str | URL) -> None:
    """Bring a database to this version's schema: what the command does."""
    made = parse(url)
    if made.drivername == DRIVER:
        for_scripts(made, migrate.upgrade)
    else:
        connect(made).close()


def _opened(path: Path | None, *, readers: int) -> SqliteDatabase:
    name = None if path is None else str(path)
    return SqliteDatabase(name, busy_timeout=BUSY_TIMEOUT, readers=readers)


def _embedded(path: Path | None, connections: int) -> Database:
    def build(at: Path) -> None:
        fresh = _opened(at, readers=connections)
        try:
            fresh.change_schema(migrate.upgrade)
        finally:
            fresh.close()

    if path is not None:
        if sqlite_file.look(path, sqlite_connections.library()):
            making.clear(path)
        else:
            sqlite_file.create(path, build)
    database = _opened(path, readers=connections)
    try:
        if database.read(migrate.age) is migrate.Age.OLDER:
            if path is not None:
                migrate.keep_copy(path, database)
            database.change_schema(migrate.upgrade)
    except BaseException:
        database.close()
        raise
    return database
