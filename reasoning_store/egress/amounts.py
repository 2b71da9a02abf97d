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
        raise _no_tokens(name, "a whole number", type(value).__name__)
    if value < least:
        raise _no_tokens(name, f"{least} or more", value)
    if value > _MOST:
        raise _no_tokens(name, f"{_MOST} or less", "more")


def _no_tokens(name: str, wanted: str, given: Any) -> UsageError:
    return UsageError(f"{name}: {wanted}, not {given}", hint=f"it is in tokens, as {name}=8_192")


def share(name: str, value: Any, *, optional: bool = False) -> None:
    """Refuse what is no share."""
    if not (type(value) in (int, float) or (optional and value is None)):
        raise UsageError(
            f"{name}: a share, not {type(value).__name__}",
            hint=f"more than 0 and at most 1, as in {name}={THRESHOLD}",
        )
