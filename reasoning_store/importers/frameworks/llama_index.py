"""LlamaIndex's chat messages, as ``model_dump`` writes them, or the file of a ``SimpleChatStore``.

A message holds blocks, or in older versions a text, and its calls in another field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from reasoning_store import Block, MediaBlock, Message, TextBlock, tool
from reasoning_store.formats import read_blocks, read_medium, tool_response
from reasoning_store.importers.conversation_builder import UNKNOWN_ROLE, ConversationBuilder
from reasoning_store.importers.conversation_readers import read_conversations
from reasoning_store.importers.documents import Entry
from reasoning_store.importers.reply_forms import KeptReply
from reasoning_store.importers.reply_parts import (
    Part,
    call_part,
    reasoning_part,
    sealed_part,
    text_part,
    thoughts_in_fields,
)
from reasoning_store.importers.source_messages import (
    SourceConversation,
    list_field,
    object_field,
    text_field,
)
from reasoning_store.results import Role

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
        value = placed.value
        role = role_of(value)
        if role == "assistant":
            into.add_kept_reply(read_reply(value), placed, source=value)
        elif role == "tool":
            more = object_field(value, "additional_kwargs")
            id, name = more.get("tool_call_id"), more.get("name")
            into.add(tool(tool_response(id, read_result(value), name=name)), placed)
        elif role is not None:
            into.add(Message(role=role, blocks=tuple(read_content(value))), placed)
        else:
            into.skip(placed.place, UNKNOWN_ROLE)


read = partial(read_conversations, "llama-index", _read_conversation, unpack=_unpack)


def role_of(value: Mapping[str, Any]) -> Role | None:
    """Return the role of a message."""
    return _ROLES.get(text_field(value, "role") or "")


def read_content(value: Mapping[str, Any]) -> list[Block]:
    """Return the blocks of a message that no model gave."""
    return [block for item in _items(value) for block in _content_blocks(item)]


def read_result(value: Mapping[str, Any]) -> Any:
    """Return the result of a tool: its text if it is only text, else the blocks as they came."""
    blocks = read_content(value)
    texts = [block.text for block in blocks if isinstance(block, TextBlock)]
    return "".join(texts) if len(texts) == len(blocks) else list_field(value, "blocks")


def _items(value: Mapping[str, Any]) -> list[Any]:
    """Return the blocks of a message; of an older one its content is one."""
    found = list_field(value, "blocks")
    return found or [{"block_type": "text", "text": text_field(value, "content") or ""}]


def _content_blocks(item: Any) -> list[Block]:
    """Return the block of one part of a user or a tool; an empty text gives no block."""
    kind = item.get("block_type") if isinstance(item, dict) else None
    if kind == "text":
        return read_blocks(text_field(item, "text") or "")
    made = _media(item) if isinstance(item, dict) else None
    return [made] if made is not None else read_blocks([item])


def _media(item: Mapping[str, Any]) -> MediaBlock | None:
    """Return a file: its bytes, its address, or the path that it had."""
    kind = text_field(item, "block_type") or ""
    if kind not in ("image", "audio", "video", "document"):
        return None
    data = text_field(item, "data" if kind == "document" else kind)
    url, path = text_field(item, "url"), text_field(item, "path")
    of: Any = "file" if kind == "document" else kind
    mime = text_field(item, f"{kind}_mimetype") or (
        "application/octet-stream" if of == "file" else f"{of}/*"
    )
    name = text_field(item, "title")
    if data or url:
        return read_medium(mime, data=data, url=url, name=name)
    return None if path is None else MediaBlock(kind=of, mime_type=mime, name=name, ref=path)


def read_reply(value: Mapping[str, Any]) -> KeptReply:
    """Return the reply of a message."""
    more = object_field(value, "additional_kwargs")
    reply = KeptReply(parts=[*thoughts_in_fields(more)])
    for item in _items(value):
        part = _part(item) if isinstance(item, dict) else None
        medium = _media(item) if isinstance(item, dict) else None
        if part is not None:
            reply.parts.append(part)
        elif medium is not None:
            reply.media.append(medium)
        else:
            reply.others.append(item)
    named = {part["tool_call_id"] for part in reply.parts if part["type"] == "tool_call"}
    reply.parts += (call for call in _calls_of(more) if call["tool_call_id"] not in named)
    return reply


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


def _calls_of(more: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the calls of an older message, in the form of Chat Completions."""
    for call in list_field(more, "tool_calls"):
        if isinstance(call, dict):
            of = object_field(call, "function")
            yield call_part(text_field(call, "id"), text_field(of, "name"), of.get("arguments"))
