r"""Text that a terminal cannot obey: control characters are written out as escapes.

These are the controls of ASCII and Latin-1 (with them every escape sequence), marks that change
the reading direction, unusual line ends, invisible tag characters and lone surrogates. They
become ``\x1b``, ``\u202e``, ``\U000e0041``; in JSON, JSON's own escapes, so that nothing is lost.
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
    """Return text with its controls written out, but for line ends and tabs."""
    return _IN_TEXT.sub(_written_out, text)


def one_line(text: str) -> str:
    """Return text with all its controls written out, line ends too: a title, a name, an error."""
    return _IN_A_LINE.sub(_written_out, text)


def shorten(text: str, most: int) -> str:
    """Return text as one line of at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 3]}..."


def json_text(value: Any, *, ascii_only: bool = False, indent: int | None = 2) -> str:
    """Return JSON without controls, of the same value."""
    return printable_json(json.dumps(value, ensure_ascii=ascii_only, indent=indent))


def printable_json(text: str) -> str:
    """Return JSON with the controls in its strings written out."""
    return _IN_TEXT.sub(lambda found: json.dumps(found[0])[1:-1], text)


def _written_out(found: re.Match[str]) -> str:
    number = ord(found[0])
    if number in _SHORT:
        return _SHORT[number]
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


_SHORT = {9: "\\t", 10: "\\n", 13: "\\r"}
