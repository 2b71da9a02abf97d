"""JSON from elsewhere, taken apart strictly.

No NaN and no infinity, no key twice, no number of endless digits, no nesting that Python's
own parser gives up on; the error says where, and never what stands there.

Pure: knows JSON text; knows nothing of lines or messages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from reasoning_store import codec
from reasoning_store.errors import UsageError

LONGEST = 1 << 29
"""Characters. A text of a gigabyte is more than either engine holds."""
DEEPEST = 400
"""Python's own parser gives up not far beyond."""


class _Refused(ValueError):
    """Python's parser takes it, JSON does not."""


def _refuse(_: str) -> None:
    raise _Refused("NaN and infinities are not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise _Refused("a number is larger than a float can be")
    return value


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Refused("an object has the same key twice")
    return found


_LENIENT: dict[str, Any] = {"object_pairs_hook": _once}
_STRICT: dict[str, Any] = {
    **_LENIENT,
    "parse_constant": _refuse,
    "parse_float": _finite,
}
_MARKS = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[{]|[\]}]', re.DOTALL)


def is_json(text: str) -> bool:
    """Whether JSON that Python wrote is JSON to others too."""
    try:
        json.loads(text, parse_constant=_refuse)
    except _Refused:
        return False
    return True


def parsed(text: str, *, nan: bool = False) -> dict[str, Any]:
    """Return the object that a text is; ``nan`` allows what JSON has no form for."""
    if len(text) > LONGEST:
        raise UsageError(f"longer than {LONGEST} characters")
    _check_depth(text)
    try:
        value = json.loads(text, **(_LENIENT if nan else _STRICT))
        if text.startswith(" "):
            value = codec.loads(text)  # checked by now; this undoes what the codec holds apart
    except json.JSONDecodeError as error:
        raise UsageError(f"not JSON at character {error.pos + 1}") from None
    except _Refused as error:
        raise UsageError(str(error)) from None
    except (ValueError, RecursionError):
        raise UsageError("a number has more digits than a number can have") from None
    if not isinstance(value, dict):
        raise UsageError("not an object")
    return value


def _check_depth(text: str) -> None:
    depth = 0
    for mark in _MARKS.finditer(text):
        first = mark[0][0] if mark.end() - mark.start() == 1 else '"'
        if first in "[{":
            depth += 1
            if depth > DEEPEST:
                raise UsageError(f"nested deeper than {DEEPEST} at character {mark.start() + 1}")
        elif first in "]}":
            depth -= 1
