r"""Text for a terminal: what it would obey is written out, so that stored text is only shown.

Written out are the controls of ASCII and of Latin-1 (so every escape sequence and every
OSC, in seven bits or eight), the marks that turn the reading direction round, line ends
that only some programs honour, invisible tag characters and lone surrogates. As ``\x1b``,
``\u202e``, ``\U000e0041``; in JSON as JSON writes them, so that nothing is lost.

It knows characters. It must not know where they come from.
"""

from __future__ import annotations

import json
import re
from typing import Any

_OBEYED = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f"
)
_IN_TEXT = re.compile(f"[{_OBEYED}]")
_IN_A_LINE = re.compile(f"[\t\n{_OBEYED}]")


def printable(text: str) -> str:
    """Return text with what a terminal would obey written out; lines and tabs stay."""
    return _IN_TEXT.sub(_written_out, text)


def one_line(text: str) -> str:
    """Return text for a place that has one line: a title, a name, an error."""
    return _IN_A_LINE.sub(_written_out, text)


def json_text(value: Any, *, ascii_only: bool = False, indent: int | None = 2) -> str:
    """Return JSON that a terminal shows as it stands, and that a program reads exactly."""
    return json_shown(json.dumps(value, ensure_ascii=ascii_only, indent=indent))


def json_shown(text: str) -> str:
    """Return the same JSON for a terminal."""
    # What is obeyed stands in strings only: JSON itself is made of ASCII and line ends.
    return _IN_TEXT.sub(lambda found: json.dumps(found[0])[1:-1], text)


def _written_out(found: re.Match[str]) -> str:
    number = ord(found[0])
    if number in _SHORT:
        return _SHORT[number]
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


_SHORT = {9: "\\t", 10: "\\n", 13: "\\r"}
