"""Every released schema, as a stored database: up to today's with its rows, and back again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from sqlalchemy import URL, Connection, MetaData, inspect, make_url, select, text

import reasoning_store as rs
from reasoning_store.conversation import codec
from reasoning_store.conversation.errors import SchemaError
from reasoning_store.ledger.database import opening, schema_version
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.transfer import lines

from . import released
from .histories import said, stored_messages
from .revisions import second_revision

Rows = dict[str, list[dict[str, Any]]]


@pytest.fixture(params=["sqlite", "postgres"])
def name(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


oldest_and_newest = pytest.mark.parametrize(
    "old",
    [
        schema_version.REVISIONS[0],
        *(pytest.param(one, marks=pytest.mark.long) for one in schema_version.REVISIONS[1:-1]),
        schema_version.REVISIONS[-1],
    ],
    indirect=True,
)


@pytest.fixture
def empty(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], URL]:
    """Databases in which nothing was ever made."""
    numbers = iter(range(100))

    def make() -> URL:
        if name == "sqlite":
            return make_url(f"sqlite:///{tmp_path}/{next(numbers)}.db")
        create: Callable[[], URL] = request.getfixturevalue("create_database")
        return create()

    return make


@pytest.fixture(params=schema_version.REVISIONS)
def old(name: str, request: pytest.FixtureRequest, empty: Callable[[], URL]) -> URL:
    """A database as a release wrote it."""
    url = empty()
    released.load(name, request.param, url)
    return url


def all_rows(url: URL) -> Rows:
    """Every row of every table, by the names of its columns, as the database has them now."""
    found: Rows = {}

    def look(connection: Connection) -> None:
        tables = MetaData()
        tables.reflect(connection)
        for table in tables.sorted_tables:
            rows = connection.execute(select(table).order_by(*table.primary_key))
            found[table.name] = [dict(row) for row in rows.mappings()]

    opening.run_schema_command(url, look)
    return {table: rows for table, rows in found.items() if table != "alembic_version"}


_DEFINITIONS = {
    "sqlite": ["SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"],
    "postgresql": [
        "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY indexname",
        "SELECT pg_get_functiondef(p.oid) FROM pg_proc p JOIN pg_namespace n"
        " ON n.oid = p.pronamespace WHERE n.nspname = 'public' ORDER BY p.proname",
    ],
}


def shape(url: URL) -> list[Any]:
    """What a schema is: columns, keys, indexes, functions."""
    found: list[Any] = []

    def look(connection: Connection) -> None:
        seen = inspect(connection)
        for table in sorted(seen.get_table_names()):
            columns = [(c["name"], repr(c["type"]), c["nullable"]) for c in seen.get_columns(table)]
            foreign = sorted(seen.get_foreign_keys(table), key=lambda key: str(key["name"]))
            found.append([table, columns, seen.get_pk_constraint(table), foreign])
        for statement in _DEFINITIONS[connection.dialect.name]:
            texts = connection.exec_driver_sql(statement).scalars()
            found.extend([" ".join(text.split()) for text in texts])

    opening.run_schema_command(url, look)
    return [repr(part) for part in found]


def kept(before: Rows, after: Rows) -> None:
    """Every row is there, with what it had in every column that is still there."""
    for table, rows in before.items():
        if rows and table in after:
            columns = rows[0].keys() & (after[table][0].keys() if after[table] else rows[0].keys())
            assert [{c: row[c] for c in columns} for row in rows] == [
                {c: row[c] for c in columns} for row in after[table]
            ], table


NAMES = ("owner", "id", "title", "encoding", "profile", "name")
"""Up to revision 0004 they are JSON text in their columns."""


def plain(rows: Rows) -> Rows:
    """Return the rows of an older database as this version has them."""
    made: Rows = {}
    for table, found in rows.items():
        names = [name for name in NAMES if table in ("sessions", "settings_profiles")]
        made[table] = [dict(row) for row in found]
        for row in made[table]:
            for name in names:
                if row.get(name) is not None:
                    row[name] = json.loads(row[name]).replace("\0", "\ufffd")
            if table == "thinking_blocks":
                data = json.loads(row["data"] or "{}")
                row["is_hidden"] = int(data.pop("isHidden", False))
                row["data"] = codec.dumps(data) if data else None
    return made


def test_a_released_database_is_upgraded_with_its_rows(old: URL) -> None:
    """Nothing is lost or changed, verify finds nothing, and no difference is left to migrate."""
    before = all_rows(old)
    if "is_hidden" not in before["thinking_blocks"][0]:
        before = plain(before)

    opening.upgrade(old)

    kept(before, all_rows(old))
    opening.run_schema_command(
        old, lambda connection: command.check(schema_version.alembic_config(connection))
    )
    with Ledger.open(old) as ledger:
        verified = ledger.audit.verify()
        assert verified.problems == ()
        assert (verified.sessions, verified.messages) == (3, 23)
        with pytest.raises(rs.Conflict):
            ledger.messages.append(ledger.sessions.get("owner", "first").key, 2, [said()])


@pytest.mark.parametrize("revision", schema_version.REVISIONS)
def test_what_a_release_exported_is_what_its_database_exports_today(
    name: str, revision: str, empty: Callable[[], URL]
) -> None:
    """Line by line; a later version may say more of each."""
    url = empty()
    released.load(name, revision, url)
    opening.upgrade(url)

    with Ledger.open(url) as ledger:
        today = [json.loads(line) for line in ledger.transfer.export_lines()]

    then = [json.loads(line) for line in stored_lines(revision)]
    assert len(today) == len(then)
    assert (today[0]["type"], today[0]["version"]) == ("reasoning-store", lines.VERSION)
    for line, wanted in zip(today[1:], then[1:], strict=True):
        if wanted.get("title"):
            wanted["title"] = wanted["title"].replace("\0", "\ufffd")
        assert wanted.items() <= line.items()


@pytest.mark.parametrize("revision", schema_version.REVISIONS)
def test_what_a_release_exported_is_imported_today(
    name: str, revision: str, empty: Callable[[], URL]
) -> None:
    """Into an empty database of either engine."""
    url = empty()
    opening.upgrade(url)

    with Ledger.open(url) as ledger:
        done = ledger.transfer.import_lines(stored_lines(revision))
        again = [json.loads(line) for line in ledger.transfer.export_lines()]

    assert (done.sessions, done.messages) == (3, 23)
    assert len(again) == len(list(stored_lines(revision)))


FIRST = '[10,20,8,1,{"x":1}]'
CACHED = {"input_tokens": 10, "cache_read_input_tokens": 2000, "cache_creation_input_tokens": 5000}
"""A usage of the first version, and what Anthropic said where it read 2000 and wrote 5000."""


def test_usage_of_the_first_version_has_the_cache_in_its_input_afterwards(
    name: str, empty: Callable[[], URL]
) -> None:
    """From its raw usage: in the rows, in reports, and in lines that it exported."""
    url, other = empty(), empty()
    released.load(name, "0001", url)

    def change(connection: Connection) -> None:
        connection.execute(
            text("UPDATE bodies SET data = replace(data, :first, :cached)"),
            {"first": FIRST, "cached": f"[10,20,8,2000,{json.dumps(CACHED)}]"},
        )
        connection.execute(text("UPDATE messages SET cached = 2000 WHERE cached = 1"))

    opening.run_schema_command(url, change)
    opening.upgrade(url)
    opening.upgrade(other)
    exported = [
        line.replace('"input":10,', '"input":10,"cached":2000,').replace(
            '"cached":1,"raw":{"x":1}', f'"raw":{json.dumps(CACHED)}'
        )
        for line in stored_lines("0001")
    ]

    with Ledger.open(other) as ledger:
        ledger.transfer.import_lines(exported)
    for database in (url, other):
        with Ledger.open(database) as ledger:
            key = ledger.sessions.get("owner", "first").key
            used = [
                row.message.usage for row in stored_messages(ledger, key, 1) if row.message.usage
            ]
            (row,) = ledger.reports.read("session", owner="owner")[:1]
            verified = ledger.audit.verify()

        assert {(one.input, one.cached, one.cache_write) for one in used} == {(7010, 2000, 5000)}
        assert row.input == 7010 * len(used)
        assert row.cache_write == 5000 * len(used)
        assert verified.problems == ()


def stored_lines(revision: str) -> Iterator[str]:
    with (released.FOLDER / f"{revision}.jsonl").open(encoding="utf-8", newline="\n") as lines:
        yield from lines


@pytest.mark.parametrize("revision", schema_version.REVISIONS)
def test_the_scripts_still_make_what_was_released(
    name: str, revision: str, empty: Callable[[], URL]
) -> None:
    """A released script never changes; before its release: python -m tests.ledger.released."""
    stored, made = empty(), empty()
    released.load(name, revision, stored)

    def upgrade(connection: Connection) -> None:
        command.upgrade(schema_version.alembic_config(connection), revision)

    # Where the first releases made theirs.
    where = made if name == "sqlite" else make_url(opening.with_schema(made, "public"))
    opening.run_schema_command(where, upgrade)

    assert shape(stored) == shape(where)


def test_the_newest_stored_database_has_rows_of_every_kind(name: str, empty: Any) -> None:
    """In every table, with something in every column."""
    url = empty()
    released.load(name, schema_version.REVISIONS[-1], url)

    for table, rows in all_rows(url).items():
        assert rows, table
        assert [c for c in rows[0] if all(row[c] is None for row in rows)] == [], table


@oldest_and_newest
def test_down_and_up_again_keeps_the_rows(
    old: URL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a release, through a revision that adds a table and a column."""
    opening.upgrade(old)
    today = all_rows(old)
    second_revision(tmp_path, monkeypatch)

    opening.upgrade(old)
    assert "more" in all_rows(old)
    kept(today, all_rows(old))
    opening.run_schema_command(old, lambda connection: schema_version.downgrade(connection, "-1"))
    assert today == all_rows(old)
    opening.upgrade(old)

    kept(today, all_rows(old))
    with Ledger.open(old) as ledger:
        assert ledger.audit.verify().ok


@oldest_and_newest
def test_an_application_older_than_the_schema_refuses_and_changes_nothing(
    old: URL, tmp_path: Path
) -> None:
    """It says that the database is newer, and which command helps."""
    with pytest.MonkeyPatch.context() as patch:
        second_revision(tmp_path, patch)
        opening.upgrade(old)
        before = all_rows(old)

    for refused in (Ledger.open, rs.Store):
        with pytest.raises(SchemaError, match="newer version of reasoning-store") as caught:
            refused(old.render_as_string(hide_password=False))
        assert caught.value.hint == "run: pip install --upgrade reasoning-store"
    with pytest.raises(SchemaError, match="newer version"):
        opening.upgrade(old)
    assert before == all_rows(old)
