"""Gemini's fields, in camel case on the wire and in snake case in the SDK, and their JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any

from reasoning_store.wire.media import as_base64


@cache
def spellings(name: str) -> tuple[str, str]:
    """Return a name as it is on the wire, and as the SDK spells it."""
    return name, re.sub("[A-Z]", lambda match: f"_{match[0].lower()}", name)


def field(data: Mapping[str, Any], name: str) -> Any:
    """Return a field by its name on the wire or in the SDK."""
    value = data.get(name)
    return data.get(spellings(name)[1]) if value is None else value


def text_of(value: Any) -> str | None:
    """Return a string, also that of an SDK's enumeration; None for anything else."""
    value = value.value if isinstance(value, Enum) else value
    return value if isinstance(value, str) and value else None


def as_json(value: Any) -> Any:
    """Return as JSON again what an SDK made of it."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {name: as_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, bytes | bytearray):
        return as_base64(value)
    return value if isinstance(value, str | int | float | None) else str(value)
