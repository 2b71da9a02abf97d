"""The SQL that makes carried state anew behind rows that were changed.

Erasing changes what a message counts, and with it the state of every message behind it, on
its own branch and on all that share it. Each row's part is taken from the narrow row alone;
of one that was changed, whoever changed it says what the row cannot. No body is read.

Knows the carried state; knows nothing of why a row was changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, select, update

from reasoning_store.errors import CorruptRow
from reasoning_store.ledger import branches, carried, columns, rows
from reasoning_store.ledger.pairs import Place
from reasoning_store.ledger.sql import Sql
from reasoning_store.ledger.tables import STATE, messages
from reasoning_store.ledger.tables import branches as branches_table
from reasoning_store.ledger.values import BranchRow, State

_PAGE = 2000
_NEVER = 1 << 63
_m, _h = messages.c, branches_table.c
_OWN = Sql(
    select(
        _m.position,
        _m.origin,
        _m.visible,
        _m.clearable,
        _m.exactness,
        _m.has_call,
        _m.shape,
        *(_m[name] for name in STATE),
    )
    .where(_m.session_key == bindparam("key"), _m.branch == bindparam("of"))
    .where(_m.position.between(bindparam("first"), bindparam("last")))
    .order_by(_m.position)
    .limit(_PAGE)
)
_SET_STATE = Sql(
    update(messages)
    .where(_m.session_key == bindparam("key"), _m.branch == bindparam("of"))
    .where(_m.position == bindparam("at"))
    .values({name: bindparam(name) for name in STATE})
)
_SET_HEAD = Sql(
    update(branches_table)
    .where(_h.session_key == bindparam("key"), _h.branch == bindparam("of"))
    .values({name: bindparam(name) for name in STATE})
)


@dataclass(frozen=True, slots=True)
class Own:
    """What the narrow row of a changed message does not say."""

    starts_turn: bool
    sent: bool | None
    """None: as it was."""


def recarry(
    connection: Connection,
    key: int,
    lineages: Sequence[BranchRow],
    changed: Mapping[Place, Own],
) -> None:
    """Make the state anew from the first changed row on, in every branch that has it."""
    firsts: dict[int, int] = {}
    for branch, position in changed:
        firsts[branch] = min(firsts.get(branch, position), position)
    # In the order of their numbers, so that what a branch starts from is done already.
    for lineage in lineages:
        start = firsts.get(lineage.number)
        if any(
            segment.branch != lineage.number and firsts.get(segment.branch, _NEVER) <= segment.last
            for segment in lineage.segments
        ):
            start = lineage.first
        if start is not None:
            _one(connection, key, lineage, start, changed)


def _one(
    connection: Connection,
    key: int,
    lineage: BranchRow,
    start: int,
    changed: Mapping[Place, Own],
) -> None:
    this = {"key": key, "of": lineage.number}
    state = branches.states(connection, key, lineage, [start - 1])[start - 1][0]
    while True:
        span = {**this, "first": state.position + 1, "last": lineage.state.position}
        page = _OWN.rows(connection, span)
        updates: list[dict[str, Any]] = []
        for row in page:
            try:
                old, own = _states(row, changed.get((lineage.number, row[0])))
            except rows.UNREADABLE:
                raise CorruptRow(f"message {row[0]} cannot be read back") from None
            state = carried.then(state, own)
            if state != old:
                updates.append({**this, "at": row[0], **columns.state_columns(state)})
        _SET_STATE.many(connection, updates)
        if len(page) < _PAGE:
            break
    _SET_HEAD.run(connection, {**this, **columns.state_columns(state)})


def _states(row: Sequence[Any], changed: Own | None) -> tuple[State, State]:
    """Return the state that a row carries, and the one that its message is on its own."""
    position, origin, visible, clearable, exactness, has_call, shape, *stored = row
    old = rows.state(position, stored)
    sent = old.last_sent == position
    if changed is not None and changed.sent is not None:
        sent = changed.sent
    own = carried.own_state(
        rows.parsed(shape) if shape else (),
        visible=visible,
        clearable=clearable,
        exactness=rows.EXACTNESS_OF[exactness],
        has_call=bool(has_call),
        starts_turn=old.turn_start == position if changed is None else changed.starts_turn,
        origin=origin,
        sent=sent,
    )
    return old, own
