"""What drivers say becomes one error of ours, which holds nothing of a conversation."""

from __future__ import annotations

import traceback
from typing import Any

import pytest

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
from reasoning_store.ledger import faults
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.sql import driver

from .histories import new_session, said


class DatabaseError(Exception):
    """As a driver's: a code, and a text that quotes what it should not."""

    def __init__(self, **code: str) -> None:
        super().__init__("failing row contains (my secret)")
        vars(self).update(code)


DatabaseError.__module__ = "sqlite3"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("SQLITE_FULL", StoreFull),
        ("SQLITE_IOERR_WRITE", StoreFull),
        ("SQLITE_IOERR_FSYNC", StoreFull),
        ("SQLITE_IOERR_READ", CorruptRow),
        ("SQLITE_BUSY", StoreBusy),
        ("SQLITE_BUSY_SNAPSHOT", StoreBusy),
        ("SQLITE_LOCKED", StoreBusy),
        ("SQLITE_CORRUPT_VTAB", CorruptRow),
        ("SQLITE_NOTADB", SchemaError),
        ("SQLITE_READONLY_DIRECTORY", UsageError),
        ("SQLITE_CANTOPEN", UsageError),
        ("SQLITE_TOOBIG", UsageError),
        ("SQLITE_ERROR", SchemaError),
        ("SQLITE_CONSTRAINT_UNIQUE", Conflict),
        ("SQLITE_CONSTRAINT_FOREIGNKEY", NotFound),
        ("SQLITE_NOMEM", ReasoningStoreError),
    ],
)
def test_a_code_of_sqlite_has_one_error(code: str, kind: type[Exception]) -> None:
    """By the longest part of its name that is known."""
    assert kind is type(faults.translate(DatabaseError(sqlite_errorname=code))) or issubclass(
        type(faults.translate(DatabaseError(sqlite_errorname=code))), kind
    )


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("53100", StoreFull),
        ("53300", StoreBusy),
        ("55P03", StoreBusy),
        ("57014", StoreBusy),
        ("57P01", StoreBusy),
        ("08006", StoreBusy),
        ("40001", StoreBusy),
        ("40P01", StoreBusy),
        ("42P01", SchemaError),
        ("42P07", SchemaError),
        ("42501", UsageError),
        ("25006", UsageError),
        ("23505", Conflict),
        ("23503", NotFound),
        ("XX001", CorruptRow),
        ("54000", UsageError),
    ],
)
def test_a_code_of_postgresql_has_one_error(code: str, kind: type[Exception]) -> None:
    """By the longest prefix of the SQLSTATE that is known."""
    assert issubclass(type(faults.translate(DatabaseError(sqlstate=code))), kind)


def test_the_drivers_own_text_is_gone() -> None:
    """From the message, and from everything that a traceback prints."""

    def fail() -> None:
        raise DatabaseError(sqlite_errorname="SQLITE_FULL")

    with pytest.raises(StoreFull) as caught:
        faults.guarded(fail)

    assert "secret" not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is None


@pytest.mark.parametrize("kind", [StoreBusy, StoreFull])
def test_a_hint_asks_for_nothing_that_a_verb_does_not_take(kind: type[Any]) -> None:
    """An erasure or a fork has no idempotency key that it could be given again."""
    assert "try again" in kind().hint
    assert "the same" not in kind().hint


def test_bytes_that_a_driver_cannot_read_are_a_damaged_row() -> None:
    """Whether they stand in a row or in what the library says of them; they are not told."""
    unnamed = DatabaseError()
    unnamed.args = ("Could not decode to UTF-8 column 'data' with text 'my secret'",)
    for error in (unnamed, UnicodeDecodeError("utf-8", b"my secret\xff", 9, 10, "invalid")):

        def fail(error: Exception = error) -> None:
            raise error

        with pytest.raises(CorruptRow) as caught:
            faults.guarded(fail)
        assert "secret" not in "".join(traceback.format_exception(caught.value))
        assert caught.value.__context__ is None


def test_an_error_that_is_no_drivers_passes() -> None:
    """A bug stays visible as one."""

    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        faults.guarded(fail)


@pytest.mark.parametrize(
    ("statement", "kind"),
    [("SELECT no_such_column FROM sessions", SchemaError), ("INSERT INTO bodies", SchemaError)],
)
def test_real_drivers_are_understood(ledger: Ledger, statement: str, kind: type[Any]) -> None:
    """On both engines, and the store goes on afterwards."""
    session = new_session(ledger)

    with pytest.raises(kind):
        ledger._write(lambda connection: driver(connection).execute(statement))
    with pytest.raises(ZeroDivisionError):
        ledger._write(lambda connection: driver(connection).execute("SELECT 1") and 1 // 0)

    assert ledger.append(session.key, 1, [said()])[0].position == 1


def test_a_text_that_is_not_null_safe_never_reaches_the_error(ledger: Ledger) -> None:
    """PostgreSQL quotes the failing row; we do not."""
    session = new_session(ledger)
    ledger.append(session.key, 1, [said()])

    with pytest.raises(ReasoningStoreError) as caught:
        ledger._write(
            lambda connection: driver(connection).execute(
                "UPDATE bodies SET text = 'my secret', session_key = NULL"
            )
        )

    assert "secret" not in "".join(traceback.format_exception(caught.value)).replace(
        "text = 'my secret'", ""
    )
