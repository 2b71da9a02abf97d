"""The promised face of a session that gets shorter: a decision, its summary, and back.

A plan is decided over what would be sent and changes nothing; applied, it sets a setting,
clears old tool results or lets a summary stand for a range, and each can be taken back. No
message is touched. The reasoning budget stands here too: what was thought, held against a
limit.

Glue: what to do is decided in ``egress``, what is stored is the ledger's. It must not decide
anything, or know a statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

from reasoning_store.blocks import Message, user
from reasoning_store.egress import amounts as _amounts
from reasoning_store.egress import budget as _budget
from reasoning_store.egress import compression as _compression
from reasoning_store.egress.budget import Budget
from reasoning_store.egress.compression import CompressionPlan, Limits
from reasoning_store.egress.given import fixed
from reasoning_store.errors import Conflict, UsageError
from reasoning_store.ledger import arguments
from reasoning_store.ledger.summaries import Basis, UsageRows, Wanted
from reasoning_store.prospects import Prospects
from reasoning_store.sending import Sending, on_its_branch
from reasoning_store.settings import Policy, ReasoningSettings, Strip
from reasoning_store.stored import Compaction, compaction

_STRICTER: tuple[Strip, ...] = ("priorTurns", "all")
"""What a plan may strip, the gentlest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(CompressionPlan):
    """A compression plan of one branch. It stays good while its range is untouched."""

    branch: int
    _basis: Basis | None = field(repr=False)
    """What the range to summarize was when this was planned."""
    _clearing: Basis | None = field(repr=False)
    """What the messages up to the last one whose results are to be cleared were then."""


class Shortening(Sending):
    """One conversation, on one of its branches, as it gets shorter."""

    @on_its_branch
    def compression(
        self,
        *,
        limit: int,
        threshold: float = _amounts.THRESHOLD,
        reserve: int = 0,
        target: float | None = None,
        min_growth: int | None = None,
        min_freed: int | None = None,
        summary_tokens: int | None = None,
        clear: bool = True,
        settings: ReasoningSettings | Mapping[str, Any] | None = None,
        provider: str | None = None,
        model: str | None = None,
        api: str | None = None,
        base_url: str | None = None,
        system: Any = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> Plan:
        """Return whether the next request should get shorter, and how. Changes nothing.

        ``limit`` is the model's whole context, ``reserve`` what its answer needs of it;
        from ``threshold`` of the rest on something is done. Without ``clear`` tool results
        stay as they are. ``compact`` applies the plan.
        """
        arguments.truth(clear, "clear")
        limits = Limits(
            limit=limit,
            reserve=reserve,
            threshold=threshold,
            target=target,
            min_growth=min_growth,
            min_freed=min_freed,
            summary_tokens=summary_tokens,
        )
        to = self._whom(provider, model, api, base_url)
        policy = self._policy(settings)
        while True:
            carried = self._carried(None)
            prospects = Prospects(
                self._workings.ledger,
                self._row.key,
                self._branch,
                carried=carried,
                to=to,
                fixed=fixed(system, tools, self._workings.counter(carried.encoding)),
            )
            plan = _compression.decide(
                [prospects.counting(chosen) for chosen in (policy.settings, *_stricter(policy))],
                prospects.layout(clear=clear),
                limits,
                since=self._since(carried),
                exactness=prospects.usage(policy.settings).exactness,
            )
            try:
                return self._founded(plan)
            except (Conflict, UsageError):
                # Somebody erased or compacted while it was decided: it is decided anew.
                if self._carried(None) == carried:
                    raise

    def _founded(self, plan: CompressionPlan) -> Plan:
        """Return a plan with what it was made from; refuse one that cannot be applied by now."""
        ledger, key = self._workings.ledger, self._row.key
        basis = clearing = None
        if plan.to_summarize is not None:
            basis = ledger.basis(key, self._branch, plan.to_summarize.first, plan.to_summarize.last)
        if plan.to_clear is not None:
            clearing = ledger.clearing_basis(key, self._branch, plan.to_clear.last)
        decided = {one.name: getattr(plan, one.name) for one in fields(plan)}
        return Plan(**decided, branch=self._branch, _basis=basis, _clearing=clearing)

    @on_its_branch
    def compact(self, plan: Plan, *, summary: str | Message | None = None) -> Compaction | None:
        """Do what a plan says: strip by a setting, clear tool results, let a summary stand in.

        ``summary`` is the text that the application made of ``plan.to_summarize``. Nothing
        is deleted: ``undo`` and ``settings.unset`` take it back. Where the range was erased
        in or compacted since the plan was made, it is a ``Conflict`` and nothing is done.

        Returns the summary, or the clearing where there is no summary; ``compactions`` has
        both.
        """
        if not isinstance(plan, Plan):
            raise UsageError(
                f"a plan is what compression() gives, not {type(plan).__name__}",
                hint="session.compact(session.compression(limit=...), summary=...)",
            )
        if plan.branch != self._branch:
            raise UsageError(
                f"this plan is of branch {plan.branch}, not of {self._branch}",
                hint=f"session.branch({plan.branch}).compact(plan)",
            )
        if not plan.steps:
            raise UsageError(
                f"there is nothing to apply: the plan says {plan.action}",
                hint=", ".join(plan.reasons),
            )
        if (summary is None) != (plan.to_summarize is None):
            if summary is None:
                wrong = f"this plan summarizes {plan.to_summarize}, and needs a summary"
            else:
                wrong = "this plan summarizes nothing, and takes no summary"
            raise UsageError(wrong, hint="plan.to_summarize tells what a summary is to be of")
        wanted = self._wanted(plan, summary)
        made = self._workings.ledger.shorten(self._row.key, self._branch, wanted) if wanted else []
        for step in plan.steps:
            if step.kind == "strip":
                change = {"reasoning.stripFromContext": step.what}
                self._workings.ledger.change_settings(self._row.key, change)
        return compaction(made[0]) if made else None

    def _wanted(self, plan: Plan, summary: str | Message | None) -> list[Wanted]:
        """Return the compactions that a plan is made of, a summary first."""
        wanted: list[Wanted] = []
        after, at = plan.after, plan.to_summarize
        if at is not None and summary is not None:
            message = user(summary) if isinstance(summary, str) else summary
            if not isinstance(message, Message):
                raise UsageError(
                    f"a summary is a text or a message, not {type(summary).__name__}",
                    hint='session.compact(plan, summary="...")',
                )
            entry = self._workings.entry(message, self._row.encoding)
            # What the next plan asks for: how far the request has grown since.
            after += entry.counts.visible - plan.summary_tokens
            wanted.append(
                Wanted(
                    first=at.first,
                    last=at.last,
                    summary=entry,
                    expected=plan._basis,
                    effective=after,
                )
            )
        if plan._clearing is not None:
            basis = plan._clearing
            wanted.append(
                Wanted(
                    first=basis.first,
                    last=basis.last,
                    summary=None,
                    expected=basis,
                    effective=after,
                )
            )
        return wanted

    def compactions(self) -> list[Compaction]:
        """Return the summaries in force on this branch, in order, then a clearing."""
        rows = self._workings.ledger.compactions(self._row.key, self._branch)
        return [compaction(row) for row in rows]

    def undo(self, id: int) -> Compaction:
        """Take a summary or a clearing back: what it stands for goes out again.

        What it superseded holds again.
        """
        return compaction(self._workings.ledger.undo(self._row.key, self._branch, id))

    def budget(self, *, limit: int | None = None, warn_at: float = _budget.WARN_AT) -> Budget:
        """Return what this session has thought, on all its branches, held against a limit.

        ``crossed`` tells each mark once, to one of all the processes that ask.
        """
        ledger, key = self._workings.ledger, self._row.key
        row = ledger.budget(key)
        assess = partial(
            _budget.assess,
            reported=row.thought.reported,
            counted=row.thought.counted,
            unreported=row.thought.unreported,
            limit=limit,
            warn_at=warn_at,
        )
        found = assess(remembered=row.crossed)
        new = [mark for mark in found.marks if mark not in row.crossed]
        lost = [mark for mark in new if not ledger.remember_crossing(key, mark)]
        return assess(remembered=[*row.crossed, *lost]) if lost else found

    def _since(self, carried: UsageRows) -> int | None:
        """Return what the request counted when a compaction was last put into it."""
        if not carried.in_force.numbers:
            return None
        rows = self._workings.ledger.compactions(self._row.key, self._branch)
        last = max(rows, key=lambda row: row.number, default=None)
        return None if last is None else last.effective  # undone since they were counted


def _stricter(policy: Policy) -> Iterator[ReasoningSettings]:
    now = policy.settings
    if now.strip_from_context in _STRICTER:
        choices = _STRICTER[_STRICTER.index(now.strip_from_context) + 1 :]
    else:
        choices = _STRICTER
    for strip in choices:
        yield now.model_copy(update={"strip_from_context": strip})
