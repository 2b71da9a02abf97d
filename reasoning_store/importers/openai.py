"""OpenAI's histories: the messages of Chat Completions and its kin, and items of Responses.

Theory. A request carries messages, a response a choice with one in it; an assistant's message
is therefore read as the one choice of a response, by the same reader and through the same
door as a reply that arrives now, with every field that some host has for reasoning. A list
whose entries have types of the Responses protocol is read by ``openai_items``.

Fields that no one reads are kept in the message's metadata under ``source``.

Knows the roles of Chat Completions. It must not know files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from reasoning_store.importers import openai_items
from reasoning_store.importers.conversation_builder import (
    UNKNOWN_ROLE,
    ConversationBuilder,
    unread_fields,
)
from reasoning_store.importers.conversation_readers import read_conversations
from reasoning_store.importers.source_messages import OF_MESSAGE, SourceConversation, SourceMessage
from reasoning_store.wire import content_parts, contract_lookup
from reasoning_store.wire.event_fields import other_fields

_API: Final = "openai.chat"
_ARRAYS: Final[Mapping[str, tuple[str, ...]]] = {
    "reasoning_details": ("text", "summary", "data", "signature"),
    "thinking_blocks": ("thinking", "data", "signature"),
    "reasoning_items": ("summary", "content", "encrypted_content"),
}
"""Fields that are lists of entries, and what of an entry is reasoning."""
_SEALED: Final[Mapping[str, str]] = {
    "encrypted_content": "reasoning_content",
    "reasoning_opaque": "reasoning_text",
}
"""Each seal, and the string that it seals, if that is there."""
_NESTED: Final = "provider_specific_fields"
_READ: Final = (
    OF_MESSAGE
    | frozenset(
        "role content refusal audio images annotations extra_content function_call tool_calls "
        "usage model finish_reason".split()
    )
    | {_NESTED, *_ARRAYS, *_SEALED}
)


def _read_conversation(one: SourceConversation, into: ConversationBuilder) -> None:
    into.add_system_prompts(one, "instructions", "system")
    every = [*one.messages, *openai_items.output_items(one, one.about.get("output"))]
    if openai_items.are_items([placed.value for placed in every]):
        openai_items.read_items(every, into)
        return
    for placed in every:
        role = placed.value.get("role")
        read = _ROLES.get(role) if isinstance(role, str) else None
        if read is None:
            into.skip(placed.place, UNKNOWN_ROLE)
        else:
            read(placed, into)


read = partial(read_conversations, "openai", _read_conversation)


def _read_prompt(placed: SourceMessage, into: ConversationBuilder) -> None:
    role = placed.value["role"]
    ours = openai_items.ROLES[role]
    read = (*OF_MESSAGE, "content", *(("role",) if role == ours else ()))
    into.add_plain(ours, placed, unread=other_fields(placed.value, read))


def _read_reply(placed: SourceMessage, into: ConversationBuilder) -> None:
    value = placed.value
    usage, reason = value.get("usage"), value.get("finish_reason")
    content = content_parts.without_cache_marks(value.get("content"))
    body = {
        "choices": [{"message": {**value, "content": content}, "finish_reason": reason}],
        "usage": usage if isinstance(usage, dict) else None,
    }
    message = into.read_reply(body, _API, value)
    contract = contract_lookup.find_contract(into.who.provider, into.who.model, _API)
    aliases = contract_lookup.mirrored_fields(contract)
    into.add(
        message,
        placed,
        texts=_visible_texts(value),
        thoughts=_count_thoughts(value, aliases),
        unread=unread_fields(value, (*_READ, *aliases), message),
    )


def _visible_texts(value: Mapping[str, Any]) -> list[str]:
    content, audio = value.get("content"), value.get("audio")
    found = [*content_parts.visible_texts(content), value.get("refusal") or ""]
    found.append((audio.get("transcript") or "") if isinstance(audio, dict) else "")
    return [text for text in found if isinstance(text, str)]


def _count_thoughts(value: Mapping[str, Any], aliases: tuple[str, ...]) -> int:
    """Count the thoughts outside of the text: each entry of a list, each field, each part."""
    nested = value.get(_NESTED)
    value = {**nested, **other_fields(value, ())} if isinstance(nested, dict) else value
    count, listed = 0, False
    for alias in aliases:
        held = value.get(alias)
        if alias in _ARRAYS and isinstance(held, list):
            entries = sum(_is_thought(entry, _ARRAYS[alias]) for entry in held)
            count += min(entries, 1) if listed else entries  # a second list is one copy
            listed = listed or bool(entries)
        elif held:
            count += 1
    count += sum(bool(value.get(seal)) for seal, of in _SEALED.items() if not value.get(of))
    content = value.get("content")
    kinds = ("thinking", "redacted_thinking")
    parted = content if isinstance(content, list) else []
    return count + sum(isinstance(item, dict) and item.get("type") in kinds for item in parted)


def _is_thought(entry: Any, fields: tuple[str, ...]) -> bool:
    return isinstance(entry, dict) and any(entry.get(field) for field in fields)


def _read_tool_response(placed: SourceMessage, into: ConversationBuilder) -> None:
    value = placed.value
    block = into.tool_response(
        value.get("tool_call_id"), value.get("content"), name=value.get("name")
    )
    read = (*OF_MESSAGE, "role", "content", "tool_call_id", "name")
    into.add_tool_responses([block], placed, unread=other_fields(value, read))


_ROLES: Final[Mapping[str, Callable[[SourceMessage, ConversationBuilder], None]]] = {
    **dict.fromkeys(openai_items.ROLES, _read_prompt),
    "assistant": _read_reply,
    "tool": _read_tool_response,
    "function": _read_tool_response,
}
