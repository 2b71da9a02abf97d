"""Where a conversation may be cut, and what lies before a cut.

A cut stands at the end of a closed turn: a turn is a real user message and all that follows
it up to the next one, and the open turn is the last. What a turn holds stays together, so
a call keeps its response and reasoning keeps its call. A range that a summary already
stands for is taken whole or not at all.

Every question is answered by a search over what a message row carries, so it costs a
number of row reads that grows with the logarithm of the conversation. Pure: it knows
positions, turns and sums. It must not know where they are read from, or whether to cut.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from reasoning_store.blocks import Origin
from reasoning_store.egress.admission import opaque_obstacle, portable_obstacle
from reasoning_store.egress.policy import Place
from reasoning_store.egress.select import decide as keeps
from reasoning_store.egress.usage import Own, Sums
from reasoning_store.egress.verdicts import Rule, Target
from reasoning_store.settings import ReasoningSettings


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


def closed_tokens(
    sums: Sums,
    position: int,
    last_thinking: Own | None,
    origin_of: Callable[[str], tuple[Origin | None, str | None]],
    settings: ReasoningSettings,
    to: Target,
) -> int:
    """Return what the next request holds of the closed turns up to ``position``.

    ``sums`` is what is carried there, ``last_thinking`` the last message of the whole view
    that has any. Summaries in force are not taken into account.
    """
    last = last_thinking if last_thinking and last_thinking.position <= position else None
    own = last.portable if last is not None else 0
    kept = _kept(
        portable_obstacle(to), (sums.portable, sums.portable_calls), last, own, settings, to
    )
    for kind, both in sums.opaque.items():
        own = last.opaque.get(kind, 0) if last is not None else 0
        kept += _kept(opaque_obstacle(*origin_of(kind), to), both, last, own, settings, to)
    return sums.visible + kept


def _kept(
    hindrance: Rule | None,
    all_and_calls: tuple[int, int],
    last: Own | None,
    last_own: int,
    settings: ReasoningSettings,
    to: Target,
) -> int:
    """Return what is kept of one kind of thinking, by the places there are in closed turns."""
    every, calls = all_and_calls
    weights = {True: calls, False: every - calls}
    cells = []
    if last is not None:
        weights[last.has_call] -= last_own
        cells.append((Place(True, False, last.has_call, False), last_own))
    cells += [(Place(False, False, call, False), weight) for call, weight in weights.items()]
    return sum(weight for place, weight in cells if keeps(hindrance, settings, place, to)[0])
