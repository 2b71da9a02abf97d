"""What a number that somebody gives has to be: tokens are counted, shares are parts of one.

It knows kinds of values, and what no number of tokens can be. What else one may not be is
said where it is used.
"""

from __future__ import annotations

from typing import Any

from reasoning_store import numerals
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
        raise _no_tokens(name, "a whole number", type(value).__name__)
    if not least <= value <= _MOST:
        wanted = f"{least} or more" if value < least else f"{_MOST} or less"
        raise _no_tokens(name, wanted, numerals.told(value))


def _no_tokens(name: str, wanted: str, given: Any) -> UsageError:
    return UsageError(f"{name}: {wanted}, not {given}", hint=f"it is in tokens, as {name}=8_192")


def share(name: str, value: Any, *, optional: bool = False, zero: bool = False) -> None:
    """Refuse what is no share of a whole; nothing of it is one with ``zero``."""
    if optional and value is None:
        return
    if type(value) not in (int, float):
        raise _no_share(name, type(value).__name__)
    if not (value >= 0 if zero else value > 0) or value > 1:
        raise _no_share(name, numerals.told(value))


def _no_share(name: str, given: Any) -> UsageError:
    return UsageError(
        f"{name}: a share, not {given}", hint=f"more than 0 and at most 1, as in {name}={THRESHOLD}"
    )
