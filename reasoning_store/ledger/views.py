"""Views: a branch with its compactions applied, whole or without blocks.

Messages that a summary replaces are not read. The compactions that apply and the last recorded
reply are found by reading backwards from the end to one message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, select

from reasoning_store.conversation import placeholders
from reasoning_store.conversation.blocks import Counts
from reasoning_store.conversation.errors import CorruptRow
from reasoning_store.conversation.validation import check_number
from reasoning_store.conversation.withholding import WithheldPart
from reasoning_store.ledger import (
    branches,
    history,
    profiles,
    sessions,
    stored_compactions,
    stored_drafts,
    withholdings,
)
from reasoning_store.ledger.compactions import clearing_basis, of_branch, summary_basis
from reasoning_store.ledger.database.database import Database, reads
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.decode import parsed
from reasoning_store.ledger.records import (
    BranchRow,
    RecordedRequest,
    Segment,
    SessionRow,
    StoredRow,
)
from reasoning_store.ledger.session_pages import COLUMNS as SESSION_COLUMNS
from reasoning_store.ledger.tables import bodies, in_range, messages, of_same_message, range_params
from reasoning_store.ledger.view_records import (
    NOTHING_IN_FORCE,
    ActiveCompactions,
    Cleared,
    NarrowRow,
    RequestSnapshot,
    SummaryRange,
    ViewRow,
    summary_digest,
)

P = ParamSpec("P")
T = TypeVar("T")
_b, _m = bodies.c, messages.c
_REQUESTS = Statement(
    select(_b.position, _b.sent, _m.created_at, _m.input)
    .where(*in_range(_b), _b.sent.is_not(None), *of_same_message(_m, _b))
    .order_by(_b.position)
)
_DIGESTS = Statement(select(_m.position, _m.digest).where(*in_range(_m)))
_SESSION_AND_BRANCH = Statement(select(*SESSION_COLUMNS, *branches.COLUMNS).where(*branches.THIS))


def checked_end(connection: Connection, key: int, found: BranchRow, at: int | None) -> int:
    """Return the position of a branch's head, or the earlier one that is asked for."""
    if at is None or at == found.head:
        return found.head
    if not 0 <= check_number("at", at) <= found.head:
        raise stored_drafts.not_counted(connection, key, found, at) or branches.no_position(at)
    return at


def in_force_at(
    connection: Connection,
    key: int,
    found: BranchRow,
    turn_start: int | None,
    then: int | None = None,
) -> ActiveCompactions:
    """Return what is in force on a branch at a position of the turn that starts there.

    With ``then``, what was in force there at that time.
    """
    if found.next_compaction == 1:
        return NOTHING_IN_FORCE
    return stored_compactions.in_force_at(connection, key, found.number, turn_start, then=then)


def _parts(found: BranchRow, in_force: ActiveCompactions, at: int) -> list[Segment]:
    """Return the ranges up to ``at`` that no summary replaces."""
    parts: list[Segment] = []
    start = 1
    for one in in_force.ranges:
        parts += branches.segments_between(found, start, one.first - 1)
        start = one.last + 1
    return parts + branches.segments_between(found, start, at)


def read_view(
    connection: Connection, key: int, branch: int, at: int | None = None, *, thinking_from: int = 1
) -> list[ViewRow]:
    """Return the messages up to ``at`` that are in no range, and the summaries, in order.

    Those before ``thinking_from`` are read without their thinking. Cleared results are replaced
    by their placeholders, and the counts of their messages are those of the placeholders.
    """
    found = branches.get(connection, key, branch)
    at = checked_end(connection, key, found, at)
    in_force = NOTHING_IN_FORCE
    if found.next_compaction > 1:
        turn_start = branches.turn_start(connection, key, found, at)
        in_force = in_force_at(connection, key, found, turn_start)
    summaries = stored_compactions.summaries(connection, key, branch, in_force)
    parts = _parts(found, in_force, at)
    rows: list[ViewRow] = []
    for part, thinking in _split_segments(parts, thinking_from):
        rows += history.of_segments(connection, key, [part], thinking=thinking)
    if in_force.cleared is not None:
        _clear(connection, key, parts, in_force.cleared, rows)
    if summaries:
        rows = sorted([*rows, *summaries], key=_position)
    return rows


def _no_chains(snapshot: RequestSnapshot, rows: Sequence[NarrowRow]) -> None:
    return None


def read_narrow(
    connection: Connection,
    session: SessionRow,
    branch: int,
    at: int | None = None,
    *,
    with_last: bool = True,
    chains_from: Callable[[RequestSnapshot, Sequence[NarrowRow]], int | None] = _no_chains,
) -> tuple[RequestSnapshot, list[NarrowRow]]:
    """Return what the next request takes, and the same as ``view`` without any block.

    From the position that ``chains_from`` returns on, rows have the chains of their requests; and
    all rows then have their digests.
    """
    snapshot = read_snapshot(connection, session, branch, at, with_last=with_last)
    in_force = snapshot.in_force
    parts = _parts(snapshot.branch, in_force, snapshot.at)
    rows = history.narrow(connection, session.key, parts)
    if in_force.cleared is not None:
        last = in_force.cleared.last
        rows = [
            row._replace(
                counts=replace(row.counts, visible=row.counts.visible - row.clearable), clearable=0
            )
            if row.clearable and row.position <= last
            else row
            for row in rows
        ]
    if withheld := withholdings.parts_of(connection, session.key, snapshot.branch):
        rows = [row._replace(withheld=withheld.get(row.position, ())) for row in rows]
    first = chains_from(snapshot, rows)
    if first is not None:
        digests = _digests(connection, session.key, snapshot.branch)
        requests = _requests_in(connection, session.key, snapshot.branch, first, snapshot.at)
        chains = {request.position: request.facts.get("chain") for request in requests}
        rows = [
            row._replace(digest=digests[row.position], chain=chains.get(row.position))
            for row in rows
        ]
    if in_force.ranges:
        rows = sorted([*rows, *map(_narrow_summary, in_force.ranges)], key=_position)
    return snapshot, rows


def _narrow_summary(one: SummaryRange) -> NarrowRow:
    counts = Counts(visible=one.tokens, exactness=one.exactness)
    return NarrowRow(
        one.first,
        one.last,
        "user",
        "complete",
        None,
        counts,
        0,
        0,
        (),
        is_summary=True,
        digest=summary_digest(one.last),
    )


def _clear(
    connection: Connection,
    key: int,
    parts: Sequence[Segment],
    cleared: Cleared,
    rows: list[ViewRow],
) -> None:
    """Put the placeholders of cleared results into the rows of a view."""
    freed: dict[int, int] = {
        row.position: row.clearable
        for row in history.narrow(connection, key, branches.segments_upto(parts, cleared.last))
        if row.clearable
    }
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


def _position(row: ViewRow | NarrowRow) -> int:
    return row.position


def read_snapshot(
    connection: Connection,
    session: SessionRow,
    branch: int,
    at: int | None = None,
    *,
    with_last: bool = True,
) -> RequestSnapshot:
    """Return what the next request takes besides its messages, read at one moment.

    ``with_last``: with the request of the last recorded reply.
    """
    branches.check_branch(branch)
    key = session.key
    columns = _SESSION_AND_BRANCH.row(connection, {"key": key, "branch": branch})
    if columns is None:
        raise branches.no_branch(branch, session.id)
    of_session = len(SESSION_COLUMNS)
    current = sessions.check_owner(columns[:of_session], session.owner, session.id)
    found = branches.decode_branch(columns[of_session:])
    at = checked_end(connection, key, found, at)
    turn_start = branches.turn_start(connection, key, found, at)
    return RequestSnapshot(
        current,
        profiles.kept_settings(connection, current),
        found,
        at,
        turn_start,
        in_force_at(connection, key, found, turn_start),
        _last_request(connection, key, found, at) if with_last else None,
    )


def read_thinking_needed(
    connection: Connection, key: int, branch: int, at: int | None = None
) -> tuple[int, int]:
    """Return the start of the open turn, and the last message in the view that has thinking.

    Each is 1 if the view has no such message.
    """
    found = branches.get(connection, key, branch)
    at = checked_end(connection, key, found, at)
    turn_start = branches.turn_start(connection, key, found, at)
    parts = _parts(found, in_force_at(connection, key, found, turn_start), at)
    last = branches.last_of(connection, key, parts, branches.LAST_THINKING)
    return turn_start or 1, last or 1


def read_last_request(
    connection: Connection, key: int, branch: int, at: int | None = None
) -> RecordedRequest | None:
    """Return the last reply at or before ``at`` that was recorded, with its request."""
    found = branches.get(connection, key, branch)
    return _last_request(connection, key, found, checked_end(connection, key, found, at))


def _last_request(
    connection: Connection, key: int, found: BranchRow, at: int
) -> RecordedRequest | None:
    segments = branches.segments_upto(found.segments, at)
    position = branches.last_of(connection, key, segments, branches.LAST_RECORDED)
    return None if position is None else _request_at(connection, key, found, position)


def _request_at(
    connection: Connection, key: int, found: BranchRow, position: int
) -> RecordedRequest:
    for request in _requests_in(connection, key, found, position, position):
        return request
    raise CorruptRow(f"message {position} does not say what was sent")


def _requests_in(
    connection: Connection, key: int, found: BranchRow, first: int, last: int
) -> list[RecordedRequest]:
    return [
        RecordedRequest(position, part.branch, parsed(sent), created_at, reported)
        for part in branches.segments_between(found, first, last)
        for position, sent, created_at, reported in _REQUESTS.rows(
            connection, range_params(key, part)
        )
    ]


def read_in_force(connection: Connection, key: int, request: RecordedRequest) -> ActiveCompactions:
    """Return what was in force when the request was made that a recorded reply answers.

    On the reply's own branch: a fork after it may have others by now.
    """
    found = branches.get(connection, key, request.branch)
    turn_start = branches.turn_start(connection, key, found, request.position - 1)
    return in_force_at(connection, key, found, turn_start, then=request.created_at)


def read_requests(
    connection: Connection, key: int, branch: int, first: int
) -> list[RecordedRequest]:
    """Return the recorded replies from a position on, with their requests."""
    found = branches.get(connection, key, branch)
    return _requests_in(connection, key, found, first, found.head)


def _digests(connection: Connection, key: int, found: BranchRow) -> dict[int, bytes]:
    """Return the digest of each message of a branch by its position."""
    return {
        position: digest
        for part in found.segments
        for position, digest in _DIGESTS.rows(connection, range_params(key, part))
    }


def read_withheld(
    connection: Connection, key: int, branch: int
) -> dict[int, tuple[WithheldPart, ...]]:
    """Return by its position what is left out of each message of a branch."""
    if not withholdings.of_session(connection, key):
        return {}
    return withholdings.parts_of(connection, key, branches.get(connection, key, branch))


class _Snapshot:
    """One transaction, in which each read is of the same moment."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def read(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return work(self._connection, *args, **kwargs)


class Views:
    """The views of branches, each read in one snapshot."""

    def __init__(self, database: Database | _Snapshot) -> None:
        self._database = database

    def at_one_moment(self, work: Callable[[Views], T]) -> T:
        """Run several of these reads in one transaction; ``work`` is quick."""
        return self._database.read(lambda connection: work(Views(_Snapshot(connection))))

    view = reads(read_view)
    narrow = reads(read_narrow)
    request_snapshot = reads(read_snapshot)
    thinking_needed_from = reads(read_thinking_needed)
    last_request = reads(read_last_request)
    requests_from = reads(read_requests)
    in_force_when_sent = reads(read_in_force)
    withheld = reads(read_withheld)
    splits = reads(history.splits)
    compactions = reads(of_branch)
    basis = reads(summary_basis)
    clearing_basis = reads(clearing_basis)
