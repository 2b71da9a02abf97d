"""What a verb may be asked with: the kinds of values that no column decides about.

A driver takes True for 1, one engine takes 1.5 for a position and the other raises. So what
is no whole number and what is no string is refused here, the same on both engines, before
any statement is run. That a position is not there is found by whoever looks for it.

Pure: knows kinds of values, and what keys JSON has; knows no SQL and no table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reasoning_store import codec, numerals
from reasoning_store.errors import UsageError


def number(value: Any, what: str, *, least: int | None = None, hint: str | None = None) -> int:
    """Return a whole number, ``least`` or more; True is none."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f"{what}: a whole number, not {_kind(value)}", hint=hint)
    if least is not None and value < least:
        raise UsageError(f"{what}: {least} or more, not {numerals.told(value)}", hint=hint)
    return value


def text(value: Any, what: str, *, hint: str | None = None) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{what}: a string, not {_kind(value)}", hint=hint)
    return value


def truth(value: Any, what: str) -> bool:
    """Return True or False; neither 1 nor "no" is one."""
    if not isinstance(value, bool):
        raise UsageError(f"{what}: True or False, not {_kind(value)}")
    return value


def mapping(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise UsageError(f"{what}: a mapping, not {_kind(value)}")
    held: dict[str, Any] = dict(value)
    if codec.not_json(held) is None:
        return held
    held = codec.with_dicts(held)
    if (wrong := codec.not_json(held)) is not None:
        raise UsageError(f"{what}: {wrong}", hint=codec.JSON)
    return held


def _kind(value: Any) -> str:
    return "None" if value is None else type(value).__name__
