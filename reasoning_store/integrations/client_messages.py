"""One message of a client's body, and the thinking that is put back among its parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import reasoning_store as rs


class ClientMessage(NamedTuple):
    """One message of a body."""

    message: rs.Message
    """Its role, text, calls and results; other parts as they are, but for its thinking."""
    first: int
    """The index of its first part in the body's list."""
    last: int
    has_thinking: bool


def weave(
    own: Sequence[Any], written: Sequence[Any], is_thinking: Callable[[Any], bool]
) -> list[Any]:
    """Return a client's parts with the thinking of the written ones at its places.

    If the client has other parts than were written, all thinking is put first.
    """
    others = sum(not is_thinking(part) for part in written)
    if others != len(own):
        return [*filter(is_thinking, written), *own]
    mine = iter(own)
    return [part if is_thinking(part) else next(mine) for part in written]
