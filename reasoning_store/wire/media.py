"""Bytes in JSON: base64, the mark that distinguishes it from text, and data URLs.

Either alphabet is read, with padding or without; the usual one is written, padded.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
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
