"""A part of a message that no request sends, because a provider refused it."""

from __future__ import annotations

from typing import NamedTuple

from reasoning_store.conversation.blocks import Origin

BLOCK = "block"
SEAL = "seal"


class WithheldPart(NamedTuple):
    """The part of a message that is left out of requests."""

    block: int
    """The index of its block in the message."""
    part: str = BLOCK
    """``block``: all of it; ``seal``: its signature or ciphertext alone; a number: the piece of
    that index in a tool's result."""
    tokens: int = 0
    """The tokens that requests have less. Those of a thought are counted with its message."""
    reason: str = ""
    target: Origin | None = None
    """The only provider, api and address whose requests leave it out; None: every request."""
