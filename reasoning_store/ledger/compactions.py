"""The SQL of compactions: what stands for ranges of one branch in its views.

There are two kinds. A *summary* stands for whole turns, none of them the open one. A
*clearing* (a row without a summary) is about the tool results from the first message up to
one before the open turn, which give way to a placeholder.

Rows are added; nothing of them is deleted and no message is touched. A wider range marks
those of its kind inside as superseded by it, and undoing it takes the mark away again, or
hands it on to the one around it. So the summaries that nothing supersedes are disjoint, of
clearings the one that reaches farthest holds, and what is in force at a position follows
from the rows alone.

A branch that was forked has its own copies; undoing one touches no other branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, insert, or_, select, update

from reasoning_store import codec
from reasoning_store.blocks import EXACTNESS, MOST_TOKENS, Counts
from reasoning_store.errors import Conflict, CorruptRow, NotFound, UsageError
from reasoning_store.ledger import arguments, branches, carried
from reasoning_store.ledger.rows import EXACTNESS_OF, UNREADABLE, parsed
from reasoning_store.ledger.sql import Sql
from reasoning_store.ledger.summaries import (
    Basis,
    Cleared,
    ClearingRow,
    CompactionRow,
    InForce,
    SummaryRange,
    Wanted,
)
from reasoning_store.ledger.tables import branches as branches_table
from reasoning_store.ledger.tables import compactions
from reasoning_store.ledger.values import MOST_NUMBER, BranchRow, Entry

_b, _c = branches_table.c, compactions.c
_BRANCH = (_b.session_key == bindparam("key"), _b.branch == bindparam("of"))
_THESE = (_c.session_key == bindparam("key"), _c.branch == bindparam("of"))
_THIS = (*_THESE, _c.number == bindparam("this"))
_WHOLE = (
    _c.number,
    _c.branch,
    _c.first,
    _c.last,
    _c.summary,
    _c.tokens,
    _c.exactness,
    _c.effective,
    _c.supersedes,
    _c.superseded_by,
    _c.copied_from,
    _c.created_at,
    _c.undone_at,
)

# Either locks the branch, so that what is in force cannot change meanwhile.
_TAKE = Sql(
    update(branches_table)
    .where(*_BRANCH)
    .values(next_compaction=_b.next_compaction + 1)
    .returning(_b.next_compaction - 1)
)
_LOCK = Sql(select(_b.branch).where(*_BRANCH).with_for_update())
_INSERT = Sql(insert(compactions))
_GET = Sql(select(*_WHOLE).where(*_THIS))
_LIST = Sql(select(*_WHOLE).where(*_THESE).order_by(_c.number))
_AT_ONCE = 8


def _farthest(*held: ColumnElement[bool], at_once: int | None = None) -> tuple[Sql, Sql]:
    """Return what reads the summaries that end before a place, farthest first, and a clearing."""
    found = (
        select(_c.number, _c.first, _c.last, _c.tokens, _c.exactness)
        .where(*_THESE, *held, _c.last < bindparam("before"))
        .order_by(_c.last.desc(), _c.number.desc())
    )
    summaries = Sql(found.where(_c.summary.is_not(None)).limit(at_once))
    return summaries, Sql(found.where(_c.summary.is_(None)).limit(1))


_HELD = _farthest(_c.undone_at.is_(None), at_once=_AT_ONCE)
_HELD_THEN = _farthest(
    _c.created_at < bindparam("then"),
    or_(_c.undone_at.is_(None), _c.undone_at >= bindparam("then")),
)
_NOT_SUPERSEDED = Sql(
    select(_c.number, _c.first, _c.last, _c.summary.is_(None))
    .where(*_THESE, _c.undone_at.is_(None), _c.superseded_by.is_(None))
    .order_by(_c.first)
)
_SUPERSEDE = Sql(update(compactions).where(*_THIS).values(superseded_by=bindparam("by")))
_HAND_ON = Sql(
    update(compactions)
    .where(*_THESE, _c.superseded_by == bindparam("by"))
    .values(superseded_by=bindparam("around"))
)
_UNDO = Sql(update(compactions).where(*_THIS).values(undone_at=bindparam("now")))


def _row(row: Sequence[Any]) -> ClearingRow:
    number, branch, first, last, summary, tokens, exactness, effective, inside, *rest = row
    by, source, made, undone = rest
    try:
        about: dict[str, Any] = {
            "number": number,
            "branch": branch,
            "first": first,
            "last": last,
            "effective": effective,
            "supersedes": tuple([int(one) for one in parsed(inside)]),
            "superseded_by": by,
            "copied_from": source,
            "created_at": made,
            "undone_at": undone,
        }
        if summary is None:
            return ClearingRow(**about)
        return CompactionRow(
            **about,
            message=codec.message_from_json(parsed(summary)),
            counts=Counts(visible=tokens, exactness=EXACTNESS_OF[exactness]),
        )
    except UNREADABLE:
        raise CorruptRow(f"compaction {number} cannot be read back") from None


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


def standing(
    connection: Connection,
    key: int,
    branch: int,
    turn_start: int | None,
    *,
    then: int | None = None,
) -> InForce:
    """Return what is in force at a position in the turn that starts at ``turn_start``.

    With ``then``, what was in force there at that time.

    Those that end before it and are inside of no other that does: so at an earlier position
    a narrower one holds where the wider did not apply yet. Two have nothing in common, or
    one is inside of the other and older: the farthest one that ends before a place holds,
    and the next ends before that begins. So what is superseded is not read, but for a few.
    """
    this: dict[str, Any] = {"key": key, "of": branch}
    farthest, clearings = _HELD
    if then is not None:
        farthest, clearings = _HELD_THEN
        this["then"] = then
    before = 0 if turn_start is None else turn_start
    clearing = clearings.row(connection, {**this, "before": before})
    ranges: list[SummaryRange] = []
    try:
        found = farthest.rows(connection, {**this, "before": before})
        while found:
            for number, first, last, tokens, exactness in found:
                if last < before:
                    made = SummaryRange(number, first, last, tokens, EXACTNESS_OF[exactness])
                    ranges.insert(0, made)
                    before = first
            if before <= 1 or len(found) < _AT_ONCE:
                break
            found = farthest.rows(connection, {**this, "before": before})
    except UNREADABLE:
        raise CorruptRow("a compaction cannot be read back") from None
    return InForce(
        tuple(ranges), None if clearing is None else Cleared(clearing[0], last=clearing[2])
    )


def in_force(
    connection: Connection, key: int, branch: int, turn_start: int | None
) -> list[ClearingRow]:
    """Return the same with their summaries, a clearing last."""
    found = standing(connection, key, branch, turn_start)
    return [_get(connection, key, branch, number) for number in found.numbers]


def summaries(connection: Connection, key: int, branch: int, found: InForce) -> list[CompactionRow]:
    """Return the summaries of what is in force."""
    rows = [_get(connection, key, branch, one.number) for one in found.ranges]
    return [row for row in rows if isinstance(row, CompactionRow)]


def _get(connection: Connection, key: int, branch: int, number: int) -> ClearingRow:
    row = None
    if 0 < arguments.number(number, "a compaction") <= MOST_NUMBER:
        row = _GET.row(connection, {"key": key, "of": branch, "this": number})
    if row is None:
        raise NotFound(
            f"there is no compaction {arguments.shown(number)} on this branch",
            hint="compactions() lists those in force",
        )
    return _row(row)


def all_of(connection: Connection, key: int, branch: int) -> list[ClearingRow]:
    """Return every compaction of a branch, undone and superseded ones too."""
    return [_row(row) for row in _LIST.rows(connection, {"key": key, "of": branch})]


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
    found, _ = branches.get(connection, key, branch)
    if wanted.summary is None:
        basis_now = clearing_basis(connection, key, found, wanted.last)
    else:
        basis_now = basis(connection, key, found, wanted.first, wanted.last)
    if wanted.expected not in (None, basis_now):
        raise Conflict(
            f"what stands from {wanted.first} to {wanted.last} was changed since this was planned",
            hint="ask for a plan again"
            if wanted.summary is None
            else "read it again and make a new summary",
        )
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
            "created_at": now,
            "undone_at": None,
        },
    )
    _SUPERSEDE.many(
        connection,
        [{"key": key, "of": branch, "this": one, "by": number} for one in basis_now.supersedes],
    )
    return _get(connection, key, branch, number)


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
    found = _get(connection, key, branch, number)
    if found.undone_at is not None:
        return found
    lineage, _ = branches.get(connection, key, branch)
    wider = _in_its_place(found, standing(connection, key, branch, lineage.state.turn_start))
    if wider is not None:
        raise Conflict(
            "a wider one stands in its place", hint=f"undo that one first: it is number {wider}"
        )
    this = {"key": key, "of": branch}
    _UNDO.run(connection, {**this, "this": number, "now": now})
    _HAND_ON.run(connection, {**this, "by": number, "around": found.superseded_by})
    return _get(connection, key, branch, number)


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
        for row in _LIST.rows(connection, {"key": key, "of": branch})
        if row[_WHOLE.index(_c.last)] < at and row[_WHOLE.index(_c.undone_at)] is None
    ]
    present = {row[0] for row in rows}
    inside: dict[int, list[int]] = {number: [] for number in present}
    copies = []
    for row in rows:
        made = dict(zip([column.name for column in _WHOLE], row, strict=True))
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
