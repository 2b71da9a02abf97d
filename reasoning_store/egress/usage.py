"""The count of the next request, from the running totals alone.

Every message carries the running totals of its lineage. A policy looks only at the position
of a message, and there are few: each of the last thinkers, and the rest by open or closed
turn, with or without a call. So the count for any policy is a sum of a few weights, whatever
the length of the conversation, and equals that of the request that would be built (BR-004).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Protocol, TypeAlias

from reasoning_store.conversation.blocks import Exactness, Origin
from reasoning_store.conversation.settings import SettingValues
from reasoning_store.conversation.turns import MOST_LAST_THINKERS, TurnPosition
from reasoning_store.egress.admissibility import (
    opaque_inadmissible_because,
    portable_inadmissible_because,
)
from reasoning_store.egress.selection import decide
from reasoning_store.egress.target import Target
from reasoning_store.egress.token_counts import (
    FixedCount,
    TokenCount,
    TokensByKind,
    count_fields,
    exactness_for,
)
from reasoning_store.egress.verdicts import VerdictRule
from reasoning_store.tokens import worst


class RunningTotalsLike(Protocol):
    """The running totals of a lineage, up to and including one message."""

    @property
    def visible(self) -> int: ...
    @property
    def portable(self) -> int: ...
    @property
    def portable_calls(self) -> int: ...
    @property
    def opaque(self) -> Mapping[str, tuple[int, int]]: ...
    @property
    def turn_start(self) -> int | None: ...
    @property
    def turn_has_call(self) -> bool: ...
    @property
    def exactness(self) -> Exactness: ...


class Thinker(Protocol):
    """The tokens of one message's own thinking."""

    @property
    def position(self) -> int: ...
    @property
    def portable(self) -> int: ...
    @property
    def opaque(self) -> Mapping[str, int]: ...
    @property
    def has_call(self) -> bool: ...


class UsageTotals(Protocol):
    """The rows that the ledger reads for a usage, whose number never grows."""

    @property
    def head(self) -> RunningTotalsLike: ...
    @property
    def before_turn(self) -> RunningTotalsLike: ...
    @property
    def last_thinkers(self) -> Sequence[Thinker]: ...


OriginOf: TypeAlias = Callable[[str], tuple[Origin | None, str | None]]
"""The origin of a kind of opaque thinking, and the field that it came in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextUsage(TokenCount):
    """The count of the next request, and the limit that it is compared with."""

    limit: int | None = None

    def __str__(self) -> str:
        """Return ``123000/212000``, effective and limit; the effective count without one."""
        return f"{self.effective}/{self.limit}" if self.limit is not None else str(self.effective)


def count_usage(
    totals: UsageTotals,
    origin_of: OriginOf,
    settings: SettingValues,
    to: Target,
    *,
    fixed: FixedCount,
    encoding: str,
    limit: int | None = None,
) -> ContextUsage:
    """Return the count of the next request. ``origin_of`` explains the name of a kind."""
    head = totals.head
    open_call = head.turn_has_call
    earlier = partial(TurnPosition, rank=MOST_LAST_THINKERS, open_turn_has_call=open_call)
    before = _by_kind(totals.before_turn)
    thinking: _Weights = {}
    for kind, (every, calls) in _by_kind(head).items():
        closed, closed_calls = before.get(kind, (0, 0))
        thinking[kind] = {
            earlier(in_open_turn=False, has_call=False): closed - closed_calls,
            earlier(in_open_turn=False, has_call=True): closed_calls,
            earlier(in_open_turn=True, has_call=False): (every - closed) - (calls - closed_calls),
            earlier(in_open_turn=True, has_call=True): calls - closed_calls,
        }
    for rank, thinker in enumerate(totals.last_thinkers):
        is_open = thinker.position >= (head.turn_start or 0)
        position = TurnPosition(
            rank=rank,
            in_open_turn=is_open,
            has_call=thinker.has_call,
            open_turn_has_call=open_call,
        )
        _weigh_apart(thinking, thinker, position)
    kept = _kept_tokens(thinking, origin_of, settings, to)
    every_thought = sum(every for every, _ in _by_kind(head).values())
    exactness = worst(head.exactness, fixed.exactness, exactness_for(to.model, encoding))
    fields = count_fields(fixed, head.visible, kept, every_thought - kept, exactness)
    return ContextUsage(**fields, encoding=encoding, limit=limit)


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


def closed_tokens(
    totals: RunningTotalsLike,
    position: int,
    last_thinkers: Sequence[Thinker],
    origin_of: OriginOf,
    settings: SettingValues,
    to: Target,
) -> int:
    """Return the tokens of the closed turns up to ``position`` in the next request.

    ``totals`` are those of that position, ``last_thinkers`` those of the whole view, the last
    first. Summaries in force are not taken into account.
    """
    thinking: _Weights = {
        kind: {
            _closed_position(MOST_LAST_THINKERS, has_call=False): every - calls,
            _closed_position(MOST_LAST_THINKERS, has_call=True): calls,
        }
        for kind, (every, calls) in _by_kind(totals).items()
    }
    for rank, thinker in enumerate(last_thinkers):
        if thinker.position <= position:
            _weigh_apart(thinking, thinker, _closed_position(rank, has_call=thinker.has_call))
    return totals.visible + _kept_tokens(thinking, origin_of, settings, to)


def first_thinking_sent(
    read_totals: Callable[[], UsageTotals], settings: SettingValues, to: Target
) -> int:
    """Return the first position whose thinking a request may send.

    ``read_totals`` is called only where the answer depends on the conversation.
    """

    def may_be_sent(rank: int) -> bool:
        positions = (
            _closed_position(rank, has_call=has_call, open_turn_has_call=open_call)
            for has_call, open_call in product((False, True), repeat=2)
        )
        return any(decide(None, settings, position, to).kept for position in positions)

    if may_be_sent(MOST_LAST_THINKERS):
        return 1
    totals = read_totals()
    sent = [
        thinker.position for rank, thinker in enumerate(totals.last_thinkers) if may_be_sent(rank)
    ]
    return min([totals.head.turn_start or 1, *sent])


_PORTABLE = ""
"""The kind of portable thinking; kinds of opaque thinking have other names."""

_Weights: TypeAlias = dict[str, dict[TurnPosition, int]]
"""The tokens of each kind of thinking, by the position of its message."""


def _closed_position(
    rank: int, *, has_call: bool, open_turn_has_call: bool = False
) -> TurnPosition:
    """Return the position of a message in a closed turn."""
    return TurnPosition(
        rank=rank,
        in_open_turn=False,
        has_call=has_call,
        open_turn_has_call=open_turn_has_call,
    )


def _by_kind(totals: RunningTotalsLike) -> dict[str, tuple[int, int]]:
    """Return all thinking of each kind, and that in messages with a call."""
    return {_PORTABLE: (totals.portable, totals.portable_calls), **totals.opaque}


def _weigh_apart(weights: _Weights, thinker: Thinker, position: TurnPosition) -> None:
    """Move the tokens of one of the last thinkers to the position of its own rank."""
    own = {_PORTABLE: thinker.portable, **thinker.opaque}
    others = position._replace(rank=MOST_LAST_THINKERS)
    for kind, tokens in weights.items():
        tokens[others] -= own.get(kind, 0)
        tokens[position] = tokens.get(position, 0) + own.get(kind, 0)


def _kept_tokens(
    weights: _Weights, origin_of: OriginOf, settings: SettingValues, to: Target
) -> int:
    """Return the tokens of the thinking that is sent."""
    kept = 0
    for kind, tokens in weights.items():
        inadmissible = _inadmissible_because(kind, origin_of, to)
        kept += sum(
            count
            for position, count in tokens.items()
            if decide(inadmissible, settings, position, to).kept
        )
    return kept


def _inadmissible_because(kind: str, origin_of: OriginOf, to: Target) -> VerdictRule | None:
    if kind == _PORTABLE:
        return portable_inadmissible_because(to)
    return opaque_inadmissible_because(*origin_of(kind), to)
