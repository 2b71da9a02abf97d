"""One digest for all names that are computed: BLAKE2b over texts, each after its length."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b


def digest_texts(texts: Iterable[str], *, size: int = 64) -> bytes:
    """Return ``size`` bytes of BLAKE2b; each text is UTF-8 after its length in 8 bytes."""
    state = blake2b(digest_size=size)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")  # an id of an event may not be valid yet
        state.update(len(data).to_bytes(8, "big") + data)
    return state.digest()
