"""The turns of a conversation as a provider sees them in a request's messages.

A provider may take a system message for the user's and ignore blank text; both move where a
turn starts, and with which block the model begins it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reasoning_store.conversation.blocks import (
    Block,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTurn:
    """The last turn, as far as reasoning options depend on it."""

    has_calls: bool = False
    has_thoughts: bool = False
    begins_without: bool = False
    """The model's first block in it is no thought."""
    has_bare_calls: bool = False
    """A message of the model's in it has a call and no thought."""
    thoughts_before: bool = False
    """A turn before it carries thoughts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRules:
    """How a provider reads messages as turns."""

    system_is_users: bool = False
    """Whether a system message inside the conversation is sent as the user's."""
    refuses_blank_text: bool = False
    """Whether blank text is refused, and so left out."""

    def starts_turn(self, message: Message) -> bool:
        """Whether a turn starts with a message."""
        return self.system_is_users if message.role == "system" else message.starts_turn

    def sent_blocks(self, message: Message) -> Iterator[Block]:
        """Yield the blocks of a model's message that are sent."""
        for block in message.blocks:
            text = block.text if isinstance(block, TextBlock) else None
            if text is None or text.strip() or (text and not self.refuses_blank_text):
                yield block

    def open_turn(self, messages: Sequence[Message]) -> OpenTurn:
        """Return the last turn of the messages of a request."""
        places = range(len(messages) - 1, -1, -1)
        start = next((place for place in places if self.starts_turn(messages[place])), 0)
        replies = [
            [type(block) for block in self.sent_blocks(message)]
            for message in messages[start:]
            if message.role == "assistant"
        ]
        kinds = [kind for reply in replies for kind in reply]
        return OpenTurn(
            has_calls=ToolCallBlock in kinds,
            has_thoughts=ThinkingBlock in kinds,
            has_bare_calls=any(
                ToolCallBlock in reply and ThinkingBlock not in reply for reply in replies
            ),
            begins_without=bool(kinds) and kinds[0] is not ThinkingBlock,
            thoughts_before=any(
                message.role == "assistant" and message.thinking for message in messages[:start]
            ),
        )
