"""A path to no file is reported as that: one error, and what helps."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import reasoning_store as rs
from reasoning_store.cli import main
from reasoning_store.cli.exit_codes import Exit
from reasoning_store.importers import formats
from tests.cli.conftest import clean
from tests.properties import each

PATHS = {
    "a\0b": "no path can hold",
    "half \ud800": "no path can hold",
    "x" * 300: "too long",
    "x" * 250: "too long|there is no",
    "y/" * 3000 + "z": "too long",
    "file.txt/x": "Not a directory",
    "folder": "not a file|it is a",
    "no/where": "folder does not exist|there is no",
    "/proc/none": "cannot be created|cannot be written|does not exist|there is no",
    "loop": "symbolic links",
    "fifo": "not a file|it is a",
    "/dev/null": "not a file|it is a",
    "/dev/full": "not a file|it is a",
    "/": "/ is not a file|it is a",
}
"""Paths that lead to no file, and what is stated of them."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to stand in, with a store and something of each kind that is no file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file.txt").write_text("x")
    os.symlink("loop", tmp_path / "loop")
    os.mkfifo(tmp_path / "fifo")
    with rs.Store("sqlite:///chat.db") as store:
        store.session("s", create=True).append([rs.user("Hello")])
    return tmp_path


def back_up(path: str) -> None:
    with rs.Store("sqlite:///chat.db") as store:
        store.backup(path, overwrite=True)


CALLS: dict[str, Callable[[str], object]] = {
    "open": lambda path: rs.Store(f"sqlite:///{path}"),
    "upgrade": lambda path: rs.Store.upgrade(f"sqlite:///{path}"),
    "backup": back_up,
    "detect": formats.detect,
    "read": lambda path: [*formats.conversations(path, format="llm")],
}


@each("call", CALLS.values())
@each("path", PATHS)
def test_a_path_that_leads_to_no_file_is_named_as_such(
    place: Path, call: Callable[[str], object], path: str
) -> None:
    """A usage error with what helps; nothing is made."""
    before = {*place.rglob("*")}

    with pytest.raises(rs.InvalidCall, match=PATHS[path]) as caught:
        call(path)

    assert caught.value.hint
    assert before == {*place.rglob("*")}


@pytest.mark.parametrize("path", ["a\0b", "half \ud800", "x" * 300, "file.txt/x", "/dev/full"])
def test_a_history_is_read_from_a_file(place: Path, path: str) -> None:
    """Whose format is known, too: what has no end is not begun."""
    with pytest.raises(rs.InvalidCall) as caught:
        [*formats.conversations(path, format="openai")]

    assert caught.value.hint


def test_a_history_may_come_out_of_a_pipe(place: Path) -> None:
    """It is read once, to its end."""
    line = f"""echo '{{"role": "user", "content": "Is 91 prime?"}}' >{place / "fifo"}"""
    with subprocess.Popen(["sh", "-c", line]):
        (read,) = formats.conversations(place / "fifo", format="openai")

    assert len(read.items) == 1


LINES = {
    "status": ["--db", "sqlite:///{}"],
    "create": ["db", "create", "--db", "sqlite:///{}"],
    "verify": ["verify", "--db", "sqlite:///{}"],
    "backup": ["db", "backup", "{}", "--overwrite"],
    "export": ["export", "--output", "{}", "--overwrite"],
    "import": ["import", "{}"],
    "import lines": ["import", "--format", "lines", "{}"],
    "tools": ["request", "s", "--tools", "{}"],
}
_MADE = ("fifo", "no/where", "/proc/none", "x" * 250, "/dev/null")
_NO_ARGUMENT = ("a\0b", "half \ud800")
_SEARCHED = ("/",)
ON_THE_LINE = [path for path in PATHS if path not in (*_MADE, *_NO_ARGUMENT, *_SEARCHED)]
"""Not a pipe, which a command may read; nor what may be made, or be read to its end; nor what
no shell can pass; nor a folder in which ``import`` finds something."""


@each("line", LINES.values())
@each("path", ON_THE_LINE)
def test_a_command_that_is_given_no_file_ends_with_the_code_of_a_wrong_word(
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    line: list[str],
    path: str,
) -> None:
    """In one line; nothing is made."""
    monkeypatch.setenv("REASONING_STORE_URL", "sqlite:///chat.db")
    before = {*place.rglob("*")}

    code = main([word.replace("{}", path) for word in line])

    err = capsys.readouterr().err
    assert code == Exit.USAGE, err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert before == {*place.rglob("*")}


def test_doctor_reports_what_cannot_be_looked_up(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a finding among the others."""
    assert main(["db", "doctor", "--db", f"sqlite:///{'x' * 300}"]) == Exit.FAILED

    assert "give it a shorter name" in " ".join(capsys.readouterr().out.split())


def test_a_name_that_is_no_text_is_a_name(place: Path) -> None:
    """Upgraded by command, as it is opened by a program."""
    rs.Store.upgrade("sqlite:///\udcff.db")

    assert (place / "\udcff.db").exists()


def test_where_there_is_no_home_a_database_has_to_be_named(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As where a service runs for a user of whom the system knows no more than a number."""
    for name in ("XDG_DATA_HOME", "REASONING_STORE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "~")  # what one has who has none

    assert main(["sessions"]) == Exit.USAGE
    assert "--db sqlite:///" in capsys.readouterr().err
    assert main(["db", "doctor"]) == Exit.FAILED
    assert main(["db", "doctor", "--db", "sqlite:///chat.db"]) == Exit.DONE


def test_a_home_without_a_folder_is_named(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The folder for the database cannot be made there."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in clean({}, place / "file.txt").items():
            patch.setenv(name, value)
        patch.delenv("REASONING_STORE_URL", raising=False)
        assert main(["db", "create"]) == Exit.USAGE

    assert "name another place" in capsys.readouterr().err


def in_a_child(work: Callable[[], None]) -> int:
    """Run ``work`` in a process of its own; return how it ends."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_folder_without_permission_is_named_as_such(place: Path) -> None:
    """It may be there: that it is not would be a guess."""
    (place / "folder").chmod(0)
    path = f"{place}/folder/chat.db"

    def look() -> None:
        if os.getuid() == 0:  # who may enter everything
            os.setgroups([])
            os.setgid(12345)
            os.setuid(12345)
        for call in (CALLS["open"], CALLS["detect"]):
            with pytest.raises(rs.InvalidCall, match="Permission denied") as caught:
                call(path)
            assert caught.value.hint
        assert main(["sessions", "--db", f"sqlite:///{path}"]) == Exit.USAGE
        assert main(["import", path, "--db", f"sqlite:///{path}"]) == Exit.USAGE

    try:
        assert in_a_child(look) == 0
    finally:
        (place / "folder").chmod(0o700)


def test_a_process_that_may_open_no_more_files_gets_a_named_error(place: Path) -> None:
    """By whichever part asks for one: another name would not help."""

    def look() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        held: list[int] = []
        with suppress(OSError):
            while True:
                held.append(os.dup(0))
        hints: list[str | None] = []
        for call in (CALLS["open"], CALLS["detect"]):
            try:
                call("chat.db")
            except rs.InvalidCall as error:
                hints.append(error.hint)
        for one in held:
            os.close(one)
        assert ["ulimit -n" in str(hint) for hint in hints] == [True, True]

    assert in_a_child(look) == 0
