"""Whether a conversation should get shorter now, and how: a decision, never an act.

What is decided over is what will be sent (BR-004): the effective tokens of the next
request, under the settings as they are and under each stricter one. The steps go from the
cheapest up, and each can be taken back, for nothing is deleted by any of them:

    strip       keep less old reasoning: a setting
    clear       put a placeholder in the place of old tool results, at egress
    summarize   put a summary in the place of a closed range

A range is closed where whole turns end: it never reaches into the open turn, and never
parts a call from its response. Where to cut is a search over cumulative counts, so a
decision takes a number of row reads that grows with the logarithm of the conversation.

Against going to and fro there are three numbers. ``trigger_at`` is where something is done;
a step goes on down to the *target*, well below; and after a change nothing more is done
until the request has grown by ``min_growth``, unless it no longer fits. What would free
less than ``min_freed`` is not worth a broken prompt cache, unless it makes the request fit.

Pure: it knows tokens, positions and turns. It must not know where they are read from, who
writes summaries, a provider or SQL.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from reasoning_store.blocks import Exactness
from reasoning_store.egress.amounts import THRESHOLD, share, tokens
from reasoning_store.egress.cuts import Layout, Range, Turns
from reasoning_store.errors import UsageError
from reasoning_store.settings import Strip

Action: TypeAlias = Literal["none", "warn", "strip", "clear", "summarize", "refuse"]
StepKind: TypeAlias = Literal["strip", "clear", "summarize"]
Reason: TypeAlias = Literal[
    "below_threshold",  # nothing to do
    "over_threshold",  # more than trigger_at
    "over_limit",  # more than the model can take beside its answer
    "cooling_down",  # too little has come since the last change
    "nothing_closed",  # no turn has ended that could be summarized
    "ineffective",  # too little would be freed
    "still_over_limit",  # nothing legal makes the request fit
]

_TARGET = 0.6
"""How far down a step goes, as a share of the threshold."""
_GROWTH = 0.1
"""What has to come before the next change, as a share of what is usable."""
_WORTH = 0.05
"""What has to be freed for a change to be worth it, as a share of the request."""
_SUMMARY = 2_000
"""What a summary is taken to need, or a tenth of what is usable where that is less."""


@dataclass(frozen=True, slots=True)
class Counting:
    """What the next request counts under one value of ``stripFromContext``."""

    strip: Strip
    effective: int
    upto: Callable[[int], int]
    """Of that, what the messages up to and with the end of a closed turn would count with no
    summary in force, cleared results as they are. It never falls with the position."""
    regained: Callable[[int, int], int] = lambda first, last: 0
    """What the messages before a range count more once a summary stands for it: where the last
    message that thought is in it, that is one of them then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing to do."""

    kind: StepKind
    what: Strip | Range
    """The value of ``stripFromContext``, or the messages that the step is about."""
    tokens: int
    """How many it frees."""
    reversible: bool = True
    """It can be taken back: a setting is set back, a summary undone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionPlan:
    """What to do, why, and what the request then counts. Applying it is another's."""

    action: Action
    reasons: tuple[Reason, ...]
    steps: tuple[Step, ...]
    """All that the plan is made of, the cheapest first; the last one names the action."""
    to_summarize: Range | None
    to_clear: Range | None
    """The messages whose tool results are to be cleared."""
    after: int
    """What the request will count; of a refusal, the least it could be made to count."""
    effective: int
    limit: int
    reserve: int
    """What is kept free for the answer."""
    threshold: float
    usable: int
    """``limit`` less ``reserve``."""
    trigger_at: int
    summary_tokens: int
    """What the summary may count for ``after`` to hold."""
    exactness: Exactness


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a request may count, and what a change has to be worth."""

    limit: int
    """The model's whole context."""
    reserve: int = 0
    threshold: float = THRESHOLD
    """The share of what is usable from which on something is done."""
    target: float | None = None
    """The share that a step goes down to; by default well below the threshold."""
    min_growth: int | None = None
    min_freed: int | None = None
    summary_tokens: int | None = None

    def __post_init__(self) -> None:
        tokens("limit", self.limit, least=1)
        tokens("reserve", self.reserve)
        for name in ("min_growth", "min_freed", "summary_tokens"):
            tokens(name, getattr(self, name), optional=True)
        share("threshold", self.threshold)
        share("target", self.target, optional=True, zero=True)
        if self.usable <= 0:
            raise UsageError(
                f"a reserve of {self.reserve} leaves nothing of a limit of {self.limit}",
                hint="give the model's whole context as limit, and less of it as reserve",
            )
        if self.target is not None and self.target >= self.threshold:
            raise UsageError(
                f"the target {self.target} is not below the threshold {self.threshold}",
                hint="leave target out, or give a smaller share",
            )

    @property
    def usable(self) -> int:
        return self.limit - self.reserve

    @property
    def trigger_at(self) -> int:
        return int(self.usable * self.threshold)

    @property
    def growth(self) -> int:
        """What has to come before the next change."""
        return int(self.usable * _GROWTH) if self.min_growth is None else self.min_growth

    @property
    def enough(self) -> int:
        """Below this no further step is taken: there is room for ``growth`` again."""
        return max(0, self.trigger_at - self.growth)

    @property
    def target_at(self) -> int:
        """How far down a step goes once it is taken."""
        share = self.threshold * _TARGET if self.target is None else self.target
        return min(int(self.usable * share), self.enough)

    @property
    def summary(self) -> int:
        """What a summary is taken to need."""
        if self.summary_tokens is not None:
            return self.summary_tokens
        return min(_SUMMARY, self.usable // 10)

    def worth(self, effective: int) -> int:
        """What a change of a request of this size has to free."""
        return max(1, int(effective * _WORTH) if self.min_freed is None else self.min_freed)


def decide(
    countings: Sequence[Counting],
    layout: Layout,
    limits: Limits,
    *,
    since: int | None = None,
    exactness: Exactness = "exact",
) -> CompressionPlan:
    """Return what to do about a request.

    ``countings`` has the settings as they are first, then stricter ones, the gentlest first.
    ``since`` is what the request counted when something was last done, None where nothing
    ever was.
    """
    effective = countings[0].effective

    def plan(action: Action, *reasons: Reason, way: _Way | None = None) -> CompressionPlan:
        way = way or _Way(effective)
        return CompressionPlan(
            action=action,
            reasons=reasons,
            steps=way.steps,
            to_summarize=way.range_of("summarize"),
            to_clear=way.range_of("clear"),
            after=way.after,
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
    turns = Turns(layout)
    way = _shortened(countings, layout, turns, limits, limits.worth(effective))
    if way.after > limits.usable:
        way = _shortened(countings, layout, turns, limits, 1)
        if way.after > limits.usable:
            return plan("refuse", why, "still_over_limit", way=_Way(way.after))
    if way.steps:
        return plan(way.steps[-1].kind, why, way=way)
    return plan("warn", why, "ineffective" if turns.last_cut else "nothing_closed")


@dataclass(frozen=True, slots=True)
class _Way:
    after: int
    steps: tuple[Step, ...] = ()

    def range_of(self, kind: StepKind) -> Range | None:
        """Return the messages that the step of this kind is about, if there is one."""
        for step in self.steps:
            if step.kind == kind and isinstance(step.what, Range):
                return step.what
        return None


def _shortened(
    countings: Sequence[Counting], layout: Layout, turns: Turns, limits: Limits, least: int
) -> _Way:
    """Return the steps that make the request short enough, or as short as they can.

    A step that frees less than ``least`` is not taken.
    """
    counting, steps = _stripped(countings, limits, least)
    effective = counting.effective
    if effective <= limits.enough:
        return _Way(effective, steps)
    cleared = _with(_Way(effective, steps), _cleared(layout, turns, effective, limits), least)
    if cleared.after <= limits.enough:
        return cleared
    summary = _summarized(counting, layout, turns, limits)
    if summary is None or summary[1] < least:
        return cleared
    what, freed = summary
    rest = None
    if effective - freed > limits.enough:
        # What lies in the range is gone with it; other results can still be cleared.
        rest = _cleared(layout, turns, effective - freed, limits, but=what)
    summarized = _with(
        _with(_Way(effective, steps), rest, least),
        Step(kind="summarize", what=what, tokens=freed),
        least,
    )
    return min(cleared, summarized, key=lambda way: way.after)


def _with(way: _Way, step: Step | None, least: int) -> _Way:
    """Return a way with one step more, where that frees enough."""
    if step is None or step.tokens < least:
        return way
    return _Way(way.after - step.tokens, (*way.steps, step))


def _stripped(
    countings: Sequence[Counting], limits: Limits, least: int
) -> tuple[Counting, tuple[Step, ...]]:
    """Return the gentlest stricter setting that is enough, or the one that frees most."""
    now = best = countings[0]
    for counting in countings[1:]:
        if best.effective <= limits.enough:
            break
        if now.effective - counting.effective >= least and counting.effective < best.effective:
            best = counting
    if best is now:
        return now, ()
    freed = now.effective - best.effective
    return best, (Step(kind="strip", what=best.strip, tokens=freed),)


def _cleared(
    layout: Layout, turns: Turns, effective: int, limits: Limits, *, but: Range | None = None
) -> Step | None:
    """Return the clearing of the oldest tool results before the open turn, as far as is needed.

    ``but`` is a range that is summarized: what lies in it is gone already.
    """
    results = layout.results_upto
    positions = range(layout.cleared + 1, turns.open)
    if results is None or not positions:
        return None

    def freed(position: int) -> int:
        inside = 0
        if but is not None and but.first <= position:
            inside = results(min(position, but.last)) - results(but.first - 1)
        return results(position) - inside

    needed = min(effective - limits.target_at, freed(positions[-1]))
    upto = positions[bisect_left(positions, needed, key=freed)]
    return Step(kind="clear", what=Range(positions[0], upto), tokens=freed(upto))


def _summarized(
    counting: Counting, layout: Layout, turns: Turns, limits: Limits
) -> tuple[Range, int] | None:
    """Return the shortest closed range whose summary is enough, or the longest there is.

    The second value is what it frees.
    """
    if not turns.last_cut:
        return None
    first = turns.first
    for summary in layout.in_force:
        if summary.first <= first <= summary.last:
            first = summary.first
    before = counting.upto(first - 1) if first > 1 else 0

    def freed(cut: int) -> int:
        if cut < first:
            return -limits.summary
        held = counting.upto(cut) - before
        for summary in layout.in_force:
            if first <= summary.first and summary.last <= cut:
                own = counting.upto(summary.last) - (
                    counting.upto(summary.first - 1) if summary.first > 1 else 0
                )
                held += summary.tokens - own
        return held - counting.regained(first, cut) - limits.summary

    needed = counting.effective - limits.target_at
    places = range(turns.first, turns.open + 1)
    found = bisect_left(places, needed, key=lambda place: freed(turns.cut(place)))
    cut = turns.cut(places[min(found, len(places) - 1)])
    for candidate in turns.around(cut):
        if not layout.splits(candidate):
            return Range(first, candidate), freed(candidate)
    return None
