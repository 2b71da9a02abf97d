"""The facts of a message that are stored as bits, so that no text is read for them."""

from __future__ import annotations

from reasoning_store.conversation.blocks import Message
from reasoning_store.conversation.tool_pairs import tool_blocks

HAS_CALL, STARTS_TURN, RECORDED, HAS_RESPONSE = 1, 2, 4, 8
"""It calls a tool or is paused; it is a real user message; its request is stored with it; it
answers a call."""


def flags_of(message: Message, *, is_recorded: bool) -> int:
    """Return the flags of a message."""
    return (
        (HAS_CALL if message.has_call else 0)
        | (STARTS_TURN if message.starts_turn else 0)
        | (RECORDED if is_recorded else 0)
        | (HAS_RESPONSE if any(not one.is_call for one in tool_blocks(message)) else 0)
    )
