"""A session that gets shorter: the plan, its summary and clearing, and how they are undone.

A plan changes nothing. Applied, it sets a setting, clears old tool results or lets a summary
replace a range in requests; no message is touched, and each can be undone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from reasoning_store.conversation.blocks import Message, user
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.conversation.placeholders import framed_summary
from reasoning_store.conversation.validation import check_message, check_truth
from reasoning_store.egress import budget, compaction_plan
from reasoning_store.egress.budget import Budget
from reasoning_store.egress.compaction_plan import Limits, Plan, Range
from reasoning_store.egress.policy import stricter_settings
from reasoning_store.egress.request_inputs import RequestInputs
from reasoning_store.egress.usage import count_usage
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.view_records import (
    ActiveCompactions,
    NewCompaction,
    RangeSnapshot,
)
from reasoning_store.sessions.view import (
    UNNAMED,
    ContextOptions,
    SessionView,
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
        inputs = self._view.inputs(options, self._view.row.encoding)
        _ = inputs.fixed  # it is counted before anything is read
        return self._view.at_one_moment(
            lambda view: SessionCompaction(view)._read_and_plan(
                options, limits, inputs, clear=clear
            )
        )

    def _read_and_plan(
        self, options: ContextOptions, limits: Limits, inputs: RequestInputs, *, clear: bool
    ) -> Plan:
        """Return the plan; every read is of one moment."""
        view = self._view
        snapshot, rows = view.ledger_views.narrow(
            view.row,
            view.branch_number,
            with_last=options.names == UNNAMED,
            chains_from=partial(view.chains_from, options),
        )
        policy, to = view.how_next(options, snapshot)
        choices = (policy.settings, *stricter_settings(policy.settings))
        in_force, encoding = snapshot.in_force, snapshot.session.encoding
        layout = compaction_plan.make_layout(
            rows,
            clear=clear,
            cleared=0 if in_force.cleared is None else in_force.cleared.last,
            splits=partial(self._splits, snapshot.turn_start or 1),
        )
        usage = count_usage(
            rows,
            policy.settings,
            to,
            fixed=inputs.fixed,
            inputs_digest=inputs.digest,
            encoding=encoding,
        )
        plan = compaction_plan.make_plan(
            [
                compaction_plan.count_strip(
                    rows,
                    layout,
                    chosen,
                    to,
                    fixed=inputs.fixed.tokens,
                    inputs_digest=inputs.digest,
                )
                for chosen in choices
            ],
            layout,
            limits,
            since=self._tokens_after_last(in_force),
            exactness=usage.exactness,
        )
        return self._with_basis(plan)

    def _splits(self, turn_start: int, position: int) -> bool:
        """Whether a cut separates a call from its response, or falls into a summary of a fork."""
        views = self._view.ledger_views
        return views.splits(*self._of, position) or any(
            # It was copied, and reaches into the fork's open turn: it is not in force yet.
            row.kind == "summary"
            and row.undone_at is None
            and row.superseded_by is None
            and row.first <= position
            and row.last >= turn_start
            for row in views.compactions(*self._of, every=True)
        )

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
