"""Control-C in the middle of a verb: the next verb runs as if nothing had been."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from reasoning_store.ledger.database import sqlite_connections
from reasoning_store.ledger.database.statement import driver
from reasoning_store.ledger.ledger import Ledger

from .histories import new_session, said, stored_messages
from .opening import open_ledger


def interrupted(connection: Any) -> None:
    """Be interrupted with a statement in the middle, which the traceback keeps there."""
    cursor = driver(connection).cursor()
    cursor.execute("SELECT position FROM messages")
    assert cursor.fetchone()
    raise KeyboardInterrupt


def test_an_interrupted_read_keeps_no_snapshot(ledger: Ledger) -> None:
    """What is written after it is read, though its traceback is kept."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said()] * 3)
    with pytest.raises(KeyboardInterrupt) as kept:
        ledger.database.read(interrupted)

    ledger.messages.append(session.key, 1, [said()])

    assert len(stored_messages(ledger, session.key, 1)) == 4
    assert kept.value.__traceback__


@pytest.mark.parametrize("module", [sqlite3, sqlite_connections.library()], ids=["sqlite3", "ours"])
def test_a_write_that_was_interrupted_is_in_no_later_ones_way(
    sqlite_path: Path, module: ModuleType
) -> None:
    """Though its traceback is kept and another store has written since."""
    url = f"sqlite:///{sqlite_path}"
    with open_ledger(url, driver=module) as ledger, open_ledger(url, driver=module) as other:
        session = new_session(ledger)
        ledger.messages.append(session.key, 1, [said()] * 3)
        with pytest.raises(KeyboardInterrupt) as kept:
            ledger.database.write(interrupted)

        assert other.messages.append(session.key, 1, [said()])[0].position == 4
        assert ledger.messages.append(session.key, 1, [said()])[0].position == 5
        assert kept.value.__traceback__


def test_a_write_in_memory_that_was_interrupted_loses_nothing() -> None:
    """There the one connection is the database."""
    with Ledger.open("sqlite://") as ledger:
        session = new_session(ledger)
        ledger.messages.append(session.key, 1, [said()] * 3)
        with pytest.raises(KeyboardInterrupt):
            ledger.database.write(interrupted)

        assert ledger.messages.append(session.key, 1, [said()])[0].position == 4


@pytest.mark.parametrize("single", [True, False])
def test_an_error_of_a_write_keeps_no_cursor(sqlite_path: Path, single: bool) -> None:
    """One that goes with its traceback would reset a statement that is in use again."""

    def work(connection: Any) -> None:
        cursor = driver(connection).cursor()
        cursor.execute("SELECT 1 UNION SELECT 2")
        assert cursor.fetchone()
        raise ZeroDivisionError

    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        with pytest.raises(ZeroDivisionError) as kept:
            ledger.database.write(work, single=single)
        trace, names = kept.value.__traceback__, set()
        while trace is not None:
            names |= {*trace.tb_frame.f_locals}
            trace = trace.tb_next

    assert "cursor" not in names
