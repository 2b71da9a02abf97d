"""The power goes: what was acknowledged is there, what was not is there whole or not at all.

Everything that SQLite asks of the disk is remembered while turns are appended, and when
each was acknowledged. Then the power is cut, at many moments: of each file there is what
stood in it at its last sync, and of what was asked for since each sector of 512 bytes or
its neighbours, as it happens, torn and out of order. Such a disk is opened again.

It is taken for granted that a sync is one, and that a sector is whole.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import reasoning_store as rs
from reasoning_store.conversation.errors import ReasoningStoreError
from reasoning_store.ledger.database import checkpoints, sqlite_connections

from . import programs
from .disk import Disk, Operation, watched
from .whole import check_whole

LIBRARY = sqlite_connections.library()
SECTOR = 512
SHORT, FULL = 40, 1200


class File:
    """One file: what is on the disk for certain, and what is on its way there."""

    def __init__(self, content: bytes) -> None:
        self.certain = bytearray(content)
        self.on_its_way: list[Operation] = []

    def ask(self, operation: Operation) -> None:
        if operation.kind == "sync":
            for earlier in self.on_its_way:
                apply(self.certain, earlier)
            self.on_its_way = []
        else:
            self.on_its_way.append(operation)

    def after_the_cut(self, chance: random.Random) -> bytes:
        content = bytearray(self.certain)
        for operation in self.on_its_way:
            if operation.kind == "truncate":
                if chance.random() < 0.5:
                    apply(content, operation)
                continue
            for start in range(0, len(operation.data), SECTOR):
                if chance.random() < 0.5:
                    sector = operation.data[start : start + SECTOR]
                    apply(content, operation._replace(at=operation.at + start, data=sector))
        return bytes(content)


def apply(content: bytearray, operation: Operation) -> None:
    """Do to a file's content what was asked."""
    if operation.kind == "truncate":
        del content[operation.at :]
        return
    end = operation.at + len(operation.data)
    content.extend(bytes(max(0, end - len(content))))
    content[operation.at : end] = operation.data


def remembered(path: Path, turns: int) -> list[Operation]:
    """Append turns and return what was asked of the disk, with a mark for each acknowledgement."""
    with (
        watched(LIBRARY, Disk(remembers=True)) as disk,
        rs.Store(f"sqlite:///{path}") as store,
    ):
        session = store.session("s", create=True)
        disk.operations.clear()
        before = {name: Path(f"{path}{name}").read_bytes() for name in ("", "-wal")}
        for number in range(1, turns + 1):
            session.append(programs.turn(number), idempotency_key=programs.key(number))
            disk.operations.append(Operation("stored", "", number))
        copied = sum(done.kind == "write" and done.path == str(path) for done in disk.operations)
        assert copied > 10, "there was no checkpoint"
        kept = [Operation("there", f"{path}{name}", 0, content) for name, content in before.items()]
        return kept + disk.operations


def cut(operations: list[Operation], moment: int, path: Path, chance: random.Random) -> int:
    """Leave at ``path`` what is there after a cut, and return how many turns were stored."""
    files: dict[str, File] = {}
    stored = 0
    for operation in operations[:moment]:
        if operation.kind == "there":
            files[operation.path] = File(operation.data)
        elif operation.kind == "stored":
            stored = operation.at
        elif operation.kind in ("write", "truncate", "sync"):
            files[operation.path].ask(operation)
    for name, file in files.items():
        end = "-wal" if name.endswith("-wal") else ""
        Path(f"{path}{end}").write_bytes(file.after_the_cut(chance))
    return stored


def cuts(tmp_path: Path, how_many: int, turns: int) -> tuple[int, int]:
    """Cut the power so many times; return how often turns were lost, or all of it."""
    operations = remembered(tmp_path / "chat.db", turns)
    chance = random.Random(20_261_118)
    lost = broken = 0
    moments = [chance.randrange(2, len(operations)) for _ in range(how_many)]
    for number, moment in enumerate(moments):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = folder / "chat.db"
        stored = cut(operations, moment, path, chance)
        try:
            with rs.Store(f"sqlite:///{path}") as store:
                there = [item.message for item in store.session("s").history()]
            check_whole(f"sqlite:///{path}")
        except (ReasoningStoreError, AssertionError, LIBRARY.Error):
            broken += 1
            continue
        lost += len(there) // 2 < stored
        expected = [message for n in range(1, len(there) // 2 + 1) for message in programs.turn(n)]
        assert there == expected
        for file in folder.iterdir():
            file.unlink()
    return lost, broken


@pytest.mark.parametrize("library", ["fixed", "vulnerable"])
@pytest.mark.parametrize(
    "how_many", [SHORT, pytest.param(FULL, marks=pytest.mark.long)], ids=["short", "full"]
)
def test_an_acknowledged_turn_outlives_a_power_cut(
    tmp_path: Path, how_many: int, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At any moment, also in the middle of a checkpoint, the library's own or ours."""
    monkeypatch.setattr(checkpoints, "is_vulnerable", lambda _: library == "vulnerable")
    monkeypatch.setattr(checkpoints, "_CHECKPOINT_PAGES", 100)
    if library == "fixed":
        monkeypatch.setattr(
            sqlite_connections, "_PRAGMAS", (*sqlite_connections._PRAGMAS, "wal_autocheckpoint=60")
        )

    assert cuts(tmp_path, how_many, turns=60) == (0, 0)


@pytest.mark.parametrize("synchronous", ["NORMAL", "OFF"])
def test_the_cuts_would_find_a_store_that_does_not_wait_for_the_disk(
    tmp_path: Path, synchronous: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With less than FULL, which is what every connection has, turns are lost."""
    less = [
        pragma for pragma in sqlite_connections._PRAGMAS if not pragma.startswith("synchronous")
    ]
    monkeypatch.setattr(
        sqlite_connections,
        "_PRAGMAS",
        (*less, f"synchronous={synchronous}", "wal_autocheckpoint=60"),
    )

    assert sum(cuts(tmp_path, SHORT, turns=60)) > SHORT // 4
