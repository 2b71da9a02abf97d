"""What a driver says, as an error of ours: the one place where that is decided.

The driver's own text is dropped, and so is its exception: PostgreSQL quotes the failing
row in it, and no error of ours holds the text of a conversation.

Knows the drivers' codes; knows no verb.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from reasoning_store.errors import (
    Conflict,
    CorruptRow,
    NotFound,
    ReasoningStoreError,
    SchemaError,
    StoreBusy,
    StoreFull,
    UsageError,
)


class Taken(Conflict):
    """A key was there already."""


class Dangling(NotFound):
    """What this belongs to is not there."""


class Fault(NamedTuple):
    """What the library says of an error of a driver's."""

    kind: type[ReasoningStoreError]
    message: str
    hint: str | None = None

    def error(self, name: str = "") -> ReasoningStoreError:
        return self.kind(f"{self.message} ({name})" if name else self.message, hint=self.hint)


_FULL = Fault(StoreFull, "the disk refused the write")
_BUSY = Fault(StoreBusy, "another writer held the store for longer than the busy timeout")
_CORRUPT = Fault(CorruptRow, "the database file is damaged")
_NO_TEXT = Fault(CorruptRow, "the database holds bytes that are no text, where a text was written")
_GONE = Fault(StoreBusy, "the connection to the database server was lost or refused")
_TAKEN = Fault(Taken, "a key was there already")
_DANGLING = Fault(Dangling, "what this belongs to is not there")
_SCHEMA = Fault(SchemaError, "the database lacks a table or column of this version")
_FOREIGN = Fault(
    SchemaError,
    "the database has another program's object under a name of ours",
    "give the store a database of its own: createdb NAME",
)
_TOO_LONG = Fault(UsageError, "a text is longer than the database can hold")

T = TypeVar("T")

# The longest prefix of the error's name or SQLSTATE decides.
_SQLITE: dict[str, Fault] = {
    "SQLITE_FULL": _FULL,
    "SQLITE_IOERR": _FULL,
    "SQLITE_IOERR_READ": _CORRUPT,
    "SQLITE_IOERR_SHORT_READ": _CORRUPT,
    "SQLITE_IOERR_CORRUPTFS": _CORRUPT,
    "SQLITE_BUSY": _BUSY,
    "SQLITE_LOCKED": _BUSY,
    "SQLITE_CORRUPT": _CORRUPT,
    "SQLITE_NOTADB": Fault(
        SchemaError, "the file is not an SQLite database", "name another file, or restore a copy"
    ),
    "SQLITE_READONLY": Fault(
        UsageError,
        "the database file cannot be written",
        "let this user write the file and its folder: the WAL stands beside it",
    ),
    "SQLITE_CANTOPEN": Fault(
        UsageError,
        "the database file cannot be opened",
        "let this user read and write the file and its folder; else the file system is read-only,"
        " its path longer than 400 characters, or too many files are open (ulimit -n)",
    ),
    "SQLITE_TOOBIG": _TOO_LONG,
    "SQLITE_ERROR": _SCHEMA,
    "SQLITE_CONSTRAINT_UNIQUE": _TAKEN,
    "SQLITE_CONSTRAINT_PRIMARYKEY": _TAKEN,
    "SQLITE_CONSTRAINT_FOREIGNKEY": _DANGLING,
}
_POSTGRES: dict[str, Fault] = {
    "23505": _TAKEN,
    "23503": _DANGLING,
    "53100": _FULL,
    "54": _TOO_LONG,
    "53": Fault(StoreBusy, "the database server has no resources left"),
    "55P03": _BUSY,
    "57014": _BUSY,
    "40": Fault(StoreBusy, "other writers were in the way at every attempt"),
    "08": _GONE,
    "57P": _GONE,
    "42": _SCHEMA,
    "42P07": _FOREIGN,
    "42710": _FOREIGN,
    "42723": _FOREIGN,
    "42501": Fault(UsageError, "the database role may not do this"),
    "25006": Fault(UsageError, "the database cannot be written"),
    "28": Fault(UsageError, "the database server refused the role or its password"),
    "3D": Fault(UsageError, "there is no such database"),
    "XX": _CORRUPT,
}
_BY_TEXT = {
    "database or disk is full": "SQLITE_FULL",
    "disk I/O error": "SQLITE_IOERR",
    "database is locked": "SQLITE_BUSY",
    "attempt to write a readonly database": "SQLITE_READONLY",
    "database disk image is malformed": "SQLITE_CORRUPT",
    "unable to open database file": "SQLITE_CANTOPEN",
}
"""The library's own words: the drivers give no name to what stops a backup."""
_RETRIED = ("40001", "40P01")
_LOST = ("", "080", "57P")


def code(error: BaseException) -> str:
    """Return the driver's own name of an error: SQLite's, or the SQLSTATE."""
    origin: Any = error.orig if isinstance(error, DBAPIError) else error
    name = getattr(origin, "sqlite_errorname", None) or getattr(origin, "sqlstate", None)
    name = name or _BY_TEXT.get(str(origin), "")
    if name == "SQLITE_CONSTRAINT":
        # pysqlite3 does not tell which; the message begins with it.
        kind = str(origin).partition(" constraint failed")[0].replace(" ", "")
        return f"{name}_{kind}"
    return str(name)


def conflicts(error: BaseException) -> bool:
    """Whether the transaction lost against another and may be run again."""
    return code(error) in _RETRIED


def lost(error: BaseException) -> bool:
    """Whether the server went away or was never there, and nobody knows what it did."""
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return True
    # libpq gives no SQLSTATE where it got no answer.
    return _is_postgres(error, "OperationalError") and code(error)[:3] in _LOST


def _is_no_text(error: BaseException) -> bool:
    """Whether a driver was given bytes that are not UTF-8, in a row or in what it was told.

    The drivers of SQLite give it no name, and quote what stands there.
    """
    origin = error.orig if isinstance(error, DBAPIError) else error
    return isinstance(origin, UnicodeDecodeError) or str(origin).startswith(
        "Could not decode to UTF-8"
    )


def _table(name: str) -> Fault | None:
    faults = _SQLITE if name.startswith("SQLITE") else _POSTGRES
    fits = [prefix for prefix in faults if name.startswith(prefix)]
    return faults[max(fits, key=len)] if fits else None


def translate(error: BaseException) -> ReasoningStoreError:
    """Return the error of ours for one of a driver's."""
    if isinstance(error, PoolTimeout):
        return StoreBusy("every connection was in use for longer than the pool waits")
    if lost(error):
        return _GONE.error()
    if _is_no_text(error):
        return _NO_TEXT.error()
    name = code(error)
    fault = _table(name)
    if fault is None:
        return ReasoningStoreError(f"the database refused: {name or type(error).__name__}")
    return fault.error(name)


def _is_postgres(error: BaseException, kind: str) -> bool:
    origin = error.orig if isinstance(error, DBAPIError) else error
    return any(
        base.__name__ == kind and base.__module__.startswith("psycopg")
        for base in type(origin).__mro__
    )


def _is_driver_error(error: Exception) -> bool:
    # Most errors come raw (see sql); no driver is imported to know them.
    return isinstance(error, (DBAPIError, PoolTimeout, UnicodeDecodeError)) or any(
        kind.__name__ == "DatabaseError" and kind.__module__.split(".")[0] in _DRIVERS
        for kind in type(error).__mro__
    )


_DRIVERS = ("sqlite3", "pysqlite3", "psycopg")


def guarded(call: Callable[[], T]) -> T:
    """Return what ``call`` returns; raise errors of ours in place of a driver's."""
    try:
        return call()
    except Exception as caught:
        if not _is_driver_error(caught):
            raise
        error = translate(caught)
    # Outside the handler, so that not even the context keeps the driver's text.
    raise error
