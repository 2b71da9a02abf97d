"""The texts that replace others: the placeholder of a cleared tool result, a summary's frame.

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
    TextBlock,
    ToolResponseBlock,
)

PLACEHOLDER = "[old tool result cleared]"
SUMMARY_FRAME = "Summary of the conversation so far:\n\n"
"""The text that is sent with a summary, so that a model does not take it for a user's words."""


def framed_summary(message: Message) -> Message:
    """Return a summary in its frame; one that has it already stays as it is."""
    first = message.blocks[0] if message.blocks else None
    if not isinstance(first, TextBlock):
        return replace(message, blocks=(TextBlock(text=SUMMARY_FRAME), *message.blocks))
    if first.text.startswith(SUMMARY_FRAME):
        return message
    framed = replace(first, text=SUMMARY_FRAME + first.text)
    return replace(message, blocks=(framed, *message.blocks[1:]))


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
