"""Which rows an erasure takes along, on every branch that holds them.

Ids may come again in a later turn, so pairs are found in each lineage on its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from reasoning_store.conversation.tool_pairs import ToolBlock, erased_with
from reasoning_store.ledger.records import BranchRow, MessagePlace

ToolRow: TypeAlias = tuple[int, Sequence[ToolBlock]]
"""The position of a row with calls or responses, and these."""


def erased_together(
    start: MessagePlace,
    lineages: Sequence[BranchRow],
    tool_rows: Callable[[int], Sequence[ToolRow]],
) -> set[MessagePlace]:
    """Return ``start`` and every row that is erased with it.

    ``tool_rows`` returns the own rows of a branch that hold calls or responses, in order.
    """
    together, waiting = {start}, [start]
    partners: dict[int, dict[MessagePlace, set[MessagePlace]]] = {}
    while waiting:
        place = waiting.pop()
        for lineage in lineages:
            if lineage.holds(place):
                if lineage.number not in partners:
                    partners[lineage.number] = _partners(lineage, tool_rows)
                more = partners[lineage.number].get(place, set()) - together
                waiting += more
                together |= more
    return together


def _partners(
    lineage: BranchRow, tool_rows: Callable[[int], Sequence[ToolRow]]
) -> dict[MessagePlace, set[MessagePlace]]:
    """Return the rows that are erased with each row of a lineage."""
    rows = [
        (MessagePlace(segment.branch, position), tools)
        for segment in lineage.segments
        for position, tools in tool_rows(segment.branch)
        if segment.first <= position <= segment.last
    ]
    found: dict[MessagePlace, set[MessagePlace]] = {}
    for caller, response in erased_with([tools for _, tools in rows]):
        found.setdefault(rows[caller][0], set()).add(rows[response][0])
        found.setdefault(rows[response][0], set()).add(rows[caller][0])
    return found
