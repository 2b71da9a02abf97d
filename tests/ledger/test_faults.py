"""What drivers say becomes one error of ours, which holds nothing of a conversation."""

from __future__ import annotations

import traceback
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

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
from reasoning_store.ledger.database import driver_errors
from reasoning_store.ledger.database.statement import driver
from reasoning_store.ledger.ledger import Ledger
from tests.properties import each

from .histories import new_session, said


class DatabaseError(Exception):
    """As a driver's: a code, and a text that quotes what it should not."""

    def __init__(self, **code: Any) -> None:
        super().__init__("failing row contains (my secret)")
        vars(self).update(code)


DatabaseError.__module__ = "sqlite3"


@each(
    "code, kind",
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
        ("SQLITE_READONLY_DIRECTORY", InvalidCall),
        ("SQLITE_CANTOPEN", InvalidCall),
        ("SQLITE_TOOBIG", InvalidCall),
        ("SQLITE_ERROR", SchemaError),
        ("SQLITE_CONSTRAINT_UNIQUE", Conflict),
        ("SQLITE_CONSTRAINT_FOREIGNKEY", NotFound),
        ("SQLITE_NOMEM", ReasoningStoreError),
    ],
)
def test_a_code_of_sqlite_has_one_error(code: str, kind: type[Exception]) -> None:
    """By the longest part of its name that is known."""
    assert isinstance(driver_errors.translate(DatabaseError(sqlite_errorname=code)), kind)


@each(
    "code, kind",
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
        ("42501", InvalidCall),
        ("25006", InvalidCall),
        ("23505", Conflict),
        ("23503", NotFound),
        ("XX001", CorruptRow),
        ("XX002", CorruptRow),
        ("54000", InvalidCall),
    ],
)
def test_a_code_of_postgresql_has_one_error(code: str, kind: type[Exception]) -> None:
    """By the longest prefix of the SQLSTATE that is known."""
    assert issubclass(type(driver_errors.translate(DatabaseError(sqlstate=code))), kind)


def test_an_internal_error_of_the_server_is_no_damage() -> None:
    """Extensions raise XX000 for whatever they have no code for; it is named."""
    error = driver_errors.translate(DatabaseError(sqlstate="XX000"))

    assert type(error) is ReasoningStoreError
    assert "XX000" in str(error)


def test_an_internal_error_that_ends_the_connection_has_lost_it() -> None:
    """Only then: an extension raises others on a connection that goes on."""
    ended, going_on = (
        DatabaseError(sqlstate="XX000", diag=SimpleNamespace(severity_nonlocalized=severity))
        for severity in ("FATAL", "ERROR")
    )

    assert isinstance(driver_errors.translate(ended), StoreBusy)
    assert not driver_errors.is_lost(going_on)


@each(
    "code, text, kind",
    [
        ("XX000", 'violates unique constraint "uq_messages_session_key_key_102037"', Conflict),
        ("XX000", 'duplicate key value violates unique constraint "pk_bodies_102037"', Conflict),
        ("XX000", 'violates foreign key constraint "fk_bodies_messages_102037"', NotFound),
        ("58030", "failed to complete COPY on w1:5432", StoreBusy),
    ],
)
def test_an_error_of_a_shard_whose_code_is_lost_is_known_by_its_text(
    code: str, text: str, kind: type[Exception]
) -> None:
    """As Citus passes it on, in whatever language the text is."""
    error = psycopg.errors.lookup(code)(f"{text}\nDETAIL:  Key (a)=(my secret) already exists.")

    assert isinstance(driver_errors.translate(error), kind)


def test_a_pooler_that_has_no_server_has_lost_the_connection() -> None:
    """PgBouncer says everything with 08P01, a protocol violation."""
    assert driver_errors.is_lost(psycopg.errors.ProtocolViolation("server conn crashed?"))


@each(
    "text, kind",
    [
        ("connection to server at 127.0.0.1 failed: Connection refused", StoreBusy),
        ("connection failed: FATAL:  sorry, too many clients already", StoreBusy),
        ("connection failed: FATAL:  the database system is starting up", StoreBusy),
        ("connection failed: session is read-only", StoreBusy),
        ("connection timeout expired", StoreBusy),
        ('connection failed: FATAL:  database "x" does not exist', InvalidCall),
        ('connection failed: FATAL:  password authentication failed for user "x"', InvalidCall),
        ("could not translate host name to address: Name or service not known", InvalidCall),
    ],
)
def test_a_server_that_may_answer_later_is_busy(text: str, kind: type[Exception]) -> None:
    """One that fails over or takes no more connections; one that refuses a URL is not."""
    assert type(driver_errors.unreachable_error(psycopg.OperationalError(text))) is kind


def test_the_drivers_own_text_is_gone() -> None:
    """From the message, and from everything that a traceback prints."""

    @driver_errors.Translated()
    def fail() -> None:
        raise DatabaseError(sqlite_errorname="SQLITE_FULL")

    with pytest.raises(StoreFull) as caught:
        fail()

    assert "secret" not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is None


@pytest.mark.parametrize("kind", [StoreBusy, StoreFull])
def test_a_hint_asks_for_nothing_that_a_verb_does_not_take(kind: type[Any]) -> None:
    """An erasure or a fork has no idempotency key that it could be given again."""
    assert "try again" in kind().hint
    assert "the same" not in kind().hint


def test_bytes_that_a_driver_cannot_read_are_a_damaged_row() -> None:
    """Whether they are in a row or in the library's own words; no error holds them."""
    unnamed = DatabaseError()
    unnamed.args = ("Could not decode to UTF-8 column 'data' with text 'my secret'",)
    for error in (unnamed, UnicodeDecodeError("utf-8", b"my secret\xff", 9, 10, "invalid")):

        @driver_errors.Translated()
        def fail(error: Exception = error) -> None:
            raise error

        with pytest.raises(CorruptRow) as caught:
            fail()
        assert "secret" not in "".join(traceback.format_exception(caught.value))
        assert caught.value.__context__ is None


def test_an_error_that_is_no_drivers_passes() -> None:
    """A bug stays visible as one."""

    @driver_errors.Translated()
    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()


@pytest.mark.parametrize(
    ("statement", "kind"),
    [("SELECT no_such_column FROM sessions", SchemaError), ("INSERT INTO bodies", SchemaError)],
)
def test_real_drivers_are_understood(ledger: Ledger, statement: str, kind: type[Any]) -> None:
    """On both engines, and the store goes on afterwards."""
    session = new_session(ledger)

    with pytest.raises(kind):
        ledger.database.write(lambda connection: driver(connection).execute(statement))
    with pytest.raises(ZeroDivisionError):
        ledger.database.write(lambda connection: driver(connection).execute("SELECT 1") and 1 // 0)

    assert ledger.messages.append(session.key, 1, [said()])[0].position == 1


def test_a_text_that_is_not_null_safe_never_reaches_the_error(ledger: Ledger) -> None:
    """PostgreSQL quotes the failing row; we do not."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said()])

    with pytest.raises(ReasoningStoreError) as caught:
        ledger.database.write(
            lambda connection: driver(connection).execute(
                "UPDATE bodies SET text = 'my secret', session_key = NULL"
            )
        )

    assert "secret" not in "".join(traceback.format_exception(caught.value)).replace(
        "text = 'my secret'", ""
    )
