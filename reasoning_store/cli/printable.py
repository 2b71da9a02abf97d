"""Stored text on a terminal: shown, never executed."""

from __future__ import annotations

import re

# C0 and C1 controls, and the marks that turn the reading direction round.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """Return text with what a terminal would obey written out."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)
