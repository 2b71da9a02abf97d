"""The SQL of views: a conversation as its compactions leave it.

What stands in a view, and what it comes to. The sums are taken from the states at the ends
of the ranges, so they cost a number of reads that grows with the ranges in force and not
with the conversation. The messages are read around the ranges; those inside are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, bindparam, select

from reasoning_store import clearing
from reasoning_store.blocks import Origin
from reasoning_store.errors import CorruptRow
from reasoning_store.ledger import (
    arguments,
    branches,
    carried,
    compactions,
    drafts,
    interning,
    plain,
    reading,
    sessions,
)
from reasoning_store.ledger.carried import origin_of, own_thinking
from reasoning_store.ledger.keys import session_key
from reasoning_store.ledger.rows import parsed
from reasoning_store.ledger.sql import Sql
from reasoning_store.ledger.summaries import (
    NOTHING_IN_FORCE,
    Cleared,
    InForce,
    Outlook,
    UsageRows,
    ViewRow,
    ViewRows,
)
from reasoning_store.ledger.tables import bodies, messages
from reasoning_store.ledger.values import BranchRow, Segment, SentRow, State, StoredRow

_b, _m = bodies.c, messages.c
_REPLIES = select(_b.position, _b.sent, _m.created_at).where(
    _b.session_key == bindparam("key"),
    _b.branch == bindparam("branch"),
    _m.session_key == _b.session_key,
    _m.branch == _b.branch,
    _m.position == _b.position,
)
_BOTH = Sql(select(*sessions.WHOLE, *branches.WHOLE).where(*branches.THIS))
_SENT = Sql(_REPLIES.where(_b.position == bindparam("position")))

_CLEARABLE = Sql(
    select(_m.position, _m.clearable)
    .where(_m.session_key == bindparam("key"), _m.branch == bindparam("branch"))
    .where(_m.position.between(bindparam("first"), bindparam("last")), _m.clearable > 0)
)
_SENT_FROM = Sql(
    _REPLIES.where(
        _b.position.between(bindparam("first"), bindparam("last")), _b.sent.is_not(None)
    ).order_by(_b.position)
)


def state_at(connection: Connection, key: int, found: BranchRow, at: int | None) -> State:
    """Return the state of a branch at its head, or at an earlier position."""
    head = found.state
    if at is None or at == head.position:
        return head
    if not 0 <= arguments.number(at, "at") <= head.position:
        raise drafts.not_counted(connection, key, found, at) or branches.no_position(at)
    return branches.states(connection, key, found, [at])[at][0]


def view(
    connection: Connection,
    key: int,
    branch: int,
    at: int | None,
    *,
    thinking_from: int,
    by_column: bool = False,
) -> ViewRows:
    """Return the messages up to ``at`` that are in no range, and the summaries, in order.

    ``by_column``: the long runs of plain messages of closed turns come as ``PlainRows``.

    Those before ``thinking_from`` are read without their thinking. Results that are cleared
    have given way already, in what the messages count, too.
    """
    found, _, next_compaction = branches.look(connection, key, branch)
    state = state_at(connection, key, found, at)
    in_force = NOTHING_IN_FORCE
    if next_compaction > 1:
        in_force = compactions.standing(connection, key, branch, state.turn_start)
    summaries = compactions.summaries(connection, key, branch, in_force)
    segments = []
    start = 1
    for summary in summaries:
        segments += branches.between(found, start, summary.first - 1)
        start = summary.last + 1
    segments += branches.between(found, start, state.position)
    closed = (state.turn_start or 1) - 1 if by_column else 0
    rows: list[ViewRow] = []
    for part, thinking in _parted(segments, thinking_from):
        rows += plain.of_segment(connection, key, part, closed, thinking=thinking)
    if in_force.cleared is not None:
        _clear(connection, key, found, in_force.cleared, rows)
    if summaries:
        rows = sorted([*rows, *summaries], key=_position)
    return ViewRows(rows, in_force)


def _clear(
    connection: Connection, key: int, found: BranchRow, cleared: Cleared, rows: list[ViewRow]
) -> None:
    """Put what stands for cleared results into the rows of a view."""
    freed: dict[int, int] = {}
    for segment in branches.upto(found.segments, cleared.last):
        span = {"first": segment.first, "last": segment.last}
        freed.update(_CLEARABLE.rows(connection, {"key": key, "branch": segment.branch, **span}))
    for place, row in enumerate(rows):
        own = freed.get(row.position)
        if own is not None and isinstance(row, StoredRow):
            rows[place] = replace(
                row,
                message=clearing.cleared(row.message),
                counts=replace(row.counts, visible=row.counts.visible - own),
            )


def following(
    connection: Connection,
    key: int,
    branch: int,
    after: int,
    in_force: Sequence[int],
    *,
    thinking_from: int,
) -> list[StoredRow] | None:
    """Return the messages behind a position, where the compactions in force are these.

    None says that the view is another one by now.
    """
    found, _, next_compaction = branches.look(connection, key, branch)
    state = found.state
    now = NOTHING_IN_FORCE
    if next_compaction > 1:
        now = compactions.standing(connection, key, branch, state.turn_start)
    if list(now.numbers) != list(in_force) or state.position < after:
        return None
    segments = branches.between(found, after + 1, state.position)
    return _read(connection, key, segments, thinking_from)


def _read(
    connection: Connection, key: int, segments: Sequence[Segment], thinking_from: int
) -> list[StoredRow]:
    rows: list[StoredRow] = []
    for part, thinking in _parted(segments, thinking_from):
        rows += reading.of_segments(connection, key, [part], thinking=thinking)
    return rows


def _parted(segments: Sequence[Segment], thinking_from: int) -> Iterator[tuple[Segment, bool]]:
    """Yield the parts of ranges, and whether what was thought in each is to be read."""
    for part in segments:
        split = min(max(part.first, thinking_from), part.last + 1)
        if part.first < split:
            yield Segment(part.branch, part.first, split - 1), False
        if split <= part.last:
            yield Segment(part.branch, split, part.last), True


def _position(row: ViewRow) -> int:
    return row.position


def outlook(
    connection: Connection, owner: str, session_id: str, branch: int, at: int | None, *, sent: bool
) -> Outlook:
    """Return all that a count for the next request asks for, read at one moment.

    ``sent``: what the last recorded reply was sent too.
    """
    branches.check(branch)
    key = session_key(owner, session_id)
    both = _BOTH.row(connection, {"key": key, "branch": branch})
    if both is None:
        raise branches.no_branch()
    of_session = len(sessions.WHOLE)
    session = sessions.owned(both[:of_session], owner, session_id)
    looked = branches.looked(both[of_session:])
    counted = _usage(connection, key, looked, at)
    position = counted.lineage.last_sent if sent else None
    last = None if position is None else _sent_at(connection, key, looked[0], position)
    return Outlook(session, counted, last)


def usage(connection: Connection, key: int, branch: int, at: int | None) -> UsageRows:
    """Return what a count of any policy needs, in a number of reads that length cannot move."""
    return _usage(connection, key, branches.look(connection, key, branch), at)


def _usage(
    connection: Connection, key: int, looked: tuple[BranchRow, str, int], at: int | None
) -> UsageRows:
    found, encoding, next_compaction = looked
    lineage = state_at(connection, key, found, at)
    in_force = NOTHING_IN_FORCE
    if next_compaction > 1:
        in_force = compactions.standing(connection, key, found.number, lineage.turn_start)
    ranges = in_force.ranges
    last = lineage.last_thinking
    turn = 0 if lineage.turn_start is None else lineage.turn_start - 1
    wanted = [turn]
    if ranges:
        wanted += [position for one in ranges for position in (one.first - 1, one.last)]
    elif last is not None:
        wanted += [last - 1, last]
    if in_force.cleared is not None:
        wanted.append(in_force.cleared.last)
    states = branches.states(connection, key, found, wanted)
    if ranges:
        for one in reversed(ranges):
            # Nobody in a range thinks any more; who did before it?
            if last is not None and one.first <= last <= one.last:
                last = states[one.first - 1][0].last_thinking
        if last is not None:
            states |= branches.states(connection, key, found, [last - 1, last])
    gone = [(carried.between(states[one.first - 1][0], states[one.last][0]), one) for one in ranges]
    freed = _freed(states, in_force)
    head = lineage
    if ranges or freed:
        head = carried.view_of(lineage, gone, freed)._replace(last_thinking=last)
    own = None
    if last is not None:
        state, has_call = states[last]
        own = own_thinking(states[last - 1][0], state, has_call=has_call)
    return UsageRows(
        head=head,
        before_turn=carried.view_of(states[turn][0], gone, freed),
        last_thinking=own,
        origins=_origins_of(connection, key, head),
        encoding=encoding,
        lineage=lineage,
        in_force=in_force,
    )


def _freed(states: Mapping[int, tuple[State, bool]], in_force: InForce) -> int:
    """Return what is freed by results that are cleared outside of any range."""
    if in_force.cleared is None:
        return 0
    upto = in_force.cleared.last
    freed = states[upto][0].clearable
    for one in in_force.ranges:
        if one.first <= upto:
            inside = states[min(one.last, upto)][0].clearable
            freed -= inside - states[one.first - 1][0].clearable
    return freed


def _origins_of(connection: Connection, key: int, state: State) -> dict[int, Origin]:
    numbers = {origin_of(name) for name in state.opaque}
    return {number: interning.one(connection, key, number) for number in numbers if number}


def last_sent(connection: Connection, key: int, branch: int, at: int | None) -> SentRow | None:
    """Return the last reply at or before ``at`` that was recorded, with its request."""
    found, _ = branches.get(connection, key, branch)
    position = state_at(connection, key, found, at).last_sent
    return None if position is None else _sent_at(connection, key, found, position)


def _sent_at(connection: Connection, key: int, found: BranchRow, position: int) -> SentRow:
    number = branches.place(found, position).branch
    row = _SENT.row(connection, {"key": key, "branch": number, "position": position})
    if row is None or row[1] is None:
        raise CorruptRow(f"message {position} does not say what was sent")
    return _sent(number, row)


def in_force_when_sent(connection: Connection, key: int, sent: SentRow) -> InForce:
    """Return what was in force when the request was made that a recorded reply answers.

    On the reply's own branch: a fork behind it may have others by now.
    """
    found, _, next_compaction = branches.look(connection, key, sent.branch)
    if next_compaction == 1:
        return NOTHING_IN_FORCE
    turn_start = state_at(connection, key, found, sent.position - 1).turn_start
    return compactions.standing(connection, key, sent.branch, turn_start, then=sent.created_at)


def sent_from(connection: Connection, key: int, branch: int, first: int) -> list[SentRow]:
    """Return the recorded replies from a position on, with their requests."""
    found, _ = branches.get(connection, key, branch)
    return [
        _sent(part.branch, row)
        for part in branches.between(found, first, found.state.position)
        for row in _SENT_FROM.rows(
            connection,
            {"key": key, "branch": part.branch, "first": part.first, "last": part.last},
        )
    ]


def _sent(branch: int, row: Sequence[Any]) -> SentRow:
    position, sent, created_at = row
    return SentRow(position=position, branch=branch, sent=parsed(sent), created_at=created_at)
