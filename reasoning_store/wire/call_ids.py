"""Ids for tool calls that come without one, or with one that another host refuses.

A call needs an id to be answered, and some protocols send none. An id is a function of its seeds
alone: the same response gets the same ids, whole or streamed, and a call and its response get the
same new id. An id that was made here is left out if the call is sent to a protocol without ids.
"""

from __future__ import annotations

import re
from typing import Final

from reasoning_store.conversation.digests import digest_texts
from reasoning_store.conversation.identity import MADE_HERE

_SHORTEST: Final = 9
"""The length that Mistral demands, of letters and digits."""


def make_call_id(*seeds: object) -> str:
    """Return the id of these seeds, in their order."""
    return MADE_HERE + digest_texts(map(str, seeds), size=12).hex()


def is_made_here(call_id: str) -> bool:
    """Whether an id was made here, so that no provider knows it."""
    return call_id.startswith(MADE_HERE)


def accepted_id(call_id: str, pattern: str | None) -> str:
    """Return an id that matches a host's pattern: this one, or one made of it."""
    if pattern is None or re.fullmatch(pattern, call_id):
        return call_id
    other = make_call_id(call_id)
    digest = other.removeprefix(MADE_HERE)
    candidates = (other, digest, digest[:_SHORTEST])
    return next((item for item in candidates if re.fullmatch(pattern, item)), call_id)
