"""The command `demo`: its story in a pipe, how it plays at a terminal, and what it leaves."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.cli import main
from reasoning_store.cli.demo_story import TURNS, read_capture
from reasoning_store.cli.exit_codes import Exit
from tests import programs
from tests.cli.conftest import Here, Run, clean, command

SLOW = "0.0001"
"""A speed at which no pause ends before the test does."""


@pytest.fixture(scope="module")
def tour(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the demo ran."""
    return tmp_path_factory.mktemp("tour")


@pytest.fixture(scope="module")
def out(tour: Path) -> str:
    """What the demo writes into a pipe; run once."""
    ran = programs.run(
        command("demo", "--folder", "left"), cwd=tour, env=clean(os.environ, tour), timeout=120
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


def test_the_demo_shows_thought_and_answer_in_eighty_columns_without_colour(out: str) -> None:
    """As it is pasted into a report."""
    assert "No. 91 = 7 x 13, so it is not prime." in out
    assert "7 divides it: 7 * 13 = 91." in " ".join(out.split())
    assert [line for line in out.splitlines() if len(line) > 80 or "\x1b" in line] == []


def test_no_answer_of_the_demo_holds_a_tag(out: str) -> None:
    answers = [line for line in out.splitlines() if line.startswith("answer")]

    assert len(answers) == len(TURNS) + 1
    assert [line for line in answers if "think" in line] == []


def test_the_demo_names_what_it_did_to_each_stream(out: str) -> None:
    stored = [line for line in out.splitlines() if line.startswith("stored")]

    assert [" ".join(line.split()[1:]) for line in stored] == [
        "2 tags taken out",
        "2 tags taken out, the thought stored once",
        "with its signature, which is sent to Anthropic only",
        "5 thoughts, whatever is sent",
    ]


def test_the_demo_shows_every_piece_of_the_streams_under_its_field(out: str) -> None:
    replies = out.partition("\n2. ")[0].split("\nuser ")[1:]
    fields = [re.findall(r"^(?:wire)? +(\w+): '", reply, re.MULTILINE) for reply in replies]

    assert fields == [
        ["content"],
        ["reasoning_content", "content"],
        ["thinking", "signature", "text"],
        ["reasoning_content", "content", "name", "arguments"],
    ]
    for reply, turn in zip(replies, TURNS, strict=True):
        written = " ".join(reply.split())
        for text in texts_of(read_capture(turn.stream)):
            assert " ".join(repr(text).split()) in written


def texts_of(stream: list[dict[str, Any]]) -> list[str]:
    """Return the texts in the deltas of a stream, by the names of their fields."""
    texts = re.findall(
        r'"(?:content|reasoning_content|thinking|text|signature|arguments)": ("(?:[^"\\]|\\.)+")',
        json.dumps(stream),
    )
    return [json.loads(text) for text in texts]


def test_the_strict_server_refuses_a_list_of_messages_and_takes_the_request(out: str) -> None:
    """The refusal is followed by the request that has the thought."""
    answers = re.findall(r"^(\d{3}) +(\S.*)$", out, re.MULTILINE)

    assert [code for code, _ in answers] == ["400", "200"]
    assert "reasoning_content is missing" in answers[0][1]
    assert re.search(r"^message 8 +\d+ +sent +moonshot demands it back$", out, re.MULTILINE)


def test_the_setting_that_the_demo_changes_sends_what_the_table_showed(out: str) -> None:
    before, after = re.findall(r"^usage +~(\d+)/1000", out, re.MULTILINE)

    assert int(before) < int(after)
    assert re.search(rf"^ +yes +none +~{after} ", out, re.MULTILINE)


def test_the_demo_leaves_a_database_and_a_page_with_commands_that_open_them(
    out: str, tour: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tour)
    advised = out.partition("Yours to look at")[2].split("\n\n")[1].splitlines()
    opened, *commands = map(shlex.split, advised)

    assert opened[-1] == "left/demo.html"
    assert "7 divides it" in (tour / opened[-1]).read_text("utf-8")
    for words in commands:
        assert main(words[1:]) == Exit.DONE
        assert "prime" in capsys.readouterr().out or words[1] == "request"


def test_without_a_folder_the_demo_leaves_a_temporary_one(run: Run, tmp_path: Path) -> None:
    ran = run("demo", "--json", TMPDIR=str(tmp_path))
    data = json.loads(ran.stdout)["data"]

    assert Path(data["page"]).parent.parent == tmp_path
    assert Path(data["page"]).is_file()
    assert Path(data["database"]).is_file()


def test_the_demo_adds_to_the_database_that_was_named_once(here: Here) -> None:
    """It replaces nothing there."""
    first = here("demo --db named.db --folder left")
    again = here("demo --db named.db --folder left")

    assert "reasoning-store show demo --db named.db" in first.out
    assert here("show demo --db named.db").code == Exit.DONE
    assert again.code == Exit.USAGE
    assert "--db names another" in again.err


@pytest.mark.parametrize("name", [turn.stream for turn in TURNS])
def test_a_bundled_stream_is_read_whole(name: str) -> None:
    """No event of it is unknown."""
    normalizer = rs.StreamNormalizer()
    chunks = [chunk for event in read_capture(name) for chunk in normalizer.feed(event)]

    assert chunks
    assert not any(isinstance(chunk, rs.UnknownChunk) for chunk in chunks)


@contextmanager
def playing(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Play the demo at a terminal, and yield the process and our end of the terminal."""
    master, slave = pty.openpty()
    environment = {**clean(os.environ, folder), "TERM": "xterm-256color", "TMPDIR": str(folder)}
    process = subprocess.Popen(
        command("demo", *words), cwd=folder, env=environment, stdin=slave, stdout=slave
    )
    os.close(slave)
    try:
        yield process, master
    finally:
        process.kill()
        process.wait()
        os.close(master)


def read_all(master: int) -> str:
    """Return what a terminal gets until its program ends."""
    seen = b""
    while True:
        try:
            seen += os.read(master, 65536)
        except OSError:  # the program has ended
            return seen.decode("utf-8")


def test_the_demo_plays_at_a_terminal_what_it_writes_into_a_pipe(tmp_path: Path, out: str) -> None:
    """With pauses and styles."""
    with playing(tmp_path, "--speed", "1000", "--folder", "left") as (process, master):
        seen = read_all(master)
        assert process.wait() == 0

    assert " ".join(re.sub(r"\x1b\[[\d;]*m", "", seen).split()) == " ".join(out.split())


def test_an_interrupted_demo_leaves_no_folder(tmp_path: Path) -> None:
    with playing(tmp_path, "--speed", SLOW) as (process, master):
        os.read(master, 1)
        process.send_signal(signal.SIGINT)
        read_all(master)

        assert process.wait() == -signal.SIGINT
    assert [*tmp_path.glob("reasoning-store-*")] == []
