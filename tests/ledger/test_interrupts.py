"""Control-C in the middle of a verb: the next verb runs as if nothing had been."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from reasoning_store.ledger import sqlite_connections, sqlite_transactions
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.sql import driver

from .histories import new_session, said
from .opening import open_ledger


def interrupted(connection: Any) -> None:
    """Be interrupted with a statement in the middle, which the traceback keeps there."""
    cursor = driver(connection).cursor()
    cursor.execute("SELECT position FROM messages")
    assert cursor.fetchone()
    raise KeyboardInterrupt


def test_a_read_that_was_interrupted_keeps_nobody_at_its_moment(ledger: Ledger) -> None:
    """What is written after it is read, though its traceback is kept."""
    session = new_session(ledger)
    ledger.append(session.key, 1, [said()] * 3)
    with pytest.raises(KeyboardInterrupt) as kept:
        ledger._read(interrupted)

    ledger.append(session.key, 1, [said()])

    assert len(ledger.history(session.key, 1)) == 4
    assert kept.value.__traceback__


def test_a_read_may_be_interrupted_as_soon_as_it_has_begun(
    sqlite_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is not lent again with a transaction open."""

    class Begun:
        def __init__(self, raw: Any) -> None:
            self.raw = raw
            self.commit = raw.commit

        def execute(self, statement: str) -> None:
            self.raw.execute(statement)
            raise KeyboardInterrupt

    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        session = new_session(ledger)
        with monkeypatch.context() as patch:
            patch.setattr(sqlite_transactions, "driver", lambda it: Begun(driver(it)))
            with pytest.raises(KeyboardInterrupt):
                ledger.history(session.key, 1)

        ledger.append(session.key, 1, [said()])
        assert len(ledger.history(session.key, 1)) == 1


@pytest.mark.parametrize("module", [sqlite3, sqlite_connections.library()], ids=["sqlite3", "ours"])
def test_a_write_that_was_interrupted_is_in_no_later_ones_way(
    sqlite_path: Path, module: ModuleType
) -> None:
    """Though its traceback is kept and another store has written since."""
    url = f"sqlite:///{sqlite_path}"
    with open_ledger(url, driver=module) as ledger, open_ledger(url, driver=module) as other:
        session = new_session(ledger)
        ledger.append(session.key, 1, [said()] * 3)
        with pytest.raises(KeyboardInterrupt) as kept:
            ledger._write(interrupted)

        assert other.append(session.key, 1, [said()])[0].position == 4
        assert ledger.append(session.key, 1, [said()])[0].position == 5
        assert kept.value.__traceback__


def test_a_write_in_memory_that_was_interrupted_loses_nothing() -> None:
    """There the one connection is the database."""
    with Ledger.open("sqlite://") as ledger:
        session = new_session(ledger)
        ledger.append(session.key, 1, [said()] * 3)
        with pytest.raises(KeyboardInterrupt):
            ledger._write(interrupted)

        assert ledger.append(session.key, 1, [said()])[0].position == 4
