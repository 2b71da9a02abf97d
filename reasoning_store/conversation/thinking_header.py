"""The header of a thinking block: what is known of it without reading it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import ThinkingBlock

SIGNED, ENCRYPTED, REDACTED, INTERRUPTED, HIDDEN, READABLE = (1, 2, 4, 8, 16, 32)
OPAQUE = SIGNED | ENCRYPTED | REDACTED
"""The flags of a block that only its maker can read, or take back unchanged."""


class ThinkingHeader(NamedTuple):
    """One thinking block in ``messages.shape``, which holds a JSON list of each."""

    place: int
    """Its index among the blocks of the message."""
    tokens: int
    flags: int
    source_field: str | None

    @classmethod
    def of(cls, place: int, tokens: int, block: ThinkingBlock) -> ThinkingHeader:
        """Return the header of a block."""
        flags = READABLE if block.thought else 0
        if block.signature is not None:
            flags |= SIGNED
        if block.encrypted is not None:
            flags |= ENCRYPTED
        if block.redacted:
            flags |= REDACTED
        if block.interrupted:
            flags |= INTERRUPTED
        if block.is_hidden:
            flags |= HIDDEN
        return cls(place, tokens, flags, block.source_field)

    @property
    def readable(self) -> bool:
        """Whether the thought is not empty."""
        return bool(self.flags & READABLE)

    @property
    def opaque(self) -> bool:
        return bool(self.flags & OPAQUE)


def shape_of(headers: Sequence[ThinkingHeader]) -> str | None:
    """Return the column of a message's headers; None where it has no thinking."""
    return codec.dumps(headers) if headers else None
