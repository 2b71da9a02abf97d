"""What is known of a thinking block without reading it.

Of each there is a *mark*: its place among the message's blocks, its tokens, its flags, and
the field that it came in. ``messages.shape`` holds the marks of a message as JSON; what
flags say is said here and nowhere else.

Pure: knows thinking blocks; knows no SQL and no JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from reasoning_store.blocks import ThinkingBlock

Mark: TypeAlias = tuple[int, int, int, str | None]
"""Place, tokens, flags, source field."""
SIGNED, ENCRYPTED, REDACTED, INTERRUPTED, HIDDEN, READABLE = _FLAGS = (1, 2, 4, 8, 16, 32)
OPAQUE = SIGNED | ENCRYPTED | REDACTED
"""The flags of a block that only its maker can read, or take back unchanged."""


def mark(place: int, tokens: int, block: ThinkingBlock) -> Mark:
    """Return the mark of a block."""
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
    return place, tokens, flags, block.source_field


@dataclass(frozen=True, slots=True)
class Shape:
    """What the mark of a thinking block says."""

    place: int
    """Its index among the message's blocks."""
    tokens: int
    source_field: str | None = None
    # In the order of the flags:
    signed: bool = False
    encrypted: bool = False
    redacted: bool = False
    interrupted: bool = False
    hidden: bool = False
    readable: bool = False
    """The thought is not empty."""

    @classmethod
    def of(cls, place: int, tokens: int, flags: int, source_field: str | None) -> Shape:
        """Return what a stored mark says."""
        return cls(place, tokens, source_field, *[bool(flags & flag) for flag in _FLAGS])

    @property
    def opaque(self) -> bool:
        return self.signed or self.encrypted or self.redacted
