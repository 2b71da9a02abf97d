"""Text and JSON from elsewhere, taken apart strictly.

UTF-8 and no other encoding, no nesting that Python's own parser gives up on, no number of
endless digits; and where JSON is to be JSON to others too, no NaN, no infinity and no key
twice. The error says where, and never what stands there.

Pure: knows text. It must not know lines, files or messages.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from reasoning_store.errors import UsageError

_MARKED: Final = (  # that of UTF-32 begins as that of UTF-16 does
    ("UTF-32", (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)),
    ("UTF-16", (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)),
)
"""Encodings that a text names by its first bytes."""
BITS: Final = 8_192
"""Of a whole number; Python refuses to write much longer ones in decimal."""
_NESTING = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)


class Malformed(UsageError):
    """What is wrong with a text; ``at`` is the character where that is so, from 0."""

    def __init__(self, what: str, at: int | None = None) -> None:
        super().__init__(what if at is None else f"{what} at character {at + 1}")
        self.what = what
        self.at = at


class _Refused(ValueError):
    """Python's parser takes it, JSON does not."""


def check_encoding(data: bytes, what: str = "the text") -> None:
    """Refuse a text whose first bytes name another encoding than UTF-8."""
    for name, marks in _MARKED:
        if data.startswith(marks):
            raise UsageError(
                f"{what} is in {name}, and UTF-8 is read",
                hint=f"iconv -f {name} -t UTF-8 FILE > NEW; "
                "in PowerShell: Get-Content FILE | Out-File -Encoding utf8 NEW",
            )


def decoded(data: bytes, what: str = "the text") -> str:
    """Return a text without the mark that may stand before it."""
    check_encoding(data, what)
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise UsageError(f"{what} is not UTF-8 at byte {error.start + 1}") from None


# What JSON is


def _constant(_: str) -> None:
    raise _Refused("NaN and infinities are not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise _Refused("a number is larger than a float can be")
    return value


def _writable(text: str) -> int:
    value = int(text)
    if value.bit_length() > BITS:
        raise _Refused("a number has more digits than others read")
    return value


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Refused("an object has the same key twice")
    return found


Rules: TypeAlias = Mapping[str, Any]
"""How Python's parser is asked, by its own names."""
ANY: Final[Rules] = {}
"""What Python's parser takes."""
ONCE: Final[Rules] = {"object_pairs_hook": _once}
"""No key twice."""
STRICT: Final[Rules] = {**ONCE, "parse_constant": _constant, "parse_float": _finite}
"""JSON, to everybody."""
PORTABLE: Final[Rules] = {**STRICT, "parse_int": _writable}
"""And no whole number that Python itself would not write."""


def loads(text: str, *, deepest: int, rules: Rules) -> Any:
    """Return the value of JSON text; ``deepest`` is how far it may be nested."""
    if text.count("[") + text.count("{") > deepest:
        _check_depth(text, deepest)
    try:
        return json.loads(text, **rules)
    except json.JSONDecodeError as error:
        raise Malformed("not JSON", error.pos) from None
    except _Refused as error:
        raise Malformed(str(error)) from None
    except (ValueError, RecursionError):
        raise Malformed("a number has more digits than a number can have") from None


def _check_depth(text: str, deepest: int) -> None:
    depth = 0
    for mark in _NESTING.finditer(text):
        first = text[mark.start()]
        if first in "[{":
            depth += 1
            if depth > deepest:
                raise Malformed(f"nested deeper than {deepest}", mark.start())
        elif first in "]}":
            depth -= 1


def is_json(text: str) -> bool:
    """Whether JSON that Python wrote is JSON to others too."""
    try:
        json.loads(text, parse_constant=_constant)
    except _Refused:
        return False
    return True
