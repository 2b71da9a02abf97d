"""The SQL of append: one short transaction, in two texts.

Everything slow (tokens, JSON, digests) is done before: what comes here is columns. The
branch row comes first, always: it holds the next position and the carried state, and its
lock makes the order of positions the order of commits, with no gap (``take``).

SQLite runs ``take``, the inserts and the new state in the caller's ``BEGIN IMMEDIATE``.
PostgreSQL does the same in one statement, one round trip: the function
``append_messages`` (in the migrations), whose body is one statement of common table
expressions. It is a function because its plan is then kept by the server: prepared
statements break behind poolers, and planning it anew takes twice as long as running it.
The sum of two states (``carried.then``) is there written in SQL; a test holds them equal.

Both return the first position, or None where the branch is not there, or where something
already stands behind ``after``. Neither reads anything: the idempotency key is a unique
index, and whoever calls this answers its violation.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, insert, or_, update

from reasoning_store.ledger.branches import STATE
from reasoning_store.ledger.carried import running
from reasoning_store.ledger.columns import Prepared, state_columns
from reasoning_store.ledger.rows import state
from reasoning_store.ledger.sessions import SAID
from reasoning_store.ledger.sql import Sql, driver
from reasoning_store.ledger.tables import bodies, branches, messages, thinking_blocks

_b = branches.c
_THIS = (_b.session_key == bindparam("key"), _b.branch == bindparam("of"))
_TAKE = Sql(
    update(branches)
    .where(*_THIS)
    .where(or_(bindparam("after").is_(None), _b.next_position == bindparam("after") + 1))
    .values(next_position=_b.next_position + bindparam("count"))
    .returning(_b.next_position, *(_b[column] for column in STATE))
)
_SET_STATE = Sql(update(branches).where(*_THIS).values({name: bindparam(name) for name in STATE}))
_INSERT_MESSAGE = Sql(insert(messages))
_INSERT_BODY = Sql(insert(bodies))
_INSERT_THINKING = Sql(insert(thinking_blocks))


def append(
    connection: Connection,
    key: int,
    branch: int,
    prepared: Sequence[Prepared],
    *,
    after: int | None,
    idempotency_key: str | None,
    now: int,
) -> int | None:
    """Write the messages behind one another and return the position of the first."""
    # BR-002, BR-009, EC-004: everything is stored, whatever any setting says; no policy
    # reaches this room, and no row is written twice.
    write = _in_one if connection.dialect.name == "postgresql" else _in_steps
    return write(connection, key, branch, prepared, after, idempotency_key, now)


def _keyed(prepared: Sequence[Prepared], idempotency_key: str | None) -> list[dict[str, Any]]:
    """The columns of ``messages``; the first row bears the key of the whole batch."""
    rows = [{**item.columns, "idempotency_key": None, "batch": None} for item in prepared]
    if idempotency_key is not None:
        rows[0].update(idempotency_key=idempotency_key, batch=len(rows))
    return rows


def _in_steps(
    connection: Connection,
    key: int,
    branch: int,
    prepared: Sequence[Prepared],
    after: int | None,
    idempotency_key: str | None,
    now: int,
) -> int | None:
    count = len(prepared)
    this = {"key": key, "of": branch}
    taken = _TAKE.row(connection, {**this, "after": after, "count": count})
    if taken is None:
        return None
    first: int = taken[0] - count
    before = state(first - 1, taken[1:])
    states = list(running([item.own for item in prepared], before))
    heads: list[dict[str, Any]] = []
    texts: list[dict[str, Any]] = []
    thoughts: list[dict[str, Any]] = []
    for head, item, carried in zip(
        _keyed(prepared, idempotency_key), prepared, states, strict=True
    ):
        place = {"session_key": key, "branch": branch, "position": carried.position}
        heads.append({**place, **head, **state_columns(carried)})
        texts.append({**place, **item.body})
        thoughts += [{**place, **row} for row in item.thinking]
    _INSERT_MESSAGE.many(connection, heads)
    _INSERT_BODY.many(connection, texts)
    _INSERT_THINKING.many(connection, thoughts)
    _SET_STATE.run(connection, {**this, **state_columns(states[-1])})
    SAID.run(connection, {"key": key, "now": now})
    return first


_CALL = """SELECT append_messages(
    %s::bigint, %s::int, %s::bigint, %s::bigint, %s::bigint, %s::json, %s::json, %s::json)"""


def _in_one(
    connection: Connection,
    key: int,
    branch: int,
    prepared: Sequence[Prepared],
    after: int | None,
    idempotency_key: str | None,
    now: int,
) -> int | None:
    # Positions and sums are those of the batch alone; the function adds what stands before.
    heads: list[dict[str, Any]] = []
    texts: list[dict[str, Any]] = []
    thoughts: list[dict[str, Any]] = []
    sums = running([item.own for item in prepared])
    for head, item, carried in zip(_keyed(prepared, idempotency_key), prepared, sums, strict=True):
        place = {"position": carried.position}
        digest = "\\x" + head["digest"].hex()
        heads.append({**place, **head, **state_columns(carried), "digest": digest})
        texts.append({**place, **item.body})
        thoughts += [{**place, **row} for row in item.thinking]
    rows = [_json(table) for table in (heads, texts, thoughts)]
    (first,) = (
        driver(connection)
        .execute(_CALL, (key, branch, after, len(prepared), now, *rows))
        .fetchone()
    )
    return None if first is None else int(first)


# What stands in a text column can stand in this JSON: neither holds NUL or a surrogate.
_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
