"""Views: a branch with its compactions applied, and the totals that its next request counts.

The totals are taken at the ends of the ranges in force, in a number of reads that does not grow
with the conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from sqlalchemy import Connection, bindparam, select

from reasoning_store.conversation import placeholders
from reasoning_store.conversation.blocks import Origin
from reasoning_store.conversation.errors import CorruptRow
from reasoning_store.conversation.turns import MOST_LAST_THINKERS
from reasoning_store.conversation.validation import check_number
from reasoning_store.ledger import branches, compactions, history, profiles, sessions
from reasoning_store.ledger.branches import BranchRead, PositionTotals
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.records import (
    BranchRow,
    OwnThinking,
    RecordedRequest,
    RunningTotals,
    Segment,
    SessionRow,
    StoredRow,
)
from reasoning_store.ledger.rows import compaction_rows, draft_rows, origins, totals
from reasoning_store.ledger.rows.decode import parsed
from reasoning_store.ledger.rows.session_rows import COLUMNS as SESSION_COLUMNS
from reasoning_store.ledger.rows.totals import origin_of, own_thinking
from reasoning_store.ledger.tables import bodies, messages
from reasoning_store.ledger.view_records import (
    NOTHING_IN_FORCE,
    ActiveCompactions,
    Cleared,
    CompactionRow,
    RangeSnapshot,
    RequestSnapshot,
    SummaryRange,
    ViewRow,
    ViewTotals,
)

P = ParamSpec("P")
T = TypeVar("T")
_b, _m = bodies.c, messages.c
_REPLIES = select(_b.position, _b.sent, _m.created_at, _m.input).where(
    _b.session_key == bindparam("key"),
    _b.branch == bindparam("branch"),
    _m.session_key == _b.session_key,
    _m.branch == _b.branch,
    _m.position == _b.position,
)
_SESSION_AND_BRANCH = Statement(select(*SESSION_COLUMNS, *branches.WHOLE).where(*branches.THIS))
_REQUEST = Statement(_REPLIES.where(_b.position == bindparam("position")))

_CLEARABLE = Statement(
    select(_m.position, _m.clearable)
    .where(_m.session_key == bindparam("key"), _m.branch == bindparam("branch"))
    .where(_m.position.between(bindparam("first"), bindparam("last")), _m.clearable > 0)
)
_REQUESTS_FROM = Statement(
    _REPLIES.where(
        _b.position.between(bindparam("first"), bindparam("last")), _b.sent.is_not(None)
    ).order_by(_b.position)
)


def totals_upto(
    connection: Connection, key: int, found: BranchRow, at: int | None
) -> RunningTotals:
    """Return the running totals of a branch at its head, or at an earlier position."""
    head = found.totals
    if at is None or at == head.position:
        return head
    if not 0 <= check_number("at", at) <= head.position:
        raise draft_rows.not_counted(connection, key, found, at) or branches.no_position(at)
    return branches.totals_at(connection, key, found, [at])[at].totals


def view(
    connection: Connection, key: int, branch: int, at: int | None, *, thinking_from: int
) -> list[ViewRow]:
    """Return the messages up to ``at`` that are in no range, and the summaries, in order.

    Those before ``thinking_from`` are read without their thinking. Cleared results are replaced
    by their placeholders, and the counts of their messages are those of the placeholders.
    """
    found, _, next_compaction = branches.read_branch(connection, key, branch)
    carried = totals_upto(connection, key, found, at)
    in_force = NOTHING_IN_FORCE
    if next_compaction > 1:
        in_force = compaction_rows.in_force_at(connection, key, branch, carried.turn_start)
    summaries = compaction_rows.summaries(connection, key, branch, in_force)
    segments = []
    start = 1
    for summary in summaries:
        segments += branches.segments_between(found, start, summary.first - 1)
        start = summary.last + 1
    segments += branches.segments_between(found, start, carried.position)
    rows: list[ViewRow] = []
    for part, thinking in _split_segments(segments, thinking_from):
        rows += history.of_segments(connection, key, [part], thinking=thinking)
    if in_force.cleared is not None:
        _clear(connection, key, found, in_force.cleared, rows)
    if summaries:
        rows = sorted([*rows, *summaries], key=_position)
    return rows


def _clear(
    connection: Connection, key: int, found: BranchRow, cleared: Cleared, rows: list[ViewRow]
) -> None:
    """Put the placeholders of cleared results into the rows of a view."""
    freed: dict[int, int] = {}
    for segment in branches.segments_upto(found.segments, cleared.last):
        span = {"first": segment.first, "last": segment.last}
        freed.update(_CLEARABLE.rows(connection, {"key": key, "branch": segment.branch, **span}))
    for place, row in enumerate(rows):
        own = freed.get(row.position)
        if own is not None and isinstance(row, StoredRow):
            rows[place] = replace(
                row,
                message=placeholders.cleared(row.message),
                counts=replace(row.counts, visible=row.counts.visible - own),
            )


def _split_segments(
    segments: Sequence[Segment], thinking_from: int
) -> Iterator[tuple[Segment, bool]]:
    """Yield the parts of ranges, and whether what was thought in each is to be read."""
    for part in segments:
        split = min(max(part.first, thinking_from), part.last + 1)
        if part.first < split:
            yield Segment(part.branch, part.first, split - 1), False
        if split <= part.last:
            yield Segment(part.branch, split, part.last), True


def _position(row: ViewRow) -> int:
    return row.position


def request_snapshot(
    connection: Connection, session: SessionRow, branch: int, at: int | None, *, with_last: bool
) -> RequestSnapshot:
    """Return all that a count for the next request asks for, read at one moment.

    ``with_last``: with the request of the last recorded reply.
    """
    branches.check_branch(branch)
    key = session.key
    columns = _SESSION_AND_BRANCH.row(connection, {"key": key, "branch": branch})
    if columns is None:
        raise branches.no_branch(branch, session.id)
    of_session = len(SESSION_COLUMNS)
    current = sessions.check_owner(columns[:of_session], session.owner, session.id)
    read = branches.decode_branch(columns[of_session:])
    counted = _view_totals(connection, key, read, at)
    position = counted.uncompacted.last_sent if with_last else None
    last = None if position is None else _request_at(connection, key, read.row, position)
    return RequestSnapshot(current, profiles.kept_settings(connection, current), counted, last)


def view_totals(connection: Connection, key: int, branch: int, at: int | None) -> ViewTotals:
    """Return what a count of any policy needs, in a constant number of reads."""
    return _view_totals(connection, key, branches.read_branch(connection, key, branch), at)


def _view_totals(connection: Connection, key: int, read: BranchRead, at: int | None) -> ViewTotals:
    found, encoding, next_compaction = read
    uncompacted = totals_upto(connection, key, found, at)
    in_force = NOTHING_IN_FORCE
    if next_compaction > 1:
        in_force = compaction_rows.in_force_at(
            connection, key, found.number, uncompacted.turn_start
        )
    ranges = in_force.ranges
    last = uncompacted.last_thinking
    turn = 0 if uncompacted.turn_start is None else uncompacted.turn_start - 1
    wanted = [turn]
    if ranges:
        wanted += [position for one in ranges for position in (one.first - 1, one.last)]
    elif last is not None:
        wanted += [last - 1, last]
    if in_force.cleared is not None:
        wanted.append(in_force.cleared.last)
    carried = branches.totals_at(connection, key, found, wanted)
    thinkers = _last_thinkers(connection, key, found, last, ranges, carried)
    gone = [
        (totals.totals_between(carried[one.first - 1].totals, carried[one.last].totals), one)
        for one in ranges
    ]
    freed = _freed(carried, in_force)
    if ranges or freed:
        last = thinkers[0].position if thinkers else None
        head = totals.view_of(uncompacted, gone, freed)._replace(last_thinking=last)
    else:
        head = uncompacted
    return ViewTotals(
        head=head,
        before_turn=totals.view_of(carried[turn].totals, gone, freed),
        last_thinkers=thinkers,
        origins=_origins_of(connection, key, head),
        encoding=encoding,
        uncompacted=uncompacted,
        in_force=in_force,
    )


def _last_thinkers(
    connection: Connection,
    key: int,
    found: BranchRow,
    position: int | None,
    ranges: Sequence[SummaryRange],
    carried: dict[int, PositionTotals],
) -> tuple[OwnThinking, ...]:
    """Return the last messages with thinking that no summary replaces, the last one first.

    ``position`` is the last one with thinking; totals that are read are added to ``carried``.
    """
    thinkers: list[OwnThinking] = []
    while position is not None and len(thinkers) < MOST_LAST_THINKERS:
        inside = [one.first for one in ranges if one.first <= position <= one.last]
        before = (inside[0] if inside else position) - 1
        missing = [at for at in (before, position) if at not in carried]
        carried |= branches.totals_at(connection, key, found, missing)
        earlier = carried[before].totals
        if not inside:
            own = carried[position]
            thinkers.append(own_thinking(earlier, own.totals, has_call=own.has_call))
        position = earlier.last_thinking
    return tuple(thinkers)


def _freed(carried: Mapping[int, PositionTotals], in_force: ActiveCompactions) -> int:
    """Return what is freed by results that are cleared outside of any range."""
    if in_force.cleared is None:
        return 0
    upto = in_force.cleared.last
    freed = carried[upto].totals.clearable
    for one in in_force.ranges:
        if one.first <= upto:
            inside = carried[min(one.last, upto)].totals.clearable
            freed -= inside - carried[one.first - 1].totals.clearable
    return freed


def _origins_of(connection: Connection, key: int, head: RunningTotals) -> dict[int, Origin]:
    numbers = {origin_of(name) for name in head.opaque}
    return {number: origins.one(connection, key, number) for number in numbers if number}


def last_request(
    connection: Connection, key: int, branch: int, at: int | None
) -> RecordedRequest | None:
    """Return the last reply at or before ``at`` that was recorded, with its request."""
    found = branches.get(connection, key, branch)
    position = totals_upto(connection, key, found, at).last_sent
    return None if position is None else _request_at(connection, key, found, position)


def _request_at(
    connection: Connection, key: int, found: BranchRow, position: int
) -> RecordedRequest:
    number = branches.segment_at(found, position).branch
    row = _REQUEST.row(connection, {"key": key, "branch": number, "position": position})
    if row is None or row[1] is None:
        raise CorruptRow(f"message {position} does not say what was sent")
    return _recorded_request(number, row)


def in_force_when_sent(
    connection: Connection, key: int, request: RecordedRequest
) -> ActiveCompactions:
    """Return what was in force when the request was made that a recorded reply answers.

    On the reply's own branch: a fork after it may have others by now.
    """
    found, _, next_compaction = branches.read_branch(connection, key, request.branch)
    if next_compaction == 1:
        return NOTHING_IN_FORCE
    turn_start = totals_upto(connection, key, found, request.position - 1).turn_start
    return compaction_rows.in_force_at(
        connection, key, request.branch, turn_start, then=request.created_at
    )


def requests_from(
    connection: Connection, key: int, branch: int, first: int
) -> list[RecordedRequest]:
    """Return the recorded replies from a position on, with their requests."""
    found = branches.get(connection, key, branch)
    return [
        _recorded_request(part.branch, row)
        for part in branches.segments_between(found, first, found.totals.position)
        for row in _REQUESTS_FROM.rows(
            connection,
            {"key": key, "branch": part.branch, "first": part.first, "last": part.last},
        )
    ]


def _recorded_request(branch: int, row: Sequence[Any]) -> RecordedRequest:
    position, sent, created_at, reported = row
    return RecordedRequest(position, branch, parsed(sent), created_at, reported)


class Reads(Protocol):
    """A database, or one transaction on it."""

    def read(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T: ...


class _Snapshot:
    """One transaction, in which each read is of the same moment."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def read(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return work(self._connection, *args, **kwargs)


class Views:
    """The views of branches and their totals, each read in one snapshot."""

    def __init__(self, database: Reads) -> None:
        self._database = database

    def at_one_moment(self, work: Callable[[Views], T]) -> T:
        """Run several of these reads in one transaction; ``work`` is quick."""
        return self._database.read(lambda connection: work(Views(_Snapshot(connection))))

    def view_totals(self, session_key: int, branch: int, at: int | None = None) -> ViewTotals:
        """Return what a count of any policy needs at the head, or at an earlier position."""
        return self._database.read(view_totals, session_key, branch, at)

    def request_snapshot(
        self, session: SessionRow, branch: int, at: int | None = None, *, with_last: bool = True
    ) -> RequestSnapshot:
        """Return the session, what its next request needs to be counted, and the last sent."""
        return self._database.read(
            request_snapshot, session=session, branch=branch, at=at, with_last=with_last
        )

    def last_request(
        self, session_key: int, branch: int, at: int | None = None
    ) -> RecordedRequest | None:
        """Return the last recorded reply's request, at the head or at an earlier position."""
        return self._database.read(last_request, session_key, branch, at)

    def in_force_when_sent(self, session_key: int, request: RecordedRequest) -> ActiveCompactions:
        """Return what was in force when the request of a recorded reply was made."""
        return self._database.read(in_force_when_sent, session_key, request)

    def requests_from(self, session_key: int, branch: int, first: int) -> list[RecordedRequest]:
        """Return the requests of the recorded replies from a position on."""
        return self._database.read(requests_from, session_key, branch, first)

    def view(
        self, session_key: int, branch: int, at: int | None = None, *, thinking_from: int = 1
    ) -> list[ViewRow]:
        """Return the messages that no summary replaces, and the summaries, in order.

        A summary is at the first position of its range. Messages inside a range are not read, nor
        is the thinking of messages before ``thinking_from``. Old tool results are cleared.
        """
        return self._database.read(
            view, key=session_key, branch=branch, at=at, thinking_from=thinking_from
        )

    def splits(self, session_key: int, branch: int, position: int) -> bool:
        """Whether a call up to a position is answered after it, in its turn or the next."""
        return self._database.read(history.splits, session_key, branch, position)

    def compactions(
        self, session_key: int, branch: int, *, every: bool = False
    ) -> list[CompactionRow]:
        """Return the compactions in force, or every one that the branch ever had."""
        return self._database.read(
            compactions.of_branch, key=session_key, branch=branch, every=every
        )

    def basis(self, session_key: int, branch: int, first: int, last: int) -> RangeSnapshot:
        """Return a range as it is now; refuse one that no summary can replace."""

        def work(connection: Connection) -> RangeSnapshot:
            found = branches.get(connection, session_key, branch)
            return compactions.basis(connection, session_key, found, first, last)

        return self._database.read(work)

    def clearing_basis(self, session_key: int, branch: int, upto: int) -> RangeSnapshot:
        """Return what is to be cleared now; refuse a place without results."""

        def work(connection: Connection) -> RangeSnapshot:
            found = branches.get(connection, session_key, branch)
            return compactions.clearing_basis(connection, session_key, found, upto)

        return self._database.read(work)

    def totals_at(
        self, session_key: int, branch: int, positions: Sequence[int]
    ) -> dict[int, RunningTotals]:
        """Return the running totals at these positions, with no summary.

        A search over a conversation reads them; three positions are one statement.
        """

        def work(connection: Connection) -> dict[int, RunningTotals]:
            found = branches.get(connection, session_key, branch)
            carried = branches.totals_at(connection, session_key, found, list(positions))
            return {position: carried[position].totals for position in positions}

        return self._database.read(work)
