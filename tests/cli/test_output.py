"""How the program speaks: to a terminal, to a pipe, to a program; and when it is stopped."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reasoning_store as rs
from reasoning_store.cli.exit_codes import Exit
from reasoning_store.cli.terminal_text import json_text, one_line, printable
from tests.cli.conftest import Here, Run, clean, command

OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
EVIL = "\x1b]0;title\x07\x1b[2J\x9b31m\u202egnp.exe\u2066\x00\r"


@contextmanager
def at_a_terminal(
    folder: Path, words: Sequence[str], **environment: str
) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[str], str]]]:
    """Run a command whose output is a terminal; yield it and how to read up to a pattern."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        command(*words),
        cwd=folder,
        env={**clean(os.environ, folder), "TERM": "xterm-256color", **environment},
        stdin=subprocess.PIPE,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    seen = ""

    def until(pattern: str) -> str:
        nonlocal seen
        while not re.search(pattern, seen):
            ready, _, _ = select.select([master], [], [], 60)
            assert ready, f"never seen: {pattern!r} in {seen!r}"
            try:
                piece = os.read(master, 65536)
            except OSError:  # the terminal's other end is closed
                piece = b""
            if not piece:
                assert re.search(pattern, seen), f"never seen: {pattern!r} in {seen!r}"
            seen += piece.decode("utf-8", "replace")
        return seen

    try:
        yield process, until
    finally:
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()
        process.kill()
        process.wait()
        os.close(master)


URL = {"REASONING_STORE_URL": "sqlite:///chat.db"}


def test_a_terminal_gets_colour_and_a_bar(folder: Path) -> None:
    """The number, how full it is, and what it is made of."""
    words = ("request", "chat-42", "--tokens", "--limit", "100")
    with at_a_terminal(folder, words, **URL) as (_, until):
        seen = until("room left")

    assert "\x1b[1;32m~54/100\x1b[0m" in seen
    assert "[######################..................] 54%" in seen


def test_no_color_is_obeyed(folder: Path) -> None:
    """The one who sets NO_COLOR gets tables without it."""
    with at_a_terminal(folder, ("sessions",), NO_COLOR="1", **URL) as (_, until):
        seen = until("Weather")

    assert "chat-42" in seen
    assert not re.search("\x1b\\[[0-9;]*3[0-9]m", seen)


def test_a_pipe_gets_plain_text(here: Here) -> None:
    """The same table, without an escape and without a wrapped line."""
    ran = here("sessions")

    assert "\x1b" not in ran.out
    columns = ["last", "message", "session", "title", "messages", "preview"]
    assert ran.out.splitlines()[0].split() == columns
    assert len(ran.out.splitlines()) == 3


@pytest.mark.parametrize(
    ("said", "zone", "told"),
    [
        ("0001-01-01T00:00:00Z", "WEST+12", "-01-01 00:00"),
        ("9999-12-31T23:59:59Z", "EAST-14", "9999-12-31 23:59"),
        ("9999-12-31T23:59:59Z", "WEST+12", "9999-12-31 11:59"),
    ],
)
def test_a_time_that_the_local_zone_does_not_have_is_refused(
    run: Run, folder: Path, said: str, zone: str, told: str
) -> None:
    """A history may say that it was begun before all times, or at their end."""
    url = {"REASONING_STORE_URL": f"sqlite:///{folder / 'new.db'}"}
    message = {"role": "user", "content": "Hello?", "created_at": said}
    history = folder / "old.json"
    history.write_text(json.dumps({"id": "old", "messages": [message]}), "utf-8")
    run("db", "create", **url)
    run("import", str(history), **url)
    ran = run("sessions", **url, TZ=zone)

    assert ran.returncode == Exit.DONE, ran.stderr
    assert told in ran.stdout


@pytest.mark.parametrize(
    ("id", "width"),
    [("cafe\u0301", 4), ("a\u200bb", 2), ("\u306f\u3099\u3057", 4), ("x\ufe0f", 1)],
)
def test_what_takes_no_room_moves_no_column(here: Here, id: str, width: int) -> None:
    """Marks on a letter, joiners between two: the title stands where the others do."""
    with rs.Store("sqlite:///chat.db") as store:
        store.session(id, create=True, title="Here")
    lines = here("sessions").out.splitlines()
    (mine,) = (line for line in lines if id in line)
    before = mine.partition("Here")[0].replace(id, "*" * width)

    assert len(before) == lines[0].index("title")


@pytest.mark.parametrize("columns", ["1", "3", "12"])
def test_a_terminal_without_room_for_a_table_gets_its_lines(
    run: Run, folder: Path, columns: str
) -> None:
    """It wraps them, and nothing of them is lost."""
    words = ("--db", f"sqlite:///{folder / 'chat.db'}", "sessions")
    narrow = run(*words, FORCE_COLOR="1", COLUMNS=columns)

    assert narrow.stdout == run(*words).stdout


def test_colour_can_be_had_in_a_pipe(run: Run, folder: Path) -> None:
    """FORCE_COLOR, for a pager that shows it."""
    ran = run(
        "--db", f"sqlite:///{folder / 'chat.db'}", "request", "chat-42", "--tokens", FORCE_COLOR="1"
    )

    assert "\x1b[1;32m~54" in ran.stdout


def test_data_and_messages_do_not_mix(here: Here) -> None:
    """Standard output holds the answer, standard error what is stated next to it."""
    ran = here("db backup copy.db")

    assert ran.out == f"{Path('copy.db').absolute()}\n"
    assert ran.err == "2 sessions, 15 messages: compared\n"


@given(st.text(alphabet=st.characters(), max_size=40))
def test_nothing_that_a_terminal_obeys_goes_out(text: str) -> None:
    """Whatever the text is, in lines, in a cell and in JSON."""
    assert not OBEYED.search(printable(text))
    assert not OBEYED.search(one_line(text))
    assert "\n" not in one_line(text)
    assert not OBEYED.search(json_text({"key": text}))


@given(st.text(alphabet=st.characters(), max_size=40))
def test_written_out_in_json_a_text_is_still_that_text(text: str) -> None:
    """What a program reads is what is stored, code point for code point."""
    pairs = re.search("[\ud800-\udbff][\udc00-\udfff]", text)

    assert pairs or json.loads(json_text({"key": text})) == {"key": text}


@pytest.mark.parametrize(
    "line",
    [
        "show evil",
        "show evil --json",
        "sessions",
        "sessions --json",
        "sessions show evil",
        "request evil",
        "request evil --why",
        "request evil --diff --with includeInContext=true",
        "export",
        "export evil --json",
        "report",
        "request evil --tokens",
        "show evi",
        "",
    ],
)
def test_what_is_stored_is_shown_and_never_obeyed(here: Here, folder: Path, line: str) -> None:
    """Texts, thoughts, titles, names of tools: no control reaches a terminal."""
    with rs.Store("sqlite:///chat.db") as store:
        session = store.session("evil", create=True, title=EVIL.replace("\0", ""))
        call = rs.ToolCallBlock(id=EVIL, name=EVIL, parameters={}, arguments=EVIL)
        session.append([rs.user(EVIL), rs.assistant(rs.ThinkingBlock(thought=EVIL), EVIL, call)])

    ran = here(line)

    assert ran.out + ran.err
    assert not OBEYED.search(ran.out)
    assert not OBEYED.search(ran.err)


def test_what_takes_long_shows_a_bar_on_a_terminal(folder: Path) -> None:
    """Only then: it is drawn by itself while one call is under way."""
    code = (
        "import sys, time\n"
        "from reasoning_store.cli.progress import Progress\n"
        "with Progress('counting sheep', 10) as progress:\n"
        "    progress.advance(5)\n"
        "    sys.stdin.read()\n"
    )
    words = ("-c", code)
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, *words],
        env={**clean(os.environ, folder), "TERM": "xterm"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=slave,
    )
    os.close(slave)
    seen = ""
    while "50%" not in seen:
        ready, _, _ = select.select([master], [], [], 60)
        assert ready, seen
        seen += os.read(master, 65536).decode("utf-8", "replace")
    out, _ = process.communicate()
    os.close(master)

    assert "counting sheep" in seen
    assert out == b""


def test_a_bar_never_reaches_a_log(run: Run, folder: Path) -> None:
    """Standard error that is no terminal holds messages only."""
    ran = run("--db", f"sqlite:///{folder / 'chat.db'}", "verify")

    assert ran.stderr == ""


def test_a_full_disk_is_one_line(folder: Path) -> None:
    """What cannot be written is stated, without a traceback."""
    with open("/dev/full", "w") as full:
        ran = subprocess.run(
            command("show", "chat-42"),
            cwd=folder,
            env={**clean(os.environ, folder), **URL},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )

    assert ran.returncode == Exit.FAILED
    assert ran.stderr == "error: the output: No space left on device\n"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("export -o all.jsonl", "all.jsonl: File too large"),
        ("export > all.jsonl", "the output: File too large"),
        ("show long > all.txt", "the output: File too large"),
        ("import - < chat.db", "/piped: File too large"),
        ("request long --tools /proc/self/mem", "/proc/self/mem: Input/output error"),
    ],
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_error_of_the_system_names_its_file(
    folder: Path, line: str, says: str, unbuffered: str
) -> None:
    """Whether that was to be read or written, and if the disk takes only a part of it."""
    with rs.Store(f"sqlite:///{folder / 'chat.db'}") as store:
        store.session("long", create=True).append(rs.user("What is said. " * 20_000))
    ran = subprocess.run(
        ["bash", "-c", f"ulimit -f 100; {shlex.join(command())} {line}"],
        cwd=folder,
        env={**clean(os.environ, folder), **URL, "PYTHONUNBUFFERED": unbuffered},
        capture_output=True,
        text=True,
    )

    assert ran.returncode == Exit.FAILED
    assert re.fullmatch(rf"error: \S*{re.escape(says)}\n", ran.stderr)
    assert not (folder / "all.jsonl").exists() or ">" in line


def test_a_folder_that_is_gone_is_no_output(folder: Path) -> None:
    """Someone may stand in a folder that another one has removed."""
    line = f"mkdir gone; cd gone; rmdir ../gone; {shlex.join(command())} sessions"
    environment = {**clean(os.environ, folder), **URL}
    ran = subprocess.run(
        ["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True
    )

    assert (ran.returncode, ran.stdout) == (Exit.FAILED, "")
    assert ran.stderr == "error: the folder: No such file or directory\n"


def test_a_terminal_without_our_letters_gets_them_written_out(run: Run, folder: Path) -> None:
    """An output that is not UTF-8 is no reason to fail, and JSON stays JSON."""
    url = f"sqlite:///{folder / 'chat.db'}"
    with rs.Store(url) as store:
        store.session("chat-42").append(rs.user("\u00e6\u30c6"))

    shown = run("--db", url, "show", "chat-42", PYTHONIOENCODING="ascii")
    data = run("--db", url, "show", "chat-42", "--json", PYTHONIOENCODING="ascii")

    assert "\\xe6\\u30c6" in shown.stdout
    message = json.loads(data.stdout)["data"][-1]["message"]
    assert message["blocks"] == [{"type": "text", "text": "\u00e6\u30c6"}]


def test_a_shell_can_complete_commands_and_sessions(run: Run, folder: Path) -> None:
    """Names of commands, and ids of sessions out of the database."""
    url = f"sqlite:///{folder / 'chat.db'}"
    ask = {"_REASONING_STORE_COMPLETE": "bash_complete", "REASONING_STORE_URL": url}
    commands = run(COMP_WORDS="reasoning-store req", COMP_CWORD="1", **ask)
    sessions = run(COMP_WORDS="reasoning-store show ch", COMP_CWORD="2", **ask)

    assert commands.stdout.split() == ["plain,request"]
    assert sessions.stdout.split() == ["plain,chat-42"]


def test_a_shell_is_offered_no_id_that_it_would_obey(run: Run, folder: Path) -> None:
    """An escape sequence or a line end in an id is no word to complete."""
    url = f"sqlite:///{folder / 'chat.db'}"
    with rs.Store(url) as store:
        store.session("chat-\x1b[31m", create=True)
        store.session("chat-\nplain,chat-43", create=True)
    ask = {"_REASONING_STORE_COMPLETE": "bash_complete", "REASONING_STORE_URL": url}
    ran = run(COMP_WORDS="reasoning-store show ch", COMP_CWORD="2", **ask)

    assert ran.stdout.splitlines() == ["plain,chat-42"]


def write_nested(depth: int) -> str:
    """Write tools with something deep in them; return the command that reads them."""
    text = json.dumps([{"name": "look", "deep": "HERE"}])
    Path("deep.json").write_text(text.replace('"HERE"', "[" * depth + "]" * depth))
    return "request chat-42 --model m --tools deep.json"


def test_a_file_that_is_nested_without_end_is_refused(here: Here) -> None:
    """In one line, and nothing of it is answered."""
    ran = here(write_nested(100_000))

    assert (ran.code, ran.out) == (Exit.USAGE, "")
    assert ran.err.startswith("error: deep.json ")
    assert ran.err.count("\n") == 1


def test_a_deeply_nested_file_is_read(here: Here) -> None:
    """A limit that is met only by what no one means is not one on what is meant."""
    ran = here(write_nested(100))

    assert (ran.code, ran.err) == (Exit.DONE, "")
    assert '"name": "look"' in ran.out


def test_what_can_be_read_and_is_too_deep_to_be_sent_is_refused(here: Here) -> None:
    """In one line, that names where it begins."""
    ran = here(write_nested(400))

    assert (ran.code, ran.out) == (Exit.USAGE, "")
    assert re.fullmatch(r"error: tools\[0\].{,80} nested deeper than .*\n", ran.err)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_completion_script(run: Run, shell: str) -> None:
    """What each is given to read at its start."""
    ran = run(_REASONING_STORE_COMPLETE=f"{shell}_source")

    assert ran.returncode == 0
    assert "_REASONING_STORE_COMPLETE" in ran.stdout
