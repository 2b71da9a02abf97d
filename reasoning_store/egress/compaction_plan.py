"""The compaction plan: whether a conversation should get shorter now, and how.

Theory. The plan looks at the request that will be sent (BR-004): its effective tokens, under
the settings as they are and under each stricter one. The steps are tried from the cheapest up,
and each can be taken back, because none deletes anything:

    strip       keep less old reasoning: a setting
    clear       put a placeholder in the place of old tool results, at egress
    summarize   put a summary in the place of a closed range

A turn is a real user message and all that follows it up to the next one. A range is of whole closed
turns, so a call keeps its response and reasoning keeps its call; a summary in it is taken along
whole. The view is a list, read once and without texts, and each question is a search over its sums.

Three numbers keep plans from following one another too fast. A plan acts above ``trigger_at``;
its steps aim at the *target*, well below; and after a change the next plan waits until the
request has grown by ``min_growth``, unless it no longer fits. A change that frees less than
``min_freed`` is not worth a broken prompt cache, unless it makes the request fit.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Literal, Protocol, TypeAlias

from reasoning_store.conversation.blocks import CountExactness, Message
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.conversation.settings import SettingValues, Strip
from reasoning_store.conversation.turns import LAST_RANK, TurnPosition, turn_positions
from reasoning_store.conversation.validation import check_share, check_tokens
from reasoning_store.egress.budget import THRESHOLD
from reasoning_store.egress.selection import judge
from reasoning_store.egress.target import Target
from reasoning_store.egress.token_counts import exactness_mark
from reasoning_store.egress.usage import CountedMessage

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
class Layout:
    """The entries of a view in order, each a message or the summary of a range."""

    lasts: Sequence[int]
    """The position of each; of a summary, the last one of its range."""
    starts: Sequence[int]
    """The entries that start a turn, and the summaries: a cut lies before one of them."""
    clearable: Sequence[int] = ()
    """The tokens that clearing the tool results of each frees; empty: none is to be cleared."""
    cleared: int = 0
    """The position up to which results are cleared."""
    splits: Callable[[int], bool] = lambda position: False
    """Whether a cut after a position separates a call from a response in a later turn, or a range
    whose summary is not in force yet."""

    @property
    def cuts(self) -> Sequence[int]:
        """The numbers of entries before a cut; the last one is that before the open turn."""
        return self.starts[1:]

    def last_before(self, entry: int) -> int:
        """Return the last position before an entry."""
        return self.lasts[entry - 1] if entry else 0


@dataclass(frozen=True, slots=True)
class StripCount:
    """The count of the next request under one value of ``stripFromContext``."""

    strip: Strip
    effective: int
    sums: Sequence[int]
    """The tokens of so many entries of the view, from none up to all of the closed turns."""
    regained: Callable[[int], int] = lambda cut: 0
    """The tokens that the messages before the first turn gain once a summary replaces the entries
    from there to a cut: where these have the last thinking, an earlier message has it then."""


class PlannedMessage(CountedMessage, Protocol):
    """A message of a view without its blocks, or the summary of a range."""

    @property
    def last(self) -> int: ...
    @property
    def is_summary(self) -> bool: ...
    @property
    def clearable(self) -> int: ...


def make_layout(
    view: Sequence[PlannedMessage], *, clear: bool, cleared: int, splits: Callable[[int], bool]
) -> Layout:
    """Return where a view may be cut; without ``clear`` tool results stay as they are."""
    return Layout(
        lasts=[item.last for item in view],
        starts=[n for n, item in enumerate(view) if item.is_summary or item.starts_turn],
        clearable=[item.clearable for item in view] if clear else (),
        cleared=cleared,
        splits=splits,
    )


def count_strip(
    view: Sequence[PlannedMessage],
    layout: Layout,
    settings: SettingValues,
    to: Target,
    *,
    fixed: int,
    inputs_digest: str,
) -> StripCount:
    """Return the count of the next request under these settings, and of each part of it."""

    def kept(items: Sequence[PlannedMessage], positions: Sequence[TurnPosition]) -> list[int]:
        verdicts = judge(items, positions, settings, to)
        return [sum([one.tokens for one in each if one.kept]) for each in verdicts]

    verdicts = judge(view, turn_positions(view), settings, to, inputs_digest)
    own = [
        item.counts.visible + sum(item.counts.thinking) - sum(v.tokens for v in each if not v.kept)
        for item, each in zip(view, verdicts, strict=True)
    ]
    sums = [0, *accumulate(own)]
    first = layout.starts[0] if layout.starts else 0
    thinkers = [n for n, item in enumerate(view) if item.has_thinking]
    before = [view[n] for n in thinkers if n < first][-1:]
    as_last, as_other = (
        sum(kept(before, [TurnPosition(rank, False, item.has_call, False) for item in before]))
        for rank in (0, LAST_RANK)
    )
    return StripCount(
        settings.strip_from_context,
        fixed + sums[-1],
        sums,
        lambda cut: as_last - as_other if thinkers and first <= thinkers[-1] < cut else 0,
    )


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
    outcome = _best_outcome(counts, layout, limits, limits.least_gain(effective))
    if outcome.after > limits.usable:
        outcome = _best_outcome(counts, layout, limits, 1)
        if outcome.after > limits.usable:
            return plan("refuse", why, "still_over_limit", outcome=_Outcome(outcome.after))
    if outcome.steps:
        return plan(outcome.steps[-1].kind, why, outcome=outcome)
    return plan("warn", why, "ineffective" if layout.cuts else "nothing_closed")


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
    counts: Sequence[StripCount], layout: Layout, limits: Limits, least: int
) -> _Outcome:
    """Return the steps that make the request short enough, or as short as possible.

    A step that frees less than ``least`` is not taken.
    """
    count, steps = _strip_step(counts, limits, least)
    effective = count.effective
    if effective <= limits.enough:
        return _Outcome(effective, steps)
    stripped = _Outcome(effective, steps)
    cleared = _with_step(stripped, _clear_step(layout, effective, limits), least)
    if cleared.after <= limits.enough:
        return cleared
    cut, freed = _best_cut(count, layout, limits)
    if cut is None or freed < least:
        return cleared
    first = layout.starts[0]
    what = Range(layout.last_before(first) + 1, layout.last_before(cut))
    other_results = None
    if effective - freed > limits.enough:
        # Results in the range are gone with it; others can still be cleared.
        other_results = _clear_step(layout, effective - freed, limits, range(first, cut))
    with_summary = _with_step(
        _with_step(stripped, other_results, least),
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
    layout: Layout, effective: int, limits: Limits, summarized: range = range(0)
) -> Step | None:
    """Return the clearing of the oldest tool results before the open turn, as far as needed.

    ``summarized`` are entries that are summarized: their results are gone already.
    """
    closed = layout.clearable[: layout.starts[-1]] if layout.starts else ()
    sums = [*accumulate([0 if n in summarized else own for n, own in enumerate(closed)])]
    if not sums:
        return None
    found = bisect_left(sums, min(effective - limits.target_at, sums[-1]))
    what = Range(layout.cleared + 1, layout.lasts[found])
    return Step(kind="clear", what=what, tokens=sums[found])


def _best_cut(count: StripCount, layout: Layout, limits: Limits) -> tuple[int | None, int]:
    """Return the first cut before which a summary frees enough, or else the last one.

    The second value is the number of tokens that it frees.
    """

    def tokens_freed(cut: int) -> int:
        held = count.sums[cut] - count.sums[layout.starts[0]]
        return held - count.regained(cut) - limits.summary

    cuts = layout.cuts
    nearest = bisect_left(cuts, count.effective - limits.target_at, key=tokens_freed)
    nearest = min(nearest, max(len(cuts) - 1, 0))
    for cut in (*cuts[nearest:], *reversed(cuts[:nearest])):
        if not layout.splits(layout.last_before(cut)):
            return cut, tokens_freed(cut)
    return None, 0
