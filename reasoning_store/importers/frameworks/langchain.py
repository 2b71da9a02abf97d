"""LangChain's messages, as ``messages_to_dict``, ``dumpd`` or ``model_dump`` write them.

The content of a reply is a text or a list of blocks: those of the provider, or LangChain's standard
ones. Blocks with a signature or ciphertext are read in their provider's form. Calls are those of
``tool_calls``, which repeats the blocks of the content that are calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from reasoning_store.conversation.blocks import Block, MediaBlock, Message, Role, Usage
from reasoning_store.importers import content_parts
from reasoning_store.importers.conversation_builder import UNKNOWN_ROLE, ConversationBuilder
from reasoning_store.importers.conversation_readers import read_conversations
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
from reasoning_store.wire.event_fields import whole_number

_ROLES: Final[Mapping[str, Role]] = {
    "human": "user",
    "user": "user",
    "HumanMessage": "user",
    "ai": "assistant",
    "assistant": "assistant",
    "AIMessage": "assistant",
    "AIMessageChunk": "assistant",
    "system": "system",
    "developer": "system",
    "SystemMessage": "system",
    "tool": "tool",
    "function": "tool",
    "ToolMessage": "tool",
    "FunctionMessage": "tool",
}
_PROVIDERS: Final[Mapping[str, str]] = {"google_genai": "google", "google_vertexai": "google"}
_CALLS: Final = frozenset(
    {"tool_use", "tool_call", "tool_call_chunk", "function_call", "invalid_tool_call"}
)
_MEDIA: Final = frozenset({"image", "audio", "video", "file"})


def _read_conversation(one: SourceConversation, into: ConversationBuilder) -> None:
    for placed in one.messages:
        kind, data = _message_data(placed.value)
        if kind in ("chat", "ChatMessage"):
            kind = text_field(data, "role") or ""
        role = _ROLES.get(kind)
        if role == "assistant":
            _read_reply(data, placed, into)
        elif role == "tool":
            _read_tool_message(data, placed, into)
        elif role is not None:
            _read_plain(role, data, placed, into)
        else:
            into.skip(placed.place, UNKNOWN_ROLE)


read = partial(read_conversations, "langchain", _read_conversation)


def _message_data(value: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the type of a message and its fields, however it was dumped."""
    if data := object_field(value, "kwargs"):
        path = list_field(value, "id")
        named = path[-1] if path and isinstance(path[-1], str) else ""
        return text_field(data, "type") or named, data
    return text_field(value, "type") or "", object_field(value, "data") or value


def _read_plain(
    role: Role, data: Mapping[str, Any], placed: SourceMessage, into: ConversationBuilder
) -> None:
    content = data.get("content")
    if isinstance(content, list):
        read = [_media(item) or content_parts.read_block(item) for item in content]
        blocks: list[Block] = [block for block in read if block is not None]
    else:
        blocks = into.read_parts(content, placed)
    into.add(Message(role=role, blocks=tuple(blocks)), placed, source=_source(data))


def _source(data: Mapping[str, Any]) -> list[Any]:
    return [data.get(name) for name in ("type", "content", "tool_calls", "tool_call_id")]


def _media(item: Any) -> MediaBlock | None:
    """Return a medium of LangChain's standard blocks."""
    if not isinstance(item, dict):
        return None
    kind, mime = text_field(item, "type") or "", text_field(item, "mime_type") or ""
    if kind not in _MEDIA or isinstance(item.get("source"), dict):
        return None
    data = text_field(item, "base64") or text_field(item, "data")
    mime = mime or ("application/octet-stream" if kind == "file" else f"{kind}/*")
    url = f"data:{mime};base64,{data}" if data else text_field(item, "url")
    return content_parts.media_at(url, mime) if url else None


def _read_tool_message(
    data: Mapping[str, Any], placed: SourceMessage, into: ConversationBuilder
) -> None:
    block = into.tool_response(
        data.get("tool_call_id"),
        data.get("content"),
        name=data.get("name"),
        is_error=data.get("status") == "error",
    )
    into.add_tool_responses([block], placed, source=_source(data))


def _read_reply(data: Mapping[str, Any], placed: SourceMessage, into: ConversationBuilder) -> None:
    about, more = object_field(data, "response_metadata"), object_field(data, "additional_kwargs")
    named = text_field(about, "model_provider")
    into.provider = _PROVIDERS.get(named or "", named)
    parts: list[Part] = list(_thoughts_of_metadata(more))
    media: list[MediaBlock] = []
    others: list[Any] = []
    content = data.get("content")
    for item in content if isinstance(content, list) else [content]:
        if isinstance(item, str):
            parts.append(text_part(item))
        elif isinstance(item, dict) and (kind := text_field(item, "type")) not in _CALLS:
            if kind == "text":
                parts.append(text_part(item.get("text")))
            elif (thought := _thought(item, named)) is not None:
                parts.append(thought)
            elif (medium := _media(item)) is not None:
                media.append(medium)
            else:
                others.append(item)
    parts += [
        call_part(text_field(call, "id"), text_field(call, "name"), call.get("args"))
        for name in ("tool_calls", "invalid_tool_calls")
        for call in list_field(data, name)
        if isinstance(call, dict)
    ]
    model = text_field(about, "model_name") or text_field(about, "model")
    into.add_reply_parts(
        parts,
        replace(placed, value={"model": model}),
        source=_source(data),
        media=media,
        usage=_usage(object_field(data, "usage_metadata")),
        finish_reason=text_field(about, "finish_reason") or text_field(about, "stop_reason"),
        others=others,
    )


def _thoughts_of_metadata(more: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the reasoning of the fields other than the content."""
    for name in ("reasoning_content", "reasoning"):
        if text := text_field(more, name):
            yield reasoning_part(text, name)
            return
    if item := object_field(more, "reasoning"):
        yield _item(item)


def _item(item: Mapping[str, Any]) -> Part:
    """Return a reasoning item of the Responses protocol."""
    names = ("id", "summary", "content", "encrypted_content")
    about = {name: item[name] for name in names if item.get(name) is not None}
    parts = [one for one in list_field(item, "summary") if isinstance(one, dict)]
    text = "\n\n".join(text_field(one, "text") or "" for one in parts)
    return sealed_part(text, "openai", about)


def _thought(item: Mapping[str, Any], provider: str | None) -> Part | None:
    """Return a block of the content that is a thought."""
    kind, extras = item.get("type"), object_field(item, "extras")
    if kind == "redacted_thinking":
        return sealed_part("", "anthropic", {"type": kind, "data": item.get("data")})
    if kind == "thinking":
        return _signed(item.get("thinking"), text_field(item, "signature"), provider)
    if kind == "reasoning_content":
        inner = object_field(item, "reasoning_content")
        return _signed(inner.get("text"), text_field(inner, "signature"), provider)
    if kind != "reasoning":
        return None
    if any(name in item for name in ("summary", "encrypted_content")):
        return _item(item)
    if text_field(extras, "encrypted_content"):
        return _item({**extras, "id": item.get("id")})
    signature = text_field(extras, "signature") or text_field(item, "signature")
    return _signed(item.get("reasoning"), signature, provider)


def _signed(text: Any, signature: str | None, provider: str | None) -> Part:
    if signature is None:
        return reasoning_part(text)
    of = _PROVIDERS.get(provider or "", provider)
    if of == "google":
        return sealed_part(text, "gemini", {"thoughtSignature": signature})
    return sealed_part(text, of or "anthropic", {"signature": signature})


def _usage(reported: Mapping[str, Any]) -> Usage | None:
    given = object_field(reported, "input_token_details")
    made = object_field(reported, "output_token_details")
    counts = {
        "input": whole_number(reported.get("input_tokens")),
        "output": whole_number(reported.get("output_tokens")),
        "reasoning": whole_number(made.get("reasoning")),
        "cached": whole_number(given.get("cache_read")),
        "cache_write": whole_number(given.get("cache_creation")),
    }
    return Usage(**counts, raw=reported) if any(counts.values()) else None
