"""Where a conversation may be cut: at the ends of its closed turns.

A cut stands at the end of a closed turn: a turn is a real user message and all that follows
it up to the next one, and the open turn is the last. What a turn holds stays together, so
a call keeps its response and reasoning keeps its call. A range that a summary already
stands for is taken whole or not at all.

Every question is answered by a search over what a message row carries, so it costs a
number of row reads that grows with the logarithm of the conversation. Pure: it knows
positions and turns. It must not know what they count, where they are read from, or whether
to cut.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Range:
    """The messages from ``first`` to ``last``, both within."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"


@dataclass(frozen=True, slots=True)
class SummaryInForce:
    """A summary that stands in the view for a closed range, and what it counts there."""

    first: int
    last: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Layout:
    """How a conversation runs: where its turns lie, and what was done to it before."""

    head: int
    """The last position; 0 where there is none."""
    turn_start: Callable[[int], int | None]
    """Where the turn of a position starts; None before the first real user message."""
    in_force: Sequence[SummaryInForce] = ()
    results_upto: Callable[[int], int] | None = None
    """What clearing the tool results up to and with a position frees, outside of any range in
    force; it never falls with the position. None: they are not to be cleared."""
    cleared: int = 0
    """The position up to which they are cleared."""
    splits: Callable[[int], bool] = lambda position: False
    """Whether a cut there parts what belongs together: a call at or before it is answered
    behind it, in a later turn; or a summary that is yet to hold reaches over it."""


class Turns:
    """Where a conversation may be cut: at the ends of its closed turns."""

    __slots__ = ("_in_force", "_start", "first", "last_cut", "open")

    def __init__(self, layout: Layout) -> None:
        self._start = layout.turn_start
        self._in_force = layout.in_force
        start = layout.turn_start(layout.head) if layout.head else None
        self.open = start or 0
        """Where the open turn starts; 0 where there is none."""
        self.first = self.open
        """Where the first turn starts: what stands before it belongs to none."""
        if start is not None:
            self.first = 1 + bisect_left(
                range(1, start), True, key=lambda position: self._start(position) is not None
            )
        self.last_cut = self.open - 1 if self.first < self.open else 0
        """The end of the last closed turn; 0 where none is closed."""

    def cut(self, position: int) -> int:
        """Return the last end of a turn before a position, out of any range in force."""
        cut = (self._start(position) or self.first) - 1
        for summary in self._in_force:
            # Ranges in force are disjoint: one is taken whole or not at all.
            if summary.first <= cut < summary.last:
                return summary.last
        return cut

    def around(self, cut: int) -> Iterator[int]:
        """Yield a cut, then the later ones up to the open turn, then the earlier ones."""
        later = cut
        while self.first <= later <= self.last_cut:
            yield later
            positions = range(later + 2, self.open + 1)
            following = bisect_left(
                positions, True, key=lambda position: self.cut(position) > later
            )
            if following == len(positions):
                break
            later = self.cut(positions[following])
        earlier = self._before(cut) if cut >= self.first else 0
        while earlier >= self.first:
            yield earlier
            earlier = self._before(earlier)

    def _before(self, cut: int) -> int:
        for summary in self._in_force:
            if summary.last == cut:
                return summary.first - 1
        return self.cut(cut)
