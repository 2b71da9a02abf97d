"""Turns, and the position of each message of a view relative to the open one.

A turn is a real user message and all that follows it up to the next one; the open turn is the
last. Neither a summary starts a turn nor a user message that holds only tool responses.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple, Protocol

LAST_RANK = 1
"""The rank of every message that is not the last one with thinking."""


class MessageInView(Protocol):
    """A message of a view."""

    @property
    def starts_turn(self) -> bool: ...

    @property
    def has_call(self) -> bool: ...

    @property
    def has_thinking(self) -> bool: ...


class TurnPosition(NamedTuple):
    """The position of one message, relative to the open turn and to the last thinking."""

    rank: int
    """How many later messages have thinking, at most ``LAST_RANK``: 0 is the last one."""
    in_open_turn: bool
    """It lies in the open turn."""
    has_call: bool
    """It calls a tool."""
    open_turn_has_call: bool
    """A message of the open turn calls a tool, this one or another."""


_POSITIONS = {
    place: TurnPosition(*place)
    for place in product(range(LAST_RANK + 1), (False, True), (False, True), (False, True))
}


def turn_positions(view: Sequence[MessageInView]) -> list[TurnPosition]:
    """Return the position of each message of a view, in order."""
    calls = [item.has_call for item in view]
    starts = (number for number in range(len(view) - 1, -1, -1) if view[number].starts_turn)
    start = next(starts, 0)
    open_call = True in calls[start:]
    positions: list[TurnPosition] = []
    rank = 0
    for number in range(len(view) - 1, -1, -1):
        has_thinking = view[number].has_thinking
        own = rank if has_thinking else LAST_RANK
        positions.append(_POSITIONS[own, number >= start, calls[number], open_call])
        if has_thinking and rank < LAST_RANK:
            rank += 1
    return positions[::-1]
