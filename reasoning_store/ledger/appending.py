"""The SQL of append: one short transaction, in two texts.

Everything slow (tokens, JSON, digests) is done before: what comes here is columns. The
branch row comes first, always: it holds the next position and the carried state, and its
lock makes the order of positions the order of commits, with no gap.

SQLite reads the branch, inserts and moves the branch on in the caller's ``BEGIN IMMEDIATE``.
PostgreSQL does the same in one statement, one round trip: the function
``append_messages`` (in the migrations), whose body is one statement of common table
expressions. It is a function because its plan is then kept by the server: prepared
statements break behind poolers, and planning it anew takes twice as long as running it.
The sum of two states (``carried.then``) is there written in SQL; a test holds them equal.

Both return the first position, or None where the branch is not there, where something
already stands behind ``after``, or where the branch's live draft is not the one that this
append ends (``drafts``). Neither reads anything: the idempotency key is a unique index, and
whoever calls this answers its violation.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, null, select, update

from reasoning_store.ledger.carried import running, then
from reasoning_store.ledger.columns import (
    BODY,
    COLUMNS,
    THINKING,
    Prepared,
    state_columns,
    state_values,
)
from reasoning_store.ledger.rows import state
from reasoning_store.ledger.sessions import SAID
from reasoning_store.ledger.sql import Sql, driver
from reasoning_store.ledger.tables import (
    STATE,
    bodies,
    branches,
    drafts,
    messages,
    thinking_blocks,
)
from reasoning_store.ledger.values import Thought

_b = branches.c
_THIS = (_b.session_key == bindparam("key"), _b.branch == bindparam("of"))
_HEAD = Sql(
    select(_b.next_position, _b.draft, *(_b[column] for column in STATE)).where(*_THIS),
    order=("key", "of"),
)
_GO_ON = Sql(
    update(branches)
    .where(*_THIS)
    .values({name: bindparam(name) for name in ("next_position", *STATE)} | {"draft": null()}),
    order=("next_position", *STATE, "key", "of"),
)
_PLACE = ("session_key", "branch", "position")
_OWN = COLUMNS.index("idempotency_key")
"""How many of a message's own columns stand before the carried state; the others follow it."""
_INSERT_MESSAGE = Sql(insert(messages), order=(*_PLACE, *COLUMNS[:_OWN], *STATE, *COLUMNS[_OWN:]))
_INSERT_BODY = Sql(insert(bodies), order=(*_PLACE, *BODY))
_INSERT_THINKING = Sql(insert(thinking_blocks), order=(*_PLACE, *THINKING))
_END_DRAFT = Sql(
    delete(drafts).where(
        drafts.c.session_key == bindparam("key"), drafts.c.branch == bindparam("of")
    )
)


def append(
    connection: Connection,
    key: int,
    branch: int,
    prepared: Sequence[Prepared],
    *,
    after: int | None,
    ending: str | None,
    now: int,
) -> int | None:
    """Write the messages behind one another and return the position of the first.

    ``ending`` is the draft that ends with this, and whose parts go.
    """
    # BR-002, BR-009, EC-004: everything is stored, whatever any setting says; no policy
    # reaches this room, and no row is written twice.
    write = _in_one if connection.dialect.name == "postgresql" else _in_steps
    return write(connection, key, branch, prepared, after, ending, now)


def _thought(prepared: Sequence[Prepared]) -> Thought:
    """What the batch adds to the reasoning that the session has used."""
    reported = counted = unreported = 0
    for item in prepared:
        thought = item.thought
        reported += thought.reported
        counted += thought.counted
        unreported += thought.unreported
    return Thought(reported, counted, unreported)


def _in_steps(
    connection: Connection,
    key: int,
    branch: int,
    prepared: Sequence[Prepared],
    after: int | None,
    ending: str | None,
    now: int,
) -> int | None:
    this = (key, branch)
    head = _HEAD.row(connection, this)
    if head is None:
        return None
    first: int = head[0]
    if head[1] != ending or after not in (None, first - 1):
        return None
    carried = state(first - 1, head[2:])
    heads, texts, thoughts = [], [], []
    for item in prepared:
        carried = then(carried, item.own)
        place = (*this, carried.position)
        own, sums = tuple(item.columns.values()), state_values(carried)
        heads.append((*place, *own[:_OWN], *sums, *own[_OWN:]))
        texts.append((*place, *item.body.values()))
        thoughts += [(*place, *row.values()) for row in item.thinking]
    _INSERT_MESSAGE.many(connection, heads)
    _INSERT_BODY.many(connection, texts)
    _INSERT_THINKING.many(connection, thoughts)
    _GO_ON.run(connection, (carried.position + 1, *sums, *this))
    used = _thought(prepared)
    SAID.run(
        connection,
        {
            "key": key,
            "now": now,
            "reasoning": used.reported,
            "counted": used.counted,
            "unreported": used.unreported,
        },
    )
    if ending is not None:
        _END_DRAFT.run(connection, {"key": key, "of": branch})
    return first


_CALL = """SELECT append_messages(
    %s::bigint, %s::int, %s::bigint, %s::text, %s::bigint, %s::bigint,
    %s::bigint, %s::bigint, %s::bigint, %s::json, %s::json, %s::json)"""


def _in_one(
    connection: Connection,
    key: int,
    branch: int,
    prepared: Sequence[Prepared],
    after: int | None,
    ending: str | None,
    now: int,
) -> int | None:
    # Positions and sums are those of the batch alone; the function adds what stands before.
    heads: list[dict[str, Any]] = []
    texts: list[dict[str, Any]] = []
    thoughts: list[dict[str, Any]] = []
    sums = running([item.own for item in prepared])
    for item, carried in zip(prepared, sums, strict=True):
        place = {"position": carried.position}
        digest = "\\x" + item.columns["digest"].hex()
        heads.append({**place, **item.columns, **state_columns(carried), "digest": digest})
        texts.append({**place, **item.body})
        thoughts += [{**place, **row} for row in item.thinking]
    rows = [_json(table) for table in (heads, texts, thoughts)]
    used = _thought(prepared)
    used_up = (used.reported, used.counted, used.unreported)
    (first,) = (
        driver(connection)
        .execute(_CALL, (key, branch, after, ending, len(prepared), now, *used_up, *rows))
        .fetchone()
    )
    return None if first is None else int(first)


# What stands in a text column can stand in this JSON: neither holds NUL or a surrogate.
_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
