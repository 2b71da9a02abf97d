"""What the next request of a session would count, under other settings and cut elsewhere.

A decision asks about few positions. What messages carry there is read as it is asked for,
each once; no text is read, and nothing is decided.

Glue: it must not know what counts how much, which is ``egress``'s, or what is carried, which is
the ledger's.
"""

from __future__ import annotations

from functools import cached_property, partial

from reasoning_store.blocks import Exactness
from reasoning_store.egress.compression import Counting
from reasoning_store.egress.cuts import Layout, SummaryInForce
from reasoning_store.egress.usage import ContextUsage, closed_tokens, usage
from reasoning_store.egress.verdicts import Target
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.summaries import ClearingRow, CompactionRow, InForce, UsageRows
from reasoning_store.ledger.values import OwnThinking, State
from reasoning_store.sending import makers
from reasoning_store.settings import ReasoningSettings


class Prospects:
    """One branch of a session as it is carried now, and what could be sent of it."""

    def __init__(
        self,
        ledger: Ledger,
        key: int,
        branch: int,
        *,
        carried: UsageRows,
        to: Target,
        fixed: tuple[int, Exactness],
    ) -> None:
        self._ledger = ledger
        self._of = (key, branch)
        self._carried = carried
        self._to = to
        self._fixed = fixed
        self._made_by = makers(carried)
        self._states = _States(ledger, self._of, carried.lineage)
        self._results = _Results(self._states, carried.in_force)
        self._thinking: dict[int, OwnThinking | None] = {}

    def usage(self, settings: ReasoningSettings) -> ContextUsage:
        """Return what the next request counts under these settings."""
        return usage(
            self._carried,
            self._made_by,
            settings,
            self._to,
            fixed=self._fixed,
            encoding=self._carried.encoding,
        )

    def counting(self, settings: ReasoningSettings) -> Counting:
        """Return the same for a decision, which asks what parts of it count."""
        return Counting(
            settings.strip_from_context,
            self.usage(settings).effective,
            partial(self._upto, settings),
            partial(self._regained, settings),
        )

    def layout(self, *, clear: bool) -> Layout:
        """Return where it may be cut; without ``clear`` tool results stay as they are."""
        head = self._carried.lineage
        return Layout(
            head=head.position,
            turn_start=lambda position: self._states[position].turn_start,
            in_force=[
                SummaryInForce(one.first, one.last, one.tokens)
                for one in self._carried.in_force.ranges
            ],
            results_upto=self._results.upto if clear else None,
            cleared=self._results.cleared,
            splits=_Splits(self._ledger, self._of, head),
        )

    def _upto(self, settings: ReasoningSettings, position: int) -> int:
        counted = self._closed(settings, position, self._carried.last_thinking)
        return counted - self._states[min(position, self._results.cleared)].clearable

    def _regained(self, settings: ReasoningSettings, first: int, last: int) -> int:
        thought, before = self._carried.last_thinking, first - 1
        if first == 1 or thought is None or not first <= thought.position <= last:
            return 0
        then = self._closed(settings, before, self._thinking_at(before))
        return then - self._closed(settings, before, None)

    def _closed(self, settings: ReasoningSettings, at: int, last: OwnThinking | None) -> int:
        return closed_tokens(self._states[at], at, last, self._made_by, settings, self._to)

    def _thinking_at(self, position: int) -> OwnThinking | None:
        if position not in self._thinking:
            self._thinking[position] = self._ledger.states(*self._of, position).last_thinking
        return self._thinking[position]


class _States:
    """The states along a lineage, each read once."""

    def __init__(self, ledger: Ledger, of: tuple[int, int], head: State) -> None:
        self._read = ledger.states_at
        self._of = of
        self._known = {head.position: head, 0: State()}

    def __getitem__(self, position: int) -> State:
        if position not in self._known:
            self._known |= self._read(*self._of, [position])
        return self._known[position]


class _Splits:
    """Whether a cut parts what belongs together."""

    def __init__(self, ledger: Ledger, of: tuple[int, int], head: State) -> None:
        self._ledger = ledger
        self._of = of
        self._head = head

    def __call__(self, position: int) -> bool:
        if self._ledger.splits(*self._of, position):
            return True
        return any(one.first <= position for one in self._yet_to_hold)

    @cached_property
    def _yet_to_hold(self) -> list[ClearingRow]:
        """The summaries that a fork took along and that reach into the turn that is open there."""
        return [
            row
            for row in self._ledger.compactions(*self._of, every=True)
            if isinstance(row, CompactionRow)
            if row.undone_at is None and row.superseded_by is None
            if row.last >= (self._head.turn_start or 1)
        ]


class _Results:
    """What clearing tool results frees in a view, from the states along its lineage."""

    def __init__(self, states: _States, in_force: InForce) -> None:
        self._states = states
        self._ranges = in_force.ranges
        self.cleared = 0 if in_force.cleared is None else in_force.cleared.last

    def upto(self, position: int) -> int:
        """Return what is freed up to a position beyond what is cleared, outside of summaries."""
        freed = self._left(position)
        for one in self._ranges:
            if one.first <= position:
                freed -= self._left(min(one.last, position)) - self._left(one.first - 1)
        return freed

    def _left(self, position: int) -> int:
        done = self._states[min(position, self.cleared)]
        return self._states[position].clearable - done.clearable
