"""LangChain's messages, as ``messages_to_dict``, ``dumpd`` or ``model_dump`` write them.

The content of a reply is a text or a list of blocks: those of the provider, or LangChain's standard
ones. Blocks with a signature or ciphertext are read in their provider's form. ``tool_calls``
repeats the blocks of the content that are calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from reasoning_store import Block, MediaBlock, Message, TextBlock, tool
from reasoning_store.formats import read_blocks, read_medium, read_usage, tool_response
from reasoning_store.importers.conversation_builder import (
    UNKNOWN_ROLE,
    ConversationBuilder,
    check_content,
)
from reasoning_store.importers.conversation_readers import read_conversations
from reasoning_store.importers.reply_forms import KeptReply
from reasoning_store.importers.reply_parts import (
    Part,
    call_part,
    item_part,
    reasoning_item_part,
    reasoning_part,
    sealed_part,
    text_part,
    thinking_block_part,
    thoughts_in_fields,
)
from reasoning_store.importers.source_messages import (
    SourceConversation,
    list_field,
    object_field,
    other_fields,
    text_field,
)
from reasoning_store.results import Role

SIGNATURES: Final = "__gemini_function_call_thought_signatures__"
"""The key under which Gemini's classes keep the signatures of calls."""
_ROLES: Final[Mapping[str, Role]] = {
    "human": "user",
    "user": "user",
    "ai": "assistant",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
_PROVIDERS: Final[Mapping[str, str]] = {
    "bedrock_converse": "aws",
    "google_genai": "google",
    "google_vertexai": "google",
    "mistralai": "mistral",
}
"""The names of providers that are others in LangChain."""
_FORMS: Final[Mapping[str, str]] = {"aws": "bedrock", "google": "gemini"}
"""The forms in which providers sign, where they have another name."""
_CALLS: Final = frozenset(
    {"tool_use", "tool_call", "tool_call_chunk", "function_call", "invalid_tool_call"}
)
_MEDIA: Final = frozenset({"image", "audio", "video", "file"})


def _read_conversation(one: SourceConversation, into: ConversationBuilder) -> None:
    for placed in one.messages:
        kind, data = _message_data(placed.value)
        role = role_of(kind, data)
        source = [data.get(name) for name in ("type", "content", "tool_calls", "tool_call_id")]
        if role == "assistant":
            into.add_kept_reply(read_reply(data), placed, source=source)
        elif role == "tool":
            response = tool_response(
                data.get("tool_call_id"),
                data.get("content"),
                name=data.get("name"),
                is_error=data.get("status") == "error",
            )
            into.add(tool(response), placed, source=source)
        elif role is not None:
            check_content(replace(placed, value=data))
            blocks = read_content(data.get("content"))
            into.add(Message(role=role, blocks=tuple(blocks)), placed, source=source)
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


def role_of(kind: str, data: Mapping[str, Any]) -> Role | None:
    """Return the role of a message of a class or a type."""
    name = kind.removesuffix("Chunk").removesuffix("Message").lower()
    return _ROLES.get((text_field(data, "role") or "").lower() if name == "chat" else name)


def read_content(content: Any) -> list[Block]:
    """Return the blocks of a message that no model gave."""
    if not isinstance(content, list):
        return read_blocks(content)
    return [
        block
        for item in content
        for medium in [_media(item)]
        for block in ([medium] if medium is not None else read_blocks([item]))
    ]


def _media(item: Any) -> MediaBlock | None:
    """Return a medium of LangChain's standard blocks."""
    if not isinstance(item, dict):
        return None
    kind = text_field(item, "type") or ""
    if kind not in _MEDIA or isinstance(item.get("source"), dict):
        return None
    data = text_field(item, "base64") or text_field(item, "data")
    mime = text_field(item, "mime_type") or (
        "application/octet-stream" if kind == "file" else f"{kind}/*"
    )
    return read_medium(mime, data=data, url=text_field(item, "url"))


# Replies


def read_reply(data: Mapping[str, Any]) -> KeptReply:
    """Return the reply of the fields of a message."""
    about, more = object_field(data, "response_metadata"), object_field(data, "additional_kwargs")
    named = text_field(about, "model_provider")
    reply = KeptReply(
        provider=_PROVIDERS.get(named or "", named),
        model=text_field(about, "model_name") or text_field(about, "model"),
        response_id=text_field(about, "id"),
        usage=read_usage(object_field(data, "usage_metadata"), _USAGE),
        finish_reason=next(
            (
                reason
                for name in ("finish_reason", "stop_reason", "done_reason")
                if (reason := text_field(about, name))
            ),
            None,
        ),
    )
    reply.parts += thoughts_in_fields(more)
    calls = list(_calls(data, more))
    content = data.get("content")
    for item in content if isinstance(content, list) else [content]:
        if isinstance(item, str):
            reply.parts.append(text_part(item))
        elif isinstance(item, dict):
            _add_item(item, calls, reply)
    reply.parts += calls
    return reply


def _add_item(item: Mapping[str, Any], calls: list[Part], reply: KeptReply) -> None:
    """Add a block of a content; a call is taken from ``calls``, which repeat it."""
    if item.get("type") == "non_standard":
        item = object_field(item, "value")
    kind = text_field(item, "type")
    if kind in _CALLS:
        id = text_field(item, "call_id") or text_field(item, "id")
        call = next((one for one in calls if id and one["tool_call_id"] == id), None)
        if call is not None:
            calls.remove(call)
        elif id is not None:
            given = next(
                (item[name] for name in ("input", "args", "arguments") if name in item), None
            )
            call = call_part(id, text_field(item, "name"), given)
        if call is not None:
            is_item = "call_id" in item and "id" in item
            if is_item:
                as_it_came = item.get("arguments", call["arguments"])
                own = {"openai": {"id": item["id"]}}
                call = {**call, "arguments": as_it_came, "provider_metadata": own}
            reply.parts.append(call)
    elif kind in ("text", "output_text"):
        reply.parts.append(_text(item))
    elif (thought := _thought(item, reply.provider)) is not None:
        reply.parts.append(thought)
    elif (medium := _media(item)) is not None:
        reply.media.append(medium)
    elif reply.provider == "openai" and text_field(item, "id"):
        reply.parts.append(item_part(other_fields(item, ("index",))))
    else:
        reply.others.append(dict(item))


def _text(item: Mapping[str, Any]) -> Part:
    """Return a text with what its provider wants back."""
    id, extras = text_field(item, "id") or "", object_field(item, "extras")
    names = ("id", "phase") if id.startswith("msg_") else ()
    return text_part(
        item.get("text"),
        openai={name: item[name] for name in names if name in item},
        gemini={"thoughtSignature": seal} if (seal := text_field(extras, "signature")) else {},
        anthropic={"citations": listed} if (listed := list_field(item, "citations")) else {},
    )


def _calls(data: Mapping[str, Any], more: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the calls of a reply; with their arguments as they came, where it has them."""
    came = {
        text_field(call, "id"): object_field(call, "function").get("arguments")
        for call in list_field(more, "tool_calls")
        if isinstance(call, dict)
    }
    seals = object_field(more, SIGNATURES)
    for name in ("tool_calls", "invalid_tool_calls"):
        for call in list_field(data, name):
            if isinstance(call, dict):
                id = text_field(call, "id")
                text = came.get(id)
                seal = text_field(seals, id or "")
                yield call_part(
                    id,
                    text_field(call, "name"),
                    text if isinstance(text, str) else call.get("args"),
                    gemini={"thoughtSignature": seal} if seal else {},
                )


def _thought(item: Mapping[str, Any], provider: str | None) -> Part | None:
    """Return a block of the content that is a thought."""
    kind, extras = item.get("type"), object_field(item, "extras")
    signature = text_field(item, "signature") or text_field(extras, "signature")
    if kind == "redacted_thinking":
        return thinking_block_part(item)
    if kind == "thinking":
        said = item.get("thinking")
        parts = read_blocks(said if isinstance(said, str | list) else None)  # Mistral's is a list
        texts = (part.text for part in parts if isinstance(part, TextBlock))
        return _signed("".join(texts), signature, provider)
    if kind == "reasoning_content":
        inner = object_field(item, "reasoning_content")
        inner = object_field(inner, "reasoning_text") or inner
        return _signed(inner.get("text"), text_field(inner, "signature"), provider)
    if kind != "reasoning":
        return None
    if any(name in item for name in ("summary", "encrypted_content")):
        return reasoning_item_part(item)
    if text_field(extras, "encrypted_content"):
        return reasoning_item_part({**extras, "id": item.get("id")})
    return _signed(item.get("reasoning"), signature, provider)


def _signed(text: Any, signature: str | None, provider: str | None) -> Part:
    if signature is None:
        return reasoning_part(text)
    form = _FORMS.get(provider or "", provider or "anthropic")
    name = "thoughtSignature" if form == "gemini" else "signature"
    return sealed_part(text, form, {name: signature})


_USAGE: Final[Mapping[str, tuple[str, ...]]] = {
    "input": ("input_tokens",),
    "output": ("output_tokens",),
    "reasoning": ("output_token_details.reasoning",),
    "cached": ("input_token_details.cache_read",),
    "cache_write": ("input_token_details.cache_creation",),
}
