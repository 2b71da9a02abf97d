"""Command lines that people are asked to run: copied as they are, they work."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

import pytest

import reasoning_store as rs
from reasoning_store.cli import hints
from reasoning_store.cli.app import COMMANDS
from reasoning_store.cli.command import Call
from reasoning_store.cli.exit_codes import Exit
from tests.cli.conftest import Here
from tests.egress.histories import TWO_TURNS
from tests.properties import each

PACKAGE = Path(rs.__file__).parent
NEEDS_NO_DATABASE = {"contracts", "demo", "explain"}


def told(text: str, behind: str) -> str:
    """Return the line that was told, as it is typed after the program's name."""
    found = re.search(rf"{behind}reasoning-store (.*)", text)
    assert found is not None, text
    return found[1]


@pytest.mark.parametrize(
    "line",
    [
        "compact chat-42 --limit 60",
        "--db 'sqlite:///my chats.db' compact \"it's mine\" --limit 60 --owner 'Ann B' --branch 2",
        "compact chat-42 --limit 70 --reserve 10 --threshold 0.5 --no-clear",
    ],
)
def test_a_plan_is_carried_out_with_the_options_that_it_names(here: Here, line: str) -> None:
    """They are added to the line that printed the plan."""
    with rs.Store("sqlite:///my chats.db") as store:
        mine = store.for_owner("Ann B").session("it's mine", create=True)
        mine.append(list(TWO_TURNS))
        mine.fork(at=7).append(rs.user("And in Bergen?"))
    planned = here(f"--json {line}").data
    found = re.search(r"to carry it out, add: (.*)", here(line).err)
    assert found is not None
    more = found[1].replace("FILE", "summary.txt")
    done = here(f"--json {line} {more}")

    assert done.code == Exit.DONE, done.err
    assert done.data["before"] == planned["effective"]
    assert done.data["compaction"]["summary"] == "They spoke of the weather."
    assert done.data["compaction"]["branch"] == (2 if "--branch" in line else 1)


@pytest.mark.parametrize(
    ("line", "behind"),
    [
        ("sessions --db 'sqlite:///a new.db'", r"\("),
        ("--db 'sqlite:///a new.db'", "to create a database: "),
    ],
)
def test_a_database_is_made_where_it_was_looked_for(here: Here, line: str, behind: str) -> None:
    """And not where the environment says, or the user's own is."""
    command = told(here(line).err, behind).partition(" creates ")[0]

    assert command == "db create --db 'sqlite:///a new.db'"
    assert here(command).code == Exit.DONE
    assert Path("a new.db").exists()


def test_what_is_not_found_is_listed_where_it_was_looked_for(here: Here) -> None:
    """In the same database, of the same owner."""
    with rs.Store("sqlite:///other.db") as store:
        mine = store.for_owner("Ann B")
        mine.session("primes", create=True)
        mine.settings.profiles.set("brief", {"reasoning.effort": "low"})
    where = "--db sqlite:///other.db --owner 'Ann B'"
    sessions = told(here(f"show weather {where}").err, r"\(").partition(" lists ")[0]
    profiles = told(here(f"settings get --profile xyz {where}").err, r"\(").partition(" lists ")[0]

    assert "primes" in here(sessions).out
    assert "brief" in here(profiles).out


def test_what_is_next_is_next_in_the_same_database(here: Here) -> None:
    """Of the call without a command, and where an owner has nothing."""
    where = "--db sqlite:///chat.db"
    explained = told(here(where).err, "next request: ")
    owners = told(here(f"sessions --owner nobody {where}").err, "none here; ").partition(" lists")[
        0
    ]

    assert explained == f"request SESSION --why {where}"
    assert owners == f"report --by owner {where}"


@each(
    "db, said",
    [
        ("sqlite:///chat.db", "sqlite:///chat.db"),
        ("sqlite:///my chats.db", "'sqlite:///my chats.db'"),
        ("postgresql://localhost/chat", "postgresql://localhost/chat"),
        ("postgresql://me@localhost/chat", "postgresql://me@localhost/chat"),
        ("postgresql://me:s3/cret@localhost/chat", "'postgresql://me:***@localhost/chat'"),
        ("postgresql:///chat?user=me&password=s3cret", "'postgresql:///chat?user=me&password=***'"),
    ],
)
def test_a_hint_of_the_library_names_the_database_and_no_secret(db: str, said: str) -> None:
    """It does not know what the program was called with; a password is never said again."""
    call = Call(db=db, db_was_named=True)
    hint = hints.for_command_line(call, "run: reasoning-store db upgrade")

    assert hint == f"run: reasoning-store db upgrade --db {said}"
    assert hints.for_command_line(call, "say --yes") == "say --yes"


def test_a_damaged_database_is_verified_where_it_is(here: Here) -> None:
    """What the library advises comes out with the database of the call."""
    path = Path("chat.db")
    Path("hurt.db").write_bytes(path.read_bytes()[:20_000])
    ran = here("show chat-42 --db sqlite:///hurt.db")

    assert ran.code == Exit.DAMAGED
    assert told(ran.err, "run: ") == "verify --db sqlite:///hurt.db)"


@pytest.mark.parametrize(
    ("line", "advised"),
    [
        ("show chat-42:99", "show SESSION lists them"),
        ("show chat-42 --branch 9", "branches SESSION lists those there are"),
        ("compact undo chat-42 9", "compact list SESSION lists those in force"),
        ("settings get --profile gone", "settings profiles lists them"),
        (
            "settings use chat-42 gone --owner 'Ann B'",
            "settings profiles --owner 'Ann B' lists them",
        ),
        ("erase chat-42 --owner 'Ann B' --position 99 --yes", "show SESSION --owner 'Ann B' lists"),
        ("show chat-42:99 --db sqlite:///chat.db", "show SESSION --db sqlite:///chat.db"),
    ],
)
def test_a_verb_of_the_library_is_a_command_here(here: Here, line: str, advised: str) -> None:
    """A hint at a terminal names commands, on the same database and of the same owner."""
    with rs.Store("sqlite:///chat.db") as store:
        store.for_owner("Ann B").session("chat-42", create=True)
    ran = here(line)

    assert ran.code == Exit.NOT_FOUND
    assert f"(reasoning-store {advised}" in ran.err
    assert "()" not in ran.err


def test_a_parameter_of_the_library_is_an_option_here(here: Here) -> None:
    """As it is typed."""
    here("export chat-42 -o one.jsonl")
    text = Path("one.jsonl").read_text("utf-8")
    Path("one.jsonl").write_text(text.replace("And Bergen?", "And Narvik?"), "utf-8")

    assert "pass --overwrite" in here("db backup one.jsonl").err
    assert "(--on-conflict skip leaves" in here("import one.jsonl").err
    assert "(leave --after out" in here("sessions list --after no-mark").err


@pytest.mark.parametrize(
    "line", ["db create --db 'sqlite:///my chats/new.db'", "db backup 'my chats/new.db'"]
)
def test_a_folder_that_is_to_be_made_is_quoted_for_a_shell(here: Here, line: str) -> None:
    """What is copied makes the one folder, and not two others."""
    ran = here(line)
    made = re.search(r"\(run: (mkdir .*)\)$", ran.err)
    assert made is not None, ran.err

    assert shlex.split(made[1]) == ["mkdir", "-p", str(Path("my chats").resolve())]


def test_doctor_says_no_place_of_the_users(here: Here, folder: Path) -> None:
    """Its answer is for others to read: the database is theirs to fill in."""
    out = here(f"db doctor --db sqlite:///{folder}/nowhere.db").out

    assert "run: reasoning-store db create --db URL" in out
    assert str(folder) not in out


def test_an_option_before_its_command_is_explained(here: Here) -> None:
    """No option of another name is offered for it."""
    for line in ("--owner X", "--owner X show chat-42", "--limit 60 compact chat-42"):
        option = line.split()[0]
        assert here(line).err == (
            f"error: {option} belongs after the name of its command (reasoning-store --help)\n"
        )
    assert "Did you mean '--json'?" in here("--jsn").err


@each("path", sorted(PACKAGE.rglob("*.py")))
def test_no_command_line_is_written_down_that_would_forget_the_database(path: Path) -> None:
    """The command line makes its own in one place; the library's begin so that it can."""
    tree = ast.parse(path.read_text("utf-8"))
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    in_library = "cli" not in path.relative_to(PACKAGE).parts
    bad = [
        text
        for text in texts
        for word in re.findall(r"reasoning-store ([\w-]+)", text)
        if word in {*COMMANDS} - NEEDS_NO_DATABASE
        if not (in_library and re.match(f"run: reasoning-store {word}[ \\w]*(;|$)", text))
    ]

    assert bad == []


def test_a_hint_is_quoted_for_a_shell() -> None:
    """A name may hold anything."""
    call = Call(owner="O'Hara; rm -rf ~")
    line = hints.command_line(call, "sessions", of_owner=True)

    assert shlex.split(line) == ["reasoning-store", "sessions", "--owner", call.owner]


@pytest.mark.parametrize(
    ("upstream", "provider", "told"),
    [
        ("https://api.deepseek.com", "deepseek", "the upstream is deepseek"),
        ("http://localhost:8000 --provider vllm", "vllm", "the upstream is vllm"),
        ("http://localhost:8000", None, "name it with --provider"),
        ("http://localhost:8000 --provider vlmm", None, "name it with --provider"),
    ],
    ids=["by its address", "by its name", "unknown", "misspelt"],
)
def test_serve_prints_what_it_recognised_of_its_upstream(
    here: Here, upstream: str, provider: str | None, told: str
) -> None:
    """An upstream of which nothing is known gets no thought back but by the model's name."""
    ran = here(f"serve --upstream {upstream} --check --json")

    assert ran.data["provider"] == provider
    assert told in ran.err
