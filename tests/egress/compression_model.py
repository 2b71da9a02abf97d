"""A conversation in memory, with what may be done to it, for tests of compression.

Rows are only ever added. What a plan does is kept next to them: a setting, how far tool
results are cleared, and summaries in force. What the next request counts is walked row by
row in ``walked``, and carried in sums for the long conversations.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from reasoning_store.conversation.settings import Strip
from reasoning_store.egress.compaction_plan import (
    Layout,
    Limits,
    Plan,
    Range,
    StripCount,
    make_plan,
)


class SummaryInForce(NamedTuple):
    """A summary instead of a range, with its tokens."""

    first: int
    last: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Row:
    """One message: what is stated, what is thought, and which part a tool answered."""

    said: int = 0
    thought: int = 0
    result: int = 0
    starts: bool = False
    calls: str = ""
    answers: str = ""


@dataclass(slots=True)
class Chat:
    """The rows, the sums that are carried with them, and what was done."""

    fixed: int = 0
    rows: list[Row] = field(default_factory=list)
    said: list[int] = field(default_factory=lambda: [0])
    thought: list[int] = field(default_factory=lambda: [0])
    result: list[int] = field(default_factory=lambda: [0])
    start: list[int | None] = field(default_factory=lambda: [None])
    strip: Strip = "none"
    cleared: int = 0
    in_force: list[SummaryInForce] = field(default_factory=list)
    since: int | None = None

    def add(self, row: Row) -> None:
        self.rows.append(row)
        self.said.append(self.said[-1] + row.said)
        self.thought.append(self.thought[-1] + row.thought)
        self.result.append(self.result[-1] + row.result)
        self.start.append(len(self.rows) if row.starts else self.start[-1])

    # What the decision asks for

    def upto(self, position: int, strip: Strip) -> int:
        thought = self.thought[position] if strip == "none" else 0
        return (
            self.said[position]
            + thought
            + self.result[position]
            - self.result[min(position, self.cleared)]
        )

    def entries(self) -> list[tuple[int, Row]]:
        """The view: the last position of each entry, and what it counts."""
        found: list[tuple[int, Row]] = []
        summaries = {summary.first: summary for summary in self.in_force}
        position = 1
        while position <= len(self.rows):
            row, last = self.rows[position - 1], position
            if position in summaries:
                last = summaries[position].last
                row = Row(said=summaries[position].tokens, starts=True)
            elif position <= self.cleared:
                row = Row(said=row.said, thought=row.thought, starts=row.starts)
            found.append((last, row))
            position = last + 1
        return found

    def splits(self, position: int) -> bool:
        before = {row.calls for row in self.rows[:position] if row.calls}
        return any(row.answers in before for row in self.rows[position:])

    def effective(self, strip: Strip) -> int:
        head = len(self.rows)
        thought = self.thought[head]
        if strip == "all":
            thought = 0
        elif strip == "priorTurns":
            thought -= self.thought[(self.start[head] or 1) - 1]
        total = self.fixed + self.said[head] + thought + self.result[head]
        total -= self.result[self.cleared]
        for summary in self.in_force:
            gone = self.upto(summary.last, strip) - self.upto(summary.first - 1, strip)
            total += summary.tokens - gone
        return total

    def plan(self, limits: Limits, *, splits: bool = False, results: bool = True) -> Plan:
        strips: list[Strip] = ["none", "priorTurns", "all"]
        # Most of ten thousand turns need no step, and then no list is read.
        view = self.entries() if self.effective(self.strip) > limits.trigger_at else []

        def sums(strip: Strip) -> list[int]:
            own = [row.said + row.result + row.thought * (strip == "none") for _, row in view]
            return [0, *accumulate(own)]

        return make_plan(
            [
                StripCount(strip, self.effective(strip), sums(strip))
                for strip in strips[strips.index(self.strip) :]
            ],
            Layout(
                lasts=[last for last, _ in view],
                starts=[n for n, (_, row) in enumerate(view) if row.starts],
                clearable=[row.result for _, row in view] if results else (),
                cleared=self.cleared,
                splits=self.splits if splits else lambda position: False,
            ),
            limits,
            since=self.since,
        )

    # What is done

    def apply(self, plan: Plan, summary: int) -> None:
        """Do what a plan says; the summary of its range counts ``summary``."""
        for step in plan.steps:
            if isinstance(step.what, Range):
                if step.kind == "clear":
                    self.cleared = max(self.cleared, step.what.last)
                else:
                    self.summarize(step.what, summary)
            else:
                self.strip = step.what
        self.since = self.effective(self.strip)

    def summarize(self, what: Range, tokens: int) -> None:
        head = len(self.rows)
        assert 1 <= what.first <= what.last < (self.start[head] or 0), "the open turn is not closed"
        assert self.start[what.first] == what.first, "a range starts with a turn"
        assert self.start[what.last + 1] == what.last + 1, "a range ends with a turn"
        left = [s for s in self.in_force if not (what.first <= s.first and s.last <= what.last)]
        assert all(s.last < what.first or s.first > what.last for s in left), "ranges are disjoint"
        self.in_force = sorted(
            [*left, SummaryInForce(what.first, what.last, tokens)],
            key=lambda summary: summary.first,
        )

    # The same by walking

    def walked(self) -> int:
        """Return what the request counts, row by row."""
        total = self.fixed + sum(summary.tokens for summary in self.in_force)
        head = len(self.rows)
        for position, row in enumerate(self.rows, 1):
            if any(s.first <= position <= s.last for s in self.in_force):
                continue
            is_open = position >= (self.start[head] or 1)
            keeps = self.strip == "none" or (self.strip == "priorTurns" and is_open)
            total += row.said + (row.thought if keeps else 0)
            total += row.result if position > self.cleared else 0
        return total
