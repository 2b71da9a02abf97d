"""Branches: a lineage as flat segments, and forks, which copy no message.

A branch owns the positions from its ``first`` on; those before it are on the branches that
``segments`` names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import (
    Connection,
    and_,
    bindparam,
    func,
    insert,
    literal_column,
    select,
)

from reasoning_store.conversation.errors import CorruptRow, NotFound
from reasoning_store.conversation.message_flags import RECORDED, STARTS_TURN
from reasoning_store.conversation.validation import check_number, describe
from reasoning_store.ledger import decode, sessions, stored_compactions
from reasoning_store.ledger.database.database import Database
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.keys import Clock
from reasoning_store.ledger.records import (
    MOST_NUMBER,
    BranchRow,
    DraftMessage,
    Segment,
    SessionRow,
)
from reasoning_store.ledger.tables import (
    branches,
    drafts,
    has_flag,
    in_range,
    messages,
    range_params,
)
from reasoning_store.ledger.tables import sessions as sessions_table

if TYPE_CHECKING:
    from reasoning_store.ledger.drafts import Drafts

_b = branches.c
_m = messages.c
_d = drafts.c


COLUMNS = (
    _b.branch,
    _b.parent,
    _b.first,
    _b.segments,
    _b.next_position,
    _b.next_compaction,
    _b.created_at,
    sessions_table.c.encoding,
)
"""The columns that ``decode_branch`` takes."""
_THESE = (_b.session_key == bindparam("key"), sessions_table.c.session_key == _b.session_key)

_INSERT = Statement(insert(branches))
_OF_BRANCH = (_m.session_key == _b.session_key, _m.branch == _b.branch)
_LIST = Statement(
    select(*COLUMNS, func.coalesce(_d.created_at, _m.created_at, literal_column("0")))
    .select_from(
        branches.outerjoin(
            messages, and_(*_OF_BRANCH, _m.position == _b.next_position - literal_column("1"))
        ).outerjoin(drafts, and_(_d.session_key == _b.session_key, _d.branch == _b.branch))
    )
    .where(*_THESE)
    .order_by(_b.branch)
)
"""Each branch with its ``last_at``."""
THIS = (*_THESE, _b.branch == bindparam("branch"))
_GET = Statement(select(*COLUMNS).where(*THIS))
_LAST_BEFORE = select(_m.position).where(*in_range(_m)).order_by(_m.position.desc()).limit(1)
LAST_TURN = Statement(_LAST_BEFORE.where(has_flag(_m, STARTS_TURN)))
LAST_RECORDED = Statement(_LAST_BEFORE.where(has_flag(_m, RECORDED)))
LAST_THINKING = Statement(_LAST_BEFORE.where(_m.shape.is_not(None)))
"""Each reads backwards from the end of a range to the first message that it is about."""


def decode_branch(row: Sequence[Any], last_at: int = 0) -> BranchRow:
    """Return a branch from ``COLUMNS``."""
    number, parent, first, segments, next_position, next_compaction, created_at, encoding = row
    try:
        shared = tuple([Segment(*segment) for segment in decode.parsed(segments)])
        own = (Segment(number, first, next_position - 1),) if first < next_position else ()
    except decode.UNREADABLE:
        raise CorruptRow(f"branch {number} cannot be read back") from None
    return BranchRow(
        number=number,
        parent=parent,
        first=first,
        segments=shared + own,
        next_position=next_position,
        next_compaction=next_compaction,
        created_at=created_at,
        encoding=encoding,
        last_at=last_at,
    )


def get(connection: Connection, key: int, branch: int) -> BranchRow:
    check_branch(branch)
    row = _GET.row(connection, {"key": key, "branch": branch})
    if row is None:
        raise no_branch(branch)
    return decode_branch(row)


def reread(connection: Connection, key: int, was: BranchRow) -> BranchRow:
    """Return a branch that was read before.

    If its session was erased meanwhile it is gone. A session of the same id may be there again: it
    was made later, or is not as long yet.
    """
    again = get(connection, key, was.number)
    if again.created_at != was.created_at or again.next_position < was.next_position:
        raise no_branch(was.number)
    return again


def check_branch(branch: int) -> None:
    """Refuse a number that no column can hold, as the absent branch that it is."""
    if not 0 < check_number("a branch id", branch) <= MOST_NUMBER:
        raise no_branch(branch)


def no_branch(branch: int, session_id: str | None = None) -> NotFound:
    of = "this session" if session_id is None else f"the session {describe(session_id)}"
    return NotFound(
        f"there is no branch {describe(branch)} of {of}, or no such session",
        hint="branches() lists those there are",
    )


def no_position(position: int) -> NotFound:
    return NotFound(
        f"there is no message at position {describe(position)}",
        hint="history() lists them",
    )


def all_of(connection: Connection, key: int) -> list[BranchRow]:
    """Return the branches of a session, oldest first."""
    found = [decode_branch(row, last_at) for *row, last_at in _LIST.rows(connection, {"key": key})]
    if not found:
        raise sessions.no_session()
    return found


def branch_of(rows: Iterable[BranchRow], branch: int) -> BranchRow:
    """Return the branch of a number among those of its session."""
    for row in rows:
        if row.number == branch:
            return row
    raise no_branch(branch)


def segments_upto(segments: Iterable[Segment], last: int) -> tuple[Segment, ...]:
    """Return the part of a lineage that lies at or before ``last``."""
    return tuple(
        [
            segment if segment.last <= last else Segment(segment.branch, segment.first, last)
            for segment in segments
            if segment.first <= last
        ]
    )


def segments_between(branch: BranchRow, first: int, last: int) -> list[Segment]:
    """Return the part of a lineage from ``first`` to ``last``."""
    return [
        Segment(segment.branch, max(segment.first, first), segment.last)
        for segment in segments_upto(branch.segments, last)
        if segment.last >= first
    ]


def segment_at(branch: BranchRow, position: int) -> Segment:
    """Return the segment of the lineage that holds ``position``."""
    check_number("position", position)
    for segment in branch.segments:
        if segment.first <= position <= segment.last:
            return segment
    raise no_position(position)


def last_of(
    connection: Connection, key: int, segments: Sequence[Segment], which: Statement
) -> int | None:
    """Return the last position in these ranges that ``which`` finds."""
    for part in reversed(segments):
        row = which.row(connection, range_params(key, part))
        if row is not None:
            return int(row[0])
    return None


def turn_start(connection: Connection, key: int, branch: BranchRow, at: int) -> int | None:
    """Return the message that starts the turn of a position; None before the first one."""
    return last_of(connection, key, segments_upto(branch.segments, at), LAST_TURN)


def starts_turn(connection: Connection, key: int, branch: BranchRow, at: int) -> bool:
    """Whether a turn starts at a position."""
    return last_of(connection, key, segments_between(branch, at, at), LAST_TURN) == at


def add_branch(
    connection: Connection,
    key: int,
    branch: int,
    at: int,
    *,
    created_at: int,
    instead_of: int | None = None,
) -> int:
    """Write a branch that shares the positions before ``at``, and return its number."""
    # First, since it holds the session.
    number = sessions.take_branch_number(connection, key)
    parent = get(connection, key, branch)
    if not 1 <= check_number("at", at) <= parent.next_position:
        raise no_position(at)
    shared = [[s.branch, s.first, s.last] for s in segments_upto(parent.segments, at - 1)]
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
            "instead_of": instead_of,
            "next_compaction": parent.next_compaction,
            "created_at": created_at,
        },
    )
    return number


def fork(
    connection: Connection,
    key: int,
    branch: int,
    at: int,
    *,
    created_at: int,
    instead_of: int | None = None,
) -> int:
    """Write a branch with copies of the compactions that end before it; return its number."""
    number = add_branch(connection, key, branch, at, created_at=created_at, instead_of=instead_of)
    _copy_compactions(connection, key, branch, number, at)
    return number


def _copy_compactions(connection: Connection, key: int, branch: int, fork: int, at: int) -> None:
    """Give a fork its own of those that end before ``at``, the first position of its own.

    A range that ends there is in force on the fork once a turn of its own has started.
    """
    rows = [
        row
        for row in stored_compactions.all_of(connection, key, branch)
        if row.last < at and row.undone_at is None
    ]
    numbers = {row.number for row in rows}
    # Some of those that it superseded, or that supersede it, may not be among the copies.
    by = {row.number: row.superseded_by for row in rows if row.superseded_by in numbers}
    copies = [
        replace(
            row,
            branch=fork,
            copied_from=branch,
            superseded_by=by.get(row.number),
            supersedes=tuple([number for number in by if by[number] == row.number]),
        )
        for row in rows
    ]
    stored_compactions.add(connection, key, copies)


class Branches:
    """The branches of a session."""

    def __init__(self, database: Database, clock: Clock, drafts: Drafts) -> None:
        self._database = database
        self._clock = clock
        self._drafts = drafts

    def all_of(self, session_key: int) -> list[BranchRow]:
        return self._database.read_one(all_of, session_key)

    def turn_start(self, session_key: int, branch: int) -> int | None:
        """Return the start of the open turn of a branch; None before the first one."""

        def read(connection: Connection) -> int | None:
            found = get(connection, session_key, branch)
            return turn_start(connection, session_key, found, found.head)

        return self._database.read(read)

    def get(self, session_key: int, branch: int) -> BranchRow:
        return self._database.read_one(get, key=session_key, branch=branch)

    def fork(
        self,
        session_key: int,
        branch: int,
        at: int,
        *,
        current: bool | Literal["later"] = False,
        draft_message: DraftMessage | None = None,
    ) -> int:
        """Return a new branch that shares the messages before ``at`` and nothing after.

        It has its own copies of the compactions that end before it. With ``current`` it becomes the
        current branch in the same step, or ``later``, with what arrives on it first. If the last
        message that it shares is a draft which has lost its recorder, that draft ends first:
        ``draft_message`` is that of ``append``.
        """
        now = self._clock.now()
        shared = check_number("at", at) - 1
        self._drafts.end_draft_at(session_key, branch, shared, draft_message)

        def work(connection: Connection) -> int:
            later = current == "later"
            was = sessions.by_key(connection, session_key).current_branch if later else None
            number = fork(connection, session_key, branch, at, created_at=now, instead_of=was)
            if current is True:
                sessions.change(connection, session_key, "current_branch", number)
            return number

        return self._database.write(work)

    def activate(self, session_key: int, branch: int) -> SessionRow:
        """Make a branch the one that opening the session gives."""

        def work(connection: Connection) -> SessionRow:
            get(connection, session_key, branch)
            return sessions.change(connection, session_key, "current_branch", branch)

        return self._database.write(work)
