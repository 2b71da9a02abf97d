"""The digest by which messages are compared, of all that is stored of a message.

The columns that hold a message hold all of it, so they are what is digested, and nothing is written
a second time to be compared. Only what an application gave as JSON is: there the order of keys does
not count, and equal messages have equal digests.

Knows the codec; knows no SQL and no blocks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import blake2b

from reasoning_store.conversation import codec


def digest(columns: Iterable[str | None]) -> bytes:
    """Return 16 bytes of BLAKE2b over columns, each with its length before it."""
    columns = list(columns)
    lengths = ",".join(["-" if text is None else str(len(text)) for text in columns])
    whole = f"{lengths};{''.join([text for text in columns if text is not None])}"
    return blake2b(whole.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def in_order(text: str) -> str:
    """Return stored JSON with its keys sorted, to be digested."""
    return _sorted(codec.loads(text))


_sorted = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode
