"""Strip policies and floors, as tables over the position of a message.

A selection asks for the position of every message, for a count as for the request that is built
(BR-004).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from reasoning_store.conversation.settings import SettingValues, Strip
from reasoning_store.conversation.turns import TurnPosition
from reasoning_store.wire.contract import Floor


@dataclass(frozen=True, slots=True, kw_only=True)
class StripPolicy:
    """One value of ``stripFromContext``. A message is the unit."""

    keeps: Callable[[TurnPosition], bool]
    """Whether the thinking of a message at this position stays in the history."""
    distinguished_thinkers: int = 0
    """How many of the last messages with thinking it distinguishes, at most ``LAST_RANK``.

    With any, a thought that was sent is left out when a later message has some."""
    strictness: int
    """A compression plan changes a policy to one of a higher number."""


# BR-005: what each value of stripFromContext keeps in the history.
STRIP_POLICIES: Mapping[Strip, StripPolicy] = {
    "all": StripPolicy(keeps=lambda position: False, strictness=3),
    "allButLast": StripPolicy(
        keeps=lambda position: position.rank < 1, distinguished_thinkers=1, strictness=1
    ),
    "none": StripPolicy(keeps=lambda position: True, strictness=0),
    "priorTurns": StripPolicy(keeps=lambda position: position.in_open_turn, strictness=2),
}

# Where a provider demands reasoning back. EC-006: with a call, within the open turn.
_DEMANDED: Mapping[Floor, Callable[[TurnPosition], bool]] = {
    "none": lambda position: False,
    "open_calls": lambda position: position.in_open_turn and position.has_call,
    "all_calls": lambda position: position.has_call,
    "open_turn_with_call": lambda position: position.in_open_turn and position.open_turn_has_call,
    "all": lambda position: True,
}


def strip_policy(settings: SettingValues) -> StripPolicy:
    """Return the strip policy that these settings name."""
    return STRIP_POLICIES[settings.strip_from_context]


def is_demanded(floor: Floor, position: TurnPosition) -> bool:
    """Whether a provider with this floor demands the thinking of a message at this position."""
    return _DEMANDED[floor](position)


def is_rolling(settings: SettingValues) -> bool:
    """Whether a thought that was sent in one turn may be left out in the next."""
    return settings.include_in_context and strip_policy(settings).distinguished_thinkers > 0


def stricter_settings(settings: SettingValues) -> list[SettingValues]:
    """Return the settings that a compression plan may change to, the gentlest first.

    A rolling strip is not among them: it would rewrite the history at every message.
    """
    current = strip_policy(settings).strictness
    choices = sorted(
        (policy.strictness, strip)
        for strip, policy in STRIP_POLICIES.items()
        if policy.strictness > current and not policy.distinguished_thinkers
    )
    return [replace(settings, strip_from_context=strip) for _, strip in choices]
