"""Turn boundaries: the places where a conversation may be cut, the ends of its closed turns.

Theory. A turn is a real user message and all that follows it up to the next one, and the open
turn is the last. A turn stays whole, so a call keeps its response and reasoning keeps its call.
A range that has a summary is taken whole or not at all. Each question is a search over the view.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from reasoning_store.conversation.blocks import Message


@dataclass(frozen=True, slots=True)
class Range:
    """The messages from ``first`` to ``last``, including both."""

    first: int
    last: int
    messages: tuple[Message, ...] = field(default=(), repr=False, compare=False)
    """The messages to summarize: an earlier summary instead of its messages, then those since.
    Empty if there is nothing to summarize."""

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"


@dataclass(frozen=True, slots=True)
class SummaryInForce:
    """A summary that replaces a closed range in the view, with its tokens."""

    first: int
    last: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Layout:
    """The turns of a branch, and its compactions so far."""

    head: int
    """The last position; 0 on an empty branch."""
    turn_start: Callable[[int], int | None]
    """The start of the turn of a position; None before the first real user message."""
    in_force: Sequence[SummaryInForce] = ()
    results_upto: Callable[[int], int] | None = None
    """The tokens freed by clearing the tool results up to a position, outside of any range in
    force; the number never falls as the position grows. None: results are not to be cleared."""
    cleared: int = 0
    """The position up to which results are cleared."""
    splits: Callable[[int], bool] = lambda position: False
    """Whether a cut at a position separates a call from a response in a later turn, or a range
    whose summary is not in force yet."""


class TurnBoundaries:
    """The ends of the closed turns of a branch."""

    __slots__ = ("_in_force", "_start", "first_start", "last_cut", "open_start")

    def __init__(self, layout: Layout) -> None:
        self._start = layout.turn_start
        self._in_force = layout.in_force
        start = layout.turn_start(layout.head) if layout.head else None
        self.open_start = start or 0
        """The start of the open turn; 0 where no turn has started."""
        self.first_start = self.open_start
        """The start of the first turn; messages before it belong to no turn."""
        if start is not None:
            self.first_start = 1 + bisect_left(
                range(1, start), True, key=lambda position: self._start(position) is not None
            )
        self.last_cut = self.open_start - 1 if self.first_start < self.open_start else 0
        """The end of the last closed turn; 0 where no turn is closed."""

    def cut_before(self, position: int) -> int:
        """Return the last end of a turn before a position, outside of any range in force."""
        cut = (self._start(position) or self.first_start) - 1
        for summary in self._in_force:
            # Ranges in force are disjoint; each is taken whole or not at all.
            if summary.first <= cut < summary.last:
                return summary.last
        return cut

    def cuts_around(self, cut: int) -> Iterator[int]:
        """Yield a cut, then the later ones up to the open turn, then the earlier ones."""
        later = cut
        while self.first_start <= later <= self.last_cut:
            yield later
            positions = range(later + 2, self.open_start + 1)
            following = bisect_left(
                positions, True, key=lambda position: self.cut_before(position) > later
            )
            if following == len(positions):
                break
            later = self.cut_before(positions[following])
        earlier = self._cut_earlier_than(cut) if cut >= self.first_start else 0
        while earlier >= self.first_start:
            yield earlier
            earlier = self._cut_earlier_than(earlier)

    def _cut_earlier_than(self, cut: int) -> int:
        for summary in self._in_force:
            if summary.last == cut:
                return summary.first - 1
        return self.cut_before(cut)
