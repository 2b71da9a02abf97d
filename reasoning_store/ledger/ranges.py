"""Which compactions of a branch can stand beside one another.

A range is a message or more of its branch; a clearing begins at 1. What a wider one
supersedes is there before it, of the same kind and inside of it, and is told so by nobody
else as long as that one is not undone; what was undone hands it on to the one around itself.
Of summaries, those that hold are disjoint.

Pure: knows numbers; knows no SQL, no message and no line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from reasoning_store.ledger.summaries import ClearingRow, CompactionRow


class Placed(NamedTuple):
    """What of a compaction says where it stands."""

    number: int
    first: int
    last: int
    clears: bool
    supersedes: tuple[int, ...]
    superseded_by: int | None
    undone: bool


def placed(row: ClearingRow) -> Placed:
    """Return what of a stored compaction says where it stands."""
    return Placed(
        row.number,
        row.first,
        row.last,
        not isinstance(row, CompactionRow),
        row.supersedes,
        row.superseded_by,
        row.undone_at is not None,
    )


def superseders(every: Iterable[Placed]) -> dict[int, int]:
    """Return, of each one that is superseded, the number of the one that does."""
    by: dict[int, int] = {}
    # A wider one was made later: whoever is around one that was undone is known by then.
    for one in sorted(every, key=lambda one: one.number, reverse=True):
        around = by.get(one.number) if one.undone else one.number
        if around is not None:
            by |= {inside: by.get(inside, around) for inside in one.supersedes}
    return by


def misplaced(every: Iterable[Placed], end: int) -> Iterator[tuple[int, str]]:
    """Yield which compactions of a branch cannot stand so, and why; ``end`` is behind it.

    First those that could not stand anywhere, since others may seem wrong beside them.
    """
    ranges = sorted(every, key=lambda one: (one.first, one.number))
    for one in ranges:
        if not 1 <= one.first <= one.last < end:
            yield one.number, "has no such range"
        if one.clears and one.first != 1:
            yield one.number, "does not begin at 1"
    there = {one.number: one for one in ranges}
    by = superseders(ranges)
    last = 0
    for one in ranges:
        if not all(_holds(one, there.get(inside)) for inside in one.supersedes):
            yield one.number, "supersedes what is not inside of it"
        if one.superseded_by != by.get(one.number):
            yield one.number, "is not superseded by the one that it names"
        if not (one.clears or one.undone or one.superseded_by is not None):
            if one.first <= last:
                yield one.number, "reaches into another"
            last = one.last


def _holds(wider: Placed, inside: Placed | None) -> bool:
    return (
        inside is not None
        and inside.number < wider.number
        and inside.clears == wider.clears
        and wider.first <= inside.first <= inside.last <= wider.last
    )
