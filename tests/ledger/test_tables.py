"""The schema: every key starts with the session's, and every statement is an index range."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from hypothesis import given
from sqlalchemy import PrimaryKeyConstraint, Table, UniqueConstraint
from sqlalchemy.dialects import sqlite

from reasoning_store.conversation.blocks import Counts, Message
from reasoning_store.ledger import (
    appends,
    branches,
    budgets,
    encode,
    history,
    message_columns,
    origins,
    profiles,
    removal,
    sessions,
    stored_compactions,
    stored_drafts,
    views,
)
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.records import NewMessage
from reasoning_store.ledger.tables import metadata
from reasoning_store.ledger.transfer import load
from tests.properties import each, examples
from tests.strategies import messages

TABLES = list(metadata.tables.values())


@each("table", TABLES)
def test_every_key_starts_with_the_session_key(table: Table) -> None:
    """Primary keys, unique constraints and indexes, foreign keys at both ends."""
    keys = [
        list(constraint.columns)
        for constraint in table.constraints
        if isinstance(constraint, (PrimaryKeyConstraint, UniqueConstraint))
    ]
    keys += [list(index.columns) for index in table.indexes if index.unique]
    keys += [list(constraint.columns) for constraint in table.foreign_key_constraints]
    keys += [
        [element.column for element in constraint.elements]
        for constraint in table.foreign_key_constraints
    ]

    assert keys
    assert {"session_key"} == {key[0].name for key in keys}


@given(messages())
@examples(50)
def test_prepared_rows_are_in_the_order_of_their_tables(message: Message) -> None:
    """It is given to SQLite by place: whatever the message, each value has its column."""
    thoughts = (1,) * len(message.thinking)
    made = encode.encode_message(
        NewMessage(message, Counts(thinking=thoughts)), id="m", created_at=1
    )

    assert tuple(made.columns) == message_columns.NAMES
    assert tuple(made.body) == encode.BODY
    assert {tuple(row) for row in made.thinking} <= {encode.THINKING}


@each("table", TABLES)
def test_nothing_is_numbered_by_the_database(table: Table) -> None:
    """No sequence, no identity, no default that an engine computes."""
    assert {(False, None)} == {
        (column.autoincrement is True, column.identity) for column in table.columns
    }
    defaults = [column.server_default for column in table.columns if column.server_default]
    assert {str(getattr(default, "arg", "")) for default in defaults} <= {"0"}


STATEMENTS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": statement
    for module in (
        branches,
        budgets,
        stored_compactions,
        stored_drafts,
        removal,
        history,
        message_columns,
        load,
        appends,
        origins,
        profiles,
        views,
        sessions,
    )
    for name, statement in {
        **vars(module),
        **{
            f"{n}[{k}]": v
            for n, d in vars(module).items()
            if isinstance(d, dict)
            for k, v in d.items()
        },
    }.items()
    if isinstance(statement, Statement) and "postgresql" not in name
}


@each("name", STATEMENTS)
def test_no_statement_scans_a_table(name: str, sqlite_path: Path) -> None:
    """What it reads is found by a key, however much else is stored."""
    compiled: Any = STATEMENTS[name]._statement.compile(dialect=sqlite.dialect())
    with sqlite3.connect(sqlite_path) as connection:
        plan = connection.execute(
            f"EXPLAIN QUERY PLAN {compiled}",
            [None] * len(compiled.positiontup or ()),
        ).fetchall()
    connection.close()

    assert [step for *_, step in plan if "SCAN" in step and "CONSTANT" not in step] == []


def test_there_are_statements_to_look_at() -> None:
    """The test above found them."""
    assert len(STATEMENTS) > 20
