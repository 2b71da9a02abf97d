"""The messages of a window: so many, or so many tokens, and no pair separated.

A window has an end that its caller named and one that is sought. The other end comes from the
counts of the messages, read page by page from the named end, so it costs reads by the width of the
window and not by the length of the conversation.

The sought end separates no call from its response, and no reasoning from its call where these are
two messages of a model that follow one another. A window by count grows for that; a window by
tokens has to fit, and shrinks. A call and its response are looked for in one turn and its
neighbour, so that a response which no one asked for costs no more than that. The end that the
caller named stays: pages neither overlap nor leave a gap.

Pure: knows counts, positions and ids; reading is the caller's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from reasoning_store.conversation.tool_pairs import ToolBlock, tied_messages, tool_blocks
from reasoning_store.ledger.records import StoredRow


def widest(tokens: Iterable[int], budget: int) -> int:
    """Return how many messages next to the named end fit; ``tokens`` are theirs, from there on."""
    width = 0
    for own in tokens:
        budget -= own
        if budget < 0:
            break
        width += 1
    return width


@dataclass(frozen=True, slots=True)
class Link:
    """The ties of a message to others."""

    position: int
    tools: Sequence[ToolBlock]
    is_model: bool
    thinks: bool

    @property
    def calls(self) -> list[str]:
        return [one.id for one in self.tools if one.is_call and one.is_usable]

    @property
    def answers(self) -> list[str]:
        return [one.id for one in self.tools if not one.is_call]


def link_of(row: StoredRow) -> Link:
    """Return what ties a message to others; whether it was read with thinking or without."""
    return Link(
        position=row.position,
        tools=tool_blocks(row.message),
        is_model=row.message.role == "assistant",
        thinks=bool(row.headers or row.message.thinking),
    )


def tied_pairs(rows: Sequence[Link]) -> list[tuple[int, int]]:
    """Return the pairs of positions that belong together, the earlier first."""
    tied = tied_messages([row.tools for row in rows])
    found = [(rows[caller].position, rows[response].position) for caller, response in tied]
    found += [
        (before.position, row.position)
        for before, row in pairwise(rows)
        if _may_lead(before) and row.is_model and row.calls
    ]
    return found


def _may_lead(row: Link) -> bool:
    """Whether its reasoning may belong to the call in the next message."""
    return row.is_model and row.thinks and not row.calls


def earlier(cut: int, pairs: Sequence[tuple[int, int]]) -> int:
    """Return the last cut at or before this one that separates no pair.

    A cut is after the message of its number.
    """
    while separated := [early for early, late in pairs if early <= cut < late]:
        cut = min(separated) - 1
    return cut


def later(cut: int, pairs: Sequence[tuple[int, int]]) -> int:
    """Return the first cut at or after this one that separates no pair."""
    while separated := [late for early, late in pairs if early <= cut < late]:
        cut = max(separated)
    return cut


def asks_before(rows: Sequence[Link], cut: int) -> bool:
    """Whether a message after the cut may be tied to one before these rows."""
    asked: set[str] = set()
    for row in rows:
        if row.position > cut and not asked.issuperset(row.answers):
            return True
        asked.update(row.calls)
    return bool(rows) and rows[0].position == cut + 1 and rows[0].is_model and bool(rows[0].calls)


def asks_behind(rows: Sequence[Link], cut: int) -> bool:
    """Whether a message up to the cut may be tied to one after these rows."""
    answered: Counter[str] = Counter()
    for row in reversed(rows):
        if row.position <= cut and not Counter(row.calls) <= answered:
            return True
        answered.update(row.answers)
    return bool(rows) and rows[-1].position == cut and _may_lead(rows[-1])
