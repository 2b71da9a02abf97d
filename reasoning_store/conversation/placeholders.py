"""The placeholder of a cleared tool result: one short text in its place.

A cleared message keeps its calls and each response's id, name and ``isError``; a result that is
not longer than the placeholder stays, and so does an approval. Only a view is cleared, never a
stored message.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import (
    Block,
    Message,
    ToolResponseBlock,
)

PLACEHOLDER = "[old tool result cleared]"


def is_clearable(block: ToolResponseBlock, text: str) -> bool:
    """Whether a result, whose text this is, would be cleared."""
    is_decision = isinstance(block.result, Mapping) and "approve" in block.result
    return len(text) > len(PLACEHOLDER) and not is_decision


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
    return isinstance(block, ToolResponseBlock) and is_clearable(block, codec.result_text(block))


def _cleared(block: Block) -> Block:
    if not isinstance(block, ToolResponseBlock) or not _clears(block):
        return block
    # The metadata may repeat the result.
    return replace(block, result=PLACEHOLDER, provider_metadata=None)
