"""SQLite before 3.51.3: the one who checkpoints holds the write lock, so that no one is hurt.

Such a library loses pages when a checkpoint runs while another connection's commit starts
the WAL anew. While the write lock is held there is no such commit.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.ledger.database import checkpoints, sqlite_connections
from reasoning_store.ledger.database.statement import driver
from tests.ledger.opening import open_ledger

from . import programs
from .processes import crowd
from .whole import check_whole


def test_pages_are_copied_only_by_who_holds_the_write_lock(sqlite_path: Path) -> None:
    """Two processes write and checkpoint; what they ask of the disk and its locks is watched."""
    turns = 60
    each = [(str(sqlite_path), name, turns) for name in ("a", "b")]
    with crowd(programs.append_beside_checkpoints, each) as children:
        told = [child.finish()[-1] for child in children]

    for _, copied, bare, longest in told:
        assert copied > 50
        assert bare == 0
        assert longest < 8_000_000
    check_whole(f"sqlite:///{sqlite_path}")
    with rs.Store(f"sqlite:///{sqlite_path}") as store:
        assert [len(store.session(name).history()) for name in ("a", "b")] == [2 * turns] * 2


def test_who_writes_waits_for_no_other_process_to_copy_pages(
    sqlite_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was written is on the disk; the pages are copied another time."""
    monkeypatch.setattr(checkpoints, "is_vulnerable", lambda version: True)
    with open_ledger(f"sqlite:///{sqlite_path}", busy_timeout=3600) as ledger:
        database: Any = ledger.database
        with closing(
            sqlite_connections.library().connect(sqlite_path, isolation_level=None)
        ) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(sqlite_connections.library().Error, match="locked"):
                database._writer.run(database._checkpoints.copy_pages)
        found = ledger.database.write(
            lambda connection: driver(connection).execute("PRAGMA busy_timeout").fetchone()
        )

    assert found == (3_600_000,)


@pytest.mark.long
@pytest.mark.parametrize("round_", range(3))
def test_writers_and_checkpointers_of_pythons_own_library_lose_nothing(
    sqlite_path: Path, round_: int
) -> None:
    """Three processes write, three more checkpoint after each turn; the file stays sound."""
    turns, url = 1200, f"sqlite:///{sqlite_path}"
    each = [(url, f"s{n}", turns, 1 if n % 2 else 300) for n in range(6)]
    with crowd(programs.append_with_pythons_own_library, each) as children:
        for child in children:
            child.finish()

    check_whole(url)
    with rs.Store(url) as store:
        for n in range(6):
            there = [item.message for item in store.session(f"s{n}").history()]
            assert there == [m for number in range(1, turns + 1) for m in programs.turn(number)]
