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

from reasoning_store.conversation.blocks import Block, MediaBlock, Message, Role, Usage
from reasoning_store.importers import content_parts
from reasoning_store.importers.conversation_builder import ConversationBuilder
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

_UNKNOWN_KIND: Final = "it is neither a request nor a response"
_GOOGLE: Final = ("google", "google-gla", "google-vertex", "google-cloud")
_ANSWERS: Final = ("tool-return", "retry-prompt")


def _read_conversation(one: SourceConversation, into: ConversationBuilder) -> None:
    for placed in one.messages:
        kind = placed.value.get("kind")
        if kind == "request":
            _read_request(placed, into)
        elif kind == "response":
            _read_response(placed, into)
        else:
            into.skip(placed.place, _UNKNOWN_KIND)


read = partial(read_conversations, "pydantic-ai", _read_conversation)


def _parts(placed: SourceMessage) -> list[Mapping[str, Any]]:
    return [part for part in list_field(placed.value, "parts") if isinstance(part, dict)]


def _role(part: Mapping[str, Any]) -> Role:
    kind = part.get("part_kind")
    if kind in _ANSWERS and (kind == "tool-return" or text_field(part, "tool_name")):
        return "tool"
    return "system" if kind == "system-prompt" else "user"


def _read_request(placed: SourceMessage, into: ConversationBuilder) -> None:
    for role, found in groupby(_parts(placed), _role):
        parts = list(found)
        stated = next((at for part in parts if (at := text_field(part, "timestamp"))), None)
        value = {"timestamp": stated or placed.value.get("timestamp")}
        made = replace(placed, value=value)
        blocks: list[Block] = []
        for part in parts:
            content = part.get("content")
            if role == "tool":
                response = into.tool_response(
                    part.get("tool_call_id"),
                    content,
                    name=part.get("tool_name"),
                    is_error=part.get("part_kind") == "retry-prompt"
                    or part.get("outcome") in ("failed", "denied", "retried"),
                )
                blocks.append(response)
            else:
                blocks += [block for item in _items(content) for block in _content_blocks(item)]
        into.add(Message(role=role, blocks=tuple(blocks)), made, source=parts)


def _items(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [] if content is None else [content]


def _content_blocks(item: Any) -> list[Block]:
    """Return the blocks of a user's part: a text, a file, or something else as it came."""
    if isinstance(item, dict):
        kind, mime = text_field(item, "kind") or "", text_field(item, "media_type") or ""
        if kind == "binary":
            url = f"data:{mime};base64,{text_field(item, 'data') or ''}"
        else:
            url = text_field(item, "url") or ""
        made = content_parts.media_at(url, mime) if mime and url else None
        if made is not None:
            return [made]
        item = {"type": kind, **item}
    return content_parts.read_blocks([item])


def _read_response(placed: SourceMessage, into: ConversationBuilder) -> None:
    value = placed.value
    named = text_field(value, "provider_name")
    into.provider = "google" if named in _GOOGLE else named
    parts: list[Part] = []
    media: list[MediaBlock] = []
    others: list[Any] = []
    for part in _parts(placed):
        kind = part.get("part_kind")
        if kind == "thinking":
            parts.append(_thought(part, text_field(part, "provider_name") or named))
        elif kind == "text":
            parts.append(_with_data(text_part(part.get("content")), part, named))
        elif kind == "tool-call":
            call = call_part(
                text_field(part, "tool_call_id"), text_field(part, "tool_name"), part.get("args")
            )
            parts.append(_with_data(call, part, named))
        elif kind == "file":
            media += [
                block
                for block in _content_blocks(object_field(part, "content"))
                if isinstance(block, MediaBlock)
            ]
        else:
            others.append(part)
    into.add_reply_parts(
        parts,
        replace(
            placed,
            value={"timestamp": value.get("timestamp"), "model": value.get("model_name")},
        ),
        source=_parts(placed),
        media=media,
        usage=_usage(object_field(value, "usage")),
        finish_reason=text_field(value, "finish_reason"),
        status="interrupted" if value.get("state") == "interrupted" else "complete",
        others=others,
    )


def _thought(part: Mapping[str, Any], provider: str | None) -> Part:
    """Return a thought; its signature is where its provider has it."""
    text, id = part.get("content"), text_field(part, "id")
    signature = text_field(part, "signature")
    if provider == "openai" and (signature or (id or "").startswith("rs_")):
        summary = [{"type": "summary_text", "text": text}] if isinstance(text, str) and text else []
        seal = {"id": id, "encrypted_content": signature, "summary": summary}
        return sealed_part(text, "openai", seal)
    if provider in _GOOGLE:
        return _with_data(reasoning_part(text), part, provider)
    if signature is None:
        return reasoning_part(text)
    if id == "redacted_thinking":
        return sealed_part("", "anthropic", {"type": "redacted_thinking", "data": signature})
    return sealed_part(text, provider or "anthropic", {"signature": signature})


def _with_data(made: Part, part: Mapping[str, Any], provider: str | None) -> Part:
    """Return a part with the data of its provider: Google seals a text or a call, too."""
    details = object_field(part, "provider_details")
    seal = text_field(details, "thought_signature") or (
        text_field(part, "signature") if made["type"] == "reasoning" else None
    )
    if provider in _GOOGLE and seal:
        return {**made, "provider_metadata": {"gemini": {"thoughtSignature": seal}}}
    id = text_field(part, "id")
    if provider == "openai" and id and id.startswith(("msg_", "fc_")):
        return {**made, "provider_metadata": {"openai": {"id": id}}}
    return made


_COUNTS: Final[Mapping[str, str]] = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cached": "cache_read_tokens",
    "cache_write": "cache_write_tokens",
}


def _usage(reported: Mapping[str, Any]) -> Usage | None:
    counts = {name: whole_number(reported.get(field)) for name, field in _COUNTS.items()}
    if not any(counts.values()):
        return None
    details = object_field(reported, "details")
    reasoning = whole_number(reported.get("output_reasoning_tokens")) or whole_number(
        details.get("reasoning_tokens")
    )
    return Usage(**counts, reasoning=reasoning, raw=reported)
