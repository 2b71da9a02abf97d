"""Bytes in JSON: base64, the mark that distinguishes it from text, and data URLs.

Either alphabet is read, with padding or without; the usual one is written, padded.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from struct import unpack_from
from typing import Any, Final

from reasoning_store.conversation.json_values import BYTES

_USUAL: Final = str.maketrans("-_", "+/")
_SCHEME: Final = "data:"
_ENCODED: Final = ";base64"


def in_base64(data: bytes | bytearray) -> str:
    return b64encode(data).decode("ascii")


def from_base64(text: Any) -> bytes | None:
    """Return the bytes of base64; ``None`` for any other value."""
    if not isinstance(text, str):
        return None
    try:
        return b64decode(text.translate(_USUAL) + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        return None


def as_base64(value: Any) -> str | None:
    """Return opaque data as text: bytes in base64, marked ones too, strings as they are."""
    if isinstance(value, bytes | bytearray):
        return in_base64(value)
    if isinstance(value, Mapping):
        value = value.get(BYTES)
    return value if isinstance(value, str) else None


def as_bytes(value: Any) -> bytes | None:
    """Return bytes that an SDK gives as such and JSON as base64; ``None`` for any other value."""
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    return from_base64(as_base64(value))


def is_data_url(url: str) -> bool:
    """Whether an address is the data itself."""
    return url.startswith(_SCHEME)


def data_url(mime_type: str, data: bytes) -> str:
    """Return an address that holds data."""
    return f"{_SCHEME}{mime_type}{_ENCODED},{in_base64(data)}"


def from_data_url(url: str) -> tuple[str, bytes] | None:
    """Return the type and the bytes that an address holds; ``None`` where it has none in base64."""
    about, _, text = url.removeprefix(_SCHEME).partition(",")
    data = from_base64(text) if about.endswith(_ENCODED) else None
    return (about.removesuffix(_ENCODED), data) if data else None


def image_size(data: bytes) -> tuple[int, int] | None:
    """Return the width and height of a PNG, GIF, JPEG or WebP image; ``None`` of another."""
    if data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) >= 24:
        return _numbers(">II", data, 16)
    if data[:4] == b"GIF8" and len(data) >= 10:
        return _numbers("<HH", data, 6)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP" and len(data) >= 30:
        return _webp_size(data)
    return _jpeg_size(data) if data[:2] == b"\xff\xd8" else None


def _numbers(form: str, data: bytes, at: int) -> tuple[int, int]:
    one, other = unpack_from(form, data, at)
    return one, other


def _webp_size(data: bytes) -> tuple[int, int] | None:
    kind = data[12:16]
    if kind == b"VP8X":
        low = int.from_bytes(data[24:30], "little")
        return 1 + (low & 0xFFFFFF), 1 + (low >> 24)
    if kind == b"VP8L":
        low = int.from_bytes(data[21:25], "little")
        return 1 + (low & 0x3FFF), 1 + (low >> 14 & 0x3FFF)
    width, height = _numbers("<HH", data, 26)
    return (width & 0x3FFF, height & 0x3FFF) if kind == b"VP8 " else None


_SIZED: Final = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
"""The segments of a JPEG that begin a frame."""


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        kind = data[at + 1]
        if kind in _SIZED:
            height, width = _numbers(">HH", data, at + 5)
            return width, height
        at += 1 if kind == 0xFF else 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return None
