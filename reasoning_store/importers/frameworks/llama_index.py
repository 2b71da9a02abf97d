"""LlamaIndex's chat messages, as ``model_dump`` writes them, or the file of a ``SimpleChatStore``.

A message holds blocks, or in older versions a text, and its calls in another field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from reasoning_store.conversation.blocks import Block, MediaBlock, Message, Role
from reasoning_store.importers import content_parts
from reasoning_store.importers.conversation_builder import UNKNOWN_ROLE, ConversationBuilder
from reasoning_store.importers.conversation_readers import read_conversations
from reasoning_store.importers.documents import Entry
from reasoning_store.importers.reply_parts import (
    Part,
    call_part,
    reasoning_part,
    sealed_part,
    text_part,
)
from reasoning_store.importers.source_messages import (
    SourceConversation,
    SourceMessage,
    list_field,
    object_field,
    text_field,
)

_ROLES: Final[Mapping[str, Role]] = {
    "user": "user",
    "assistant": "assistant",
    "chatbot": "assistant",
    "model": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
_SEALS: Final[Mapping[str, str]] = {
    "signature": "anthropic",
    "encrypted_content": "openai",
    "thought_signature": "gemini",
}
"""The field that seals a thought, and the protocol whose form it has."""


def _unpack(entry: Entry) -> Iterator[Entry]:
    """Yield each conversation of a chat store under its key."""
    kept = object_field(entry.value, "store") if isinstance(entry.value, dict) else {}
    if not kept:
        yield entry
    for key, messages in kept.items():
        if isinstance(messages, list):
            yield Entry(line=entry.line, value={"id": key, "messages": messages})


def _read_conversation(one: SourceConversation, into: ConversationBuilder) -> None:
    for placed in one.messages:
        role = _ROLES.get(text_field(placed.value, "role") or "")
        if role == "assistant":
            _read_reply(placed, into)
        elif role == "tool":
            _read_tool_message(placed, into)
        elif role is not None:
            blocks = [block for item in _items(placed.value) for block in _content_blocks(item)]
            into.add(Message(role=role, blocks=tuple(blocks)), placed)
        else:
            into.skip(placed.place, UNKNOWN_ROLE)


read = partial(read_conversations, "llama-index", _read_conversation, unpack=_unpack)


def _items(value: Mapping[str, Any]) -> list[Any]:
    """Return the blocks of a message; of an older one its content is one."""
    found = list_field(value, "blocks")
    return found or [{"block_type": "text", "text": text_field(value, "content") or ""}]


def _content_blocks(item: Any) -> list[Block]:
    """Return the block of one part of a user or a tool; an empty text gives no block."""
    kind = item.get("block_type") if isinstance(item, dict) else None
    if kind == "text":
        return content_parts.read_blocks(text_field(item, "text") or "")
    made = _media(item) if isinstance(item, dict) else None
    return [made] if made is not None else content_parts.read_blocks([item])


def _media(item: Mapping[str, Any]) -> MediaBlock | None:
    """Return a file: its bytes, its address, or the path that it had."""
    kind = text_field(item, "block_type") or ""
    if kind not in ("image", "audio", "video", "document"):
        return None
    data = text_field(item, "data" if kind == "document" else kind)
    url, path = text_field(item, "url"), text_field(item, "path")
    mime = text_field(item, f"{kind}_mimetype")
    mime = mime or ("application/octet-stream" if kind == "document" else f"{kind}/*")
    name = text_field(item, "title")
    if data or url:
        return content_parts.media_at(
            f"data:{mime};base64,{data}" if data else str(url), mime, name
        )
    of: Any = "file" if kind == "document" else kind
    return None if path is None else MediaBlock(kind=of, mime_type=mime, name=name, ref=path)


def _read_tool_message(placed: SourceMessage, into: ConversationBuilder) -> None:
    more = object_field(placed.value, "additional_kwargs")
    blocks = [block for item in _items(placed.value) for block in _content_blocks(item)]
    texts = content_parts.block_texts(blocks)
    plain = len(texts) == len(blocks)
    result = "".join(texts) if plain else list_field(placed.value, "blocks")
    block = into.tool_response(more.get("tool_call_id"), result, name=more.get("name"))
    into.add_tool_responses([block], placed)


def _read_reply(placed: SourceMessage, into: ConversationBuilder) -> None:
    value, parts = placed.value, []
    media: list[MediaBlock] = []
    others: list[Any] = []
    for item in _items(value):
        part = _part(item) if isinstance(item, dict) else None
        medium = _media(item) if isinstance(item, dict) else None
        if part is not None:
            parts.append(part)
        elif medium is not None:
            media.append(medium)
        else:
            others.append(item)
    if not any(part["type"] == "tool_call" for part in parts):
        parts += _calls_of_metadata(object_field(value, "additional_kwargs"))
    into.add_reply_parts(parts, placed, source=value, media=media, others=others)


def _part(item: Mapping[str, Any]) -> Part | None:
    """Return a text, a thought or a call of a model."""
    kind = item.get("block_type")
    if kind == "text":
        return text_part(item.get("text"))
    if kind == "tool_call":
        name, arguments = text_field(item, "tool_name"), item.get("tool_kwargs")
        return call_part(text_field(item, "tool_call_id"), name, arguments)
    if kind != "thinking":
        return None
    about, text = object_field(item, "additional_information"), item.get("content")
    seal = next((name for name in _SEALS if text_field(about, name)), None)
    if seal is None:
        return reasoning_part(text)
    if seal == "thought_signature":
        return sealed_part(text, "gemini", {"thoughtSignature": about[seal]})
    names = ("id", "summary", "content", "encrypted_content", "signature")
    return sealed_part(text, _SEALS[seal], {name: about[name] for name in names if name in about})


def _calls_of_metadata(more: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the calls of an older message, in the form of Chat Completions."""
    for call in list_field(more, "tool_calls"):
        if isinstance(call, dict):
            of = object_field(call, "function")
            yield call_part(text_field(call, "id"), text_field(of, "name"), of.get("arguments"))
