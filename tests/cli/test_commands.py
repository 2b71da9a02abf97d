"""The command line as its users meet it: what it prints, what it refuses, how it exits."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import reasoning_store as rs
from tests.cli.conftest import Here, Run
from tests.egress.histories import TWO_TURNS

pytestmark = pytest.mark.thinned


@pytest.fixture
def chat(tmp_path: Path) -> str:
    """A database with one conversation, by its URL."""
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    with rs.Store(url) as store:
        store.session("chat-42", create=True, title="Weather").append(list(TWO_TURNS))
    return url


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_sessions_are_listed(run: Run, chat: str) -> None:
    """The latest first, with their titles."""
    ran = run("--db", chat, "sessions")

    assert ran.returncode == 0
    assert ran.stdout.splitlines()[1].split()[2:] == ["chat-42", "Weather", "6", "Wet."]


def test_the_sub_agents_of_a_chat_are_listed_after_it(run: Run, tmp_path: Path) -> None:
    """With a mark."""
    url = f"sqlite:///{tmp_path}/agents.db"
    with rs.Store(url) as store:
        for id, facts in (("agent", {"group": "g"}), ("other", {}), ("tester", {"parent": "g"})):
            store.session(id, create=True, metadata=facts)

    rows = [line.split()[2:] for line in run("--db", url, "sessions").stdout.splitlines()[1:]]

    assert rows == [["agent", "0"], ["tester", "-", "0"], ["other", "0"]]


def test_a_conversation_is_shown_with_its_thinking(run: Run, chat: str) -> None:
    """Thinking stands apart from the answers, or not at all."""
    full = run("--db", chat, "show", "chat-42").stdout
    none = run("--db", chat, "show", "chat-42", "--thinking", "none").stdout

    assert "  | Bergen is wetter." in full
    assert "Bergen is wetter." not in none
    assert "  Wet." in none


def test_usage_is_one_line(run: Run, chat: str) -> None:
    """Effective over limit, as it is written everywhere."""
    ran = run("--db", chat, "request", "--tokens", "--limit", "212k")

    assert ran.stdout.strip().endswith("/212000")


def test_a_setting_moves_the_number(run: Run, chat: str) -> None:
    """BR-008 without a line of Python."""
    before = run("--db", chat, "request", "chat-42", "--tokens").stdout
    changed = run("--db", chat, "settings", "set", "chat-42", "includeInContext=true")
    after = run("--db", chat, "request", "chat-42", "--tokens").stdout
    run("--db", chat, "settings", "unset", "reasoning.includeInContext")

    assert changed.returncode == 0
    assert int(after.lstrip("~")) > int(before.lstrip("~"))
    assert run("--db", chat, "request", "chat-42", "--tokens").stdout == before


def test_the_context_is_the_next_request(run: Run, chat: str) -> None:
    """Exactly what would be sent, and why."""
    body = run("--db", chat, "request", "chat-42", "--provider", "deepseek").stdout
    why = run("--db", chat, "request", "--provider", "deepseek", "--why").stdout

    assert '"reasoning_content": "Need the weather tool."' in body
    assert "sent: deepseek demands it back" in why
    assert re.search(r"^reasoning.includeInContext +false +default$", why, re.MULTILINE)


def test_the_schema_can_be_made_and_named(run: Run, tmp_path: Path) -> None:
    """db upgrade makes an SQLite file; db current names its revision."""
    url = f"sqlite:///{tmp_path / 'new.db'}"

    assert run("--db", url, "db", "upgrade").stdout == run("--db", url, "db", "current").stdout
    assert (tmp_path / "new.db").stat().st_mode & 0o777 == 0o600


def test_the_database_may_come_from_the_environment(run: Run, chat: str) -> None:
    """REASONING_STORE_URL stands for --db."""
    assert "chat-42" in run("sessions", REASONING_STORE_URL=chat).stdout


def make_foreign(folder: Path) -> str:
    import sqlite3

    with sqlite3.connect(folder / "foreign.db") as connection:
        connection.execute("CREATE TABLE mine (a)")
    connection.close()
    return f"sqlite:///{folder / 'foreign.db'}"


def make_text(folder: Path) -> str:
    (folder / "notes.txt").write_text("dear diary, " * 1000)
    return f"sqlite:///{folder / 'notes.txt'}"


def make_empty(folder: Path) -> str:
    (folder / "empty.db").touch()
    return f"sqlite:///{folder / 'empty.db'}"


def missing(folder: Path) -> str:
    return f"sqlite:///{folder / 'nowhere.db'}"


@pytest.mark.parametrize(
    ("make", "code"),
    [
        pytest.param(make_foreign, 3, id="another program's database"),
        pytest.param(make_text, 3, id="a text file"),
        pytest.param(make_empty, 3, id="an empty file"),
        pytest.param(missing, 5, id="no file"),
        pytest.param(lambda _: "mysql://localhost/chat", 2, id="an unsupported engine"),
        pytest.param(lambda _: "sqlite:////proc/nowhere/chat.db", 5, id="a folder that is not"),
    ],
)
def test_a_database_that_is_not_ours_is_refused_in_one_line(
    run: Run, tmp_path: Path, make: Callable[[Path], str], code: int
) -> None:
    """One clear line, an exit status that is not zero, and nothing changed."""
    url = make(tmp_path)
    before = snapshot(tmp_path)
    ran = run("--db", url, "sessions")

    assert ran.returncode == code, ran.stderr
    assert ran.stderr.startswith("error: ")
    assert len(ran.stderr.splitlines()) == 1
    assert ran.stdout == ""
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["chat-42", "reasoning.format=xml"], "one of: field, native"),
        (["reasoning.effrt=high"], "did you mean reasoning.effort"),
        (["chat-42", "budgetTokens=-1", "effort=high"], "0 or more"),
    ],
)
def test_err_001_a_setting_that_is_not_allowed_is_refused_in_one_line(
    run: Run, chat: str, arguments: list[str], says: str
) -> None:
    """ERR-001: what is allowed is named, and the settings are as before."""
    before = run("--db", chat, "request", "chat-42", "--why").stdout
    ran = run("--db", chat, "settings", "set", *arguments)

    assert ran.returncode == 2
    assert says in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert run("--db", chat, "request", "chat-42", "--why").stdout == before


def test_an_unknown_session_is_not_found(run: Run, chat: str) -> None:
    """One line and the exit code for what is not there."""
    ran = run("--db", chat, "request", "chat-43")

    assert (ran.returncode, len(ran.stderr.splitlines())) == (5, 1)


def test_what_a_terminal_would_obey_is_written_out(run: Run, tmp_path: Path) -> None:
    """Stored text is shown, never executed."""
    url = f"sqlite:///{tmp_path / 'evil.db'}"
    with rs.Store(url) as store:
        store.session("s", create=True).append(rs.user("\x1b[2J\x07gone"))

    assert "\\x1b[2J\\x07gone" in run("--db", url, "show", "s").stdout


@pytest.mark.parametrize(
    "closed",
    [
        *(pytest.param(one, marks=pytest.mark.long) for one in (">&-", "2>&-", "<&-")),
        ">&- 2>&- <&-",
    ],
)
@pytest.mark.parametrize(
    "words", ["sessions", "show chat-42", "demo --folder left", "db doctor", "explain -"]
)
def test_a_stream_that_was_closed_before_is_no_crash(
    chat: str, tmp_path: Path, words: str, closed: str
) -> None:
    """As cron and some supervisors start programs: no traceback, and its own exit code."""
    line = f"{shlex.quote(sys.executable)} -m reasoning_store --db {chat} {words} {closed}"
    ran = subprocess.run(
        ["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, stdin=None
    )

    assert "Traceback" not in ran.stderr
    assert ran.returncode == (5 if words == "explain -" else 0)


def test_a_database_is_named_by_its_path_too(run: Run, chat: str) -> None:
    """A file needs no URL."""
    path = chat.removeprefix("sqlite:///")

    assert run("--db", path, "sessions").stdout == run("--db", chat, "sessions").stdout
    assert run(path, "sessions").stdout == run("chat.db", "sessions").stdout
    assert "1 session" in run(path).stdout
    assert "chat-42" in run("sessions", REASONING_STORE_URL="chat.db").stdout


@pytest.mark.parametrize("name", ["chat-42", "ch", "@latest", "chat-42:2", "@latest:2"])
def test_a_session_is_named_by_what_a_person_knows_of_it(here: Here, chat: str, name: str) -> None:
    """Its id, the beginning of it, the latest one; and a message in it by its position."""
    whole = here(f"show chat-42 --db {chat} --json").data

    found = here(f"show {name} --db {chat} --json").data

    assert found == (whole[1:2] if ":" in name else whole)


def test_show_writes_markdown(here: Here) -> None:
    """A head for each message, its thought as a quotation, its tools as code."""
    lines = here("show chat-42 --format md").out.splitlines()

    assert lines[0] == "# Weather"
    assert [line[:6] for line in lines if line.startswith("## ")][:2] == ["## 1. ", "## 2. "]
    assert "> Bergen is wetter." in lines
    assert '-> get_weather({"city":"Oslo"})' in lines


def test_show_writes_a_page_that_runs_nothing(here: Here) -> None:
    """Whatever a message holds: it is text."""
    with rs.Store("sqlite:///chat.db") as store:
        store.session("bad", create=True, title="<b>").append(
            rs.user("<script>alert(1)</script><img src=x onerror=alert(2)>")
        )
    page = here("show bad --html -").out

    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script" not in page
    assert "<img" not in page
    assert "default-src 'none'" in page


def test_a_page_becomes_a_file_and_replaces_none(here: Here) -> None:
    """A file that exists stays, unless you allow it; the database stays in any case."""
    assert here("show chat-42 --html page.html").out == "page.html\n"
    written = Path("page.html").read_text("utf-8")

    assert "Bergen is wetter." in written
    refused = ["page.html", "chat.db --overwrite", "new.html --json", "new.html --format md"]
    assert [here(f"show chat-42 --html {words}").code for words in refused] == [2] * len(refused)
    assert here("show chat-42 --html page.html --overwrite").code == 0
    assert Path("page.html").read_text("utf-8") == written


def test_a_terminal_gets_whole_words_next_to_a_bar(here: Here) -> None:
    """A thought keeps its bar on every line; a pipe gets the text as it is."""
    words = " ".join(["thinking"] * 20)
    with rs.Store("sqlite:///chat.db") as store:
        store.session("long", create=True).append(
            rs.assistant(rs.ThinkingBlock(thought=words), "Done.")
        )
    piped = here("show long").out
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FORCE_COLOR", "1")
        patch.setenv("NO_COLOR", "1")
        shown = re.sub(r"\x1b\[[\d;]*m", "", here("show long").out)

    assert f"  | {words}\n" in piped
    lines = shown.splitlines()[1:-1]
    assert len(lines) > 1
    assert {line[:12] for line in lines} == {"  | thinking"}
    assert all(len(line) <= 80 for line in lines)


def test_a_beginning_that_two_ids_share_is_no_name(here: Here) -> None:
    """None of them is guessed."""
    here("import export.jsonl --owner other")
    with rs.Store("sqlite:///chat.db") as store:
        store.session("chat-43", create=True)
    ran = here("show chat-4")

    assert ran.code == 5
    assert ran.err == ("error: 2 sessions begin with 'chat-4' (did you mean chat-43 or chat-42?)\n")


@pytest.mark.parametrize("line", ["erase chat-4 --yes", "sessions delete @latest --yes"])
def test_what_is_erased_is_named_in_full(here: Here, line: str) -> None:
    """A beginning may come to mean another session."""
    assert here(line).code == 5
    assert len(here("sessions --json").data["sessions"]) == 2


@pytest.mark.parametrize(
    "line", ["show nobody", "sessions rename", "settings set chat-42 effort=huge"]
)
def test_an_error_is_json_where_the_answer_is(here: Here, line: str) -> None:
    """On standard error, with what it says to a person and the exit code."""
    said, ran = here(line), here(f"{line} --json")
    error = json.loads(ran.err)

    assert ran.out == ""
    assert list(error) == ["error", "hint", "code"]
    assert error["code"] == ran.code == said.code
    assert said.err == f"error: {error['error']} ({error['hint']})\n"


def test_verify_of_a_file_that_cannot_be_opened_does_not_advise_itself(
    run: Run, chat: str, tmp_path: Path
) -> None:
    """What helps is a copy."""
    path = tmp_path / "chat.db"
    path.write_bytes(path.read_bytes()[:20_000])
    ran = run("--db", chat, "verify")

    assert ran.returncode == 7
    assert "restore a backup" in ran.stderr
    assert "reasoning-store verify" not in ran.stderr


def test_a_closed_pipe_is_quiet(chat: str) -> None:
    """A reader that leaves is not an error."""
    command = f"{sys.executable} -m reasoning_store --db {chat} show chat-42 | head -n 1"
    ran = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )

    assert (ran.returncode, ran.stderr) == (0, "")


def test_an_unknown_command_is_a_usage_error(run: Run) -> None:
    """A wrong word exits with 2."""
    ran = run("frobnicate")

    assert ran.returncode == 2
    assert ran.stderr.startswith("error: ")


@pytest.mark.parametrize(
    ("group", "default"), [("compact", "run"), ("sessions", "list"), ("db", "current")]
)
def test_a_groups_help_names_the_command_that_needs_no_name(
    run: Run, group: str, default: str
) -> None:
    """Its own help has the options."""
    assert f"{group} {default} --help" in " ".join(run(group, "--help").stdout.split())


def test_help_lists_the_commands(run: Run) -> None:
    """Every command can be found, and says what it does."""
    ran = run("--help")

    assert ran.returncode == 0
    for command in ("demo", "explain", "request", "sessions", "settings"):
        assert f"\n  {command} " in ran.stdout
