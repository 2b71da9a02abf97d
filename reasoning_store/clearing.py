"""What is left of a tool's answer once it is cleared: one short text in its place.

The oldest results of a long conversation are most of it and are asked for least. Cleared,
a message keeps its calls, their answers' ids and names, and whether they failed; of what
was answered nothing goes out. Only a view is cleared: what is stored stays whole.

An answer that is no longer than what would stand in its place stays as it is. What that
frees is counted where messages are counted, with this text, and carried with them.

Pure: it knows blocks and their text. It must not know when anything is cleared.
"""

from __future__ import annotations

from dataclasses import replace

from reasoning_store import codec
from reasoning_store.blocks import Block, Message, ToolResponseBlock

PLACEHOLDER = "[old tool result cleared]"


def gains(text: str) -> bool:
    """Whether an answer gets shorter by being cleared."""
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
    """Return a message as it goes out once its results are cleared."""
    return replace(message, blocks=tuple([_cleared(block) for block in message.blocks]))


def _clears(block: Block) -> bool:
    return isinstance(block, ToolResponseBlock) and gains(codec.result_text(block))


def _cleared(block: Block) -> Block:
    if not isinstance(block, ToolResponseBlock) or not _clears(block):
        return block
    # Whatever stands beside an answer may say it once more.
    return replace(block, result=PLACEHOLDER, provider_metadata=None)
