"""What a conversation counts, from carried state alone.

The ledger carries, with every message, what its lineage has come to. A policy looks only
at where a message stands (``policy.Place``), and there are five places: the last message
with thinking, and the rest by open or closed turn, with or without a call. So the count
for any policy is a sum of five weights, whatever the length of the conversation, and it is
the count of the request that would be built (BR-004).

It knows policy and sums. It must not know where the sums are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from reasoning_store.blocks import Exactness, Origin
from reasoning_store.egress.admission import opaque_obstacle, portable_obstacle
from reasoning_store.egress.policy import Place
from reasoning_store.egress.select import decide
from reasoning_store.egress.tokens import TokenCount
from reasoning_store.egress.verdicts import Rule, Target
from reasoning_store.settings import ReasoningSettings
from reasoning_store.tokenizers import worst


class Sums(Protocol):
    """Cumulative tokens of a lineage up to and with one message."""

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


class Own(Protocol):
    """What one message's own thinking counts."""

    @property
    def position(self) -> int: ...
    @property
    def portable(self) -> int: ...
    @property
    def opaque(self) -> Mapping[str, int]: ...
    @property
    def has_call(self) -> bool: ...


class Carried(Protocol):
    """What the ledger reads for a usage, in a number of rows that never grows."""

    @property
    def head(self) -> Sums: ...
    @property
    def before_turn(self) -> Sums: ...
    @property
    def last_thinking(self) -> Own | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextUsage(TokenCount):
    """What the next request counts, and the limit it is held against."""

    limit: int | None = None

    def __str__(self) -> str:
        """Return ``123000/212000``, effective and limit; the effective count without one."""
        return f"{self.effective}/{self.limit}" if self.limit is not None else str(self.effective)


def usage(
    carried: Carried,
    origin_of: Callable[[str], tuple[Origin | None, str | None]],
    settings: ReasoningSettings,
    to: Target,
    *,
    fixed: tuple[int, Exactness],
    encoding: str,
    limit: int | None = None,
) -> ContextUsage:
    """Return what the next request would count. ``origin_of`` explains a kind's name."""
    head, before, last = carried.head, carried.before_turn, carried.last_thinking
    thinking = head.portable
    kept = _kept(
        portable_obstacle(to),
        (head.portable, head.portable_calls),
        (before.portable, before.portable_calls),
        last.portable if last is not None else 0,
        carried,
        settings,
        to,
    )
    for kind, sums in head.opaque.items():
        thinking += sums[0]
        kept += _kept(
            opaque_obstacle(*origin_of(kind), to),
            sums,
            before.opaque.get(kind, (0, 0)),
            last.opaque.get(kind, 0) if last is not None else 0,
            carried,
            settings,
            to,
        )
    return ContextUsage(
        effective=head.visible + kept + fixed[0],
        raw=head.visible + thinking + fixed[0],
        fixed=fixed[0],
        exactness=worst(head.exactness, fixed[1]),
        encoding=encoding,
        limit=limit,
    )


def _kept(
    hindrance: Rule | None,
    all_and_calls: tuple[int, int],
    closed_and_calls: tuple[int, int],
    last_own: int,
    carried: Carried,
    settings: ReasoningSettings,
    to: Target,
) -> int:
    """Return what one kind of thinking keeps: the weights of the places that keep it."""
    every, calls = all_and_calls
    closed, closed_calls = closed_and_calls
    weights = {
        (False, True): closed_calls,
        (False, False): closed - closed_calls,
        (True, True): calls - closed_calls,
        (True, False): (every - closed) - (calls - closed_calls),
    }
    open_call = carried.head.turn_has_call
    cells = []
    if (last := carried.last_thinking) is not None:
        start = carried.head.turn_start
        where = (start is None or last.position >= start, last.has_call)
        weights[where] -= last_own
        cells.append((Place(True, *where, open_call), last_own))
    cells += [(Place(False, *where, open_call), weight) for where, weight in weights.items()]
    return sum(weight for place, weight in cells if decide(hindrance, settings, place, to)[0])
