"""The SQL of append: one short transaction, in two texts.

Everything slow (tokens, JSON, digests) is done before: what comes here is columns. The branch
row is locked first. It holds the next position, so positions have the order of the commits and no
gap. A branch that waits for a message (``instead_of``) becomes current with it; with a draft it
became that before (``stored_drafts``).

SQLite reads the branch, inserts and moves the branch on in the caller's ``BEGIN IMMEDIATE``.
PostgreSQL does the same in one statement, the function ``append_messages`` of the migrations. It
is a function because the server then keeps its plans: prepared statements break with poolers,
and planning takes twice as long as running.

Both return the first position. They return None if the branch does not exist, if ``after`` is not
its last position, or if it has a live draft that this append does not end. A repeated idempotency
key violates a unique index; ``messages.py`` then returns the rows of that key.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, delete, insert, null, select, update

from reasoning_store.ledger import origins
from reasoning_store.ledger.database.statement import Statement, driver, quoted, schema_of
from reasoning_store.ledger.encode import BODY, THINKING, EncodedMessage
from reasoning_store.ledger.message_columns import NAMES
from reasoning_store.ledger.records import ReasoningUsed
from reasoning_store.ledger.sessions import TOUCH_SESSION, change
from reasoning_store.ledger.tables import (
    bodies,
    branches,
    drafts,
    echoes,
    messages,
    thinking_blocks,
)

_b = branches.c
_THIS = (_b.session_key == bindparam("key"), _b.branch == bindparam("of"))
_READ_BRANCH = Statement(
    select(_b.next_position, _b.draft, _b.instead_of).where(*_THIS),
    order=("key", "of"),
)
_ADVANCE_BRANCH = Statement(
    update(branches)
    .where(*_THIS)
    .values(next_position=bindparam("next_position"), draft=null(), instead_of=null()),
    order=("next_position", "key", "of"),
)
_PLACE = ("session_key", "branch", "position")
_INSERT_MESSAGE = Statement(insert(messages), order=(*_PLACE, *NAMES))
_INSERT_BODY = Statement(insert(bodies), order=(*_PLACE, *BODY))
_INSERT_THINKING = Statement(insert(thinking_blocks), order=(*_PLACE, *THINKING))
_INSERT_ECHO = Statement(insert(echoes), order=(*_PLACE, "number", "client_group"))
_END_DRAFT = Statement(
    delete(drafts).where(
        drafts.c.session_key == bindparam("key"), drafts.c.branch == bindparam("of")
    ),
    order=("key", "of"),
)


def append(
    connection: Connection,
    key: int,
    branch: int,
    encoded: Sequence[EncodedMessage],
    *,
    after: int | None,
    ending: str | None,
    now: int,
) -> int | None:
    """Write the messages one after another and return the position of the first.

    ``ending`` is the draft that ends with this, and whose parts go.
    """
    # BR-002, BR-009, EC-004: everything is stored, whatever any setting says; no policy
    # reaches this room, and no row is written twice.
    write = _append_on_postgres if connection.dialect.name == "postgresql" else _append_on_sqlite
    return write(connection, key, branch, encoded, after, ending, now)


def _reasoning_used(encoded: Sequence[EncodedMessage]) -> ReasoningUsed:
    """Return the reasoning that the batch adds to that of the session."""
    reported = counted = unreported = 0
    for item in encoded:
        used = item.used
        reported += used.reported
        counted += used.counted
        unreported += used.unreported
    return ReasoningUsed(reported, counted, unreported)


class _Statements(NamedTuple):
    """The texts of the statements that every append runs."""

    read_branch: str
    insert_message: str
    insert_body: str
    insert_thinking: str
    advance_branch: str
    touch_session: str
    insert_origin: str


_STATEMENTS = (
    _READ_BRANCH,
    _INSERT_MESSAGE,
    _INSERT_BODY,
    _INSERT_THINKING,
    _ADVANCE_BRANCH,
    TOUCH_SESSION,
)
_known: dict[str, _Statements] = {}


def _statements(connection: Connection) -> _Statements:
    """Return their texts for a dialect; asked for one by one they cost as much again."""
    name = connection.dialect.name
    if name not in _known:
        _known[name] = _Statements(
            *[
                statement.text(connection)
                for statement in (*_STATEMENTS, origins.INSERT(connection))
            ]
        )
    return _known[name]


def _append_on_sqlite(
    connection: Connection,
    key: int,
    branch: int,
    encoded: Sequence[EncodedMessage],
    after: int | None,
    ending: str | None,
    now: int,
) -> int | None:
    this = (key, branch)
    sql = _statements(connection)
    cursor = driver(connection).cursor()
    branch_row = cursor.execute(sql.read_branch, this).fetchone()
    if branch_row is None:
        return None
    first: int = branch_row[0]
    if branch_row[1] != ending or after not in (None, first - 1):
        return None
    for number, text in {item.origin for item in encoded if item.origin}:
        cursor.execute(sql.insert_origin, (key, number, text))
    for position, item in enumerate(encoded, first):
        place = (*this, position)
        cursor.execute(sql.insert_message, (*place, *item.columns.values()))
        cursor.execute(sql.insert_body, (*place, *item.body.values()))
        for thought in item.thinking:
            cursor.execute(sql.insert_thinking, (*place, *thought.values()))
        if (echo := item.entry.echo) is not None:
            rows = [(*place, number, echo.group) for number in echo.numbers]
            cursor.executemany(_INSERT_ECHO.text(connection), rows)
    cursor.execute(sql.advance_branch, (first + len(encoded), *this))
    used = _reasoning_used(encoded)
    begins = int(branch == 1 and first == 1)
    session_values = (used.reported, used.counted, used.unreported, begins, now, now, key)
    cursor.execute(sql.touch_session, session_values)
    if ending is not None:
        cursor.execute(_END_DRAFT.text(connection), this)
    elif branch_row[2] is not None:
        change(connection, key, "current_branch", branch)
    return first


_APPEND_FUNCTION = """SELECT {}.append_messages(
    %s::bigint, %s::int, %s::bigint, %s::text, %s::bigint, %s::bigint,
    %s::bigint, %s::bigint, %s::bigint, %s::json, %s::json, %s::json, %s::json)"""


def _append_on_postgres(
    connection: Connection,
    key: int,
    branch: int,
    encoded: Sequence[EncodedMessage],
    after: int | None,
    ending: str | None,
    now: int,
) -> int | None:
    # Positions are those of the batch alone; the function adds what stands before.
    heads, texts, thoughts, numbers = [], [], [], []
    for position, item in enumerate(encoded, 1):
        place: dict[str, Any] = {"position": position}
        head = {**place, **item.columns}
        head["digest"] = "\\x" + head["digest"].hex()
        head["made_by"] = item.origin and item.origin[1]
        heads.append(_without_nulls(head))
        texts.append(_without_nulls(place | item.body))
        thoughts += [_without_nulls(place | row) for row in item.thinking]
        if (echo := item.entry.echo) is not None:
            place["client_group"] = echo.group
            numbers += [{**place, "number": number} for number in echo.numbers]
    rows = (_json(heads), _json(texts), _json(thoughts) if thoughts else None)
    used = _reasoning_used(encoded)
    used_up = (used.reported, used.counted, used.unreported)
    known = _json(numbers) if numbers else None
    given = (key, branch, after, ending, len(encoded), now, *used_up, *rows, known)
    call = _APPEND_FUNCTION.format(quoted(schema_of(connection) or "public"))
    (first,) = driver(connection).execute(call, given).fetchone()
    return None if first is None else int(first)


def _without_nulls(columns: dict[str, Any]) -> dict[str, Any]:
    """Return the columns that have a value; the others are NULL."""
    return {name: value for name, value in columns.items() if value is not None}


# This JSON can hold any text of a text column: neither holds NUL.
_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
