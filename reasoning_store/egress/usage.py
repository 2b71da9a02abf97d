"""The count of the next request: the selection that builds it, over messages without blocks.

A policy looks only at the position of a message and at the headers of its thinking, so the count
equals that of the request that would be built (BR-004).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Protocol

from reasoning_store.conversation.settings import SettingValues
from reasoning_store.conversation.turns import (
    LAST_RANK,
    MessageInView,
    TurnPosition,
    turn_positions,
)
from reasoning_store.egress.selection import decide, judge, left_out_tokens
from reasoning_store.egress.selection_values import JudgedMessage
from reasoning_store.egress.target import Target
from reasoning_store.egress.token_counts import FixedCount, TokenCount, TokensByKind, counted


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextUsage(TokenCount):
    """The count of the next request, and the limit that it is compared with."""

    limit: int | None = None

    def __str__(self) -> str:
        """Return ``123000/212000``, effective and limit; the effective count without one."""
        return f"{self.effective}/{self.limit}" if self.limit is not None else str(self.effective)


class CountedMessage(JudgedMessage, MessageInView, Protocol):
    """A message of a view without its blocks."""


def count_usage(
    view: Sequence[CountedMessage],
    settings: SettingValues,
    to: Target,
    *,
    fixed: FixedCount,
    inputs_digest: str,
    encoding: str,
    limit: int | None = None,
) -> ContextUsage:
    """Return the count of the next request."""
    verdicts = judge(view, turn_positions(view), settings, to, inputs_digest)
    left_out = left_out_tokens(view, verdicts)
    counts = (item.counts for item in view)
    return ContextUsage(**counted(counts, left_out, fixed, encoding, to.model), limit=limit)


def calibrate(usage: ContextUsage, *, counted: int, reported: int) -> ContextUsage:
    """Return a count in a provider's tokens: it ``reported`` so many for a request of ``counted``.

    Each part grows by the same share, and the parts still add up.
    """

    def scaled(tokens: int) -> int:
        return round(tokens * reported / counted)

    kinds, effective, raw = usage.by_kind, scaled(usage.effective), scaled(usage.raw)
    system, tools, thinking = scaled(kinds.system), scaled(kinds.tools), scaled(kinds.thinking)
    return replace(
        usage,
        effective=effective,
        raw=raw,
        fixed=scaled(usage.fixed),
        by_kind=TokensByKind(
            system=system,
            tools=tools,
            messages=effective - system - tools - thinking,
            thinking=thinking,
            withheld=raw - effective,
        ),
        exactness="calibrated",
    )


def first_thinking_sent(
    needed_from: Callable[[], tuple[int, int]], settings: SettingValues, to: Target
) -> int:
    """Return a position before which no request sends any thinking.

    ``needed_from`` returns the start of the open turn and the last message with thinking; it is
    called only where the answer depends on the conversation.
    """
    in_closed_turns = (
        TurnPosition(LAST_RANK, False, has_call, open_call)
        for has_call, open_call in product((False, True), repeat=2)
    )
    if any(decide(None, settings, position, to).kept for position in in_closed_turns):
        return 1
    return min(needed_from())
