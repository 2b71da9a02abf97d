"""kill -9 at every statement of every migration: what it found is there, and it runs again.

The scripts that ship are run on a database in which nothing was ever made. What a later
one may do to rows (a column more, a table rebuilt, rows rewritten) is done by one that
follows them here only.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import URL, make_url

import reasoning_store as rs
from reasoning_store.ledger.database import opening, schema_version

from . import programs
from .processes import running
from .whole import check_whole

ONE_MORE = """
import sqlalchemy as sa
from alembic import op

revision, down_revision = "9999", "{head}"
branch_labels = depends_on = None


def upgrade():
    op.add_column("messages", sa.Column("extra", sa.Text))
    op.add_column("sessions", sa.Column("mood", sa.Text, server_default="calm"))
    with op.batch_alter_table("sessions") as batch:
        batch.alter_column("mood", nullable=False, server_default=None)
    op.execute("UPDATE sessions SET mood = 'glad' WHERE archived = 0")
    op.execute("UPDATE messages SET extra = role")
    op.create_table("more", sa.Column("x", sa.Integer, primary_key=True))
    op.execute("INSERT INTO more VALUES (1)")
    op.drop_table("more")
    op.create_index("ix_more", "messages", ["session_key", "extra"])


def downgrade():
    raise NotImplementedError
"""


@dataclass(frozen=True)
class Case:
    """An upgrade, and what it starts from."""

    fresh: Callable[[], str]
    """Makes a database as it is before, and returns its URL."""
    scripts: Path
    revisions: tuple[str, ...]
    before: str | None
    """The revision that it starts from."""
    rows: tuple[rs.Message, ...] = ()


def revision(url: str) -> str | None:
    """Return the revision of a database; None where nothing was ever made."""
    path = Path(url.removeprefix("sqlite:///"))
    if url.startswith("sqlite") and not path.exists():
        return None
    found = rs.Store.revision_of(url)
    return None if found == schema_version.BASE else found


def killed(program: Callable[..., None], case: Case, url: str, last: int) -> bool:
    """Upgrade in a process that dies; return whether it did not live to the end."""
    with running(program, url, str(case.scripts), case.revisions, last) as child:
        while child.hear():
            pass
        ended = child.ended()
    assert ended in (0, -signal.SIGKILL)
    return ended != 0


def kill_at_each(program: Callable[..., None], case: Case, step: int) -> int:
    """Kill, look, upgrade again and look; return how often."""
    for last in count(0, step):
        url = case.fresh()
        dead = killed(program, case, url, last)
        assert revision(url) in ((case.before, case.revisions[-1]) if dead else case.revisions[-1:])

        opening.upgrade(url)
        assert revision(url) == case.revisions[-1]
        with rs.Store(url) as store:
            session = store.session("s", create=not case.rows)
            assert tuple(item.message for item in session.history()) == case.rows
            session.append(programs.turn(0))
        check_whole(url)
        if not dead:
            return last // step
    raise AssertionError


@pytest.fixture(params=["sqlite", "postgres"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Databases in which nothing was ever made."""
    numbers = count()
    if request.param == "sqlite":
        return lambda: f"sqlite:///{tmp_path}/{next(numbers)}.db"
    create: Callable[..., URL] = request.getfixturevalue("create_database")
    return lambda: create().render_as_string(hide_password=False)


@pytest.fixture
def from_nothing(empty: Callable[[], str]) -> Case:
    """The scripts that ship."""
    return Case(empty, schema_version.scripts_folder(), schema_version.REVISIONS, None)


@pytest.fixture
def with_rows(
    request: pytest.FixtureRequest,
    empty: Callable[[], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Case:
    """A store with rows in it, and a script more."""
    rows = [message for number in range(3) for message in programs.turn(number)]
    full = empty()
    opening.upgrade(full)
    with rs.Store(full) as store:
        store.session("s", create=True).append(rows)
    if full.startswith("sqlite"):

        def fresh() -> str:
            url = empty()
            shutil.copy(full.removeprefix("sqlite:///"), url.removeprefix("sqlite:///"))
            return url
    else:
        create: Callable[..., URL] = request.getfixturevalue("create_database")
        name = make_url(full).database

        def fresh() -> str:
            return create(name).render_as_string(hide_password=False)

    scripts = tmp_path / "scripts"
    shutil.copytree(
        schema_version.scripts_folder(), scripts, ignore=shutil.ignore_patterns("__pycache__")
    )
    head = schema_version.REVISIONS[-1]
    (scripts / "versions" / "9999_one_more.py").write_text(ONE_MORE.format(head=head))
    revisions = (*schema_version.REVISIONS, "9999")
    monkeypatch.setattr(schema_version, "scripts_folder", lambda: scripts)
    monkeypatch.setattr(schema_version, "REVISIONS", revisions)
    return Case(fresh, scripts, revisions, head, tuple(rows))


@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.long)])
def test_the_scripts_that_ship_run_again_after_a_kill(from_nothing: Case, step: int) -> None:
    """At every statement: afterwards there is nothing, and then there is all of it."""
    assert kill_at_each(programs.upgrade_and_die, from_nothing, step) > 20 // step


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.long)])
def test_rows_outlive_a_killed_upgrade_and_the_next_one(with_rows: Case, step: int) -> None:
    """At every statement, also where a table is rebuilt that others refer to."""
    assert kill_at_each(programs.upgrade_and_die, with_rows, step) > 12 // step


@pytest.mark.long
@pytest.mark.parametrize("empty", ["sqlite"], indirect=True)
def test_an_upgrade_killed_at_anything_it_asks_of_the_disk_runs_again(with_rows: Case) -> None:
    """Also while the older file is copied, which comes before."""
    assert kill_at_each(programs.upgrade_and_die_at_the_disk, with_rows, 1) > 50


@pytest.mark.long
@pytest.mark.parametrize("empty", ["sqlite"], indirect=True)
def test_a_file_killed_at_anything_while_it_is_made_is_made_the_next_time(
    from_nothing: Case,
) -> None:
    """No file of that name, or the whole one."""
    assert kill_at_each(programs.upgrade_and_die_at_the_disk, from_nothing, 1) > 50
