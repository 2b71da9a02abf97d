"""Compactions: made, undone, superseded by wider ones; ``views`` reads them in a range's place.

No message is changed. A wider range marks those of its kind inside as superseded by it, and undoing
it takes the mark away, or hands it on to the one around it. A fork has its own copies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any

from sqlalchemy import Connection, bindparam, select, update

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import MOST_TOKENS, Counts
from reasoning_store.conversation.errors import Conflict, InvalidCall
from reasoning_store.conversation.validation import check_number
from reasoning_store.ledger import branches, sessions, stored_compactions, tables
from reasoning_store.ledger.database.database import Database
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.keys import Clock
from reasoning_store.ledger.records import BranchRow, NewMessage
from reasoning_store.ledger.stored_compactions import THESE, get, in_force_at
from reasoning_store.ledger.tables import branches as branches_table
from reasoning_store.ledger.tables import compactions, messages
from reasoning_store.ledger.view_records import (
    ActiveCompactions,
    ClearingRow,
    CompactionRow,
    NewCompaction,
    RangeSnapshot,
    SummaryRow,
)

_b, _c, _m = branches_table.c, compactions.c, messages.c
_DIGESTS = Statement(select(_m.digest).where(*tables.in_range(_m)).order_by(_m.position))
_THIS = (*THESE, _c.number == bindparam("this"))
# Either locks the branch, so that what is in force cannot change meanwhile.
_TAKE = Statement(
    update(branches_table)
    .where(*tables.of_branch(_b))
    .values(next_compaction=_b.next_compaction + 1)
    .returning(_b.next_compaction - 1)
)
_LOCK = Statement(select(_b.branch).where(*tables.of_branch(_b)).with_for_update())
_NOT_SUPERSEDED = Statement(
    select(_c.number, _c.first, _c.last, _c.kind)
    .where(*THESE, _c.undone_at.is_(None), _c.superseded_by.is_(None))
    .order_by(_c.first)
)
_SUPERSEDE = Statement(update(compactions).where(*_THIS).values(superseded_by=bindparam("by")))
_HAND_ON = Statement(
    update(compactions)
    .where(*THESE, _c.superseded_by == bindparam("by"))
    .values(superseded_by=bindparam("around"))
)
_ALONG = Statement(update(compactions).where(*_THIS).values(along=bindparam("along")))
_UNDO = Statement(update(compactions).where(*_THIS).values(undone_at=bindparam("now")))


def check_summary(summary: NewMessage) -> NewMessage:
    """Return a summary, which is one user message and thinks nothing."""
    message, counts = summary.message, summary.counts
    if not message.starts_turn or message.thinking or message.status != "complete":
        raise InvalidCall("a summary is one whole user message, without reasoning")
    if not 0 <= counts.visible <= MOST_TOKENS or counts.thinking:
        raise InvalidCall("counts: a number of tokens is out of range")
    return summary


def row_of(summary: NewMessage | None, **about: Any) -> CompactionRow:
    """Return the row of a summary with these fields; of a clearing, which has none."""
    if summary is None:
        return ClearingRow(**about)
    counts = Counts(visible=summary.counts.visible, exactness=summary.counts.exactness)
    return SummaryRow(**about, message=summary.message, counts=counts)


def summary_basis(
    connection: Connection, key: int, branch: int, first: int, last: int
) -> RangeSnapshot:
    """Return a range as it is now; refuse one that no summary can replace."""
    branch_row = branches.get(connection, key, branch)
    if first > last:
        raise InvalidCall(f"a range from {first} to {last} holds no message")
    if first < 1 or last > branch_row.head:
        raise branches.no_position(first if first < 1 else last)
    open_start = branches.turn_start(connection, key, branch_row, branch_row.head)
    if open_start is None or last >= open_start:
        raise InvalidCall(
            "the open turn cannot be summarized", hint="end the range before it, where a turn ends"
        )
    ends = (first, last + 1)
    if not all([branches.starts_turn(connection, key, branch_row, end) for end in ends]):
        raise InvalidCall(
            f"from {first} to {last} are no whole turns",
            hint="a turn is a real user message and all that follows it up to the next one",
        )
    inside = []
    for number, begin, end, kind in _not_superseded(connection, key, branch_row.number):
        if kind == "clearing":
            continue
        if first <= begin and end <= last:
            inside.append(number)
        elif begin <= last and first <= end:
            raise Conflict(
                f"a summary replaces {begin} to {end} already",
                hint=f"take in all of it, or undo it first: it is number {number}",
            )
    digest = _range_digest(connection, key, branch_row, first, last)
    return RangeSnapshot(first, last, digest, tuple(inside))


def _range_digest(
    connection: Connection, key: int, found: BranchRow, first: int, last: int
) -> bytes:
    """Return the digest of the messages of a range: it changes with any of them."""
    sums = blake2b(digest_size=16)
    for part in branches.segments_between(found, first, last):
        for (digest,) in _DIGESTS.rows(connection, tables.range_params(key, part)):
            sums.update(digest)
    return sums.digest()


def clearing_basis(connection: Connection, key: int, branch: int, last: int) -> RangeSnapshot:
    """Return what is to be cleared now; refuse a place up to which no results can be."""
    branch_row = branches.get(connection, key, branch)
    if not 1 <= check_number("a position", last) <= branch_row.head:
        raise branches.no_position(last)
    open_start = branches.turn_start(connection, key, branch_row, branch_row.head)
    if open_start is None or last >= open_start:
        raise InvalidCall(
            "what tools answered in the open turn is not cleared",
            hint="clear up to a position before it",
        )
    cleared = in_force_at(connection, key, branch_row.number, open_start).cleared
    if cleared is not None and last <= cleared.last:
        raise Conflict(
            f"the tool results up to {cleared.last} are cleared already",
            hint=f"clear beyond, or undo that first: it is number {cleared.number}",
        )
    digest = _range_digest(connection, key, branch_row, 1, last)
    # On a fork, one that reaches farther may not be in force before its own turn has begun.
    rows = _not_superseded(connection, key, branch_row.number)
    inside = [number for number, _, end, kind in rows if kind == "clearing" and end <= last]
    return RangeSnapshot(1, last, digest, tuple(inside))


def _not_superseded(
    connection: Connection, key: int, branch: int
) -> list[tuple[int, int, int, str]]:
    """Return number, ends and kind of each that no wider one replaces."""
    return _NOT_SUPERSEDED.rows(connection, {"key": key, "of": branch})


def compact(
    connection: Connection, key: int, branch: int, wanted: NewCompaction, *, now: int
) -> CompactionRow:
    """Write a compaction of the branch."""
    taken = _TAKE.row(connection, {"key": key, "of": branch})
    if taken is None:
        raise branches.no_branch(branch)
    number: int = taken[0]
    basis_now = _basis_of(connection, key, branch, wanted)
    made = row_of(
        wanted.summary,
        number=number,
        branch=branch,
        first=basis_now.first,
        last=basis_now.last,
        effective=wanted.effective,
        supersedes=basis_now.supersedes,
        superseded_by=None,
        copied_from=None,
        created_at=sessions.time_after_all(connection, key, now),
        undone_at=None,
    )
    stored_compactions.add(connection, key, [made])
    _SUPERSEDE.many(
        connection,
        [{"key": key, "of": branch, "this": one, "by": number} for one in made.supersedes],
    )
    return made


def note_changes_along(
    connection: Connection, key: int, rows: list[CompactionRow], settings: Mapping[str, Any]
) -> list[CompactionRow]:
    """Change settings, and note with the first compaction what is undone with it."""
    if not (settings or len(rows) > 1):
        return rows
    along: dict[str, Any] = {}
    if settings:
        before = sessions.by_key(connection, key).settings
        sessions.change_settings(connection, key, settings)
        along["settings"] = {name: [before.get(name), value] for name, value in settings.items()}
    for row in rows[1:]:
        along["clearing"] = row.number
    for row in rows[:1]:
        this = {"key": key, "of": row.branch, "this": row.number}
        _ALONG.run(connection, {**this, "along": codec.dumps(along)})
    return [get(connection, key, row.branch, row.number) for row in rows]


def _basis_of(
    connection: Connection, key: int, branch: int, wanted: NewCompaction
) -> RangeSnapshot:
    """Return what is wanted now; refuse what is not as it was when that was planned."""
    try:
        if wanted.kind == "clearing":
            snapshot = clearing_basis(connection, key, branch, wanted.last)
        else:
            snapshot = summary_basis(connection, key, branch, wanted.first, wanted.last)
        if wanted.expected in (None, snapshot):
            return snapshot
    except InvalidCall:
        # It could stand for something once: where turns begin has changed.
        if wanted.expected is None:
            raise
    raise Conflict(
        f"messages {wanted.first} to {wanted.last} were changed since this was planned",
        hint="ask for a plan again"
        if wanted.kind == "clearing"
        else "read it again and make a new summary",
    )


def lock(connection: Connection, key: int, branch: int) -> None:
    """Let other changes of a branch's compactions wait until the transaction ends."""
    if not _LOCK.rows(connection, {"key": key, "of": branch}):
        raise branches.no_branch(branch)


def undo(connection: Connection, key: int, branch: int, number: int, *, now: int) -> CompactionRow:
    """Take a compaction back, with all that was done along; those that it superseded are in
    force again.

    One that is in force can be taken back, though a wider one is yet to hold: as where that
    ends before the fork's own turn, and none of its own has begun.
    """
    lock(connection, key, branch)
    row = get(connection, key, branch, number)
    if row.undone_at is not None:
        return row
    lineage = branches.get(connection, key, branch)
    open_start = branches.turn_start(connection, key, lineage, lineage.head)
    wider = _in_its_place(row, in_force_at(connection, key, branch, open_start))
    if wider is not None:
        raise Conflict(
            "a wider one has replaced it", hint=f"undo that one first: it is number {wider}"
        )
    this = {"key": key, "of": branch}
    undone_at = sessions.time_after_all(connection, key, now)
    _UNDO.run(connection, {**this, "this": number, "now": undone_at})
    _HAND_ON.run(connection, {**this, "by": number, "around": row.superseded_by})
    if "clearing" in row.along:
        with suppress(Conflict):  # a wider one holds in its place
            undo(connection, key, branch, row.along["clearing"], now=now)
    if "settings" in row.along:
        _restore_settings(connection, key, row.along["settings"])
    return get(connection, key, branch, number)


def _in_its_place(row: CompactionRow, there: ActiveCompactions) -> int | None:
    """Return the one in force that replaces another one."""
    if row.kind == "summary":
        around = [
            one.number for one in there.ranges if one.first <= row.first and row.last <= one.last
        ]
    else:
        cleared = there.cleared
        around = [cleared.number] if cleared is not None and row.last <= cleared.last else []
    return next((number for number in around if number != row.number), None)


def _restore_settings(connection: Connection, key: int, changed: Mapping[str, Any]) -> None:
    """Give settings their value before a change, but for those that were changed since."""
    sessions.lock(connection, key)
    settings = sessions.by_key(connection, key).settings
    back = {name: before for name, (before, then) in changed.items() if settings.get(name) == then}
    kept = {name: value for name, value in {**settings, **back}.items() if value is not None}
    if kept != settings:
        sessions.change(connection, key, "settings", codec.dumps(kept))


def of_branch(
    connection: Connection, key: int, branch: int, *, every: bool = False
) -> list[CompactionRow]:
    """Return the compactions of a branch that are in force, or every one that it ever had."""
    found = branches.get(connection, key, branch)
    if every:
        return stored_compactions.all_of(connection, key, branch)
    open_start = branches.turn_start(connection, key, found, found.head)
    return stored_compactions.in_force(connection, key, branch, open_start)


class Compactions:
    """Summaries and clearings of a branch."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def make(
        self,
        session_key: int,
        branch: int,
        wanted: Sequence[NewCompaction],
        *,
        settings: Mapping[str, Any] | None = None,
    ) -> list[CompactionRow]:
        """Make several compactions of a branch and change settings of its session, all or none.

        An undo of the first undoes all of it.

        A summary replaces a range; a clearing, which has none, empties the tool results up to a
        position before the open turn. Each supersedes those inside; one that reaches over an end of
        it is a Conflict. If the range is no longer the ``expected`` one, the basis that it was made
        from, that is a Conflict, and nothing is written.
        """
        branches.check_branch(branch)
        for one in wanted:
            if one.summary is not None:
                check_summary(one.summary)
        now = self._clock.now()

        def work(connection: Connection) -> list[CompactionRow]:
            rows = [compact(connection, session_key, branch, one, now=now) for one in wanted]
            return note_changes_along(connection, session_key, rows, settings or {})

        return self._database.write(work)

    def undo(self, session_key: int, branch: int, number: int) -> CompactionRow:
        """Take a compaction back on this branch; those that it superseded are in force again.

        A second undo does nothing; one that a wider one supersedes is a Conflict.
        """
        branches.check_branch(branch)
        now = self._clock.now()
        return self._database.write(
            lambda connection: undo(connection, session_key, branch, number, now=now)
        )
