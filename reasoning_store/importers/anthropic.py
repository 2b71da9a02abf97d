"""Anthropic's histories: the messages of its Messages protocol, and the system prompt.

Theory. An assistant's message has the form of a response's, so it is read as one, by the same
reader and through the same door as a reply that arrives now; thoughts keep their signatures,
redacted ones their data, in their places. A user's message holds results of tools next to the
user's own text; one that holds results alone is a tool's.

Knows the roles of the Messages protocol. It must not know files.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from reasoning_store import Block, Message, ToolResponseBlock
from reasoning_store.importers.conversation_builder import (
    UNKNOWN_ROLE,
    ConversationBuilder,
    refuse_content,
    unread_fields,
)
from reasoning_store.importers.conversation_readers import read_conversations
from reasoning_store.importers.source_messages import (
    OF_MESSAGE,
    SourceConversation,
    SourceMessage,
    text_field,
)
from reasoning_store.wire import content_parts
from reasoning_store.wire.event_fields import other_fields

_API: Final = "anthropic.messages"
_ANSWER: Final = "tool_result"
_READ_OF_ANSWER: Final = ("type", "tool_use_id", "content", "is_error")
_READ: Final = (*OF_MESSAGE, "role", "content")
_READ_OF_REPLY: Final = (*_READ, "type", "id", "model", "stop_reason", "usage")


def _read_conversation(one: SourceConversation, into: ConversationBuilder) -> None:
    into.add_system_prompts(one, "system")
    for placed in one.messages:
        role = placed.value.get("role")
        if role == "assistant":
            read_reply(placed, into)
        elif role == "user":
            read_user_message(placed, into)
        elif role == "system":
            into.add_plain("system", placed, unread=other_fields(placed.value, _READ))
        else:
            into.skip(placed.place, UNKNOWN_ROLE)


read = partial(read_conversations, "anthropic", _read_conversation)


def read_reply(placed: SourceMessage, into: ConversationBuilder, *, source: Any = None) -> None:
    """Add a reply of the Messages protocol; ``source`` is what its key is made of."""
    value = placed.value
    content = value.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}] if content else []
    if not isinstance(content, list):
        refuse_content(placed)
    body = {
        "id": text_field(value, "id"),
        "model": text_field(value, "model"),
        "role": "assistant",
        "content": content_parts.without_cache_marks(content),
        "stop_reason": text_field(value, "stop_reason"),
        "usage": value.get("usage"),
    }
    message = into.read_reply(body, _API, value)
    into.add(
        message,
        placed,
        texts=content_parts.visible_texts(content),
        thoughts=sum(map(_is_thought, content)),
        source=source,
        unread=unread_fields(value, _READ_OF_REPLY, message),
    )


def _is_thought(part: Any) -> bool:
    """EC-002: a thought without text is one where it has a signature."""
    if not isinstance(part, dict):
        return False
    if part.get("type") == "redacted_thinking":
        return bool(part.get("data"))
    return part.get("type") == "thinking" and bool(part.get("thinking") or part.get("signature"))


def read_user_message(
    placed: SourceMessage, into: ConversationBuilder, *, source: Any = None
) -> None:
    """Add a message of a user or a tool; ``source`` is what its key is made of."""
    content = placed.value.get("content")
    listed = content if isinstance(content, list) else [content] if content else []
    made: list[Block] = []
    for part in listed:
        if isinstance(part, dict) and part.get("type") == _ANSWER:
            made.append(_tool_response(part, into))
        else:
            made += into.read_parts([part], placed)
    if not isinstance(content, str | list | None):
        refuse_content(placed)
    answers = made and all(isinstance(block, ToolResponseBlock) for block in made)
    message = Message(role="tool" if answers else "user", blocks=tuple(made))
    unread = other_fields(placed.value, _READ)
    into.add(message, placed, source=source, unread=unread)


def _tool_response(part: Mapping[str, Any], into: ConversationBuilder) -> ToolResponseBlock:
    return into.tool_response(
        part.get("tool_use_id"),
        part.get("content"),
        is_error=part.get("is_error") is True,
        metadata=other_fields(content_parts.without_cache_marks(part), _READ_OF_ANSWER),
    )
