"""What a number that somebody gives has to be: tokens are counted, shares are parts of one.

It knows kinds of values. How large one may be is said where it is used.
"""

from __future__ import annotations

from typing import Any

from reasoning_store.errors import UsageError


def tokens(name: str, value: Any, *, optional: bool = False) -> None:
    """Refuse what is no number of tokens."""
    if not (type(value) is int or (optional and value is None)):
        raise UsageError(f"{name} is a whole number of tokens, not {type(value).__name__}")


def share(name: str, value: Any, *, optional: bool = False) -> None:
    """Refuse what is no share."""
    if not (type(value) in (int, float) or (optional and value is None)):
        raise UsageError(f"{name} is a share as 0.85, not {type(value).__name__}")
