"""The SQL that reads messages: one range a segment and a table, grouped here.

A lineage lies on few branches; each part of it is one index range of ``messages``, of
``bodies`` and, only where thinking is wanted, of ``thinking_blocks``. Nothing here holds a
cursor open: what is returned is whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from sqlalchemy import Connection, bindparam, select

from reasoning_store.blocks import Origin
from reasoning_store.errors import CorruptRow
from reasoning_store.ledger import branches, interning
from reasoning_store.ledger.carried import NOTHING, running, state_of
from reasoning_store.ledger.rows import UNREADABLE, state, stored_row
from reasoning_store.ledger.sql import Sql
from reasoning_store.ledger.tables import bodies, messages, thinking_blocks
from reasoning_store.ledger.values import (
    Recounted,
    Segment,
    StoredRow,
)

_m, _b, _t = messages.c, bodies.c, thinking_blocks.c


def _range(table: Any) -> tuple[Any, ...]:
    return (
        table.session_key == bindparam("key"),
        table.branch == bindparam("branch"),
        table.position.between(bindparam("first"), bindparam("last")),
    )


_HEADS = Sql(
    select(
        _m.position,
        _m.id,
        _m.role,
        _m.status,
        _m.created_at,
        _m.origin,
        _m.visible,
        _m.exactness,
        _m.shape,
        _m.digest,
    )
    .where(*_range(_m))
    .order_by(_m.position)
)
_BODIES = Sql(select(_b.position, _b.text, _b.data).where(*_range(_b)).order_by(_b.position))
_THINKING = Sql(
    select(_t.position, _t.ordinal, _t.tokens, _t.source_field, _t.thought, _t.data)
    .where(*_range(_t))
    .order_by(_t.position, _t.ordinal)
)
_STATES = Sql(
    select(
        _m.position,
        _m.origin,
        _b.sent.is_not(None),
        *(_m[column] for column in branches.STATE),
    )
    .where(*_range(_m))
    .where(_b.session_key == _m.session_key, _b.branch == _m.branch, _b.position == _m.position)
    .order_by(_m.position)
)
_BY_KEY = Sql(
    select(_m.branch, _m.position, _m.batch).where(
        _m.session_key == bindparam("key"), _m.idempotency_key == bindparam("idempotency_key")
    )
)
_ABSENT: tuple[None, ...] = (None,) * 10
_ORIGIN = 5
_SHAPE = 8


def _params(key: int, segment: Segment) -> dict[str, Any]:
    return {"key": key, "branch": segment.branch, "first": segment.first, "last": segment.last}


def of_segments(
    connection: Connection, key: int, segments: Sequence[Segment], *, thinking: bool
) -> list[StoredRow]:
    """Return the messages of ranges that lie behind one another, one read a range and table."""
    out: list[StoredRow] = []
    origins: dict[int, Origin] | None = None
    for segment in segments:
        params = _params(key, segment)
        heads = _HEADS.each(connection, params)
        texts = _BODIES.each(connection, params)
        thoughts = _THINKING.each(connection, params) if thinking else iter(())
        next_thought = next(thoughts, None)
        number = segment.branch
        for due, (head, body) in enumerate(
            zip_longest(heads, texts, fillvalue=_ABSENT), segment.first
        ):
            position, origin_number = head[0], head[_ORIGIN]
            if not position == body[0] == due:
                raise CorruptRow(f"message {due} is not whole")
            mine = None
            if thinking and head[_SHAPE] is not None:
                mine = []
                while next_thought is not None and next_thought[0] == position:
                    mine.append(next_thought)
                    next_thought = next(thoughts, None)
            origin = None
            if origin_number is not None:
                if origins is None:
                    origins = interning.all_of(connection, key)
                origin = origins.get(origin_number)
                if origin is None:
                    raise CorruptRow(f"the origin of message {due} is not there")
            try:
                out.append(stored_row(number, head, body, mine, origin))
            except UNREADABLE:
                raise CorruptRow(f"message {due} cannot be read back") from None
        if next_thought is not None:
            raise CorruptRow(f"the thinking of message {next_thought[0]} is out of place")
        if not out or out[-1].position != segment.last:
            raise CorruptRow(f"message {segment.last} is not there")
    return out


def get(
    connection: Connection, key: int, branch: int, position: int, *, thinking: bool
) -> StoredRow:
    """Return one message."""
    found, _ = branches.get(connection, key, branch)
    segment = branches.place(found, position)
    one = Segment(segment.branch, position, position)
    return of_segments(connection, key, [one], thinking=thinking)[0]


def from_position(
    connection: Connection, key: int, branch: int, position: int, *, count: int
) -> list[StoredRow]:
    """Return at most ``count`` messages from a position on."""
    found, _ = branches.get(connection, key, branch)
    last = min(position + count - 1, found.state.position)
    return of_segments(connection, key, branches.between(found, position, last), thinking=True)


def part(connection: Connection, key: int, segment: Segment, *, thinking: bool) -> list[StoredRow]:
    """Return the messages of one segment."""
    return of_segments(connection, key, [segment], thinking=thinking)


def by_idempotency_key(connection: Connection, key: int, name: str) -> list[StoredRow] | None:
    """Return what was appended under an idempotency key, if anything was."""
    row = _BY_KEY.row(connection, {"key": key, "idempotency_key": name})
    if row is None:
        return None
    branch, first, batch = row
    return of_segments(connection, key, [Segment(branch, first, first + batch - 1)], thinking=True)


def recount(connection: Connection, key: int, branch: int) -> list[Recounted]:
    """Return the state that each row carries beside the one that the rows give.

    The branch's own comes last.
    """
    found, _ = branches.get(connection, key, branch)
    rows = of_segments(connection, key, list(found.segments), thinking=True)
    carried: list[tuple[Any, ...]] = []
    for segment in found.segments:
        carried += _STATES.rows(connection, _params(key, segment))
    steps = [
        state_of(
            row.message.blocks,
            row.counts,
            starts_turn=row.message.starts_turn,
            origin=origin,
            sent=bool(sent),
        )
        for row, (_, origin, sent, *_rest) in zip(rows, carried, strict=True)
    ]
    pairs = [
        Recounted(stored=state(position, columns), actual=actual)
        for (position, _, _, *columns), actual in zip(carried, running(steps), strict=True)
    ]
    pairs.append(Recounted(stored=found.state, actual=pairs[-1].actual if pairs else NOTHING))
    return pairs
