"""Backups: one step, compared with the original, and whole or not there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from reasoning_store.conversation.errors import CorruptRow, InvalidCall
from reasoning_store.ledger.database import backup, sqlite_connections
from reasoning_store.ledger.ledger import Ledger

from .histories import answered, new_session, said, stored_messages

LIBRARY: Any = sqlite_connections.library()


def opened(path: Path) -> Ledger:
    return Ledger.open(f"sqlite:///{path}")


def test_a_backup_is_a_store_of_the_same_rows(sqlite_path: Path, tmp_path: Path) -> None:
    """One file of mode 0600, which opens, verifies and takes appends of its own."""
    with opened(sqlite_path) as ledger:
        session = new_session(ledger)
        ledger.messages.append(session.key, 1, [said(), answered()] * 20)
        done = ledger.backup(tmp_path / "copy.db")
        before = stored_messages(ledger, session.key, 1)
        ledger.messages.append(session.key, 1, [said()])

    copy = tmp_path / "copy.db"
    assert (done.path, done.sessions, done.messages) == (str(copy), 1, 40)
    assert done.size == copy.stat().st_size
    assert copy.stat().st_mode & 0o777 == 0o600
    assert {"chat.db", "copy.db"} == {path.name for path in tmp_path.iterdir()}
    with opened(copy) as ledger:
        assert before == stored_messages(ledger, session.key, 1)
        assert ledger.audit.verify().ok
        assert ledger.messages.append(session.key, 1, [said()])[0].position == 41


def test_a_backup_has_the_tables_of_another_program_too(sqlite_path: Path, tmp_path: Path) -> None:
    """Whatever their names are."""
    with closing(LIBRARY.connect(sqlite_path)) as raw:
        raw.execute('CREATE TABLE "it""s; mine" AS SELECT 1 AS one')
        raw.commit()
    with opened(sqlite_path) as ledger:
        ledger.backup(tmp_path / "copy.db")
        assert [one.code for one in ledger.audit.verify().problems] == ["foreign"]

    with closing(LIBRARY.connect(tmp_path / "copy.db")) as raw:
        assert raw.execute('SELECT one FROM "it""s; mine"').fetchone() == (1,)


def test_a_backup_under_load_is_one_moment(sqlite_path: Path, tmp_path: Path) -> None:
    """Writers go on meanwhile; each session in the copy is a whole beginning of itself."""
    with opened(sqlite_path) as ledger:
        sessions = [new_session(ledger) for _ in range(3)]
        stop = threading.Event()
        written = [0, 0, 0]
        failed: list[BaseException] = []

        def write(n: int) -> None:
            try:
                while not stop.is_set():
                    ledger.messages.append(
                        sessions[n].key, 1, [said(), answered(thought="x" * 3000)]
                    )
                    written[n] += 1
            except BaseException as error:
                failed.append(error)

        writers = [threading.Thread(target=write, args=(n,)) for n in range(3)]
        for writer in writers:
            writer.start()
        try:
            made = []
            for n in range(4):
                made.append(ledger.backup(tmp_path / f"{n}.db"))
                # One of each may have been under way, and be in this copy already.
                before = sum(written)
                while sum(written) < before + 4 and not failed:
                    pass
        finally:
            stop.set()
            for writer in writers:
                writer.join()
        every = {session.key: stored_messages(ledger, session.key, 1) for session in sessions}

    assert failed == []
    copied = [done.messages for done in made]
    assert copied == sorted({*copied})
    assert copied[-1] <= sum(map(len, every.values()))
    for n, done in enumerate(made):
        with opened(tmp_path / f"{n}.db") as copy:
            assert copy.audit.verify().ok
            histories = {key: stored_messages(copy, key, 1) for key in every}
        assert sum(map(len, histories.values())) == done.messages
        for key, rows in histories.items():
            assert rows == every[key][: len(rows)]
            assert len(rows) % 2 == 0


def test_an_existing_file_is_kept_without_overwrite(sqlite_path: Path, tmp_path: Path) -> None:
    """The error says so, and nothing changes."""
    target = tmp_path / "copy.db"
    target.write_text("somebody's letter")
    with opened(sqlite_path) as ledger:
        with pytest.raises(InvalidCall) as caught:
            ledger.backup(target)
        assert caught.value.hint
        assert target.read_text() == "somebody's letter"
        ledger.backup(target, overwrite=True)
    opened(target).close()


@pytest.mark.parametrize("name", ["chat.db", "link.db", "chat.db-wal", "no/such/copy.db", "folder"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_backup_goes_nowhere_where_it_would_harm(
    sqlite_path: Path, tmp_path: Path, name: str, overwrite: bool
) -> None:
    """Onto the database itself, by whatever name, a folder, or into none."""
    (tmp_path / "link.db").symlink_to(sqlite_path)
    (tmp_path / "folder").mkdir()
    with opened(sqlite_path) as ledger:
        session = new_session(ledger)
        with pytest.raises(InvalidCall):
            ledger.backup(tmp_path / name, overwrite=overwrite)
        ledger.messages.append(session.key, 1, [said()])
        assert ledger.audit.verify().ok
    assert {"chat.db", "link.db", "folder"} == {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize("meanwhile", [False, True])
def test_a_backup_does_not_take_the_place_of_a_file_that_is_open(
    sqlite_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: bool
) -> None:
    """Its log would stay, and the one who opened the copy would be given the pages in it."""
    target = tmp_path / "copy.db"
    plain = backup._check
    with opened(sqlite_path) as ledger, ExitStack() as stack:
        session = new_session(ledger)
        ledger.backup(target)
        ledger.messages.append(session.key, 1, [said()] * 20)

        def open_it(*given: Any) -> None:
            if given:
                plain(*given)
            other = stack.enter_context(opened(target))
            other.messages.append(session.key, 1, [said("in the copy")])

        if meanwhile:
            monkeypatch.setattr(backup, "_check", open_it)
        else:
            open_it()
        with pytest.raises(InvalidCall, match=r"open somewhere.*copy\.db-wal is there too"):
            ledger.backup(target, overwrite=True)
        monkeypatch.undo()
        stack.close()
        with opened(target) as other:
            assert [row.message.text for row in stored_messages(other, session.key, 1)] == [
                "in the copy"
            ]
            assert other.audit.verify().ok

        ledger.backup(target, overwrite=True)
    with opened(target) as other:
        assert len(stored_messages(other, session.key, 1)) == 20
        assert other.audit.verify().ok


def test_a_backup_is_not_written_next_to_a_foreign_log(sqlite_path: Path, tmp_path: Path) -> None:
    """Of a file that was moved away, or removed by itself."""
    (tmp_path / "copy.db-wal").write_bytes(b"the rest of a conversation")
    with (
        opened(sqlite_path) as ledger,
        pytest.raises(InvalidCall, match=r"copy\.db-wal is there without copy\.db"),
    ):
        ledger.backup(tmp_path / "copy.db")
    assert {"chat.db", "copy.db-wal"} == {path.name for path in tmp_path.iterdir()}


def test_a_file_of_another_writer_is_not_overwritten(
    sqlite_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where the file appears while the copy is made."""
    target = tmp_path / "copy.db"
    plain = backup._check

    def meanwhile(*given: Any) -> None:
        plain(*given)
        target.write_text("first")

    monkeypatch.setattr(backup, "_check", meanwhile)
    with opened(sqlite_path) as ledger, pytest.raises(InvalidCall, match="already"):
        ledger.backup(target)

    assert target.read_text() == "first"
    assert {"chat.db", "copy.db"} == {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize(
    "harm",
    ["UPDATE bodies SET text = 'y'", "DELETE FROM bodies", "CREATE TABLE extra (x)"],
)
def test_a_copy_that_differs_is_not_kept(
    sqlite_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    """The older one stays, and the error says what happened."""
    target = tmp_path / "copy.db"
    plain = backup._check

    def damaged(copied: Any, expected: Any) -> None:
        copied.execute(harm)
        plain(copied, expected)

    with opened(sqlite_path) as ledger:
        ledger.messages.append(new_session(ledger).key, 1, [said("x")])
        ledger.backup(target)
        before = target.read_bytes()
        monkeypatch.setattr(backup, "_check", damaged)
        with pytest.raises(CorruptRow, match="differs"):
            ledger.backup(target, overwrite=True)

    assert before == target.read_bytes()
    assert {"chat.db", "copy.db"} == {path.name for path in tmp_path.iterdir()}


def test_a_damaged_database_does_not_take_the_place_of_a_backup(
    sqlite_path: Path, tmp_path: Path
) -> None:
    """The one who needs the old one needs it now."""
    target = tmp_path / "copy.db"
    with opened(sqlite_path) as ledger:
        session = new_session(ledger)
        for n in range(60):
            ledger.messages.append(session.key, 1, [said(f"{n} " + "x" * 500)])
        ledger.backup(target)
    before = target.read_bytes()
    data = bytearray(sqlite_path.read_bytes())
    at = data.index(b"30 xxxx") // 8192 * 8192
    data[at : at + 8192] = bytes([255]) * 8192
    sqlite_path.write_bytes(data)

    with opened(sqlite_path) as ledger, pytest.raises(CorruptRow):
        ledger.backup(target, overwrite=True)

    assert before == target.read_bytes()


KILLED = """
import os, signal, sys
from reasoning_store.ledger.database import backup as copies
from reasoning_store.ledger.ledger import Ledger

wanted = sys.argv[3]
plain = getattr(copies, wanted)

def kill(*given, **named):
    os.kill(os.getpid(), signal.SIGKILL)

setattr(copies, wanted, kill)
with Ledger.open(sys.argv[1]) as ledger:
    ledger.backup(sys.argv[2], overwrite=True)
"""


@pytest.mark.parametrize("step", ["read_contents", "_check", "_name"])
def test_a_kill_while_backing_up_leaves_the_old_one(
    sqlite_path: Path, tmp_path: Path, step: str
) -> None:
    """At every step; what is left half made is named by what erases, and the next one works."""
    target = tmp_path / "copy.db"
    with opened(sqlite_path) as ledger:
        session = new_session(ledger)
        ledger.messages.append(session.key, 1, [said()])
        ledger.backup(target)
        before = target.read_bytes()
        ledger.messages.append(session.key, 1, [said()])

        killed = subprocess.run(
            [sys.executable, "-c", KILLED, f"sqlite:///{sqlite_path}", str(target), step],
            timeout=120,
        )

        assert killed.returncode == -signal.SIGKILL
        assert before == target.read_bytes()
        assert ledger.backup(target, overwrite=True).messages == 2
        assert ledger.audit.verify().ok


def test_a_store_in_memory_can_be_kept(tmp_path: Path) -> None:
    """As a file that opens."""
    with Ledger.open("sqlite://") as ledger:
        session = new_session(ledger)
        ledger.messages.append(session.key, 1, [said()])
        ledger.backup(tmp_path / "copy.db")
        ledger.messages.append(session.key, 1, [said()])
    with opened(tmp_path / "copy.db") as ledger:
        assert len(stored_messages(ledger, session.key, 1)) == 1


def test_a_server_has_its_own_tool(postgres_url: str, tmp_path: Path) -> None:
    """The error names it."""
    with Ledger.open(postgres_url) as ledger, pytest.raises(InvalidCall) as caught:
        ledger.backup(tmp_path / "copy.db")

    assert "pg_dump" in str(caught.value.hint)
    assert list(tmp_path.iterdir()) == []


def test_the_mode_does_not_depend_on_the_umask(sqlite_path: Path, tmp_path: Path) -> None:
    """Only its owner reads it."""
    old = os.umask(0)
    try:
        with opened(sqlite_path) as ledger:
            ledger.backup(tmp_path / "copy.db")
    finally:
        os.umask(old)

    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600
