"""Migrations: one truth about the schema, transactional, from a checkout and from a wheel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import URL, Connection, inspect

from reasoning_store.conversation.errors import InvalidCall, SchemaError
from reasoning_store.ledger.database import opening, schema_version
from reasoning_store.ledger.database.statement import driver
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.tables import metadata
from tests import programs

from .histories import new_session, said, stored_messages
from .revisions import second_revision

ROOT = Path(__file__).parents[2]


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


@pytest.mark.thinned
def test_the_alembic_command_without_a_url_says_how() -> None:
    """A usage error with the command."""
    done = alembic("", "upgrade", "head", by="environment")

    assert done.returncode != 0
    assert "which database?" in done.stderr
    assert alembic("sqlite://", "upgrade", "head", "--sql").returncode != 0


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

    assert caught.value.hint == "run: reasoning-store upgrade"
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
