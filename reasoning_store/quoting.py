"""A value as an error quotes it: short, on one line, and nothing that a terminal would obey.

Pure: it must not know what the value was given for.
"""

from __future__ import annotations

from typing import Any

_LONGEST = 40


def shown(value: Any) -> str:
    """Return what a value looks like, or its beginning."""
    try:
        text = repr(value)
    except Exception:  # nested too deep, or an integer of thousands of digits
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
