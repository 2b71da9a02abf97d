"""A URL to a database that is ours: created, checked or refused.

SQLite files are embedded: they are created and upgraded here, and a copy of the older one is
kept. A PostgreSQL server is only checked here, and upgraded by command.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeGuard

from sqlalchemy import URL, Connection, make_url
from sqlalchemy.exc import ArgumentError

from reasoning_store.conversation.errors import InvalidCall, NotFound, SchemaError
from reasoning_store.ledger.database import (
    driver_errors,
    files,
    schema_version,
    sqlite_connections,
    sqlite_file,
)
from reasoning_store.ledger.database.database import Database
from reasoning_store.ledger.database.postgres import DRIVER, SCHEMA_IN_URL, PostgresDatabase
from reasoning_store.ledger.database.sqlite import SqliteDatabase
from reasoning_store.ledger.database.sqlite_reading import SqliteReading

_POSTGRES = ("postgresql", "postgres", DRIVER)
_SQLITE = ("sqlite", "sqlite+pysqlite")
_HOSTS = re.compile(r"(postgres[a-z+]*://(?:[^/?]*@)?)([^/?@]*,[^/?@]*)(/[^?]*)?(?:\?(.*))?")
BUSY_TIMEOUT = 30.0
"""How many seconds another writer is waited for."""
CONNECTIONS = 8
"""How many connections a store keeps: readers of an SQLite file, all of them on a server."""


def without_secrets(url: str | URL) -> str:
    """Return a URL without user, password and options, which may be secrets."""
    made = parse_url(url)
    bare = URL.create(
        made.get_backend_name(), host=made.host, port=made.port, database=made.database
    )
    return str(bare)


def parse_url(url: str | URL) -> URL:
    """Return the URL of a supported engine, with the driver that we use."""
    try:
        made = make_url(_of_several_hosts(url) if isinstance(url, str) else url)
    except (ArgumentError, ValueError):
        # Without the text: there may be a password in it.
        raise InvalidCall("this is not a database URL", hint="sqlite:///chat.db") from None
    if made.drivername in _SQLITE:
        # SQLAlchemy drops a query that is no setting without an error.
        if made.host or made.query or (isinstance(url, str) and "?" in url):
            raise InvalidCall(
                "an SQLite URL is sqlite:/// and a path, and nothing else",
                hint="sqlite:///chat.db, or sqlite:////var/lib/chat.db",
            )
        return made
    if made.drivername in _POSTGRES:
        return made.set(drivername=DRIVER)
    raise InvalidCall(
        f"{made.drivername} is not supported",
        hint="use sqlite:///chat.db or postgresql+psycopg://...",
    )


def with_schema(url: str | URL, schema: str | None) -> str | URL:
    """Return the URL of a store in a schema of a server."""
    if schema is None:
        return url
    made = parse_url(url)
    if made.drivername != DRIVER or not isinstance(schema, str) or not schema:
        raise InvalidCall(
            "schema: the name of a schema on a PostgreSQL server", hint="leave it out"
        )
    return made.update_query_dict({SCHEMA_IN_URL: schema})


def _of_several_hosts(url: str) -> str:
    """Return a URL with several hosts, written as libpq has it, as SQLAlchemy reads it."""
    found = _HOSTS.fullmatch(url)
    if found is None:
        return url
    head, hosts, rest, query = found.groups()
    several = "&".join([f"host={host}" for host in hosts.split(",")])
    return f"{head}{rest or '/'}?{several}{'&' + query if query else ''}"


def file_of(url: URL) -> Path | None:
    """Return the file of a database, at the end of its links; None: in memory, or on a server."""
    name = url.database
    if url.drivername == DRIVER or not name or name == ":memory:":
        return None
    files.check_name(name)
    # Else SQLite would make what a link leads to, and not we; and a link may be changed.
    return Path(os.path.realpath(name))


@driver_errors.Translated()
def connect(url: str | URL, *, connections: int = CONNECTIONS) -> Database:
    """Open a database and make sure that its schema is this version's."""
    made = parse_url(url)
    if made.drivername == DRIVER:
        return _server(made, connections)
    return _embedded(file_of(made), connections)


@driver_errors.Translated()
def connect_to_read(url: str | URL, *, connections: int = CONNECTIONS) -> Database:
    """Open a database that is there, of this version's schema, and write nothing."""
    made = parse_url(url)
    if made.drivername == DRIVER:
        return _server(made, connections, read_only=True)
    path = file_of(made)
    if not _is_there(path):
        name = "a store in memory" if path is None else path.name
        raise NotFound(
            f"{name} is not there to be read", hint="open it without read_only=True to make it"
        )
    sqlite_file.check_one_name(path)
    database = SqliteReading(str(path), busy_timeout=BUSY_TIMEOUT)
    if not database.read(schema_version.is_current):
        raise SchemaError(
            "the schema of this file is older than this version of reasoning-store",
            hint="run: reasoning-store db upgrade; or open it without read_only=True",
        )
    return database


def _server(
    url: URL, connections: int, *, read_only: bool = False, any_version: bool = False
) -> PostgresDatabase:
    """Reach a server that is fit for a store, and refuse a schema of another version."""
    database = PostgresDatabase(
        url, busy_timeout=BUSY_TIMEOUT, pool_size=connections, read_only=read_only
    )
    with _closed_on_error(database):
        database.reach()
        if database.schema is None:
            database.schema = database.read(schema_version.schema_on)
        if any_version or database.read(schema_version.is_current):
            return database
        is_new = database.read(schema_version.current_revision) is None
        raise SchemaError(
            "this database has no schema of reasoning-store yet"
            if is_new
            else "the schema of this database is older than this version of reasoning-store",
            hint="run: reasoning-store db upgrade",
        )


@contextmanager
def _closed_on_error(database: Database) -> Generator[None]:
    try:
        yield
    except BaseException:
        database.close()
        raise


def _is_there(path: Path | None) -> TypeGuard[Path]:
    """Whether a file of ours is at a path; refuse what is neither ours nor new."""
    return path is not None and sqlite_file.is_there(path, sqlite_connections.library())


@driver_errors.Translated()
def open_any_version(url: str | URL) -> Database:
    """Open a database to read, with the schema that it has: nothing is made or upgraded."""
    made = parse_url(url)
    path = file_of(made)
    if _is_there(path):
        return SqliteReading(str(path), busy_timeout=BUSY_TIMEOUT)
    return _of_any_version(made, path)


@driver_errors.Translated()
def run_schema_command(url: str | URL, work: Callable[[Connection], None]) -> None:
    """Run Alembic's own command in one transaction on a database of any age, or a new one."""

    def claimed(connection: Connection) -> None:
        schema_version.claim_database(connection)
        work(connection)
        schema_version.finish_schema(connection)

    made = parse_url(url)
    path = file_of(made)
    if path is not None and not _is_there(path):
        library = sqlite_connections.library()
        sqlite_file.create(path, lambda fresh: sqlite_file.mark_as_ours(fresh, library))
    with closing(_of_any_version(made, path)) as database:
        database.change_schema(claimed)


def _of_any_version(url: URL, path: Path | None) -> Database:
    """Open a database for one connection that reads and one that writes."""
    if url.drivername == DRIVER:
        return _server(url, 1, any_version=True)
    return _opened(path, readers=1)


@driver_errors.Translated()
def upgrade(url: str | URL) -> None:
    """Bring a database to this version's schema: what the command does."""
    made = parse_url(url)
    if made.drivername == DRIVER:
        run_schema_command(made, schema_version.upgrade)
    else:
        connect(made).close()


def _opened(path: Path | None, *, readers: int) -> SqliteDatabase:
    name = None if path is None else str(path)
    return SqliteDatabase(name, busy_timeout=BUSY_TIMEOUT, readers=readers)


def _embedded(path: Path | None, connections: int) -> Database:
    def build(new: Path) -> None:
        with closing(_opened(new, readers=connections)) as fresh:
            fresh.change_schema(schema_version.upgrade)

    if path is not None:
        # Before SQLite is asked: a thread of the parent may have been inside it at the fork, and
        # then its locks are held in the child for good.
        files.check_not_inherited(str(path))
        if _is_there(path):
            sqlite_file.check_one_name(path)
        else:
            sqlite_file.create(path, build)
    database = _opened(path, readers=connections)
    with _closed_on_error(database):
        if not database.read(schema_version.is_current):
            if path is not None:
                schema_version.keep_copy(path, database)
            database.change_schema(schema_version.upgrade)
        if database.unerased():
            database.scrub(wait=False)  # an erasure that was interrupted: who opens it finishes it
    return database
