"""A store that is only read: also where nothing can be written, and nothing is left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import reasoning_store as rs
from reasoning_store.conversation.errors import NotFound


def as_somebody(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a program that permissions hold for, whichever user runs the tests."""
    less = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--inh-caps", "-all"]
    return subprocess.run(
        [*(less if os.geteuid() == 0 else ()), sys.executable, "-c", program, *words],
        capture_output=True,
        text=True,
        check=False,
    )


_READ = """
import sys
import reasoning_store as rs
with rs.Store(f"sqlite:///{sys.argv[1]}", read_only=True) as store:
    print([row.message.text for row in store.session("s").history()], store.verify().ok)
    print(len(list(store.export_lines())))
    store.backup(sys.argv[2])
    try:
        store.session("s").append(rs.user("more"))
    except rs.InvalidCall as error:
        print(error)
"""

_COMMANDS = """
import sys
from reasoning_store.cli import main
db, *lines = sys.argv[1:]
failed = [line for line in lines if main(["--db", db, *line.split()])]
print("failed:", failed)
"""


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A database with a message, in a folder of its own, that no one has open."""
    (tmp_path / "kept").mkdir()
    path = tmp_path / "kept" / "chat.db"
    with rs.Store(f"sqlite:///{path}") as store:
        store.session("s", create=True).append(rs.user("Is 91 prime?"))
    return path


def test_a_file_that_cannot_be_written_in_a_folder_that_cannot_is_read(
    written: Path, tmp_path: Path
) -> None:
    """Its messages, an export, a verification, a copy elsewhere; a write is refused."""
    written.chmod(0o444)
    written.parent.chmod(0o555)
    try:
        ran = as_somebody(_READ, str(written), str(tmp_path / "copy.db"))
    finally:
        written.parent.chmod(0o755)

    assert ran.stderr == ""
    assert ran.stdout.splitlines()[0] == "['Is 91 prime?'] True"
    assert "read only" in ran.stdout
    with rs.Store(f"sqlite:///{tmp_path / 'copy.db'}") as store:
        assert len(store.session("s").history()) == 1


def test_messages_in_a_log_that_cannot_be_read_are_not_left_out_silently(written: Path) -> None:
    """Where a log stands that no one has open, in a folder that cannot be written."""
    with rs.Store(f"sqlite:///{written}") as store:
        store.session("s").append(rs.user("In the log."))
        log = Path(f"{written}-wal").read_bytes()
    Path(f"{written}-wal").write_bytes(log)
    written.parent.chmod(0o555)
    try:
        ran = as_somebody(_READ, str(written), str(written.with_name("copy.db")))
    finally:
        written.parent.chmod(0o755)

    assert "chat.db-wal holds messages that are not in chat.db yet" in ran.stderr


def test_reading_leaves_no_file_and_sees_the_writes_of_others(written: Path) -> None:
    """What is written after it was opened, too, in the log and out of it."""
    with rs.Store(f"sqlite:///{written}", read_only=True) as reader:
        assert len(reader.session("s").history()) == 1
        assert [one.name for one in written.parent.iterdir()] == ["chat.db"]
        with rs.Store(f"sqlite:///{written}") as store:
            store.session("s").append(rs.user("In the log."))
            assert len(reader.session("s").history()) == 2
        assert len(reader.session("s").history()) == 2
    assert [one.name for one in written.parent.iterdir()] == ["chat.db"]


@pytest.mark.parametrize("name", ["sqlite://", "sqlite:///{folder}/nowhere.db"])
def test_to_be_read_a_file_has_to_be_there(tmp_path: Path, name: str) -> None:
    """And none is made."""
    with pytest.raises(NotFound, match="not there to be read"):
        rs.Store(name.format(folder=tmp_path), read_only=True)

    assert list(tmp_path.iterdir()) == []


def test_the_commands_that_only_read_work_where_nothing_can_be_written(written: Path) -> None:
    """And leave nothing behind."""
    lines = [
        "",
        "sessions",
        "show s",
        "request s --tokens --limit 99",
        "request s --every",
        "verify",
        "export",
        "db doctor",
    ]
    lines += ["request s", "report", "settings s", "compact list s", "settings profiles", "db"]
    written.parent.chmod(0o555)
    try:
        ran = as_somebody(_COMMANDS, f"sqlite:///{written}", *lines)
    finally:
        written.parent.chmod(0o755)

    assert ran.stdout.splitlines()[-1] == "failed: []", ran.stdout + ran.stderr
    assert [one.name for one in written.parent.iterdir()] == ["chat.db"]
