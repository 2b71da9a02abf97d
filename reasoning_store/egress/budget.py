"""The reasoning budget of a session or an owner: reasoning tokens, compared with a limit.

There are two marks, a warning at a share of the limit and the limit itself, and each is reported
once. The store remembers the reported ones, under the names in ``Budget.marks``, so that
this holds across processes; a higher limit has marks of its own. Tokens that pass both marks at
once report the second.

A reply whose provider reported no reasoning tokens is ``unreported``; the count of its thinking is
used instead, and if there is no count either, the state is ``unknown`` and not ``ok``.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, TypeAlias

from reasoning_store.conversation.validation import check_share, check_tokens

BudgetState: TypeAlias = Literal["ok", "warning", "exceeded", "unknown"]
Crossing: TypeAlias = Literal["warning", "exceeded"]

WARN_AT = 0.8
THRESHOLD = 0.85
"""The share of the usable tokens above which a request should get shorter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The reasoning tokens of a session or an owner, and their limit."""

    used: int
    """The reported tokens, and the counted ones of replies that reported none."""
    limit: int | None
    state: BudgetState
    crossed: tuple[Crossing, ...]
    """The marks that are reported now and were not before; empty for an owner."""
    reasoning: int
    """The tokens that the providers reported."""
    counted: int
    """The counted thinking of the replies that reported no reasoning."""
    unreported: int
    """The number of those replies."""
    marks: tuple[str, ...] = ()
    """The names of the marks that were passed, for the store to remember."""

    def __str__(self) -> str:
        return f"{self.used}/{self.limit}" if self.limit is not None else str(self.used)


def assess_budget(
    *,
    reasoning: int,
    counted: int = 0,
    unreported: int = 0,
    limit: int | None,
    warn_at: float = WARN_AT,
    remembered: Collection[str] = (),
) -> Budget:
    """Return a budget; without ``limit`` it cannot be exceeded.

    ``warn_at`` is the share of the limit that warns; ``remembered`` are the marks that were
    reported before.
    """
    check_tokens("limit", limit, least=1, optional=True)
    check_share("warn_at", warn_at)
    used = reasoning + counted
    reached: list[Crossing] = []
    if limit is not None:
        if used >= limit * warn_at:
            reached.append("warning")
        if used >= limit:
            reached.append("exceeded")
    # Only the last mark is reported; one below it is remembered with it.
    crossed = [c for c in reached[-1:] if _mark_name(c, limit) not in remembered]
    return Budget(
        used=used,
        limit=limit,
        state=_budget_state(reached, used, unreported),
        crossed=tuple(crossed),
        reasoning=reasoning,
        counted=counted,
        unreported=unreported,
        marks=tuple(_mark_name(crossing, limit) for crossing in reached),
    )


def _budget_state(reached: list[Crossing], used: int, unreported: int) -> BudgetState:
    if reached:
        return reached[-1]
    return "unknown" if unreported and not used else "ok"


def _mark_name(crossing: Crossing, limit: int | None) -> str:
    return f"{crossing}:{limit}"
