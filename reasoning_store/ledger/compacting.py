"""How a compaction is made, copied to a fork, and taken back.

Rows are added; nothing of them is deleted and no message is touched. A wider range marks
those of its kind inside as superseded by it, and undoing it takes the mark away again, or
hands it on to the one around it. A branch that was forked has its own copies; undoing one
touches no other branch.

Knows ranges and turns; who writes a summary, and whether a call inside it is answered behind
it, is the caller's.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from reasoning_store import codec
from reasoning_store.blocks import EXACTNESS, MOST_TOKENS
from reasoning_store.errors import Conflict, UsageError
from reasoning_store.ledger import arguments, branches, carried, sessions
from reasoning_store.ledger.compactions import COLUMNS, OF_BRANCH, THESE, get, standing
from reasoning_store.ledger.sql import Sql
from reasoning_store.ledger.summaries import Basis, ClearingRow, CompactionRow, InForce, Wanted
from reasoning_store.ledger.tables import branches as branches_table
from reasoning_store.ledger.tables import compactions
from reasoning_store.ledger.values import BranchRow, Entry

_b, _c = branches_table.c, compactions.c
_BRANCH = (_b.session_key == bindparam("key"), _b.branch == bindparam("of"))
_THIS = (*THESE, _c.number == bindparam("this"))
# Either locks the branch, so that what is in force cannot change meanwhile.
_TAKE = Sql(
    update(branches_table)
    .where(*_BRANCH)
    .values(next_compaction=_b.next_compaction + 1)
    .returning(_b.next_compaction - 1)
)
_LOCK = Sql(select(_b.branch).where(*_BRANCH).with_for_update())
_INSERT = Sql(insert(compactions))
_NOT_SUPERSEDED = Sql(
    select(_c.number, _c.first, _c.last, _c.summary.is_(None))
    .where(*THESE, _c.undone_at.is_(None), _c.superseded_by.is_(None))
    .order_by(_c.first)
)
_SUPERSEDE = Sql(update(compactions).where(*_THIS).values(superseded_by=bindparam("by")))
_HAND_ON = Sql(
    update(compactions)
    .where(*THESE, _c.superseded_by == bindparam("by"))
    .values(superseded_by=bindparam("around"))
)
_UNDO = Sql(update(compactions).where(*_THIS).values(undone_at=bindparam("now")))


def summary_columns(summary: Entry | None) -> dict[str, Any]:
    """Return the columns of a summary, which is one user message and thinks nothing.

    None is a clearing, which has none.
    """
    if summary is None:
        return {"summary": None, "tokens": 0, "exactness": 0}
    message, counts = summary.message, summary.counts
    if not message.starts_turn or message.thinking or message.status != "complete":
        raise UsageError("a summary is one whole user message, without reasoning")
    if not 0 <= counts.visible <= MOST_TOKENS or counts.thinking:
        raise UsageError("counts: a number of tokens is out of range")
    return {
        "summary": codec.dumps(codec.message_to_json(message)),
        "tokens": counts.visible,
        "exactness": EXACTNESS.index(counts.exactness),
    }


def basis(connection: Connection, key: int, found: BranchRow, first: int, last: int) -> Basis:
    """Return what a range is now; refuse one that no summary can stand for."""
    head = found.state
    if first > last:
        raise UsageError(f"a range from {first} to {last} holds no message")
    if first < 1 or last > head.position:
        raise branches.no_position(first if first < 1 else last)
    if head.turn_start is None or last >= head.turn_start:
        raise UsageError(
            "the open turn cannot be summarized", hint="end the range before it, where a turn ends"
        )
    states = branches.states(connection, key, found, [first - 1, first, last, last + 1])
    if states[first][0].turn_start != first or states[last + 1][0].turn_start != last + 1:
        raise UsageError(
            f"from {first} to {last} are no whole turns",
            hint="a turn is a real user message and all that follows it up to the next one",
        )
    inside = []
    for number, begin, end, clears in _not_superseded(connection, key, found.number):
        if clears:
            continue
        if first <= begin and end <= last:
            inside.append(number)
        elif begin <= last and first <= end:
            raise Conflict(
                f"a summary stands for {begin} to {end} already",
                hint=f"take in all of it, or undo it first: it is number {number}",
            )
    sums = carried.between(states[first - 1][0], states[last][0])
    return Basis(first, last, sums, tuple(inside))


def clearing_basis(connection: Connection, key: int, found: BranchRow, last: int) -> Basis:
    """Return what is to be cleared now; refuse a place up to which no results can be."""
    head = found.state
    if not 1 <= arguments.number(last, "a position") <= head.position:
        raise branches.no_position(last)
    if head.turn_start is None or last >= head.turn_start:
        raise UsageError(
            "what tools answered in the open turn is not cleared",
            hint="clear up to a position before it",
        )
    cleared = standing(connection, key, found.number, head.turn_start).cleared
    if cleared is not None and last <= cleared.last:
        raise Conflict(
            f"the tool results up to {cleared.last} are cleared already",
            hint=f"clear beyond, or undo that first: it is number {cleared.number}",
        )
    sums = carried.between(
        carried.NOTHING, branches.states(connection, key, found, [last])[last][0]
    )
    # On a fork, one that reaches farther may not be in force before its own turn has begun.
    rows = _not_superseded(connection, key, found.number)
    inside = [number for number, _, end, clears in rows if clears and end <= last]
    return Basis(1, last, sums, tuple(inside))


def _not_superseded(
    connection: Connection, key: int, branch: int
) -> list[tuple[int, int, int, bool]]:
    """Return number, ends and whether it clears of each that nothing wider stands in for."""
    return _NOT_SUPERSEDED.rows(connection, {"key": key, "of": branch})


def compact(
    connection: Connection,
    key: int,
    branch: int,
    wanted: Wanted,
    summary: dict[str, Any],
    *,
    now: int,
) -> ClearingRow:
    """Write a compaction of the branch; ``summary`` is its columns."""
    taken = _TAKE.row(connection, {"key": key, "of": branch})
    if taken is None:
        raise branches.no_branch()
    number: int = taken[0]
    basis_now = _basis_of(connection, key, branch, wanted)
    _INSERT.run(
        connection,
        {
            "session_key": key,
            "branch": branch,
            "number": number,
            "first": basis_now.first,
            "last": basis_now.last,
            **summary,
            "effective": wanted.effective,
            "supersedes": codec.dumps(list(basis_now.supersedes)),
            "superseded_by": None,
            "copied_from": None,
            "created_at": sessions.behind(connection, key, now),
            "undone_at": None,
        },
    )
    _SUPERSEDE.many(
        connection,
        [{"key": key, "of": branch, "this": one, "by": number} for one in basis_now.supersedes],
    )
    return get(connection, key, branch, number)


def _basis_of(connection: Connection, key: int, branch: int, wanted: Wanted) -> Basis:
    """Return what is wanted now; refuse what is not as it was when that was planned."""
    found, _ = branches.get(connection, key, branch)
    try:
        if wanted.summary is None:
            now = clearing_basis(connection, key, found, wanted.last)
        else:
            now = basis(connection, key, found, wanted.first, wanted.last)
        if wanted.expected in (None, now):
            return now
    except UsageError:
        # It could stand for something once: where turns begin has changed.
        if wanted.expected is None:
            raise
    raise Conflict(
        f"what stands from {wanted.first} to {wanted.last} was changed since this was planned",
        hint="ask for a plan again"
        if wanted.summary is None
        else "read it again and make a new summary",
    )


def lock(connection: Connection, key: int, branch: int) -> None:
    """Keep waiting whoever else would change what is in force on a branch."""
    if not _LOCK.rows(connection, {"key": key, "of": branch}):
        raise branches.no_branch()


def undo(connection: Connection, key: int, branch: int, number: int, *, now: int) -> ClearingRow:
    """Take a compaction back; those that it superseded are in force again.

    One that is in force can be taken back, though a wider one is yet to hold: as where that
    ends before the fork's own turn, and none of its own has begun.
    """
    lock(connection, key, branch)
    found = get(connection, key, branch, number)
    if found.undone_at is not None:
        return found
    lineage, _ = branches.get(connection, key, branch)
    wider = _in_its_place(found, standing(connection, key, branch, lineage.state.turn_start))
    if wider is not None:
        raise Conflict(
            "a wider one stands in its place", hint=f"undo that one first: it is number {wider}"
        )
    this = {"key": key, "of": branch}
    undone_at = sessions.behind(connection, key, now)
    _UNDO.run(connection, {**this, "this": number, "now": undone_at})
    _HAND_ON.run(connection, {**this, "by": number, "around": found.superseded_by})
    return get(connection, key, branch, number)


def _in_its_place(found: ClearingRow, there: InForce) -> int | None:
    """Return which of those in force stands in the place of another one."""
    if isinstance(found, CompactionRow):
        around = [
            one.number
            for one in there.ranges
            if one.first <= found.first and found.last <= one.last
        ]
    else:
        cleared = there.cleared
        around = [cleared.number] if cleared is not None and found.last <= cleared.last else []
    return next((number for number in around if number != found.number), None)


def copy(connection: Connection, key: int, branch: int, fork: int, at: int) -> None:
    """Give a fork its own of those that end before ``at``, the first position of its own.

    A range that ends there is in force on the fork once a turn of its own has started.
    """
    rows = [
        row
        for row in OF_BRANCH.rows(connection, {"key": key, "of": branch})
        if row[COLUMNS.index(_c.last)] < at and row[COLUMNS.index(_c.undone_at)] is None
    ]
    present = {row[0] for row in rows}
    inside: dict[int, list[int]] = {number: [] for number in present}
    copies = []
    for row in rows:
        made = dict(zip([column.name for column in COLUMNS], row, strict=True))
        made.update(session_key=key, branch=fork, copied_from=branch)
        if made["superseded_by"] in present:
            inside[made["superseded_by"]].append(made["number"])
        else:
            made["superseded_by"] = None
        copies.append(made)
    for made in copies:
        # Of what it superseded some may have been undone, and is not here.
        made["supersedes"] = codec.dumps(inside[made["number"]])
    _INSERT.many(connection, copies)
