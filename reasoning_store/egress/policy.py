"""The rules of keeping and stripping, as tables over where a message stands.

All that the policy looks at in a message is its ``Place``. A selection asks for the place
of each message; a usage asks for the few places that there are, and weighs each with the
tokens that the ledger carries for it. Both use the two functions below, so a count cannot
disagree with the request that is built (BR-004).

A turn is a real user message and all that follows it up to the next one; the open turn is
the last. This module knows no block, no provider and no token.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from reasoning_store.settings import Strip
from reasoning_store.wire.contracts import Floor


class Place(NamedTuple):
    """Where a message with thinking stands in a view."""

    last: bool
    """It is the last message of the view that has any thinking."""
    open: bool
    """It lies in the open turn."""
    call: bool
    """It calls a tool."""
    open_call: bool
    """The open turn has a tool call, in this message or another."""


# BR-005: what each value of stripFromContext leaves in the history. A message is the unit.
_LEFT: Mapping[Strip, Callable[[Place], bool]] = {
    "all": lambda place: False,
    "allButLast": lambda place: place.last,
    "priorTurns": lambda place: place.open,
    "none": lambda place: True,
}

# Where a provider demands reasoning back. EC-006: with a call, within the open turn.
_DEMANDED: Mapping[Floor, Callable[[Place], bool]] = {
    "none": lambda place: False,
    "open_calls": lambda place: place.open and place.call,
    "all_calls": lambda place: place.call,
    "open_turn_with_call": lambda place: place.open and place.open_call,
    "all": lambda place: True,
}


def left_by_strip(strip: Strip, place: Place) -> bool:
    """Whether ``stripFromContext`` leaves the thinking of a message at this place."""
    return _LEFT[strip](place)


def demanded(floor: Floor, place: Place) -> bool:
    """Whether a provider with this floor demands the thinking of a message at this place."""
    return _DEMANDED[floor](place)
