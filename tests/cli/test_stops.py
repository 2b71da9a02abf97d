"""How a command ends that is interrupted, terminated or hung up, and one that ignores it."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shlex
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.cli import main
from reasoning_store.cli.exit_codes import Exit
from tests.cli.conftest import Here, clean, command

URL = {"REASONING_STORE_URL": "sqlite:///chat.db"}
AGAIN = "run it again: imported messages are not written twice"


@contextmanager
def at_a_keyboard(
    words: Sequence[str], *, ignored: bool = False, **given: Any
) -> Iterator[subprocess.Popen[str]]:
    """Run a command that Ctrl-C reaches, or that ignores it as ``nohup`` and ``&`` ask.

    A child inherits a signal that is ignored and gets the default of one that is handled.
    So it is handled while the child is made, whatever the shell of these tests said.
    """
    wanted = signal.SIG_IGN if ignored else signal.default_int_handler
    before = signal.signal(signal.SIGINT, wanted)
    try:
        process = subprocess.Popen(
            command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **given
        )
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def read_up(process: subprocess.Popen[str], pipe: int) -> None:
    """Wait until a process has read all that is in a pipe."""
    unread = bytearray(4)
    while fcntl.ioctl(pipe, termios.FIONREAD, unread) or any(unread):
        assert process.poll() is None, "it has ended, and left something unread"
        select.select([], [], [], 0.01)


def stopped(
    process: subprocess.Popen[str], pipe: int, how: signal.Signals = signal.SIGINT
) -> tuple[str, str]:
    """Press Ctrl-C once all that is in a pipe has been read; return what was said.

    A signal that arrives just before a read is only seen after it: then it is pressed again.
    """
    read_up(process, pipe)
    for _ in range(PRESSES):
        process.send_signal(how)
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=2)
    raise AssertionError("Ctrl-C does not stop it")


PRESSES = 60


@pytest.mark.parametrize(
    ("line", "how", "says"),
    [
        ("import -", signal.SIGINT, f"interrupted ({AGAIN})"),
        ("import -", signal.SIGTERM, f"terminated ({AGAIN})"),
        ("import -", signal.SIGHUP, f"hung up ({AGAIN})"),
        (
            "compact chat-42 --limit 60 --summary-file -",
            signal.SIGINT,
            "interrupted (nothing was left half done)",
        ),
    ],
    ids=["import", "terminated", "hung-up", "compact"],
)
def test_a_signal_ends_a_command_with_one_line_and_the_signal_itself(
    folder: Path, tmp_path: Path, line: str, how: signal.Signals, says: str
) -> None:
    """A shell that runs it in a loop ends the loop; no temporary file holds a conversation."""
    (tmp_path / "temporary").mkdir()
    before = (folder / "chat.db").read_bytes()
    environment = {**clean(os.environ, folder), **URL, "TMPDIR": str(tmp_path / "temporary")}
    words = shlex.split(line)
    with at_a_keyboard(words, cwd=folder, env=environment, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        # More than a pipe holds: when it is written, the command has begun to read.
        process.stdin.write("x" * 300_000)
        process.stdin.flush()
        out, err = stopped(process, process.stdin.fileno(), how)

    assert (process.returncode, out, err) == (-how, "", f"error: {says}\n")
    assert (folder / "chat.db").read_bytes() == before
    assert [*(tmp_path / "temporary").iterdir()] == []


def test_a_shell_sees_130_of_a_command_that_ctrl_c_ended() -> None:
    """As of any other program that dies of the signal."""
    program = "import signal, sys; from reasoning_store.cli import program; "
    program += "program._run_command = lambda *_: signal.raise_signal(signal.SIGINT); "
    program += "sys.exit(program.main())"
    line = f"{shlex.quote(sys.executable)} -c {shlex.quote(program)}; echo $?"
    ran = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)

    assert ran.stdout == f"{Exit.INTERRUPTED:d}\n"


def test_a_command_under_nohup_survives_its_terminal(folder: Path) -> None:
    """As nohup asks: closing the terminal ends nothing."""
    words = ("nohup", *command("import", "-"))
    history = (folder / "history.json").read_text("utf-8")
    environment = {**clean(os.environ, folder), **URL}
    with subprocess.Popen(
        words, cwd=folder, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        process.stdin.write(history + " " * 300_000)
        process.stdin.flush()
        read_up(process, process.stdin.fileno())
        process.send_signal(signal.SIGHUP)
        out, _ = process.communicate()

    assert process.returncode == Exit.DONE
    assert out.startswith("openai: 1 conversation, 2 messages imported\n")


def test_a_command_runs_in_any_thread(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """Signals are the main one's, and stay as they were."""
    monkeypatch.setattr(sys, "argv", ["reasoning-store", "--version"])
    before = signal.getsignal(signal.SIGTERM)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(main).result() == Exit.DONE
    assert signal.getsignal(signal.SIGTERM) == before


def test_an_interrupted_import_is_run_again(folder: Path) -> None:
    """Of a session that had not come in whole there is nothing to see; then all of it."""
    lines = (folder / "export.jsonl").read_text("utf-8").splitlines(keepends=True)
    fifo = folder / "fifo"
    os.mkfifo(fifo)
    url = {"REASONING_STORE_URL": "sqlite:///new.db"}
    environment = {**clean(os.environ, folder), **url}
    subprocess.run(
        command("db", "create"), cwd=folder, env=environment, check=True, capture_output=True
    )
    words = ("import", "fifo", "--format", "lines")
    with (
        at_a_keyboard(words, cwd=folder, env=environment) as process,
        fifo.open("w") as file,
    ):
        file.writelines(lines[:-2])
        # More than a pipe holds, in a line that does not end: the others have been read.
        file.write(" " * 300_000)
        file.flush()
        out, err = stopped(process, file.fileno())
    listed = command("sessions", "--json")
    then = subprocess.run(listed, cwd=folder, env=environment, capture_output=True, text=True)
    again = command("import", "export.jsonl")
    subprocess.run(again, cwd=folder, env=environment, check=True, capture_output=True)

    assert (process.returncode, out) == (-signal.SIGINT, "")
    assert err == f"error: interrupted ({AGAIN})\n"
    assert json.loads(then.stdout)["data"]["sessions"] == []
    with rs.Store(f"sqlite:///{folder / 'new.db'}") as store:
        assert len(store.session("chat-42").history()) == 6


def test_what_runs_in_the_background_goes_on_after_ctrl_c(folder: Path) -> None:
    """Started with nohup, or with & in a script, it is another command's that is stopped."""
    history = (folder / "history.json").read_text("utf-8")
    environment = {**clean(os.environ, folder), **URL}
    given = {"cwd": folder, "env": environment, "stdin": subprocess.PIPE}
    with at_a_keyboard(("import", "-"), ignored=True, **given) as process:
        assert process.stdin is not None
        process.stdin.write(history + " " * 300_000)
        process.stdin.flush()
        read_up(process, process.stdin.fileno())
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()

    assert (process.returncode, err) == (Exit.DONE, "")
    assert out.startswith("openai: 1 conversation, 2 messages imported\n")
