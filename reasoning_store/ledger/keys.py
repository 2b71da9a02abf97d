"""The numbers of names, and the ids we make.

One 63-bit key leads every table, so that each lookup is one index range and rows shard by that
column. It is computed, not handed out: there are no sequences. A reader of a row by such a number
compares the name next to it; two names with one number are refused.

The hash is the first 8 bytes (big endian, top bit cleared) of BLAKE2b over the parts, each
as UTF-8 after its length in 8 bytes, big endian. A frozen vector in the tests holds this: a
change would orphan every stored row.

Knows hashing, the clock and randomness (for ids); knows no SQL.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from reasoning_store.conversation.digests import digest_texts
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.conversation.validation import check_text

_63_BITS = (1 << 63) - 1


@lru_cache(maxsize=1024)  # the same sessions are asked for again and again
def _hash(*parts: str, size: int = 8) -> int:
    return int.from_bytes(digest_texts(parts)[:size], "big") & _63_BITS


def check_name(what: str, value: str) -> str:
    """Return a name that a text column of every engine can hold."""
    if "\0" in check_text(what, value):
        raise InvalidCall(f"{what}: a string without NUL", hint="leave the character U+0000 out")
    return value


def session_key(owner: str, session_id: str) -> int:
    """Return the key that leads every row of this session."""
    return _hash(
        check_name("an owner", owner),
        check_name("a session id", session_id),
    )


def share_up_to(session_key: int) -> float:
    """Return about the share of all sessions whose keys are up to this one; keys are spread evenly.

    Sessions are verified and exported in the order of their keys.
    """
    return session_key / _63_BITS


def owner_key(owner: str) -> int:
    """Return the key of what belongs to an owner and to none of its sessions.

    One part where a session has two, so that no session id can name it.
    """
    return _hash(check_name("an owner", owner))


def origin_number(origin_json: str) -> int:
    """Return the number of an origin in its session: 48 bits of its content, never 0.

    Made from the content, so that a number remembered by a process can never come to mean
    another origin, whatever was erased and written since.
    """
    return _hash(origin_json, size=6) or 1


def key_digest(idempotency_key: str) -> str:
    """Return what an idempotency key is known by: 16 bytes of its hash, in hexadecimal.

    Never the key itself: it may contain text of the conversation, and has to outlive an erasure, or
    a late repeat would bring back erased text.
    """
    return digest_texts([idempotency_key])[:16].hex()


_VARIANT = {f"{n:x}": "89ab"[n & 3] for n in range(16)}
"""By a random digit, the digit that names the kind of a UUID."""


def new_id() -> str:
    """Return a UUID of version 7: it sorts by time, and 74 of its bits are random."""
    clock = f"{time.time_ns() // 1_000_000:012x}"
    random = os.urandom(10).hex()
    variant = _VARIANT[random[3]]
    return f"{clock[:8]}-{clock[8:]}-7{random[:3]}-{variant}{random[4:7]}-{random[8:]}"


def now() -> int:
    """Return the time in microseconds since 1970, UTC."""
    return time.time_ns() // 1_000


_LAST = (1 << 62) - 1


@dataclass(slots=True)
class Clock:
    """The source of times and ids: the system's, or a test's."""

    now: Callable[[], int] = now
    new_id: Callable[[], str] = new_id

    def time(self, given: int | None) -> int:
        """Return a time that was given, or else now."""
        moment = self.now() if given is None else given
        if not -_LAST <= moment <= _LAST:
            raise InvalidCall("created_at: out of range")
        return moment
