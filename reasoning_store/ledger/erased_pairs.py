"""Which rows an erasure takes along, on every branch that holds them.

Ids may come again in a later turn, so pairs are found in each lineage on its own: it is read
outward from a message, until each id that the message answers or calls was called by another one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from reasoning_store.conversation.tool_pairs import ToolBlock, erased_with
from reasoning_store.ledger.records import BranchRow, MessagePlace

_FIRST_LOOK = 16
"""How many messages are looked at first; then four times as many, and so on."""


class ToolRow(NamedTuple):
    """A row with calls or responses, and these."""

    place: MessagePlace
    tools: Sequence[ToolBlock]


ReadToolRows: TypeAlias = Callable[[BranchRow, int, int], list[ToolRow]]
"""Returns the rows of a lineage from a position to another that hold calls or responses."""


def erased_together(
    start: MessagePlace, lineages: Sequence[BranchRow], read: ReadToolRows
) -> set[MessagePlace]:
    """Return ``start`` and every row that is erased with it."""
    together, waiting = {start}, [start]
    while waiting:
        place = waiting.pop()
        for lineage in lineages:
            if lineage.holds(place):
                more = _partners(place, lineage, read) - together
                waiting += more
                together |= more
    return together


def _partners(place: MessagePlace, lineage: BranchRow, read: ReadToolRows) -> set[MessagePlace]:
    """Return the rows of a lineage that are erased with one of them."""
    rows = _rows_around(place.position, lineage, read)
    pairs = erased_with([row.tools for row in rows])
    places = [(rows[caller].place, rows[response].place) for caller, response in pairs]
    return {other for pair in places for one, other in (pair, pair[::-1]) if one == place}


def _rows_around(position: int, lineage: BranchRow, read: ReadToolRows) -> list[ToolRow]:
    """Return the row at a position, and those next to it that can tell its pairs."""
    rows = read(lineage, position, position)
    tools = [one for row in rows for one in row.tools]
    answered = {one.id for one in tools if not one.is_call}
    called = {one.id for one in tools if one.is_call}
    first, step = position, _FIRST_LOOK
    while answered and first > 1:
        earlier = read(lineage, max(first - step, 1), first - 1)
        rows = earlier + rows
        answered -= _calls(earlier)
        first, step = first - step, step * 4
    last, step = position, _FIRST_LOOK
    while called and last < lineage.head:
        later = read(lineage, last + 1, min(last + step, lineage.head))
        rows += later
        called -= _calls(later)
        last, step = last + step, step * 4
    return rows


def _calls(rows: Sequence[ToolRow]) -> set[str]:
    """Return the ids that rows call: what is answered beyond them is not the call before."""
    return {one.id for row in rows for one in row.tools if one.is_call and one.is_usable}
