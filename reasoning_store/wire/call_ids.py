"""Ids for tool calls that come without one, or with one that another host refuses.

A call needs an id to be answered, and some protocols send none. The id made here depends on
nothing but what is given, so the same response gives the same ids, whole or streamed. It can
be told from a provider's own, and so be left out where the call goes back to its protocol.
For the same reason a call and its response need not know of each other to get one new id
where a host does not take theirs.

Pure: no randomness, no clock, no count of its own.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Final

_PREFIX: Final = "rs_call_"
_SHORTEST: Final = 9
"""What Mistral demands: nine letters and digits."""


def made(*seeds: object) -> str:
    """Return the id that belongs to these seeds, in their order."""
    digest = blake2b(digest_size=12)
    for seed in seeds:
        text = str(seed).encode("utf-8", "surrogatepass")
        digest.update(len(text).to_bytes(8, "big") + text)
    return _PREFIX + digest.hexdigest()


def is_made(call_id: str) -> bool:
    """Whether an id was made here, and means nothing to a provider."""
    return call_id.startswith(_PREFIX)


def accepted(call_id: str, pattern: str | None) -> str:
    """Return an id that matches a host's pattern: this one, or one that stands for it."""
    if pattern is None or re.fullmatch(pattern, call_id):
        return call_id
    other = made(call_id)
    digest = other.removeprefix(_PREFIX)
    candidates = (other, digest, digest[:_SHORTEST])
    return next((item for item in candidates if re.fullmatch(pattern, item)), call_id)
