"""What a conversation counts, or its closed turns up to a cut, from carried state alone.

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
from typing import Protocol, TypeAlias

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


OriginOf: TypeAlias = Callable[[str], tuple[Origin | None, str | None]]
"""Who made a kind of opaque thinking, and the field that it came in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextUsage(TokenCount):
    """What the next request counts, and the limit it is held against."""

    limit: int | None = None

    def __str__(self) -> str:
        """Return ``123000/212000``, effective and limit; the effective count without one."""
        return f"{self.effective}/{self.limit}" if self.limit is not None else str(self.effective)


def usage(
    carried: Carried,
    origin_of: OriginOf,
    settings: ReasoningSettings,
    to: Target,
    *,
    fixed: tuple[int, Exactness],
    encoding: str,
    limit: int | None = None,
) -> ContextUsage:
    """Return what the next request would count. ``origin_of`` explains a kind's name."""
    head, last = carried.head, carried.last_thinking
    before, own = _by_kind(carried.before_turn), _own(last)
    has_call = head.turn_has_call
    where = None
    if last is not None:
        where = Place(
            last=True,
            open=last.position >= (head.turn_start or 0),
            call=last.has_call,
            open_call=has_call,
        )
    thinking = kept = 0
    for kind, (every, calls) in _by_kind(head).items():
        closed, closed_calls = before.get(kind, (0, 0))
        weights = {
            Place(last=False, open=False, call=True, open_call=has_call): closed_calls,
            Place(last=False, open=False, call=False, open_call=has_call): closed - closed_calls,
            Place(last=False, open=True, call=True, open_call=has_call): calls - closed_calls,
            Place(last=False, open=True, call=False, open_call=has_call): (every - closed)
            - (calls - closed_calls),
        }
        thinking += every
        kept += _kept(
            _obstacle(kind, origin_of, to), weights, where, own.get(kind, 0), settings, to
        )
    return ContextUsage(
        effective=head.visible + kept + fixed[0],
        raw=head.visible + thinking + fixed[0],
        fixed=fixed[0],
        exactness=worst(head.exactness, fixed[1]),
        encoding=encoding,
        limit=limit,
    )


def closed_tokens(
    sums: Sums,
    position: int,
    last_thinking: Own | None,
    origin_of: OriginOf,
    settings: ReasoningSettings,
    to: Target,
) -> int:
    """Return what the next request holds of the closed turns up to ``position``.

    ``sums`` is what is carried there, ``last_thinking`` the last message of the whole view
    that has any. Summaries in force are not taken into account.
    """
    last = last_thinking if last_thinking and last_thinking.position <= position else None
    where = (
        None if last is None else Place(last=True, open=False, call=last.has_call, open_call=False)
    )
    own = _own(last)
    held = sums.visible
    for kind, (every, calls) in _by_kind(sums).items():
        weights = {
            Place(last=False, open=False, call=True, open_call=False): calls,
            Place(last=False, open=False, call=False, open_call=False): every - calls,
        }
        held += _kept(
            _obstacle(kind, origin_of, to), weights, where, own.get(kind, 0), settings, to
        )
    return held


_PORTABLE = ""
"""A kind beside those of opaque thinking, which have names."""


def _by_kind(sums: Sums) -> dict[str, tuple[int, int]]:
    """Return all thinking of each kind, and that in messages with a call."""
    return {_PORTABLE: (sums.portable, sums.portable_calls), **sums.opaque}


def _own(last: Own | None) -> dict[str, int]:
    return {} if last is None else {_PORTABLE: last.portable, **last.opaque}


def _obstacle(kind: str, origin_of: OriginOf, to: Target) -> Rule | None:
    return portable_obstacle(to) if kind == _PORTABLE else opaque_obstacle(*origin_of(kind), to)


def _kept(
    hindrance: Rule | None,
    weights: dict[Place, int],
    last: Place | None,
    last_own: int,
    settings: ReasoningSettings,
    to: Target,
) -> int:
    """Return what is kept of one kind of thinking, by what it weighs at each place.

    ``last`` is the place of the last message with thinking, whose own is weighed apart.
    """
    if last is not None:
        weights[last._replace(last=False)] -= last_own
        weights[last] = last_own
    return sum(
        weight for place, weight in weights.items() if decide(hindrance, settings, place, to)[0]
    )
