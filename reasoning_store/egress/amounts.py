"""What a number that somebody gives has to be: tokens are counted, shares are parts of one.

It knows kinds of values, and what no number of tokens can be. What else one may not be is
said where it is used.
"""

from __future__ import annotations

from typing import Any

from reasoning_store.errors import UsageError

THRESHOLD = 0.85
"""The share of what a request may count from which on something is done about it."""

_MOST = 1 << 62
"""No count comes near it, and a share of it is a float still."""


def tokens(name: str, value: Any, *, least: int = 0, optional: bool = False) -> None:
    """Refuse what is no number of tokens, or fewer than ``least``."""
    if optional and value is None:
        return
    if type(value) is not int:
        raise UsageError(f"{name} is a whole number of tokens, not {type(value).__name__}")
    if value < least:
        raise UsageError(f"{name} is {least} tokens or more, not {value}")
    if value > _MOST:
        raise UsageError(f"{name} is {_MOST} tokens or fewer")


def share(name: str, value: Any, *, optional: bool = False) -> None:
    """Refuse what is no share."""
    if not (type(value) in (int, float) or (optional and value is None)):
        raise UsageError(f"{name} is a share as {THRESHOLD}, not {type(value).__name__}")
