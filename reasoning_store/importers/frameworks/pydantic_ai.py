"""Pydantic AI's messages, as ``ModelMessagesTypeAdapter`` dumps them: requests and responses.

A request may hold a system prompt, the user's parts and results of tools; each is a message here.
Instructions are not stored: they belong to one request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any, Final

from reasoning_store import Block, MediaBlock, Message
from reasoning_store.formats import read_blocks, read_medium, read_usage, tool_response
from reasoning_store.importers.conversation_builder import ConversationBuilder
from reasoning_store.importers.conversation_readers import read_conversations
from reasoning_store.importers.reply_forms import KeptReply
from reasoning_store.importers.reply_parts import (
    Part,
    add_reasoning_item,
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
from reasoning_store.results import Role

_UNKNOWN_KIND: Final = "it is neither a request nor a response"
_PROVIDERS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("google-gla", "google-vertex", "google-cloud"), "google"),
    "bedrock": "aws",
}
"""The names of providers that are others in Pydantic AI."""
_ANSWERS: Final = ("tool-return", "retry-prompt")
_NOT_DONE: Final = ("failed", "denied", "interrupted", "retried")
"""The outcomes of a call that are errors."""
_FIELDS: Final = frozenset({"reasoning_content", "reasoning", "reasoning_details", "thinking"})
"""The ids of thoughts that name the field they came in."""


def _read_conversation(one: SourceConversation, into: ConversationBuilder) -> None:
    for placed in one.messages:
        value, kind = placed.value, placed.value.get("kind")
        if kind == "request":
            _read_request(placed, into)
        elif kind == "response":
            at = replace(placed, value={"timestamp": value.get("timestamp")})
            into.add_kept_reply(read_response(value), at, source=parts_of(value))
        else:
            into.skip(placed.place, _UNKNOWN_KIND)


read = partial(read_conversations, "pydantic-ai", _read_conversation)


def parts_of(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the parts of a message that can be read."""
    return [part for part in list_field(message, "parts") if isinstance(part, dict)]


def _role(part: Mapping[str, Any]) -> Role:
    kind = part.get("part_kind")
    if kind in _ANSWERS and (kind == "tool-return" or text_field(part, "tool_name")):
        return "tool"
    return "system" if kind == "system-prompt" else "user"


def _read_request(placed: SourceMessage, into: ConversationBuilder) -> None:
    for role, found in groupby(parts_of(placed.value), _role):
        parts = list(found)
        stated = next((at for part in parts if (at := text_field(part, "timestamp"))), None)
        made = replace(placed, value={"timestamp": stated or placed.value.get("timestamp")})
        blocks: list[Block] = []
        for part in parts:
            content = part.get("content")
            if role == "tool":
                response = tool_response(
                    part.get("tool_call_id"),
                    content,
                    name=part.get("tool_name"),
                    is_error=is_error(part),
                )
                blocks.append(response)
            else:
                blocks += read_content(content)
        into.add(Message(role=role, blocks=tuple(blocks)), made, source=parts)


def is_error(part: Mapping[str, Any]) -> bool:
    """Whether an answer says that its call failed."""
    return part.get("part_kind") == "retry-prompt" or part.get("outcome") in _NOT_DONE


def read_content(content: Any) -> list[Block]:
    """Return the blocks of a part of a user: texts, files, and other things as they came."""
    items = content if isinstance(content, list) else [] if content is None else [content]
    return [block for item in items for block in _content_blocks(item)]


def _content_blocks(item: Any) -> list[Block]:
    if isinstance(item, dict):
        kind, mime = text_field(item, "kind") or "", text_field(item, "media_type") or ""
        if kind == "text-content":
            return read_blocks(text_field(item, "content"))
        data = text_field(item, "data") if kind == "binary" else None
        made = read_medium(mime, data=data, url=text_field(item, "url"))
        if mime and made is not None:
            return [made]
        item = {"type": kind, **item}
    return read_blocks([item])


def read_response(value: Mapping[str, Any]) -> KeptReply:
    """Return the reply of a response."""
    named = text_field(value, "provider_name")
    # A count that is zero was not reported.
    reported = {name: n for name, n in object_field(value, "usage").items() if n != 0}
    reply = KeptReply(
        provider=_PROVIDERS.get(named or "", named),
        model=text_field(value, "model_name"),
        response_id=text_field(value, "provider_response_id"),
        usage=read_usage(reported, _USAGE),
        finish_reason=text_field(value, "finish_reason"),
        status="interrupted" if value.get("state") == "interrupted" else "complete",
    )
    for part in parts_of(value):
        kind, own = part.get("part_kind"), _own_data(part, reply.provider)
        if kind == "thinking":
            made_by = text_field(part, "provider_name") or named
            _add_thought(part, _PROVIDERS.get(made_by or "", made_by), reply.parts)
        elif kind == "text":
            reply.parts.append(text_part(part.get("content"), **own))
        elif kind == "tool-call":
            id, name = text_field(part, "tool_call_id"), text_field(part, "tool_name")
            reply.parts.append(call_part(id, name, part.get("args"), **own))
        elif kind == "file":
            blocks = read_content(object_field(part, "content"))
            reply.media += [block for block in blocks if isinstance(block, MediaBlock)]
        else:
            reply.others.append(part)
    return reply


def _add_thought(part: Mapping[str, Any], provider: str | None, parts: list[Part]) -> None:
    """Add a thought; its signature is where its provider has it."""
    text, id = text_field(part, "content") or "", text_field(part, "id") or ""
    signature = text_field(part, "signature")
    if id.startswith("rs_") or (provider in ("openai", "azure") and signature):
        raw = list_field(object_field(part, "provider_details"), "raw_content")
        item = {
            "id": id or None,
            "encrypted_content": signature,
            "summary": [{"type": "summary_text", "text": text}] if text else [],
            "content": [{"type": "reasoning_text", "text": one} for one in raw] or None,
        }
        add_reasoning_item(parts, item)
    elif signature is None:
        parts.append(reasoning_part(text, id if id in _FIELDS else None))
    elif id == "redacted_thinking":
        parts.append(sealed_part("", "anthropic", {"type": id, "data": signature}))
    elif provider == "google":
        parts.append(sealed_part(text, "gemini", {"thoughtSignature": signature}))
    else:
        form = "bedrock" if provider == "aws" else provider or "anthropic"
        parts.append(sealed_part(text, form, {"signature": signature}))


def _own_data(part: Mapping[str, Any], provider: str | None) -> dict[str, dict[str, str]]:
    """Return the data of a text or a call that its provider wants back: Google seals them, too."""
    seal = text_field(object_field(part, "provider_details"), "thought_signature")
    if provider == "google" and seal:
        return {"gemini": {"thoughtSignature": seal}}
    id = text_field(part, "id") or ""
    return {"openai": {"id": id}} if id.startswith(("msg_", "fc_")) else {}


_USAGE: Final[Mapping[str, tuple[str, ...]]] = {
    "input": ("input_tokens",),
    "output": ("output_tokens",),
    "cached": ("cache_read_tokens",),
    "cache_write": ("cache_write_tokens",),
    "reasoning": ("output_reasoning_tokens", "details.reasoning_tokens"),
}
