"""The compactions of a branch as they are stored, and those in force at a position.

A *summary* replaces whole turns, none of them the open one. A *clearing* replaces the tool results
up to a position before the open turn by a placeholder. Of the summaries that nothing supersedes no
two share a message; of the clearings the one that reaches farthest is in force.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args

from sqlalchemy import ColumnElement, Connection, bindparam, insert, literal_column, or_, select

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import EXACTNESS, Counts
from reasoning_store.conversation.errors import CorruptRow, NotFound
from reasoning_store.conversation.validation import check_number, describe
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.decode import EXACTNESS_OF, UNREADABLE, parsed
from reasoning_store.ledger.records import MOST_NUMBER
from reasoning_store.ledger.tables import compactions, of_branch
from reasoning_store.ledger.view_records import (
    ActiveCompactions,
    Cleared,
    ClearingRow,
    CompactionKind,
    CompactionRow,
    SummaryRange,
    SummaryRow,
)

_c = compactions.c
THESE = of_branch(_c)
_THIS = (*THESE, _c.number == bindparam("this"))
COLUMNS = (
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
    _c.along,
    _c.kind,
)

_GET = Statement(select(*COLUMNS).where(*_THIS))
_INSERT = Statement(insert(compactions))
OF_BRANCH = Statement(select(*COLUMNS).where(*THESE).order_by(_c.number))
_AT_ONCE = 8


def _farthest(
    *held: ColumnElement[bool], at_once: int | None = None
) -> tuple[Statement, Statement]:
    """Return what reads the summaries that end before a place, farthest first, and a clearing."""
    found = (
        select(_c.number, _c.first, _c.last, _c.tokens, _c.exactness)
        .where(*THESE, *held, _c.last < bindparam("before"))
        .order_by(_c.last.desc(), _c.number.desc())
    )
    summaries = Statement(found.where(_c.kind == literal_column("'summary'")).limit(at_once))
    return summaries, Statement(found.where(_c.kind == literal_column("'clearing'")).limit(1))


_HELD = _farthest(_c.undone_at.is_(None), at_once=_AT_ONCE)
_HELD_THEN = _farthest(
    _c.created_at < bindparam("then"),
    or_(_c.undone_at.is_(None), _c.undone_at >= bindparam("then")),
)


KINDS: Mapping[Any, CompactionKind] = {kind: kind for kind in get_args(CompactionKind)}


def _row(row: Sequence[Any]) -> CompactionRow:
    number, branch, first, last, summary, tokens, exactness, effective, inside, *rest = row
    by, source, made, undone, along, kind = rest
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
            "along": {} if along is None else dict(parsed(along)),
        }
        if KINDS[kind] == "clearing":
            return ClearingRow(**about)
        counts = Counts(visible=tokens, exactness=EXACTNESS_OF[exactness])
        message = codec.message_from_json(parsed(summary))
        return SummaryRow(**about, message=message, counts=counts)
    except UNREADABLE:
        raise CorruptRow(f"compaction {number} cannot be read back") from None


def in_force_at(
    connection: Connection,
    key: int,
    branch: int,
    turn_start: int | None,
    *,
    then: int | None = None,
) -> ActiveCompactions:
    """Return what is in force at a position in the turn that starts at ``turn_start``.

    With ``then``, what was in force there at that time.

    A summary applies once it ends before the turn. Of those that apply, the widest are in force.
    Say that summary 1 replaces the messages 1 to 4, summary 2 those from 5 to 8, and summary 3,
    made later, all from 1 to 8:

    - ``turn_start`` 9: all three end before it, and 3 holds the others.
    - ``turn_start`` 5: only 1 ends before it.

    Two summaries share no message, or the newer holds the older. So the one that ends farthest is
    in force, of two with the same end the newer; and the next is sought before its first message.
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
        rows = farthest.rows(connection, {**this, "before": before})
        while rows:
            for number, first, last, tokens, exactness in rows:
                if last < before:
                    made = SummaryRange(number, first, last, tokens, EXACTNESS_OF[exactness])
                    ranges.insert(0, made)
                    before = first
            if before <= 1 or len(rows) < _AT_ONCE:
                break
            rows = farthest.rows(connection, {**this, "before": before})
    except UNREADABLE:
        raise CorruptRow("a compaction cannot be read back") from None
    return ActiveCompactions(
        tuple(ranges), None if clearing is None else Cleared(clearing[0], last=clearing[2])
    )


def in_force(
    connection: Connection, key: int, branch: int, turn_start: int | None
) -> list[CompactionRow]:
    """Return the same with their summaries, a clearing last."""
    found = in_force_at(connection, key, branch, turn_start)
    return [get(connection, key, branch, number) for number in found.numbers]


def summaries(
    connection: Connection, key: int, branch: int, found: ActiveCompactions
) -> list[SummaryRow]:
    """Return the summaries of what is in force."""
    rows = [get(connection, key, branch, one.number) for one in found.ranges]
    return [row for row in rows if row.kind == "summary"]


def get(connection: Connection, key: int, branch: int, number: int) -> CompactionRow:
    """Return one, in force or not."""
    row = None
    if 0 < check_number("a compaction id", number) <= MOST_NUMBER:
        row = _GET.row(connection, {"key": key, "of": branch, "this": number})
    if row is None:
        raise NotFound(
            f"there is no compaction {describe(number)} on this branch",
            hint="compactions() lists those in force",
        )
    return _row(row)


def all_of(connection: Connection, key: int, branch: int) -> list[CompactionRow]:
    """Return every compaction of a branch, undone and superseded ones too."""
    return [_row(row) for row in OF_BRANCH.rows(connection, {"key": key, "of": branch})]


def add(connection: Connection, key: int, rows: Iterable[CompactionRow]) -> None:
    """Write compactions."""
    _INSERT.many(connection, [_columns(key, row) for row in rows])


def _columns(key: int, row: CompactionRow) -> dict[str, Any]:
    summary = row if row.kind == "summary" else None
    return {
        "session_key": key,
        "branch": row.branch,
        "number": row.number,
        "kind": row.kind,
        "first": row.first,
        "last": row.last,
        "summary": summary and codec.dumps(codec.message_to_json(summary.message)),
        "tokens": summary.counts.visible if summary else 0,
        "exactness": EXACTNESS.index(summary.counts.exactness) if summary else 0,
        "effective": row.effective,
        "supersedes": codec.dumps(row.supersedes),
        "superseded_by": row.superseded_by,
        "copied_from": row.copied_from,
        "created_at": row.created_at,
        "undone_at": row.undone_at,
        "along": codec.dumps(row.along) if row.along else None,
    }


def superseders(every: Iterable[CompactionRow]) -> dict[int, int]:
    """Return by number which compaction supersedes which."""
    by: dict[int, int] = {}
    # A wider one was made later: the one around an undone one is known by then.
    for one in sorted(every, key=lambda one: one.number, reverse=True):
        around = one.number if one.undone_at is None else by.get(one.number)
        if around is not None:
            by |= {inside: by.get(inside, around) for inside in one.supersedes}
    return by


def placement_problems(every: Iterable[CompactionRow], end: int) -> Iterator[tuple[int, str]]:
    """Yield the compactions of a branch that are wrong, and why; ``end`` is after it.

    First those that would be wrong on any branch, since others may seem wrong next to them.
    """
    ranges = sorted(every, key=lambda row: (row.first, row.number))
    for row in ranges:
        if not 1 <= row.first <= row.last < end:
            yield row.number, "has no such range"
        if row.kind == "clearing" and row.first != 1:
            yield row.number, "does not begin at 1"
    there = {row.number: row for row in ranges}
    by = superseders(ranges)
    last = 0
    for row in ranges:
        if not all(_holds(row, there.get(inside)) for inside in row.supersedes):
            yield row.number, "supersedes what is not inside of it"
        if row.superseded_by != by.get(row.number):
            yield row.number, "is not superseded by the one that it names"
        if row.kind == "summary" and row.undone_at is None and row.superseded_by is None:
            if row.first <= last:
                yield row.number, "reaches into another"
            last = row.last


def _holds(wider: CompactionRow, inside: CompactionRow | None) -> bool:
    return (
        inside is not None
        and inside.number < wider.number
        and inside.kind == wider.kind
        and wider.first <= inside.first <= inside.last <= wider.last
    )
