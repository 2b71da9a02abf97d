"""Which messages belong together because a tool was called in one and answered in another.

Theory. A response answers the nearest call of its id before it, in each lineage that holds
it: ids may come again in a later turn. A message that is erased takes along what answers
its calls and what its answers were asked by, and these take along their own: what is left
has neither a call that nobody answered nor an answer that nobody asked for.

Pure: knows lineages and ids; knows no SQL and no block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from reasoning_store.ledger.values import BranchRow

Place: TypeAlias = tuple[int, int]
"""Where a row lies: the branch that owns it, and its position."""


class Links(NamedTuple):
    """The ids of a message's calls, and of the calls that it answers."""

    position: int
    calls: frozenset[str]
    answers: frozenset[str]


def together(
    start: Place, lineages: Sequence[BranchRow], links: Callable[[int], Sequence[Links]]
) -> set[Place]:
    """Return ``start`` and all that belongs to it, on whichever branch it lies.

    ``links`` gives the own rows of a branch that call or answer, in order.
    """
    found = {start}
    waiting = [start]
    while waiting:
        place = waiting.pop()
        here = next((one for one in links(place[0]) if one.position == place[1]), None)
        if here is None:
            continue
        for lineage in lineages:
            if holds(lineage, place):
                partners = _answers(here, lineage, links) | _asked(here, lineage, links)
                waiting += partners - found
                found |= partners
    return found


def holds(lineage: BranchRow, place: Place) -> bool:
    """Whether a lineage has this very row, and not another at its position."""
    branch, position = place
    return any(
        segment.branch == branch and segment.first <= position <= segment.last
        for segment in lineage.segments
    )


def _answers(
    here: Links, lineage: BranchRow, links: Callable[[int], Sequence[Links]]
) -> set[Place]:
    found: set[Place] = set()
    open_ = set(here.calls)
    for branch, one in _along(lineage, links, reverse=False):
        if not open_:
            break
        if one.position > here.position:
            if open_ & one.answers:
                found.add((branch, one.position))
            open_ -= one.calls
    return found


def _asked(here: Links, lineage: BranchRow, links: Callable[[int], Sequence[Links]]) -> set[Place]:
    found: set[Place] = set()
    wanted = set(here.answers)
    for branch, one in _along(lineage, links, reverse=True):
        if not wanted:
            break
        if one.position < here.position and wanted & one.calls:
            found.add((branch, one.position))
            wanted -= one.calls
    return found


def _along(
    lineage: BranchRow, links: Callable[[int], Sequence[Links]], *, reverse: bool
) -> Iterator[tuple[int, Links]]:
    way = -1 if reverse else 1
    for segment in lineage.segments[::way]:
        for one in links(segment.branch)[::way]:
            if segment.first <= one.position <= segment.last:
                yield segment.branch, one
