"""A session that gets shorter: the plan, its summary and clearing, and how they are undone.

A plan changes nothing. Applied, it sets a setting, clears old tool results or lets a summary
replace a range in requests; no message is touched, and each can be undone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial

from reasoning_store.conversation.blocks import Message, user
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.conversation.placeholders import framed_summary
from reasoning_store.conversation.settings import SettingValues
from reasoning_store.conversation.validation import check_message, check_truth
from reasoning_store.egress import budget, compaction_plan
from reasoning_store.egress.budget import Budget
from reasoning_store.egress.compaction_plan import Limits, Plan, StripCount
from reasoning_store.egress.policy import stricter_settings
from reasoning_store.egress.target import Target
from reasoning_store.egress.token_counts import FixedCount
from reasoning_store.egress.turn_boundaries import Layout, Range, SummaryInForce
from reasoning_store.egress.usage import ContextUsage, closed_tokens, count_usage
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import OwnThinking, RunningTotals
from reasoning_store.ledger.view_records import (
    CompactionRow,
    NewCompaction,
    RangeSnapshot,
    ViewTotals,
)
from reasoning_store.ledger.views import Views
from reasoning_store.sessions import settings as session_settings
from reasoning_store.sessions.view import (
    UNNAMED,
    ContextOptions,
    SessionView,
    origins_by_kind,
    resolve_target,
)
from reasoning_store.stored_values import Compaction, compaction


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
        snapshot = view.ledger_views.request_snapshot(
            view.row, view.branch_number, with_last=options.names == UNNAMED
        )
        policy = session_settings.policy(view.state, snapshot.settings, options.settings)
        choices = (policy.settings, *stricter_settings(policy.settings))
        forecast = CompactionForecast(
            view.ledger_views,
            self._of,
            totals=snapshot.totals,
            to=resolve_target(options.names, snapshot.last_request, view.state.contracts),
            fixed=fixed,
        )
        plan = compaction_plan.make_plan(
            [forecast.counting(chosen) for chosen in choices],
            forecast.layout(clear=clear),
            limits,
            since=self._tokens_after_last(snapshot.totals),
            exactness=forecast.usage(policy.settings).exactness,
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

    def _tokens_after_last(self, totals: ViewTotals) -> int | None:
        """Return the tokens of the request after the last compaction in force."""
        if not totals.in_force.numbers:
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

    Each running total is read when it is first needed; no text is read.
    """

    def __init__(
        self,
        views: Views,
        of: tuple[int, int],
        *,
        totals: ViewTotals,
        to: Target,
        fixed: FixedCount,
    ) -> None:
        self._views = views
        self._of = of
        self._totals = totals
        self._to = to
        self._fixed = fixed
        self._origins = origins_by_kind(totals)
        self._totals_at = _TotalsAt(views, of, totals.uncompacted)
        self._cleared = 0 if totals.in_force.cleared is None else totals.in_force.cleared.last
        self._thinkers: dict[int, tuple[OwnThinking, ...]] = {}

    def usage(self, settings: SettingValues) -> ContextUsage:
        """Return the tokens of the next request under these settings."""
        return count_usage(
            self._totals,
            self._origins,
            settings,
            self._to,
            fixed=self._fixed,
            encoding=self._totals.encoding,
        )

    def counting(self, settings: SettingValues) -> StripCount:
        """Return the counts of the next request and of its parts, for a decision."""
        return StripCount(
            settings.strip_from_context,
            self.usage(settings).effective,
            partial(self._effective_up_to, settings),
            partial(self._freed_by_summary, settings),
        )

    def layout(self, *, clear: bool) -> Layout:
        """Return where the branch may be cut; without ``clear`` tool results stay as they are."""
        head = self._totals.uncompacted
        return Layout(
            head=head.position,
            turn_start=lambda position: self._totals_at[position].turn_start,
            in_force=[
                SummaryInForce(one.first, one.last, one.tokens)
                for one in self._totals.in_force.ranges
            ],
            results_upto=self._freed_by_clearing if clear else None,
            cleared=self._cleared,
            splits=self._splits,
        )

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
            if row.last >= (self._totals.uncompacted.turn_start or 1)
        ]

    def _freed_by_clearing(self, position: int) -> int:
        """Return what clearing tool results up to a position frees, outside of summaries."""
        freed = self._clearable(position)
        for one in self._totals.in_force.ranges:
            if one.first <= position:
                freed -= self._clearable(min(one.last, position)) - self._clearable(one.first - 1)
        return freed

    def _clearable(self, position: int) -> int:
        done = self._totals_at[min(position, self._cleared)]
        return self._totals_at[position].clearable - done.clearable

    def _effective_up_to(self, settings: SettingValues, position: int) -> int:
        counted = self._tokens_closed(settings, position, self._totals.last_thinkers)
        return counted - self._totals_at[min(position, self._cleared)].clearable

    def _freed_by_summary(self, settings: SettingValues, first: int, last: int) -> int:
        thinkers, before = self._totals.last_thinkers, first - 1
        if first == 1 or not any(first <= thinker.position <= last for thinker in thinkers):
            return 0
        later = [thinker for thinker in thinkers if thinker.position > last]
        then = self._tokens_closed(settings, before, (*later, *self._thinkers_at(before)))
        return then - self._tokens_closed(settings, before, thinkers)

    def _tokens_closed(
        self, settings: SettingValues, at: int, thinkers: tuple[OwnThinking, ...]
    ) -> int:
        return closed_tokens(self._totals_at[at], at, thinkers, self._origins, settings, self._to)

    def _thinkers_at(self, position: int) -> tuple[OwnThinking, ...]:
        if position not in self._thinkers:
            self._thinkers[position] = self._views.view_totals(*self._of, position).last_thinkers
        return self._thinkers[position]


class _TotalsAt:
    """The running totals along a lineage, each read once."""

    def __init__(self, views: Views, of: tuple[int, int], head: RunningTotals) -> None:
        self._read = views.totals_at
        self._of = of
        self._known = {head.position: head, 0: RunningTotals()}

    def __getitem__(self, position: int) -> RunningTotals:
        if position not in self._known:
            self._known |= self._read(*self._of, [position])
        return self._known[position]
