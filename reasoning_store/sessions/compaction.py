"""A session that gets shorter: the plan, its summary and clearing, and how they are undone.

A plan changes nothing. Applied, it sets a setting, clears old tool results or lets a summary
replace a range in requests; no message is touched, and each can be undone.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate

from reasoning_store.conversation.blocks import CountExactness, Message, user
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.conversation.placeholders import framed_summary
from reasoning_store.conversation.settings import SettingValues
from reasoning_store.conversation.turns import LAST_RANK, TurnPosition, turn_positions
from reasoning_store.conversation.validation import check_message, check_truth
from reasoning_store.egress import budget, compaction_plan
from reasoning_store.egress.budget import Budget
from reasoning_store.egress.compaction_plan import Limits, Plan, StripCount
from reasoning_store.egress.policy import stricter_settings
from reasoning_store.egress.selection import judge
from reasoning_store.egress.target import Target
from reasoning_store.egress.token_counts import FixedCount, exactness_for
from reasoning_store.egress.turn_boundaries import Layout, Range, SummaryInForce
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.view_records import (
    ActiveCompactions,
    CompactionRow,
    NarrowRow,
    NewCompaction,
    RangeSnapshot,
    RequestSnapshot,
)
from reasoning_store.ledger.views import Views
from reasoning_store.sessions import settings as session_settings
from reasoning_store.sessions.view import (
    UNNAMED,
    ContextOptions,
    SessionView,
    resolve_target,
)
from reasoning_store.stored_values import Compaction, compaction
from reasoning_store.tokens import worst


@dataclass(frozen=True, slots=True)
class PlanBasis:
    """The ranges of a plan as they were when it was made."""

    summary: RangeSnapshot | None
    clearing: RangeSnapshot | None


class SessionCompaction:
    """Plans and applies what makes one branch shorter."""

    def __init__(self, view: SessionView) -> None:
        self._view = view
        self._ledger = view.state.ledger
        self._of = (view.key, view.branch_number)

    def plan(self, options: ContextOptions, limits: Limits, *, clear: bool) -> Plan:
        """Return whether the next request should get shorter, and how. Changes nothing."""
        check_truth("clear", clear)
        fixed = self._view.inputs(options, self._view.row.encoding).fixed
        return self._view.at_one_moment(
            lambda view: SessionCompaction(view)._read_and_plan(options, limits, fixed, clear=clear)
        )

    def _read_and_plan(
        self, options: ContextOptions, limits: Limits, fixed: FixedCount, *, clear: bool
    ) -> Plan:
        """Return the plan; every read is of one moment."""
        view = self._view
        snapshot, rows = view.ledger_views.narrow(
            view.row, view.branch_number, with_last=options.names == UNNAMED
        )
        policy = session_settings.policy(view.state, snapshot.settings, options.settings)
        choices = (policy.settings, *stricter_settings(policy.settings))
        to = resolve_target(options.names, snapshot.last_request, view.state.contracts)
        forecast = CompactionForecast(view.ledger_views, self._of, snapshot, rows, to, fixed)
        plan = compaction_plan.make_plan(
            [forecast.counting(chosen) for chosen in choices],
            forecast.layout(clear=clear),
            limits,
            since=self._tokens_after_last(snapshot.in_force),
            exactness=forecast.exactness,
        )
        return self._with_basis(plan)

    def _with_basis(self, plan: Plan) -> Plan:
        summary = clearing = None
        if plan.to_summarize is not None:
            summary = self._view.ledger_views.basis(
                *self._of, plan.to_summarize.first, plan.to_summarize.last
            )
            plan = replace(plan, to_summarize=self._with_messages(plan.to_summarize))
        if plan.to_clear is not None:
            clearing = self._view.ledger_views.clearing_basis(*self._of, plan.to_clear.last)
        return replace(plan, branch=self._view.branch_number, basis=PlanBasis(summary, clearing))

    def _with_messages(self, summarized: Range) -> Range:
        """Return a range with its messages in the view: an earlier summary in its place."""
        view = self._view.messages(1)
        inside = [
            item.message for item in view if summarized.first <= item.number <= summarized.last
        ]
        return replace(summarized, messages=tuple(inside))

    def _tokens_after_last(self, in_force: ActiveCompactions) -> int | None:
        """Return the tokens of the request after the last compaction in force."""
        if not in_force.numbers:
            return None
        rows = self._view.ledger_views.compactions(*self._of)
        last = max(rows, key=lambda row: row.number, default=None)
        return None if last is None else last.effective

    def compact(self, plan: Plan, summary: str | Message | None) -> Compaction | None:
        """Apply a plan."""
        basis = self._check(plan, summary)
        wanted = self._new_compactions(plan, basis, summary)
        strip = next((step.what for step in plan.steps if step.kind == "strip"), None)
        settings = {} if strip is None else {"reasoning.stripFromContext": strip}
        made = self._ledger.compactions.make(*self._of, wanted, settings=settings) if wanted else []
        if settings and not made:
            self._ledger.sessions.change_settings(self._view.key, settings)
        return compaction(made[0]) if made else None

    def _check(self, plan: Plan, summary: str | Message | None) -> PlanBasis:
        """Refuse a plan that is not one of this branch, or does not fit its summary."""
        if not isinstance(plan, Plan) or not isinstance(plan.basis, PlanBasis):
            raise InvalidCall(
                f"pass a plan of compression(), not {type(plan).__name__}",
                hint="session.compact(session.compression(limit=...), summary=...)",
            )
        if plan.branch != self._view.branch_number:
            raise InvalidCall(
                f"this plan is of branch {plan.branch}, not of {self._view.branch_number}",
                hint=f"session.branch({plan.branch}).compact(plan)",
            )
        if not plan.steps:
            raise InvalidCall(
                f"there is no step to apply: the plan's action is {plan.action}",
                hint=", ".join(plan.reasons),
            )
        if (summary is None) != (plan.to_summarize is None):
            if summary is None:
                wrong = f"this plan summarizes {plan.to_summarize}, and needs a summary"
            else:
                wrong = "this plan summarizes nothing, and takes no summary"
            raise InvalidCall(wrong, hint="plan.to_summarize is the range to summarize")
        return plan.basis

    def _new_compactions(
        self, plan: Plan, basis: PlanBasis, summary: str | Message | None
    ) -> list[NewCompaction]:
        """Return the compactions that a plan is made of, a summary first."""
        wanted: list[NewCompaction] = []
        after, summarized = plan.after, plan.to_summarize
        if summarized is not None and summary is not None:
            message = user(summary) if isinstance(summary, str) else summary
            if not isinstance(message, Message):
                raise InvalidCall(
                    f"a summary is a text or a message, not {type(summary).__name__}",
                    hint='session.compact(plan, summary="...")',
                )
            check_message(message)
            framed = framed_summary(message)
            entry = self._view.state.prepare(framed, self._view.row.encoding)
            # The next plan compares with this: how far the request has grown since.
            after += entry.counts.visible - plan.summary_tokens
            wanted.append(
                NewCompaction(
                    first=summarized.first,
                    last=summarized.last,
                    summary=entry,
                    expected=basis.summary,
                    effective=after,
                )
            )
        if basis.clearing is not None:
            wanted.append(
                NewCompaction(
                    first=basis.clearing.first,
                    last=basis.clearing.last,
                    summary=None,
                    expected=basis.clearing,
                    effective=after,
                )
            )
        return wanted


def session_budget(ledger: Ledger, key: int, *, limit: int | None, warn_at: float) -> Budget:
    """Return a session's reasoning tokens against a limit; each mark is named to one caller."""
    row = ledger.budgets.get(key)
    assess = partial(
        budget.assess_budget,
        reasoning=row.thought.reported,
        counted=row.thought.counted,
        unreported=row.thought.unreported,
        limit=limit,
        warn_at=warn_at,
    )
    found = assess(remembered=row.crossed)
    new = [mark for mark in found.marks if mark not in row.crossed]
    lost = [mark for mark in new if not ledger.budgets.remember(key, mark)]
    return assess(remembered=[*row.crossed, *lost]) if lost else found


class CompactionForecast:
    """The tokens that requests of one branch would count under other settings and cuts.

    ``rows`` are the view without blocks; what is asked of a position is a sum over it.
    """

    def __init__(
        self,
        views: Views,
        of: tuple[int, int],
        snapshot: RequestSnapshot,
        rows: list[NarrowRow],
        to: Target,
        fixed: FixedCount,
    ) -> None:
        self._views = views
        self._of = of
        self._snapshot = snapshot
        self._to = to
        self._fixed = fixed
        self._rows = rows
        self._positions = turn_positions(self._rows)
        self._lasts = [row.last for row in self._rows]
        self._starts = [row.position for row in self._rows if row.is_summary or row.starts_turn]
        self._freed = [0, *accumulate([row.clearable for row in self._rows])]
        self._thinkers = [row for row in self._rows if row.has_thinking]

    @property
    def exactness(self) -> CountExactness:
        return worst(
            self._fixed.exactness,
            exactness_for(self._to.model, self._snapshot.session.encoding),
            *{row.counts.exactness for row in self._rows},
        )

    def counting(self, settings: SettingValues) -> StripCount:
        """Return the counts of the next request and of its parts, for a decision."""
        verdicts = judge(self._rows, self._positions, settings, self._to)
        sums = [
            0,
            *accumulate(
                [
                    row.counts.visible + sum([one.tokens for one in own if one.kept])
                    for row, own in zip(self._rows, verdicts, strict=True)
                ]
            ),
        ]
        return StripCount(
            settings.strip_from_context,
            self._fixed.tokens + sums[-1],
            lambda position: sums[self._entries_upto(position)],
            partial(self._regained, settings),
        )

    def layout(self, *, clear: bool) -> Layout:
        """Return where the branch may be cut; without ``clear`` tool results stay as they are."""
        in_force = self._snapshot.in_force
        return Layout(
            head=self._snapshot.at,
            turn_start=self._turn_start,
            in_force=[SummaryInForce(one.first, one.last, one.tokens) for one in in_force.ranges],
            results_upto=self._freed_by_clearing if clear else None,
            cleared=0 if in_force.cleared is None else in_force.cleared.last,
            splits=self._splits,
        )

    def _entries_upto(self, position: int) -> int:
        """Return how many entries of the view end at or before a position."""
        return bisect_right(self._lasts, position)

    def _turn_start(self, position: int) -> int | None:
        """Return the start of the turn of a position, or of the summary that replaces it."""
        turns = bisect_right(self._starts, position)
        return self._starts[turns - 1] if turns else None

    def _freed_by_clearing(self, position: int) -> int:
        """Return what clearing tool results up to a position frees, outside of summaries."""
        return self._freed[self._entries_upto(position)]

    def _regained(self, settings: SettingValues, first: int, last: int) -> int:
        """Return what the thinking before a range gains by being the last that is left."""
        if not self._thinkers or not first <= self._thinkers[-1].position <= last:
            return 0
        before = [row for row in self._thinkers if row.position < first][-1:]

        def kept(rank: int) -> int:
            positions = [TurnPosition(rank, False, row.has_call, False) for row in before]
            verdicts = judge(before, positions, settings, self._to)
            return sum([one.tokens for own in verdicts for one in own if one.kept])

        return kept(0) - kept(LAST_RANK)

    def _splits(self, position: int) -> bool:
        """Whether a cut separates a call from its response, or falls into a summary of a fork."""
        return self._views.splits(*self._of, position) or any(
            one.first <= position for one in self._later_summaries
        )

    @cached_property
    def _later_summaries(self) -> list[CompactionRow]:
        """Summaries that a fork copied and that reach into its open turn."""
        return [
            row
            for row in self._views.compactions(*self._of, every=True)
            if row.kind == "summary"
            if row.undone_at is None and row.superseded_by is None
            if row.last >= (self._snapshot.turn_start or 1)
        ]
