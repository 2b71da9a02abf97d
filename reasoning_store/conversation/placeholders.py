"""The placeholder of a cleared tool result: one short text in its place.

A cleared message keeps its calls and each response's id, name and ``isError``; a result that is
not longer than the placeholder stays. Only a view is cleared, never a stored message.
"""

from __future__ import annotations

from dataclasses import replace

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import (
    Block,
    Message,
    ToolResponseBlock,
)

PLACEHOLDER = "[old tool result cleared]"


def gains(text: str) -> bool:
    """Whether clearing makes a result shorter."""
    return len(text) > len(PLACEHOLDER)


def has_results(message: Message) -> bool:
    """Whether anything in a message would be cleared."""
    return any(_clears(block) for block in message.blocks)


def is_cleared(message: Message) -> bool:
    """Whether a message is one whose results were cleared."""
    return any(
        isinstance(block, ToolResponseBlock) and block.result == PLACEHOLDER
        for block in message.blocks
    )


def cleared(message: Message) -> Message:
    """Return a message with its results cleared."""
    return replace(message, blocks=tuple([_cleared(block) for block in message.blocks]))


def _clears(block: Block) -> bool:
    return isinstance(block, ToolResponseBlock) and gains(codec.result_text(block))


def _cleared(block: Block) -> Block:
    if not isinstance(block, ToolResponseBlock) or not _clears(block):
        return block
    # The metadata may repeat the result.
    return replace(block, result=PLACEHOLDER, provider_metadata=None)
