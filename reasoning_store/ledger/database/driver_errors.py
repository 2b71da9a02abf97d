"""A driver's error as an error of ours.

The driver's own text and its exception are dropped: PostgreSQL quotes the failing row in it,
and no error of ours holds the text of a conversation.
"""

from __future__ import annotations

import re
from contextlib import ContextDecorator
from types import TracebackType
from typing import Any, NamedTuple

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from reasoning_store.conversation.errors import (
    Conflict,
    CorruptRow,
    InvalidCall,
    NotFound,
    ReasoningStoreError,
    SchemaError,
    StoreBusy,
    StoreFull,
)


class UniqueViolation(Conflict):
    """A key was there already."""


class MissingParent(NotFound):
    """The row that this one belongs to is missing."""


class Fault(NamedTuple):
    """The library's error for one of a driver's."""

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
_NOT_UNIQUE = Fault(UniqueViolation, "a key was there already")
_NO_PARENT = Fault(MissingParent, "what this belongs to is not there")
_SCHEMA = Fault(SchemaError, "the database lacks a table or column of this version")
_FOREIGN = Fault(
    SchemaError,
    "the database has another program's object under a name of ours",
    "give the store a schema of its own: ?schema=NAME at the end of the URL",
)
_TOO_LONG = Fault(InvalidCall, "a text is longer than the database can hold")

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
        InvalidCall,
        "the database file cannot be written",
        "let this user write the file and its folder: the WAL is written there too",
    ),
    "SQLITE_CANTOPEN": Fault(
        InvalidCall,
        "the database file cannot be opened",
        "let this user read and write the file and its folder; else the file system is read-only,"
        " its path longer than 400 characters, or too many files are open (ulimit -n)",
    ),
    "SQLITE_TOOBIG": _TOO_LONG,
    "SQLITE_ERROR": _SCHEMA,
    "SQLITE_CONSTRAINT_UNIQUE": _NOT_UNIQUE,
    "SQLITE_CONSTRAINT_PRIMARYKEY": _NOT_UNIQUE,
    "SQLITE_CONSTRAINT_FOREIGNKEY": _NO_PARENT,
}
_POSTGRES: dict[str, Fault] = {
    "23505": _NOT_UNIQUE,
    "23503": _NO_PARENT,
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
    "42501": Fault(InvalidCall, "the database role may not do this"),
    "25006": Fault(
        InvalidCall,
        "the database cannot be written",
        "open a standby with read_only=True; to write, name the primary in the URL",
    ),
    "28": Fault(InvalidCall, "the database server refused the role or its password"),
    "3D": Fault(InvalidCall, "there is no such database"),
    "XX001": _CORRUPT,
    "XX002": _CORRUPT,
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
_LOST = ("", "080", "08P", "57P")
"""The first characters of the codes that a server, or its pooler, sends when it ends; "": none."""
# The patterns are compiled where an error is read, and not in every command.
_REFUSED = (
    "authentication failed|does not exist|pg_hba.conf|no password supplied|not permitted to log in"
    "|permission denied|could not translate host name|invalid|certificate"
)
"""A server's refusals of a URL that no second try can change; they have no code."""
_OF_SHARD = (
    ("XX000", r'"(?:pk|uq)_\w+_\d+"', "23505"),
    ("XX000", r'"fk_\w+_\d+"', "23503"),
    ("58030", "^failed to complete COPY on ", "08006"),
)
"""Inside a transaction Citus copies rows into a shard, and passes on the text of an error, not its
code: the code that it replaces, what its text has, and the code that the shard gave."""


def error_code(error: BaseException) -> str:
    """Return the driver's own name of an error: SQLite's, or the SQLSTATE."""
    origin: Any = error.orig if isinstance(error, DBAPIError) else error
    name = getattr(origin, "sqlite_errorname", None) or getattr(origin, "sqlstate", None)
    name = name or _BY_TEXT.get(str(origin), "")
    if name == "SQLITE_CONSTRAINT":
        # pysqlite3 does not tell which; the message begins with it.
        kind = str(origin).partition(" constraint failed")[0].replace(" ", "")
        return f"{name}_{kind}"
    text = str(origin).partition("\n")[0]
    return next(
        (own for given, of, own in _OF_SHARD if name == given and re.search(of, text)), str(name)
    )


def is_conflict(error: BaseException) -> bool:
    """Whether the transaction lost against another and may be run again."""
    return error_code(error) in _RETRIED


def is_internal(error: BaseException) -> bool:
    """Whether an error has no code of its own: so Citus passes on that a node went away."""
    return error_code(error) == "XX000"


def is_lost(error: BaseException) -> bool:
    """Whether the server went away or was never there: it is unknown what it did."""
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return True
    if is_internal(error):
        # The last error of a connection that ends.
        details = getattr(getattr(error, "orig", error), "diag", None)
        return getattr(details, "severity_nonlocalized", None) in ("FATAL", "PANIC")
    # libpq gives no SQLSTATE where it got no answer.
    return _is_postgres(error, "OperationalError") and error_code(error)[:3] in _LOST


def unreachable_error(error: BaseException) -> ReasoningStoreError:
    """Return the error of ours for a server to which there is no connection."""
    if re.search(_REFUSED, str(error)):
        return InvalidCall(
            "no connection: the server refuses the role or the database",
            hint="check the host, the role, the password and the name in the URL",
        )
    return StoreBusy(
        "no connection: no server answers there, or it takes no more of them",
        hint="try again; or check the host and the port in the URL",
    )


def _is_no_text(error: BaseException) -> bool:
    """Whether a driver was given bytes that are not UTF-8, in a row or in a parameter.

    The drivers of SQLite give it no name, and quote the bytes.
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
    if is_lost(error):
        return _GONE.error()
    if _is_no_text(error):
        return _NO_TEXT.error()
    name = error_code(error)
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


def _is_driver_error(error: BaseException) -> bool:
    # Most errors come raw (see statement.py); no driver is imported to know them.
    return isinstance(error, (DBAPIError, PoolTimeout, UnicodeDecodeError)) or any(
        kind.__name__ == "DatabaseError" and kind.__module__.split(".")[0] in _DRIVERS
        for kind in type(error).__mro__
    )


_DRIVERS = ("sqlite3", "pysqlite3", "psycopg")


def raise_ours(
    kind: type[BaseException] | None,
    error: BaseException | None,
    trace: TracebackType | None,
) -> None:
    """Raise the error of ours for a driver's, as the ``__exit__`` of a context manager."""
    if error is None or not _is_driver_error(error):
        return
    ours = translate(error)
    del error, trace
    try:
        raise ours
    finally:
        ours.__context__ = None  # not even the context keeps the driver's text
        del ours


class Translated(ContextDecorator):
    """Errors of ours in place of a driver's, around what opens a database."""

    def __enter__(self) -> None: ...

    __exit__ = staticmethod(raise_ours)
