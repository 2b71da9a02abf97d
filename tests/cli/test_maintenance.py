"""The commands that look after a database: its schema, its health, its end."""

from __future__ import annotations

import re
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import URL, create_engine, make_url
from sqlalchemy.pool import NullPool

import reasoning_store as rs
from reasoning_store.cli.exit_codes import Exit
from reasoning_store.ledger.database import schema_version, sqlite_connections
from tests.cli.conftest import Here, Ran

NEWEST = f"{schema_version.REVISIONS[-1]}\n"


def test_the_bare_call_says_what_there_is(here: Here) -> None:
    """Where the database is, what is in it, and what to do next."""
    ran = here("")

    assert ran.code == Exit.DONE
    assert str(Path("chat.db").absolute()) in ran.out
    assert "2 sessions" in ran.out
    assert re.search(r"chat-42 +6 +Weather", ran.out)
    assert ran.err.startswith("to see a session's next request: ")


def test_a_database_of_owners_is_not_taken_for_an_empty_one(here: Here) -> None:
    """What is counted is stated, and where the others are found."""
    with rs.Store("sqlite:///owned.db") as store:
        store.for_owner("user-7").session("theirs", create=True).append(rs.user("Hello."))
    ran = here("--db sqlite:///owned.db")

    assert "0 sessions of the owner without a name" in ran.out
    assert "to see the owners: reasoning-store report --by owner" in ran.err
    assert "user-7" in here("report --by owner --db sqlite:///owned.db").out


def test_the_bare_call_without_a_database_says_how_to_make_one(here: Here) -> None:
    """It is an answer and no error: the first thing that anyone sees."""
    ran = here("--db sqlite:///new.db")

    assert (ran.code, ran.out) == (
        Exit.DONE,
        f"There is no database yet at {Path('new.db').absolute()}.\n",
    )
    assert "reasoning-store db create" in ran.err
    assert not Path("new.db").exists()


def test_init_makes_a_database_once(here: Here) -> None:
    """A second time it stays as it is."""
    made = here("db create --db sqlite:///new.db")
    again = here("db create --db sqlite:///new.db")

    assert made.out == again.out == NEWEST
    assert made.err.endswith("was created\n")
    assert again.err == ""
    assert here("sessions --db sqlite:///new.db").code == Exit.DONE


def test_the_users_own_database_is_where_the_system_keeps_data(here: Here, folder: Path) -> None:
    """XDG_DATA_HOME, in a folder that only its user reads."""
    here("db create --db sqlite:///x.db")  # --db wins over the environment
    ran = here("db create --db ''")

    assert ran.code == Exit.DONE
    assert Path("x.db").exists()


def test_current_upgrades_nothing(here: Here) -> None:
    """It only reads."""
    before = Path("chat.db").read_bytes()

    assert here("db current").out == NEWEST
    assert Path("chat.db").read_bytes() == before


@pytest.mark.parametrize(
    "line",
    [
        "erase chat-42",
        "erase --everything",
        "sessions delete --before 2030-01-01",
        "sessions delete chat-42",
    ],
)
def test_what_cannot_be_taken_back_is_not_done_unasked(here: Here, line: str) -> None:
    """With no one to ask and no --yes, nothing happens."""
    before = Path("chat.db").read_bytes()
    ran = here(line)

    assert ran.code == Exit.USAGE
    assert "--yes" in ran.err
    assert Path("chat.db").read_bytes() == before


def test_delete_by_age_takes_what_is_older(here: Here) -> None:
    """With the number of sessions; nothing where none is."""
    assert here("--json sessions delete --before 2000-01-01 --yes").data["sessions"] == 0
    count = len(here("--json sessions --all").data["sessions"])

    assert here("--json sessions delete --before 2100-01-01 --yes").data["sessions"] == count
    assert here("--json sessions --all").data["sessions"] == []
    assert "exclude each other" in here("sessions delete chat-42 --everything --yes").err


def test_sessions_are_listed_by_title_and_metadata(here: Here) -> None:
    """The value of metadata may be JSON; each has a count and a preview."""
    with rs.Store("sqlite:///chat.db") as store:
        made = store.session("new", create=True, title="Oslo", metadata={"n": 1, "who": "me"})
        made.append(rs.user("How is the\nweather?"))

    for line in ("--title oslo", "--metadata n=1", "--metadata who=me --metadata n=1"):
        (found,) = here(f"--json sessions {line}").data["sessions"]
        assert (found["id"], found["messages"]) == ("new", 1)
        assert (found["preview"], found["metadata"]) == ("How is the\nweather?", made.metadata)
    assert here("--json sessions --metadata n=2").data["sessions"] == []
    assert here("--json sessions --metadata n").code == Exit.USAGE


def test_erasing_takes_the_bytes_out_of_the_file(here: Here) -> None:
    """The thought is in no byte of the database any more; the chat stays."""
    here("erase chat-42 --only reasoning --yes")
    here("erase short --yes")
    here("settings drop terse")

    left = b"".join(path.read_bytes() for path in Path().glob("chat.db*"))
    assert b"Bergen is wetter" not in left
    assert b"Need the weather tool" not in left
    assert b"It is 4 C in Oslo" in left


def test_erasing_reasoning_by_age_leaves_what_is_newer(here: Here) -> None:
    """Of all sessions of the owner; it asks first."""
    words = "erase --only reasoning --before"
    asked = here(f"{words} 2100-01-01")
    newer = here(f"{words} 2000-01-01 --yes --json").data
    older = here(f"{words} 2100-01-01 --yes --json").data

    assert (asked.code, newer["thinkingBlocks"]) == (Exit.USAGE, 0)
    assert older["thinkingBlocks"] > 0
    assert older["sessions"] == 0


def test_erasing_an_owner_takes_everything_of_his(here: Here) -> None:
    """And nothing of another's."""
    with rs.Store("sqlite:///chat.db") as store:
        store.for_owner("ada").session("hers", create=True).append(rs.user("Hello"))
    ran = here("erase --everything --yes --json")

    assert (ran.data["sessions"], ran.data["profiles"]) == (2, 1)
    assert here("sessions --json").data["sessions"] == []
    assert len(here("sessions --owner ada --json").data["sessions"]) == 1


def test_verify_tells_where_something_was_changed(here: Here) -> None:
    """The place, a code of its own, and not the text that stands there."""
    with sqlite3.connect("chat.db") as raw:
        raw.execute("UPDATE bodies SET text = replace(text, 'Oslo?', 'Rome?')")
    raw.close()
    ran = here("verify --json")

    assert ran.code == Exit.DAMAGED
    assert {(one["code"], one["session"]) for one in ran.data["problems"]} >= {
        ("digest", "chat-42")
    }
    assert "Rome" not in ran.out


def test_a_report_adds_up_by_what_is_asked(here: Here) -> None:
    """By session, owner, model and day; of a time only what was in it."""
    for by in ("session", "owner", "model", "day"):
        (first, *_) = here(f"report --by {by} --json").data
        assert by in first
    (first, *_) = here("report --by model --by day --json").data
    assert list(first)[:2] == ["model", "day"]
    assert "cacheWrite" in first
    assert here("report --since 2100-01-01 --json").data == []
    assert here("report --owner nobody --json").data == []


def test_a_report_is_sorted_by_a_number_or_a_group(here: Here) -> None:
    """Numbers from the highest down, names from the first up; the limit is applied after it."""
    with rs.Store("sqlite:///chat.db") as store:
        for name, output in (("much", 50), ("more", 70)):
            usage = rs.Usage(input=1, output=output, reasoning=100 - output)
            store.session(name, create=True).append(rs.assistant("Yes.", usage=usage))

    def sessions(line: str) -> list[str]:
        return [row["session"] for row in here(f"report {line} --json").data]

    assert sessions("--sort output --limit 2") == ["more", "much"]
    assert sessions("--sort reasoning --limit 2") == ["much", "more"]
    assert sessions("--sort session") == ["chat-42", "more", "much", "short"]
    refused = here("report --sort model")
    assert refused.code == Exit.USAGE
    assert "pass --by model" in refused.err


def test_a_report_shows_a_dash_for_unreported_tokens_and_a_total(here: Here) -> None:
    """The largest first where only some are asked for; the nameless owner needs no column."""
    with rs.Store("sqlite:///chat.db") as store:
        usage = rs.Usage(input=100, output=20, reasoning=0)
        store.session("told", create=True).append(rs.assistant("Hi.", usage=usage))
    whole = here("report").out.splitlines()
    rows = {line.split()[0]: line.split()[1:6] for line in whole}
    some = here("report --limit 1").out.splitlines()

    assert whole[0].split()[:2] == ["session", "input"]
    assert rows["chat-42"] == ["-", "-", "-", "-", "-"]
    assert rows["told"] == ["100", "20", "0", "0", "0"]
    assert rows["total"][:2] == ["100", "20"]
    assert [line.split()[0] for line in some[1:]] == ["told", "total"]


def test_a_backup_opens_as_a_store(here: Here) -> None:
    """And does not replace what is there, unless told to."""
    here("db backup copy.db")
    again = here("db backup copy.db")
    told = here("db backup copy.db --overwrite --json")

    assert (again.code, told.code) == (Exit.USAGE, Exit.DONE)
    assert told.data["messages"] == 15
    assert here("show chat-42 --db sqlite:///copy.db").out == here("show chat-42").out


def test_the_doctor_finds_a_healthy_installation_healthy(here: Here) -> None:
    """Version, library, vocabularies, environment, database, schema, file."""
    ran = here("db doctor --json")
    states = {one["name"]: one["state"] for one in ran.data["findings"]}

    assert ran.code == Exit.DONE
    assert set(states) >= {
        "reasoning-store", "python", "psycopg", "pysqlite3", "sqlite", "cl100k_base",
        "o200k_base", "environment", "database", "schema", "file",
    }  # fmt: skip
    assert "failed" not in states.values()


def test_the_doctor_names_what_is_wrong(
    here: Here, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    """A setting in the environment that is none, a file that is not ours; and goes on."""
    monkeypatch.setenv("REASONING_STORE_EFFORT", "enormous")
    ran = here("db doctor --db sqlite:///broken.json --json")
    failed = {one["name"] for one in ran.data["findings"] if one["state"] == "failed"}

    assert ran.code == Exit.FAILED
    assert failed == {"environment", "database"}
    assert ran.err.startswith("2 things wrong: ")


@pytest.mark.parametrize(
    "command", ["db doctor --json", pytest.param("erase chat-43 --yes", marks=pytest.mark.long)]
)
def test_an_erasure_that_is_not_finished_is_named_with_its_files_until_it_is(
    here: Here, folder: Path, command: str
) -> None:
    """By doctor, and by erase where what it was to erase is gone already."""
    path = folder / "chat.db"
    with rs.Store(f"sqlite:///{path}") as store:
        other = sqlite_connections.library().connect(path, isolation_level=None)
        other.execute("PRAGMA user_version=1")
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM messages").fetchone()
        store.session("short").append(rs.user("Hello"))
        ran = here(command)

        assert ran.code != Exit.DONE
        assert "may still be in" in ran.out + ran.err
        assert "/chat.db-wal" in ran.out + ran.err
        other.close()
        ran = here(command)
        assert "may still be in" not in ran.out + ran.err
    assert here("db doctor").code == Exit.DONE


def test_verify_names_the_files_of_an_erasure_that_is_not_finished(
    here: Here, folder: Path
) -> None:
    """Everything stored is as it was written; only doctor and erase finish the erasure."""
    path = folder / "chat.db"
    with closing(sqlite_connections.library().connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA user_version=1")
    ran = here("verify --json")

    assert ran.code == Exit.DONE
    assert ran.data["ok"]
    assert ran.data["unerased"] == [str(path)]
    assert f"erased data may still be in {path}" in ran.err
    assert here("db doctor").code == Exit.DONE
    assert here("verify --json").data["unerased"] == []


@pytest.mark.parametrize("command", ["db doctor", "verify"])
def test_what_another_program_put_into_the_file_is_named(
    here: Here, folder: Path, command: str
) -> None:
    """A trigger that keeps what is stated, and the table that it keeps it in."""
    with closing(sqlite_connections.library().connect(folder / "chat.db")) as other:
        other.execute("CREATE TABLE audit (text TEXT)")
        other.execute(
            "CREATE TRIGGER spy AFTER INSERT ON bodies BEGIN INSERT INTO audit VALUES (new.text);"
            " END"
        )
    ran = here(f"{command} --json")

    assert ran.code != Exit.DONE
    assert "the table 'audit'" in ran.out
    assert "the trigger 'spy' on bodies" in ran.out


def test_the_doctor_knows_a_library_that_can_lose_data(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An old library of Python's own is reported, with the remedy."""
    monkeypatch.setitem(sys.modules, "pysqlite3.dbapi2", None)
    ran = here("db doctor --json --db sqlite:///nowhere.db")
    (told,) = [one for one in ran.data["findings"] if one["name"] == "sqlite"]
    old = sqlite3.sqlite_version_info < (3, 44, 6)

    assert sqlite3.sqlite_version in told["detail"]
    assert ("write lock" in told["detail"]) == old


def test_the_doctor_notes_a_variable_that_sets_nothing(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A misspelt one is nowhere else seen."""
    monkeypatch.setenv("REASONING_STORE_EFORT", "high")

    assert "of this program; did you mean REASONING_STORE_EFFORT?" in here("db doctor").out


def test_a_limit_of_the_environment_is_refused_by_its_name(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No one typed the option."""
    monkeypatch.setenv("REASONING_STORE_LIMIT", "abc")

    assert here("request chat-42 --tokens").err.startswith(
        "error: the variable REASONING_STORE_LIMIT: "
    )


def test_the_doctors_answer_holds_nothing_of_a_conversation(here: Here) -> None:
    """It is made to be pasted into a report."""
    said = here("db doctor --json").out + here("db doctor").out

    for word in ("Oslo", "Bergen", "weather", "chat-42", "terse"):
        assert word not in said


def test_the_commands_work_on_a_server(
    here: Here, create_database: Callable[..., URL], postgres_url: str
) -> None:
    """PostgreSQL is made by create and checked by doctor."""
    url = make_url(create_database().render_as_string(hide_password=False))
    new = url.render_as_string(hide_password=False)

    refused = here(f"sessions --db '{new}'")
    assert refused.code == Exit.SCHEMA
    assert "reasoning-store db upgrade" in refused.err
    assert here(f"db current --db '{new}'").out == "base\n"
    assert here(f"db create --db '{new}'").out == NEWEST
    assert here(f"db doctor --db '{new}'").code == Exit.DONE
    with rs.Store(new) as store:
        store.session("chat-42", create=True).append(rs.user("Hello"))
    assert here(f"show chat-42 --db '{new}'").out == "[1] user\n  Hello\n"


def test_a_server_that_is_not_there_is_one_line_without_its_password(here: Here) -> None:
    """Neither the user nor the password of a URL is ever repeated."""
    url = "postgresql+psycopg://ada:s3cr3t@127.0.0.1:9/chat?connect_timeout=1"
    for line in (
        "sessions",
        "db doctor",
        "db doctor --json",
        "db create",
        "db current",
    ):
        ran = here(f"{line} --db '{url}'")

        assert ran.code in (Exit.BUSY, Exit.FAILED)
        assert "s3cr3t" not in ran.out + ran.err
        assert "ada" not in ran.out + ran.err
        assert "Traceback" not in ran.err


def test_doctor_names_what_the_server_does_not_keep(here: Here, plain_url: str) -> None:
    """A commit that does not wait for the disk, and foreign keys that do nothing."""
    sound = here(f"db doctor --db '{plain_url}' --json")
    server = create_engine(plain_url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with server.connect() as connection:
        name = make_url(plain_url).database
        for setting in ("synchronous_commit = off", "session_replication_role = replica"):
            connection.exec_driver_sql(f'ALTER DATABASE "{name}" SET {setting}')
    told = here(f"db doctor --db '{plain_url}' --json")

    def states(ran: Ran) -> dict[str, str]:
        return {one["name"]: one["state"] for one in ran.data["findings"]}

    assert (sound.code, states(sound)["durability"]) == (Exit.DONE, "ok")
    assert (states(told)["durability"], states(told)["foreign keys"]) == ("note", "failed")
    assert told.code == Exit.FAILED
