"""The SQL of compactions: what stands for ranges of one branch in its views.

There are two kinds. A *summary* stands for whole turns, none of them the open one. A
*clearing* (a row without a summary) is about the tool results from the first message up to
one before the open turn, which give way to a placeholder.

Of the summaries that nothing supersedes no two have a message in common, of clearings the one
that reaches farthest holds: what is in force at a position follows from the rows alone. How
rows come to be, and are taken back, is in ``compacting``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, or_, select

from reasoning_store import codec, numerals
from reasoning_store.blocks import Counts
from reasoning_store.errors import CorruptRow, NotFound
from reasoning_store.ledger import arguments
from reasoning_store.ledger.rows import EXACTNESS_OF, UNREADABLE, parsed
from reasoning_store.ledger.sql import Sql
from reasoning_store.ledger.summaries import (
    Cleared,
    ClearingRow,
    CompactionRow,
    InForce,
    SummaryRange,
)
from reasoning_store.ledger.tables import compactions
from reasoning_store.ledger.values import MOST_NUMBER

_c = compactions.c
THESE = (_c.session_key == bindparam("key"), _c.branch == bindparam("of"))
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
)

_GET = Sql(select(*COLUMNS).where(*_THIS))
OF_BRANCH = Sql(select(*COLUMNS).where(*THESE).order_by(_c.number))
_AT_ONCE = 8


def _farthest(*held: ColumnElement[bool], at_once: int | None = None) -> tuple[Sql, Sql]:
    """Return what reads the summaries that end before a place, farthest first, and a clearing."""
    found = (
        select(_c.number, _c.first, _c.last, _c.tokens, _c.exactness)
        .where(*THESE, *held, _c.last < bindparam("before"))
        .order_by(_c.last.desc(), _c.number.desc())
    )
    summaries = Sql(found.where(_c.summary.is_not(None)).limit(at_once))
    return summaries, Sql(found.where(_c.summary.is_(None)).limit(1))


_HELD = _farthest(_c.undone_at.is_(None), at_once=_AT_ONCE)
_HELD_THEN = _farthest(
    _c.created_at < bindparam("then"),
    or_(_c.undone_at.is_(None), _c.undone_at >= bindparam("then")),
)


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
    return [get(connection, key, branch, number) for number in found.numbers]


def summaries(connection: Connection, key: int, branch: int, found: InForce) -> list[CompactionRow]:
    """Return the summaries of what is in force."""
    rows = [get(connection, key, branch, one.number) for one in found.ranges]
    return [row for row in rows if isinstance(row, CompactionRow)]


def get(connection: Connection, key: int, branch: int, number: int) -> ClearingRow:
    """Return one, in force or not."""
    row = None
    if 0 < arguments.number(number, "a compaction id") <= MOST_NUMBER:
        row = _GET.row(connection, {"key": key, "of": branch, "this": number})
    if row is None:
        raise NotFound(
            f"there is no compaction {numerals.told(number)} on this branch",
            hint="compactions() lists those in force",
        )
    return _row(row)


def all_of(connection: Connection, key: int, branch: int) -> list[ClearingRow]:
    """Return every compaction of a branch, undone and superseded ones too."""
    return [_row(row) for row in OF_BRANCH.rows(connection, {"key": key, "of": branch})]
