"""A value in a request's body by its dotted path, as contracts name it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def value_at(body: Any, path: str | None) -> Any:
    """Return the value at a path, or ``None``."""
    value = body if path else None
    for name in path.split(".") if path else ():
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def put_at(body: dict[str, Any], path: str, value: Any, *, over: bool = True) -> None:
    """Put a value at a path; unless ``over``, a value that is there stays."""
    *parents, name = path.split(".")
    for parent in parents:
        # A copy: the object there may be a stored block's own.
        body[parent] = body = dict(body.get(parent) or {})
    if over or body.get(name) in (None, ""):
        body[name] = value
