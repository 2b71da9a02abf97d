"""The reasoning budget of a session: how much was thought, held against a limit.

Two marks, each told once: a warning at a share of the limit, and exceeding it. What was
told is remembered by the store, under the names in ``Budget.marks``, so that it holds
across workers; whoever raises the limit is told again. A leap past both tells the second.

Absent usage is not zero. What the provider reported is taken at its word. A reply that
reported nothing is ``unreported``; its thinking as it was counted stands in for it, and
where there is nothing to count either, the state is ``unknown`` and not ``ok``.

Pure: it decides nothing about a request and stops nobody. It must not know a provider, a
message or SQL.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, TypeAlias

from reasoning_store.egress.amounts import share, tokens

BudgetState: TypeAlias = Literal["ok", "warning", "exceeded", "unknown"]
Crossing: TypeAlias = Literal["warning", "exceeded"]

WARN_AT = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much a session has thought, and what that is of its limit."""

    used: int
    """Reported, and counted where nothing was reported."""
    limit: int | None
    state: BudgetState
    crossed: tuple[Crossing, ...]
    """What has to be told now, and was not told before."""
    reported: int
    counted: int
    """The counted thinking of the replies that reported nothing."""
    unreported: int
    """How many replies those are."""
    marks: tuple[str, ...] = ()
    """What to remember as told."""

    def __str__(self) -> str:
        return f"{self.used}/{self.limit}" if self.limit is not None else str(self.used)


def assess(
    *,
    reported: int,
    counted: int = 0,
    unreported: int = 0,
    limit: int | None,
    warn_at: float = WARN_AT,
    remembered: Collection[str] = (),
) -> Budget:
    """Return where a session stands. ``limit`` None is no limit.

    ``warn_at`` is the share of the limit that warns; ``remembered`` are the marks of
    earlier answers that the store has kept.
    """
    tokens("limit", limit, least=1, optional=True)
    share("warn_at", warn_at)
    used = reported + counted
    reached: list[Crossing] = []
    if limit is not None:
        if used >= limit * warn_at:
            reached.append("warning")
        if used >= limit:
            reached.append("exceeded")
    # A leap past both marks tells the last; what lies below it is remembered with it.
    crossed = [c for c in reached[-1:] if _mark(c, limit) not in remembered]
    return Budget(
        used=used,
        limit=limit,
        state=_state(reached, used, unreported),
        crossed=tuple(crossed),
        reported=reported,
        counted=counted,
        unreported=unreported,
        marks=tuple(_mark(crossing, limit) for crossing in reached),
    )


def _state(reached: list[Crossing], used: int, unreported: int) -> BudgetState:
    if reached:
        return reached[-1]
    return "unknown" if unreported and not used else "ok"


def _mark(crossing: Crossing, limit: int | None) -> str:
    return f"{crossing}:{limit}"
