"""A number as an error tells it. Pure: it must not know whose number it is."""

from __future__ import annotations

_BITS = 128


def told(value: float) -> str:
    """Return a number in words of ours where Python writes none: of thousands of digits."""
    if isinstance(value, int) and (bits := value.bit_length()) > _BITS:
        return f"about {'-' if value < 0 else ''}2**{bits}"
    return str(value)
