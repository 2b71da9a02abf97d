"""The compaction plan: whether a conversation should get shorter now, and how.

Theory. The plan looks at the request that will be sent (BR-004): its effective tokens, under
the settings as they are and under each stricter one. The steps are tried from the cheapest up,
and each can be taken back, because none deletes anything:

    strip       keep less old reasoning: a setting
    clear       put a placeholder in the place of old tool results, at egress
    summarize   put a summary in the place of a closed range

A range ends at the end of a closed turn: it never includes a part of the open turn, and never
separates a call from its response. The cut is found by a search over sums of the view, which is
read once and without texts.

Three numbers keep plans from following one another too fast. A plan acts above ``trigger_at``;
its steps aim at the *target*, well below; and after a change the next plan waits until the
request has grown by ``min_growth``, unless it no longer fits. A change that frees less than
``min_freed`` is not worth a broken prompt cache, unless it makes the request fit.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from reasoning_store.conversation.blocks import CountExactness
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.conversation.settings import Strip
from reasoning_store.conversation.validation import check_share, check_tokens
from reasoning_store.egress.budget import THRESHOLD
from reasoning_store.egress.token_counts import exactness_mark
from reasoning_store.egress.turn_boundaries import Layout, Range, TurnBoundaries

Action: TypeAlias = Literal["none", "warn", "strip", "clear", "summarize", "refuse"]
StepKind: TypeAlias = Literal["strip", "clear", "summarize"]
Reason: TypeAlias = Literal[
    "below_threshold",  # nothing to do
    "over_threshold",  # more than trigger_at
    "over_limit",  # more than the model can take together with its answer
    "cooling_down",  # the request has grown too little since the last change
    "nothing_closed",  # no turn has ended that could be summarized
    "ineffective",  # too little would be freed
    "still_over_limit",  # no step makes the request fit
]

_TARGET = 0.6
"""The target of a step, as a share of the threshold."""
_GROWTH = 0.1
"""The growth before the next change, as a share of the usable tokens."""
_WORTH = 0.05
"""The least that a change has to free, as a share of the request."""
_SUMMARY = 2_000
"""The tokens set aside for a summary; a tenth of the usable ones where that is less."""


@dataclass(frozen=True, slots=True)
class StripCount:
    """The count of the next request under one value of ``stripFromContext``."""

    strip: Strip
    effective: int
    closed_upto: Callable[[int], int]
    """The tokens of the closed turns up to a position, without summaries in force. A cleared
    result counts as it is. The number never falls as the position grows."""
    regained: Callable[[int, int], int] = lambda first, last: 0
    """The tokens that the messages before a range gain once a summary replaces it: where the
    range holds the last thinking, an earlier message has it then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a plan."""

    kind: StepKind
    what: Strip | Range
    """The new value of ``stripFromContext``, or the messages that the step changes."""
    tokens: int
    """The tokens that it frees."""
    reversible: bool = True
    """It can be taken back: by the setting of before, or by ``undo``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The steps to take, the reasons, and the count after them. ``compact`` applies it."""

    action: Action
    reasons: tuple[Reason, ...]
    steps: tuple[Step, ...]
    """The steps of the plan, the cheapest first; the last one names the action."""
    to_summarize: Range | None
    to_clear: Range | None
    """The messages whose tool results are to be cleared."""
    after: int
    """The count of the request after the steps; of a refusal, the least that was possible."""
    effective: int
    limit: int
    reserve: int
    """The tokens that are kept free for the answer."""
    threshold: float
    usable: int
    """``limit`` less ``reserve``."""
    trigger_at: int
    summary_tokens: int
    """The tokens that ``after`` assumes for the summary."""
    exactness: CountExactness
    branch: int | None = None
    """Its branch. The plan is valid as long as its range there does not change."""
    basis: object = field(default=None, repr=False)
    """The state of the range, by which the session sees that it is untouched."""

    mark = property(exactness_mark)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The size that a request may have, and the least that a change has to free."""

    limit: int
    """The model's whole context."""
    reserve: int = 0
    threshold: float = THRESHOLD
    """The share of the usable tokens above which a plan acts."""
    target: float | None = None
    """The share that a step aims at; by default well below the threshold."""
    min_growth: int | None = None
    min_freed: int | None = None
    summary_tokens: int | None = None

    def __post_init__(self) -> None:
        check_tokens("limit", self.limit, least=1)
        check_tokens("reserve", self.reserve)
        for name in ("min_growth", "min_freed", "summary_tokens"):
            check_tokens(name, getattr(self, name), optional=True)
        check_share("threshold", self.threshold)
        check_share("target", self.target, optional=True, zero=True)
        if self.usable <= 0:
            raise InvalidCall(
                f"a reserve of {self.reserve} uses up the limit of {self.limit}",
                hint="pass the model's whole context as limit, and a part of it as reserve",
            )
        if self.target is not None and self.target >= self.threshold:
            raise InvalidCall(
                f"the target {self.target} is not below the threshold {self.threshold}",
                hint="leave target out, or pass a smaller share",
            )

    @property
    def usable(self) -> int:
        return self.limit - self.reserve

    @property
    def trigger_at(self) -> int:
        return int(self.usable * self.threshold)

    @property
    def growth(self) -> int:
        """The growth of the request before the next change."""
        return int(self.usable * _GROWTH) if self.min_growth is None else self.min_growth

    @property
    def enough(self) -> int:
        """The count at which no further step is needed: ``growth`` fits again."""
        return max(0, self.trigger_at - self.growth)

    @property
    def target_at(self) -> int:
        """The count that a step aims at."""
        share = self.threshold * _TARGET if self.target is None else self.target
        return min(int(self.usable * share), self.enough)

    @property
    def summary(self) -> int:
        """The tokens set aside for a summary."""
        if self.summary_tokens is not None:
            return self.summary_tokens
        return min(_SUMMARY, self.usable // 10)

    def least_gain(self, effective: int) -> int:
        """The least that a change of a request of this size has to free."""
        return max(1, int(effective * _WORTH) if self.min_freed is None else self.min_freed)


def make_plan(
    counts: Sequence[StripCount],
    layout: Layout,
    limits: Limits,
    *,
    since: int | None = None,
    exactness: CountExactness = "exact",
) -> Plan:
    """Return the plan for the next request.

    ``counts`` has the settings as they are first, then stricter ones, the gentlest first.
    ``since`` is the count of the request after the last change; None where there was none.
    """
    effective = counts[0].effective

    def plan(action: Action, *reasons: Reason, outcome: _Outcome | None = None) -> Plan:
        outcome = outcome or _Outcome(effective)
        return Plan(
            action=action,
            reasons=reasons,
            steps=outcome.steps,
            to_summarize=outcome.range_of("summarize"),
            to_clear=outcome.range_of("clear"),
            after=outcome.after,
            effective=effective,
            limit=limits.limit,
            reserve=limits.reserve,
            threshold=limits.threshold,
            usable=limits.usable,
            trigger_at=limits.trigger_at,
            summary_tokens=limits.summary,
            exactness=exactness,
        )

    if effective <= limits.trigger_at:
        return plan("none", "below_threshold")
    fits = effective <= limits.usable
    if fits and since is not None and effective - since < limits.growth:
        return plan("warn", "over_threshold", "cooling_down")
    why: Reason = "over_threshold" if fits else "over_limit"
    turns = TurnBoundaries(layout)
    outcome = _best_outcome(counts, layout, turns, limits, limits.least_gain(effective))
    if outcome.after > limits.usable:
        outcome = _best_outcome(counts, layout, turns, limits, 1)
        if outcome.after > limits.usable:
            return plan("refuse", why, "still_over_limit", outcome=_Outcome(outcome.after))
    if outcome.steps:
        return plan(outcome.steps[-1].kind, why, outcome=outcome)
    return plan("warn", why, "ineffective" if turns.last_cut else "nothing_closed")


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The count after some steps."""

    after: int
    steps: tuple[Step, ...] = ()

    def range_of(self, kind: StepKind) -> Range | None:
        """Return the messages that the step of this kind changes, if there is one."""
        for step in self.steps:
            if step.kind == kind and isinstance(step.what, Range):
                return step.what
        return None


def _best_outcome(
    counts: Sequence[StripCount], layout: Layout, turns: TurnBoundaries, limits: Limits, least: int
) -> _Outcome:
    """Return the steps that make the request short enough, or as short as possible.

    A step that frees less than ``least`` is not taken.
    """
    count, steps = _strip_step(counts, limits, least)
    effective = count.effective
    if effective <= limits.enough:
        return _Outcome(effective, steps)
    cleared = _with_step(
        _Outcome(effective, steps), _clear_step(layout, turns, effective, limits), least
    )
    if cleared.after <= limits.enough:
        return cleared
    summary = _summary_range(count, layout, turns, limits)
    if summary is None or summary[1] < least:
        return cleared
    what, freed = summary
    other_results = None
    if effective - freed > limits.enough:
        # Results in the range are gone with it; others can still be cleared.
        other_results = _clear_step(layout, turns, effective - freed, limits, summarized=what)
    with_summary = _with_step(
        _with_step(_Outcome(effective, steps), other_results, least),
        Step(kind="summarize", what=what, tokens=freed),
        least,
    )
    return min(cleared, with_summary, key=lambda outcome: outcome.after)


def _with_step(outcome: _Outcome, step: Step | None, least: int) -> _Outcome:
    """Return an outcome with one more step, where that frees enough."""
    if step is None or step.tokens < least:
        return outcome
    return _Outcome(outcome.after - step.tokens, (*outcome.steps, step))


def _strip_step(
    counts: Sequence[StripCount], limits: Limits, least: int
) -> tuple[StripCount, tuple[Step, ...]]:
    """Return the gentlest stricter setting that is enough, or the one that frees most."""
    current = best = counts[0]
    for count in counts[1:]:
        if best.effective <= limits.enough:
            break
        if current.effective - count.effective >= least and count.effective < best.effective:
            best = count
    if best is current:
        return current, ()
    freed = current.effective - best.effective
    return best, (Step(kind="strip", what=best.strip, tokens=freed),)


def _clear_step(
    layout: Layout,
    turns: TurnBoundaries,
    effective: int,
    limits: Limits,
    *,
    summarized: Range | None = None,
) -> Step | None:
    """Return the clearing of the oldest tool results before the open turn, as far as needed.

    ``summarized`` is a range that is summarized: its results are gone already.
    """
    results = layout.results_upto
    positions = range(layout.cleared + 1, turns.open_start)
    if results is None or not positions:
        return None

    def tokens_freed(position: int) -> int:
        inside = 0
        if summarized is not None and summarized.first <= position:
            inside = results(min(position, summarized.last)) - results(summarized.first - 1)
        return results(position) - inside

    needed = min(effective - limits.target_at, tokens_freed(positions[-1]))
    upto = positions[bisect_left(positions, needed, key=tokens_freed)]
    return Step(kind="clear", what=Range(positions[0], upto), tokens=tokens_freed(upto))


def _summary_range(
    count: StripCount, layout: Layout, turns: TurnBoundaries, limits: Limits
) -> tuple[Range, int] | None:
    """Return the shortest closed range whose summary is enough, or else the longest.

    The second value is the number of tokens that it frees.
    """
    if not turns.last_cut:
        return None
    first = turns.first_start
    for summary in layout.in_force:
        if summary.first <= first <= summary.last:
            first = summary.first
    before = count.closed_upto(first - 1) if first > 1 else 0

    def tokens_freed(cut: int) -> int:
        if cut < first:
            return -limits.summary
        held = count.closed_upto(cut) - before
        for summary in layout.in_force:
            if first <= summary.first and summary.last <= cut:
                own = count.closed_upto(summary.last) - (
                    count.closed_upto(summary.first - 1) if summary.first > 1 else 0
                )
                held += summary.tokens - own
        return held - count.regained(first, cut) - limits.summary

    needed = count.effective - limits.target_at
    places = range(turns.first_start, turns.open_start + 1)
    nearest = bisect_left(places, needed, key=lambda place: tokens_freed(turns.cut_before(place)))
    cut = turns.cut_before(places[min(nearest, len(places) - 1)])
    for candidate in turns.cuts_around(cut):
        if not layout.splits(candidate):
            return Range(first, candidate), tokens_freed(candidate)
    return None
