"""How a transaction on SQLite begins and ends: one that reads, one that writes, several as one.

Theory. What a durable write costs is waiting for the disk, and that is paid once for a
transaction, whatever is in it. So writes that wait for the same lane are written together
where there are any. None of them can tell: each is done behind the other, none is told of
before all are on the disk, and where one of them fails, or the disk does, the transaction
is taken back and each is done by itself.

Knows a connection; must not know what is written, who waits, or how a file is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection

from reasoning_store.errors import SchemaError
from reasoning_store.ledger.sql import driver

T = TypeVar("T")


def written(connection: Connection, work: Callable[[Connection], T]) -> T:
    # Past SQLAlchemy, as every statement of a write is (see sql).
    raw = driver(connection)
    try:
        raw.execute("BEGIN IMMEDIATE")
        result = work(connection)
        raw.execute("COMMIT")
    except BaseException:
        if raw.in_transaction:
            raw.rollback()
        raise
    return result


class Write(Generic[T]):
    """A write that waits for the lane, and what came of it."""

    __slots__ = ("_committed", "alone", "given_up", "value", "work")

    value: T

    def __init__(self, work: Callable[[Connection], T], *, alone: bool) -> None:
        self.work = work
        self.alone = alone
        self.given_up = False
        self._committed: Sequence[object] = ()

    @property
    def done(self) -> bool:
        return bool(self._committed)

    def run(self, connection: Connection, committed: Sequence[object]) -> None:
        """Do it in a transaction which is committed as soon as anything is in ``committed``."""
        self.value = self.work(connection)
        self._committed = committed


def written_together(connection: Connection, writes: Sequence[Write[Any]]) -> None:
    """Do all of them in one transaction, one behind the other.

    What one that fails has written is taken back, and it is not done then: it has to be done
    by itself, and fails, if it does, as it would have failed alone. Where the transaction
    fails, none of them is done.
    """
    raw = driver(connection)
    committed: list[object] = []
    begun = False
    try:
        raw.execute("BEGIN IMMEDIATE")
        begun = True
        for write in writes:
            if write.given_up:
                continue
            raw.execute("SAVEPOINT one")
            try:
                write.run(connection, committed)
            except Exception:
                raw.execute("ROLLBACK TO one")  # fails where the library took all of it back
            raw.execute("RELEASE one")
        # One call that runs no Python in between: an interrupt finds both done, or neither.
        committed.extend(map(raw.execute, ("COMMIT",)))
    except BaseException as error:
        if raw.in_transaction:
            raw.rollback()
        if not begun or not isinstance(error, Exception):
            raise


def snapshot(connection: Connection, work: Callable[[Connection], T]) -> T:
    # Past SQLAlchemy, as every statement of a read is (see sql).
    raw = driver(connection)
    try:
        raw.execute("BEGIN")
        return work(connection)
    finally:
        raw.commit()  # nothing was written


def transaction(connection: Connection, work: Callable[[Connection], T]) -> T:
    transaction = connection.begin()
    try:
        result = work(connection)
        transaction.commit()
    except BaseException:
        transaction.rollback()
        # After a commit that failed SQLAlchemy thinks that there is nothing to roll back.
        raw = driver(connection)
        if raw.in_transaction:
            raw.rollback()
        raise
    return result


def without_strays(connection: Connection, work: Callable[[Connection], T]) -> T:
    """Do what foreign keys would: refuse to leave rows that refer to nothing."""

    def strays() -> int:
        return len(driver(connection).execute("PRAGMA foreign_key_check").fetchall())

    before = strays()
    result = work(connection)
    if strays() > before:
        raise SchemaError("the change of the schema would leave rows that belong to nothing")
    return result
