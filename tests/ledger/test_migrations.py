"""Migrations: one truth about the schema, transactional, from a checkout and from a wheel.

Nothing later than the first revision exists: what an upgrade does is tested with a second one that
these tests make.
"""

from __future__ import annotations

import ast
import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Column, Connection, MetaData, Table, inspect, select

import reasoning_store as rs
from reasoning_store.conversation.errors import InvalidCall, SchemaError
from reasoning_store.ledger.database import opening, schema_version
from reasoning_store.ledger.database.statement import driver
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.tables import metadata
from tests import programs
from tests.properties import each

from .histories import new_session, said, stored_messages
from .revisions import second_revision

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "migrations" / "versions").glob("*.py"))
ON_SERVER = ("ix_search_entries_words", False, "words")
"""PostgreSQL's index of the words, which no table declares."""
Rows = dict[str, list[dict[str, Any]]]


@pytest.fixture(params=["sqlite", "postgres"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database in which nothing was ever made."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/new.db"
    create: Callable[..., URL] = request.getfixturevalue("create_database")
    return create().render_as_string(hide_password=False)


def names(url: str) -> set[str]:
    found: set[str] = set()

    def look(connection: Connection) -> None:
        found.update(inspect(connection).get_table_names())

    opening.run_schema_command(url, look)
    return found - {"alembic_version"}


def test_the_revisions_are_those_of_the_scripts() -> None:
    """The list that opening a store compares with, oldest first."""
    scripts = ScriptDirectory(str(schema_version.scripts_folder())).walk_revisions()

    assert [script.revision for script in scripts] == list(reversed(schema_version.REVISIONS))


NUMBERED = ("1905", "be611fa423dfe41a")
"""The number of the revision, and the digest of the other lines of its script."""


def test_a_change_of_the_schema_changes_its_number() -> None:
    """Until the release: give the revision the next number, then write the new digest here."""
    number, digest = NUMBERED
    (script,) = SCRIPTS
    lines = script.read_text("utf-8").splitlines()
    others = "\n".join([line for line in lines if number not in line])

    assert script.name == f"{number}_schema.py"
    assert hashlib.sha256(others.encode()).hexdigest()[:16] == digest


@each("script", SCRIPTS)
def test_a_revision_imports_nothing_of_the_package(script: Path) -> None:
    """It stays the same as the package changes."""
    imported = {
        name
        for one in ast.walk(ast.parse(script.read_text()))
        for name in (
            [one.module or ""]
            if isinstance(one, ast.ImportFrom)
            else [alias.name for alias in getattr(one, "names", ())]
        )
    }

    assert {name.partition(".")[0] for name in imported} <= {
        *("__future__", "typing", "sqlalchemy", "alembic", "op"),
        *("postgresql", "sqlite"),
    }


def columns_of(
    columns: Iterable[Column[Any]], connection: Connection
) -> list[tuple[str, str, bool]]:
    return [(one.name, one.type.compile(connection.dialect), bool(one.nullable)) for one in columns]


def test_the_scripts_make_the_columns_of_the_tables(empty: str) -> None:
    """In their order, with their types and keys, on both engines."""
    opening.upgrade(empty)

    def look(connection: Connection) -> None:
        there = MetaData()
        there.reflect(connection, only=list(metadata.tables))
        for name, table in metadata.tables.items():
            made = there.tables[name]
            assert columns_of(made.columns, connection) == columns_of(table.columns, connection)
            assert list(made.primary_key.columns.keys()) == list(table.primary_key.columns.keys())
            assert foreign_keys(made) == foreign_keys(table)
            assert indexes(made) - {ON_SERVER} == indexes(table)

    opening.run_schema_command(empty, look)


def foreign_keys(table: Table) -> set[tuple[Any, ...]]:
    return {
        (one.name, one.ondelete, *[element.target_fullname for element in one.elements])
        for one in table.foreign_key_constraints
    }


def indexes(table: Table) -> set[tuple[Any, ...]]:
    return {(one.name, bool(one.unique), *one.columns.keys()) for one in table.indexes}


def test_the_scripts_make_the_tables_that_the_code_expects(empty: str) -> None:
    """Up from nothing; alembic check finds no difference; down leaves nothing; up again."""
    opening.upgrade(empty)
    made = {name for name in names(empty) if not name.startswith("search_index")}  # FTS5's own
    assert made == set(metadata.tables)
    opening.run_schema_command(
        empty, lambda connection: command.check(schema_version.alembic_config(connection))
    )

    opening.run_schema_command(
        empty, lambda connection: schema_version.downgrade(connection, "base")
    )
    assert set() == names(empty)

    opening.upgrade(empty)
    with Ledger.open(empty) as ledger:
        ledger.messages.append(new_session(ledger).key, 1, [said()])


def alembic(url: str, *words: str, by: str = "argument") -> subprocess.CompletedProcess[str]:
    where = ("-x", f"db={url}") if by == "argument" else ()
    return programs.run(
        [sys.executable, "-m", "alembic", *where, *words],
        cwd=ROOT,
        env={**os.environ, "REASONING_STORE_URL": url if by == "environment" else ""},
    )


@pytest.mark.thinned
@pytest.mark.parametrize(
    ("by", "steps"),
    [
        ("argument", ["upgrade head", "check", "downgrade base", "upgrade head"]),
        ("environment", ["upgrade head"]),
    ],
)
def test_the_alembic_command_works_from_a_checkout(empty: str, by: str, steps: list[str]) -> None:
    """What it makes, a store opens."""
    done = [alembic(empty, *step.split(), by=by) for step in steps]

    assert [one.returncode for one in done] == [0] * len(steps), [one.stderr for one in done]
    Ledger.open(empty).close()


@each(
    "url, words, says",
    [
        ("", "upgrade head", "which database? Run: alembic -x db=sqlite:///chat.db upgrade head"),
        ("sqlite://", "upgrade head --sql", "there is no offline mode"),
        ("mysql://host/x", "upgrade head", "mysql is not supported (use sqlite:///chat.db"),
    ],
)
def test_the_alembic_command_says_in_one_line_what_to_do(url: str, words: str, says: str) -> None:
    """Without a traceback."""
    done = alembic(url, *words.split(), by="environment")
    lines = [line for line in (done.stdout + done.stderr).splitlines() if "FAILED" in line]

    assert done.returncode != 0
    assert says in "".join(lines)
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.thinned
def test_the_alembic_command_takes_the_address_of_its_file(tmp_path: Path) -> None:
    """Where the file of the checkout has a comment."""
    shown = (ROOT / "alembic.ini").read_text()
    own = shown.replace("# sqlalchemy.url = sqlite:///", f"sqlalchemy.url = sqlite:///{tmp_path}/")
    file = tmp_path / "alembic.ini"
    file.write_text(own.replace("%(here)s", str(ROOT)))
    done = alembic("", "-c", str(file), "upgrade", "head", by="environment")

    assert done.returncode == 0, done.stderr
    Ledger.open(f"sqlite:///{tmp_path}/chat.db").close()


@pytest.fixture
def two_revisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return second_revision(tmp_path, monkeypatch)


def test_an_older_file_is_upgraded_and_a_copy_is_kept(
    sqlite_path: Path, request: pytest.FixtureRequest
) -> None:
    """By itself, with its rows; the copy is whole, and of mode 0600."""
    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        session = new_session(ledger)
        ledger.messages.append(session.key, 1, [said()])

    request.getfixturevalue("two_revisions")
    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        assert len(stored_messages(ledger, session.key, 1)) == 1
    kept = sqlite_path.with_name(f"chat.db.before-{schema_version.REVISIONS[-1]}")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert "more" in names(f"sqlite:///{sqlite_path}")
    assert "more" not in names(f"sqlite:///{kept}")
    with Ledger.open(f"sqlite:///{kept}") as ledger:
        assert len(stored_messages(ledger, session.key, 1)) == 1


def test_the_copy_before_an_upgrade_is_of_before_it(
    sqlite_path: Path, request: pytest.FixtureRequest
) -> None:
    """Also where another process upgrades between the look at its age and the copy."""
    Ledger.open(f"sqlite:///{sqlite_path}").close()
    request.getfixturevalue("two_revisions")
    kept = sqlite_path.with_name(f"chat.db.before-{schema_version.REVISIONS[-1]}")
    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        first = kept.read_bytes()
        database: Any = ledger.database
        schema_version.keep_copy(sqlite_path, database)

    assert kept.read_bytes() == first
    assert "more" not in names(f"sqlite:///{kept}")


def test_an_older_server_is_upgraded_by_command_only(
    postgres_url: str, request: pytest.FixtureRequest
) -> None:
    """Opening it says so and changes nothing."""
    request.getfixturevalue("two_revisions")

    with pytest.raises(SchemaError, match="is older than this version") as caught:
        Ledger.open(postgres_url)

    assert caught.value.hint == "run: reasoning-store db upgrade"
    assert "more" not in names(postgres_url)
    opening.upgrade(postgres_url)
    Ledger.open(postgres_url).close()


def test_an_upgrade_that_fails_in_the_middle_leaves_what_it_found(
    url: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On both engines, and it can be run again."""
    before = names(url)
    request.getfixturevalue("two_revisions")
    monkeypatch.setenv("FAIL_MIGRATION", "1")

    with pytest.raises(RuntimeError, match="killed here"):
        opening.upgrade(url)
    assert before == names(url)

    monkeypatch.delenv("FAIL_MIGRATION")
    opening.upgrade(url)
    assert before | {"more"} == names(url)


def all_rows(url: str) -> Rows:
    """Every row of every table, as the database has them now."""
    found: Rows = {}

    def look(connection: Connection) -> None:
        tables = MetaData()
        tables.reflect(connection)
        for table in tables.sorted_tables:
            rows = connection.execute(select(table).order_by(*table.primary_key))
            found[table.name] = [dict(row) for row in rows.mappings()]

    opening.run_schema_command(url, look)
    return found


def fill(url: str) -> None:
    with rs.Store(url) as store:
        session = store.session("s", create=True)
        session.append([rs.user("Is 91 prime?"), rs.assistant("No.")])
        session.fork(at=2).append(rs.assistant(rs.ThinkingBlock(thought="7 * 13"), "No."))
        assert store.search("prime").items


def test_down_and_up_again_keeps_the_rows(url: str, request: pytest.FixtureRequest) -> None:
    """Through a revision that adds a table and a column."""
    fill(url)
    before = all_rows(url)
    request.getfixturevalue("two_revisions")

    opening.upgrade(url)
    assert "more" in all_rows(url)
    opening.run_schema_command(url, lambda connection: schema_version.downgrade(connection, "-1"))
    assert before == all_rows(url)
    opening.upgrade(url)

    with Ledger.open(url) as ledger:
        assert ledger.audit.verify().ok


OTHERS = {
    **dict.fromkeys(("0001", "0009", "1000"), ("made by a development version", "export it with")),
    "9999": ("newer version of reasoning-store", "run: pip install --upgrade reasoning-store"),
}
"""Numbers that are not ours: the error, and the begin of its hint."""


def test_a_schema_of_another_version_is_refused_and_stays(url: str) -> None:
    """By whatever opens it, with the way out."""
    ways = (
        rs.Store,
        partial(rs.Store, read_only=True),
        opening.upgrade,
        partial(opening.run_schema_command, work=inspect),
    )
    with Ledger.open(url) as ledger:
        for number, (says, hint) in OTHERS.items():
            text = f"UPDATE alembic_version SET version_num = '{number}'"  # noqa: S608
            ledger.database.write(lambda connection: driver(connection).execute(text))  # noqa: B023
            for refused in ways:
                with pytest.raises(SchemaError, match=says) as caught:
                    refused(url)
                assert hint in str(caught.value.hint)
            assert ledger.database.read(schema_version.current_revision) == number


def test_a_wheel_finds_the_scripts_inside_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There they are called _migrations; pyproject.toml puts them there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    inside = tmp_path / "reasoning_store" / "_migrations"
    shutil.copytree(ROOT / "migrations", inside, ignore=shutil.ignore_patterns("__pycache__"))
    ledger_module = tmp_path / "reasoning_store" / "ledger" / "database" / "migrate.py"

    assert wheel["force-include"] == {"migrations": "reasoning_store/_migrations"}
    assert schema_version.scripts_folder() == ROOT / "migrations"
    monkeypatch.setattr(schema_version, "__file__", str(ledger_module))
    assert inside == schema_version.scripts_folder()
    Ledger.open(f"sqlite:///{tmp_path}/chat.db").close()


def test_nothing_but_migrations_creates_tables() -> None:
    """There is one truth about the schema."""
    used = [
        path.name
        for folder in ("reasoning_store", "migrations")
        for path in (ROOT / folder).rglob("*.py")
        if ".create_all" in path.read_text()
    ]

    assert used == []


def test_two_versions_at_once_are_refused(sqlite_path: Path) -> None:
    """A database that someone branched by hand."""
    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        ledger.database.write(
            lambda connection: driver(connection).execute(
                "INSERT INTO alembic_version VALUES ('0000')"
            )
        )

    with pytest.raises(SchemaError, match="two versions"):
        Ledger.open(f"sqlite:///{sqlite_path}")


def test_an_upgrade_of_an_unknown_engine_is_an_invalid_call() -> None:
    """As everywhere else."""
    with pytest.raises(InvalidCall):
        opening.upgrade("mysql://host/x")
