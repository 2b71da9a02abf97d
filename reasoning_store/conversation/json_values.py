"""Values that JSON can hold and text that UTF-8 can write: checked, mended and parsed.

Everything else in the package may rely on it: a text has no half of a character, a value of
JSON no number that JSON cannot write, and neither is nested deeper than ``DEEPEST``.
"""

from __future__ import annotations

import base64
import codecs
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from reasoning_store.conversation.errors import InvalidCall

DEEPEST: Final = 300
"""How far a value may be nested: parsers give up beyond, the sooner the deeper their callers."""
_LINE: Final = DEEPEST + 100
"""How far a text that is parsed may be: a line of an export is a few levels around its values."""
_TOO_DEEP: Final = f"nested deeper than {DEEPEST}"
ALLOWED: Final = (
    f"use strings, finite numbers, booleans, None, lists and dicts, nested {DEEPEST} deep at most; "
    "no cycles"
)
"""The hint for a value that JSON cannot hold."""
BYTES: Final = "$bytes_b64"
"""The name under which bytes are kept in JSON, in base64."""
_BITS: Final = 8_192
"""Of a whole number: Python refuses to write much longer ones in decimal."""
_ENCODINGS: Final = (  # the mark of UTF-32 begins as that of UTF-16 does
    ("UTF-32", (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)),
    ("UTF-16", (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)),
)
_HALF_ESCAPE: Final = re.compile(r"\\u[dD][89a-fA-F]")


class NotJson(InvalidCall):
    """A part of a value that JSON cannot hold, in words, and the keys that lead there."""

    def __init__(self, what: str) -> None:
        super().__init__(what, hint=ALLOWED)
        self.what = what
        self.path: list[str | int] = []


class Malformed(InvalidCall):
    """A fault of a text; ``at`` is the index of the wrong character."""

    def __init__(self, what: str, at: int | None = None) -> None:
        super().__init__(what if at is None else f"{what} at character {at + 1}")
        self.what = what
        self.at = at


# Text


def is_valid_text(text: str) -> bool:
    """Whether UTF-8 can write a text: it has no surrogates."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def valid_text(text: str, *, errors: str = "replace") -> str:
    """Return a text with each two surrogates that meet as their character.

    One left alone becomes U+FFFD; with ``errors="strict"`` it raises ``UnicodeDecodeError``.
    """
    if is_valid_text(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", errors)


def check_encoding(data: bytes, what: str = "the text") -> None:
    """Refuse a text whose first bytes name another encoding than UTF-8."""
    for name, marks in _ENCODINGS:
        if data.startswith(marks):
            raise InvalidCall(
                f"{what} is in {name}, and UTF-8 is read",
                hint=f"iconv -f {name} -t UTF-8 FILE > NEW; "
                "in PowerShell: Get-Content FILE | Out-File -Encoding utf8 NEW",
            )


def decoded(data: bytes, what: str = "the text") -> str:
    """Return UTF-8 as text, without a byte order mark."""
    check_encoding(data, what)
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise InvalidCall(f"{what} is not UTF-8 at byte {error.start + 1}") from None


# Values

_Unheld: TypeAlias = Callable[[Any, str], Any]
"""Returns what takes the place of a value that JSON cannot hold, or raises ``NotJson``."""


def json_value(value: Any) -> Any:
    """Return a value with valid text, dicts and lists; the same one where nothing changes.

    Raises ``NotJson`` for one that JSON cannot hold.
    """
    try:
        return _copy_of(value, DEEPEST, _refused)
    except RecursionError:
        raise NotJson(_TOO_DEEP) from None


def make_json(value: Any) -> Any:
    """Return the nearest value that JSON can hold: what an in-process host put into an event.

    Bytes become base64 under ``$bytes_b64``, keys strings, sets lists; anything else that JSON
    cannot hold becomes its own string form, and None where it is nested too deep.
    """
    return _copy_of(value, DEEPEST - 10, _nearest)  # its message is a few levels around it


def _refused(value: Any, what: str) -> Any:
    raise NotJson(what)


def _nearest(value: Any, what: str) -> Any:
    if what == _TOO_DEEP:
        return None
    if isinstance(value, bytes | bytearray):
        return {BYTES: base64.b64encode(value).decode("ascii")}
    if isinstance(value, set | frozenset):
        return make_json(list(value))
    try:
        return valid_text(str(value))
    except Exception:  # a foreign object's own fault; its type is all that is known
        return f"<{type(value).__name__}>"


def _copy_of(value: Any, room: int, unheld: _Unheld) -> Any:
    kind = type(value)
    if kind is str:
        return value if value.isascii() else valid_text(value)
    if value is None or kind is bool:
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= _BITS else unheld(value, "a number is too long")
    if isinstance(value, float):
        return value if math.isfinite(value) else unheld(value, "a number that JSON does not have")
    if isinstance(value, str):
        return valid_text(str.__str__(value))
    if not isinstance(value, Mapping | list | tuple):
        return unheld(value, f"JSON has no {kind.__name__}")
    if not room:
        return unheld(value, _TOO_DEEP)
    # One frame for each level, and no more: a value may be nested deep.
    is_mapping = isinstance(value, Mapping)
    inside = value.items() if isinstance(value, Mapping) else enumerate(value)
    same = kind is (dict if is_mapping else list)
    items: list[tuple[Any, Any]] = []
    for key, item in inside:
        name = _walked_key(key, unheld) if is_mapping else key
        try:
            new = _copy_of(item, room - 1, unheld)
        except NotJson as error:
            error.path.insert(0, key)
            raise
        items.append((name, new))
        same = same and new is item and name is key
    if same:
        return value
    return dict(items) if is_mapping else [item for _, item in items]


def _walked_key(key: Any, unheld: _Unheld) -> str:
    if isinstance(key, str):
        return key if key.isascii() else valid_text(key)
    replaced = unheld(key, f"a key is a string, not {type(key).__name__}")
    return replaced if isinstance(replaced, str) else str(key)


# JSON text


class _Refused(ValueError):
    """Python's parser takes it, JSON does not."""


def _constant(_: str) -> None:
    raise _Refused("NaN and infinities are not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _Refused("a number is larger than a float can be")
    return value


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Refused("an object has the same key twice")
    return found


_STRICT: Final[Mapping[str, Any]] = {
    "object_pairs_hook": _once,
    "parse_constant": _constant,
    "parse_float": _finite,
}


def parse(text: str, *, strict: bool = True) -> Any:
    """Return the value of JSON text from elsewhere; the error names the place, not the text.

    ``strict`` refuses what some parsers read otherwise than others: NaN, infinities and a key
    given twice. Without it such a number becomes a string, and the last value of a key counts.
    """
    text = valid_text(text)
    try:
        value = json.loads(text, **_STRICT) if strict else json.loads(text)
    except json.JSONDecodeError as error:
        raise Malformed("not JSON", error.pos) from None
    except _Refused as error:
        raise Malformed(str(error)) from None
    except RecursionError:
        raise Malformed(_TOO_DEEP) from None
    except ValueError:
        raise Malformed("a number has more digits than a number can have") from None
    if strict and not _HALF_ESCAPE.search(text) and text.count("[") + text.count("{") <= _LINE:
        return value
    try:
        return _copy_of(value, _LINE, _too_deep if strict else _foreign)
    except (NotJson, RecursionError):
        raise Malformed(_TOO_DEEP) from None


def _too_deep(value: Any, what: str) -> Any:
    return _refused(value, what) if what == _TOO_DEEP else value


def _foreign(value: Any, what: str) -> Any:
    return _refused(value, what) if what == _TOO_DEEP else _nearest(value, what)


def is_object(text: str) -> bool:
    """Whether a text is a JSON object."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
