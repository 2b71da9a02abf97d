"""Anthropic's histories: the messages of its Messages protocol, and the system prompt.

Theory. An assistant's message has the form of a response's, so it is read as one, by the same
reader and through the same door as a reply that arrives now; thoughts keep their signatures,
redacted ones their data, in their places. A user's message holds results of tools next to the
user's own text; one that holds results alone is a tool's.

Knows the roles of the Messages protocol. It must not know files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from reasoning_store.conversation.blocks import (
    Block,
    Message,
    ToolResponseBlock,
)
from reasoning_store.importers import content_parts, history_reader
from reasoning_store.importers.documents import Source
from reasoning_store.importers.history_reader import HistoryReader
from reasoning_store.importers.reply_parts import AnsweredBy
from reasoning_store.importers.source_messages import (
    OF_MESSAGE,
    SourceConversation,
    SourceMessage,
    text_field,
)
from reasoning_store.importers.values import Conversation
from reasoning_store.ingress.normalizer import Tags
from reasoning_store.wire.event_fields import other_fields

FORMAT: Final = "anthropic"
_API: Final = "anthropic.messages"
_ANSWER: Final = "tool_result"
_READ_OF_ANSWER: Final = ("type", "tool_use_id", "content", "is_error")
_READ: Final = (*OF_MESSAGE, "role", "content")
_READ_OF_REPLY: Final = (*_READ, "type", "id", "model", "stop_reason", "usage")


def conversations(
    source: Source,
    *,
    provider: str | None = None,
    model: str | None = None,
    base_url: str | None = None,
    tags: Tags = "always",
    name: str | None = None,
) -> Iterator[Conversation]:
    """Return the conversations of a JSON or JSON lines file, or of its lines.

    ``provider``, ``model`` and ``base_url`` name the model that answered, if the file does not:
    opaque reasoning is sent back to it alone. ``name`` replaces the file's own in the ids of
    conversations that have none.
    """
    who = AnsweredBy(provider=provider, model=model, base_url=base_url, tags=tags)
    return read(source, who, name)


def _read_conversation(one: SourceConversation, reader: HistoryReader) -> None:
    reader.add_system_prompts(one, "system")
    for placed in one.messages:
        role = placed.value.get("role")
        if role == "assistant":
            read_reply(placed, reader)
        elif role == "user":
            read_user_message(placed, reader)
        elif role == "system":
            reader.add_plain("system", placed, unread=other_fields(placed.value, _READ))
        else:
            reader.into.skip(placed.place, history_reader.UNKNOWN_ROLE)


read = partial(history_reader.read_conversations, FORMAT, _read_conversation)


def read_reply(placed: SourceMessage, reader: HistoryReader, *, source: Any = None) -> None:
    """Add a reply of the Messages protocol; ``source`` is what its key is made of."""
    value = placed.value
    content = value.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}] if content else []
    if not isinstance(content, list):
        history_reader.refuse_content(placed)
    body = {
        "id": text_field(value, "id"),
        "model": text_field(value, "model"),
        "role": "assistant",
        "content": [
            content_parts.without_cache_marks(part) if isinstance(part, dict) else part
            for part in content
        ],
        "stop_reason": text_field(value, "stop_reason"),
        "usage": value.get("usage"),
    }
    message = reader.read_reply(body, _API, value)
    reader.add(
        message,
        placed,
        texts=content_parts.visible_texts(content),
        thoughts=sum(map(_is_thought, content)),
        source=source,
        unread=history_reader.unread_fields(value, _READ_OF_REPLY, message),
    )


def _is_thought(part: Any) -> bool:
    """EC-002: a thought without text is one where it has a signature."""
    if not isinstance(part, dict):
        return False
    if part.get("type") == "redacted_thinking":
        return bool(part.get("data"))
    return part.get("type") == "thinking" and bool(part.get("thinking") or part.get("signature"))


def read_user_message(placed: SourceMessage, reader: HistoryReader, *, source: Any = None) -> None:
    """Add a message of a user or a tool; ``source`` is what its key is made of."""
    content = placed.value.get("content")
    listed = content if isinstance(content, list) else [content] if content else []
    made: list[Block] = []
    texts: list[str] = []
    for part in listed:
        if isinstance(part, dict) and part.get("type") == _ANSWER:
            made.append(answer := _tool_response(part, placed, reader))
            if isinstance(answer.result, str):
                texts += content_parts.visible_texts(part.get("content"))
        else:
            made += reader.read_parts([part], placed)
            texts += content_parts.visible_texts([part])
    if not isinstance(content, str | list | None):
        history_reader.refuse_content(placed)
    answers = made and all(isinstance(block, ToolResponseBlock) for block in made)
    message = Message(role="tool" if answers else "user", blocks=tuple(made))
    unread = other_fields(placed.value, _READ)
    reader.add(message, placed, texts=texts, source=source, unread=unread)


def _tool_response(
    part: Mapping[str, Any], placed: SourceMessage, reader: HistoryReader
) -> ToolResponseBlock:
    return reader.tool_response(
        placed,
        part.get("tool_use_id"),
        part.get("content"),
        is_error=part.get("is_error") is True,
        metadata=other_fields(content_parts.without_cache_marks(part), _READ_OF_ANSWER),
    )
