"""Running totals computed again after rows were changed, in every branch that shares them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, select, update

from reasoning_store.conversation.errors import CorruptRow
from reasoning_store.ledger import branches
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.message_columns import TOTALLED
from reasoning_store.ledger.records import BranchRow, MessagePlace, RunningTotals
from reasoning_store.ledger.rows import decode, encode, totals
from reasoning_store.ledger.rows.conditions import at_position, in_range, of_branch
from reasoning_store.ledger.tables import TOTALS, messages
from reasoning_store.ledger.tables import branches as branches_table

_PAGE = 2000
_NEVER = 1 << 63
_m, _h = messages.c, branches_table.c
_OWN = Statement(
    select(
        _m.position,
        *(_m[name] for name in TOTALLED),
        *(_m[name] for name in TOTALS),
    )
    .where(*in_range(_m))
    .order_by(_m.position)
    .limit(_PAGE)
)
_SET_TOTALS = Statement(
    update(messages).where(*at_position(_m)).values({name: bindparam(name) for name in TOTALS})
)
_SET_HEAD = Statement(
    update(branches_table).where(*of_branch(_h)).values({name: bindparam(name) for name in TOTALS})
)


@dataclass(frozen=True, slots=True)
class Own:
    """The facts about a changed message that its narrow row does not have."""

    starts_turn: bool
    has_request: bool | None
    """None: as it was."""


def recompute_totals(
    connection: Connection,
    key: int,
    lineages: Sequence[BranchRow],
    changed: Mapping[MessagePlace, Own],
) -> None:
    """Compute the running totals again from the first changed row on, in each branch with it."""
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
    changed: Mapping[MessagePlace, Own],
) -> None:
    this = {"key": key, "of": lineage.number}
    carried = branches.totals_at(connection, key, lineage, [start - 1])[start - 1].totals
    while True:
        span = {**this, "first": carried.position + 1, "last": lineage.totals.position}
        page = _OWN.rows(connection, span)
        updates: list[dict[str, Any]] = []
        for row in page:
            try:
                old, own = _old_and_own(row, changed.get(MessagePlace(lineage.number, row[0])))
            except decode.UNREADABLE:
                raise CorruptRow(f"message {row[0]} cannot be read back") from None
            carried = totals.add_totals(carried, own)
            if carried != old:
                updates.append({**this, "at": row[0], **encode.totals_columns(carried)})
        _SET_TOTALS.many(connection, updates)
        if len(page) < _PAGE:
            break
    _SET_HEAD.run(connection, {**this, **encode.totals_columns(carried)})


def _old_and_own(row: Sequence[Any], changed: Own | None) -> tuple[RunningTotals, RunningTotals]:
    """Return the totals that a row carries, and those of its message alone."""
    position, origin, visible, clearable, exactness, has_call, shape, *stored = row
    old = decode.decode_totals(position, stored)
    has_request = old.last_sent == position
    if changed is not None and changed.has_request is not None:
        has_request = changed.has_request
    own = totals.message_totals(
        decode.headers_of(shape),
        visible=visible,
        clearable=clearable,
        exactness=decode.EXACTNESS_OF[exactness],
        has_call=bool(has_call),
        starts_turn=old.turn_start == position if changed is None else changed.starts_turn,
        origin=origin,
        has_request=has_request,
    )
    return old, own
