"""The SQL of branches: a lineage as flat segments, and forks.

A branch owns the positions from its ``first`` on; those before lie on the branches named
in ``segments``, flat, so that no read climbs from parent to parent. Forking writes one
row and copies no message.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, insert, literal_column, select, union_all

from reasoning_store import numerals
from reasoning_store.errors import CorruptRow, NotFound
from reasoning_store.ledger import arguments, columns, rows, sessions
from reasoning_store.ledger.carried import NOTHING
from reasoning_store.ledger.sql import Sql
from reasoning_store.ledger.tables import STATE, branches, messages
from reasoning_store.ledger.tables import sessions as sessions_table
from reasoning_store.ledger.values import MOST_NUMBER, BranchRow, Segment, State

_b = branches.c
_m = messages.c
_COLUMNS = (
    _b.branch,
    _b.parent,
    _b.first,
    _b.segments,
    _b.next_position,
    _b.created_at,
    *(_b[column] for column in STATE),
)
_THESE = _b.session_key == bindparam("key")

_INSERT = Sql(insert(branches))
_LIST = Sql(select(*_COLUMNS).where(_THESE).order_by(_b.branch))
WHOLE = (*_COLUMNS, sessions_table.c.encoding, _b.next_compaction)
"""What ``looked`` takes."""
THIS = (
    _THESE,
    _b.branch == bindparam("branch"),
    sessions_table.c.session_key == bindparam("key"),
)
_GET = Sql(select(*WHOLE).where(*THIS))
_PLACES = tuple((f"branch_{n}", f"position_{n}") for n in range(3))
_NOWHERE = {name: 0 for place in _PLACES for name in place}
_STATES = Sql(
    union_all(
        *(
            select(
                literal_column(str(n)),
                _m.position,
                _m.has_call,
                *(_m[column] for column in STATE),
            ).where(
                _m.session_key == bindparam("key"),
                _m.branch == bindparam(number),
                _m.position == bindparam(position),
            )
            for n, (number, position) in enumerate(_PLACES)
        )
    )
)


def _row(row: Sequence[Any]) -> BranchRow:
    try:
        return _branch(row)
    except rows.UNREADABLE:
        raise CorruptRow(f"branch {row[0]} cannot be read back") from None


def _branch(row: Sequence[Any]) -> BranchRow:
    number, parent, first, segments, next_position, created_at, *state = row
    shared = tuple([Segment(*segment) for segment in rows.parsed(segments)])
    own = (Segment(number, first, next_position - 1),) if first < next_position else ()
    return BranchRow(
        number=number,
        parent=parent,
        first=first,
        segments=shared + own,
        state=rows.state(next_position - 1, state),
        created_at=created_at,
    )


def get(connection: Connection, key: int, branch: int) -> tuple[BranchRow, str]:
    """Return a branch, and the encoding that its session counts in."""
    return look(connection, key, branch)[:2]


def again(connection: Connection, key: int, was: BranchRow) -> tuple[BranchRow, str]:
    """Return the same of a branch that was looked at before.

    Where its session was erased meanwhile it is gone, though one may stand there again under
    the same id: that one was made later, or is not as long yet.
    """
    found, encoding = get(connection, key, was.number)
    if found.created_at != was.created_at or found.next_position < was.next_position:
        raise no_branch()
    return found, encoding


def look(connection: Connection, key: int, branch: int) -> tuple[BranchRow, str, int]:
    """Return the same, and the number that the branch's next compaction will have."""
    check(branch)
    row = _GET.row(connection, {"key": key, "branch": branch})
    if row is None:
        raise no_branch()
    return looked(row)


def looked(row: Sequence[Any]) -> tuple[BranchRow, str, int]:
    """Return what ``look`` does, of its row."""
    *own, encoding, next_compaction = row
    return _row(own), rows.name_of(encoding), next_compaction


def check(branch: int) -> None:
    """Refuse a number that no column can hold, as the absent branch that it is."""
    if not 0 < arguments.number(branch, "a branch id") <= MOST_NUMBER:
        raise no_branch()


def no_branch() -> NotFound:
    return NotFound(
        "there is no such session or branch for this owner", hint="branches() lists those there are"
    )


def no_position(position: int) -> NotFound:
    return NotFound(
        f"there is no message at position {numerals.told(position)}",
        hint="history() tells which there are",
    )


def all_of(connection: Connection, key: int) -> list[BranchRow]:
    """Return the branches of a session, oldest first."""
    found = [_row(row) for row in _LIST.rows(connection, {"key": key})]
    if not found:
        raise sessions.no_session()
    return found


def upto(segments: Iterable[Segment], last: int) -> tuple[Segment, ...]:
    """Return the part of a lineage that lies at or before ``last``."""
    return tuple(
        [
            segment if segment.last <= last else Segment(segment.branch, segment.first, last)
            for segment in segments
            if segment.first <= last
        ]
    )


def between(branch: BranchRow, first: int, last: int) -> list[Segment]:
    """Return the part of a lineage from ``first`` to ``last``."""
    return [
        Segment(segment.branch, max(segment.first, first), segment.last)
        for segment in upto(branch.segments, last)
        if segment.last >= first
    ]


def place(branch: BranchRow, position: int) -> Segment:
    """Return the segment of the lineage that holds ``position``."""
    arguments.number(position, "position")
    for segment in branch.segments:
        if segment.first <= position <= segment.last:
            return segment
    raise no_position(position)


def states(
    connection: Connection, key: int, branch: BranchRow, positions: Sequence[int]
) -> dict[int, tuple[State, bool]]:
    """Return the state at each position, with whether the message there has a call.

    Three positions are one statement; 0 is the empty state.
    """
    found = {0: (NOTHING, False)}
    wanted = [position for position in positions if position]
    for start in range(0, len(wanted), len(_PLACES)):
        params: dict[str, Any] = {"key": key, **_NOWHERE}
        for (number, at), position in zip(_PLACES, wanted[start:], strict=False):
            params[number], params[at] = place(branch, position).branch, position
        try:
            for _, position, has_call, *sums in _STATES.rows(connection, params):
                found[position] = (rows.state(position, sums), bool(has_call))
        except rows.UNREADABLE:
            raise CorruptRow("the state that a message carries cannot be read back") from None
    if not found.keys() >= set(wanted):
        raise CorruptRow("a message that the branch counts is not there")
    return found


def fork(connection: Connection, key: int, branch: int, at: int, *, created_at: int) -> int:
    """Write a branch that shares the positions before ``at``, and return its number."""
    # First, since it holds the session: an erasure could change the state that is copied.
    number = sessions.take_branch_number(connection, key)
    parent, _, next_compaction = look(connection, key, branch)
    if not 1 <= arguments.number(at, "at") <= parent.next_position:
        raise no_position(at)
    state = states(connection, key, parent, [at - 1])[at - 1][0]
    shared = [[s.branch, s.first, s.last] for s in upto(parent.segments, at - 1)]
    _INSERT.run(
        connection,
        {
            "session_key": key,
            "branch": number,
            "parent": branch,
            "first": at,
            "segments": json.dumps(shared, separators=(",", ":")),
            "next_position": at,
            "draft": None,
            "next_compaction": next_compaction,
            "created_at": created_at,
            **columns.state_columns(state),
        },
    )
    return number
