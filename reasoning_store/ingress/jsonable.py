"""Values that JSON can hold, out of whatever an in-process host put into an event.

A stream of dicts need not have come from JSON. What JSON has no form for is given one
here, so that a reply can always be stored: bytes as base64 under ``$bytes_b64``, keys as
strings, a number that is none (NaN, infinity) and anything else by its own string form.
What is JSON already is returned as it is.

It knows JSON's types and nothing of messages.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import repeat
from typing import Any

from reasoning_store import codec, strict
from reasoning_store.wire.binary import marked

_DEEPEST = codec.DEEPEST - 10
"""What a value of a provider's stands in comes on top."""


def jsonable(value: Any, depth: int = 0) -> Any:
    """Return ``value`` if JSON can hold it, else the nearest value that JSON can."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value
    if kind is float:
        return value if math.isfinite(value) else str(value)
    if kind is int:
        return value if value.bit_length() <= strict.BITS else hex(value)
    if depth >= _DEEPEST:
        return None
    if isinstance(value, Mapping):
        # No comprehension here and below: it would be a frame more for each level.
        object_: dict[str, Any] = {}
        for key, item in value.items():
            object_[key if type(key) is str else str(key)] = jsonable(item, depth + 1)
        return object_
    if isinstance(value, list | tuple | set | frozenset):
        return list(map(jsonable, value, repeat(depth + 1)))
    if isinstance(value, bytes | bytearray):
        return marked(value)
    if isinstance(value, str):
        return str(value)
    return _as_text(value)


def _as_text(value: Any) -> str:
    try:
        return str(value)
    except Exception:  # a foreign object's own fault; that it was there is all we can say
        return f"<{type(value).__name__}>"
