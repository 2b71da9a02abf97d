"""The parts of a reply that was kept, read as a message.

A reply goes through ingress and should come out as if it had arrived from its provider. If
something of it is sealed, or is the provider's own, the parts are written in that provider's form
and read by its reader, so that ciphertext and signatures are in the places of its protocol. Other
replies are read as neutral events: their origin names the model and the provider, and no protocol.

Knows parts and forms; must not know files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from reasoning_store import (
    MediaBlock,
    Message,
    Origin,
    StreamNormalizer,
    ThinkingBlock,
    Usage,
    normalize_response,
)
from reasoning_store.formats import parse_arguments
from reasoning_store.importers.reply_parts import (
    DETAILS,
    AnsweredBy,
    Part,
    is_thought,
    metadata_of,
    provider_metadata,
)
from reasoning_store.importers.source_messages import object_field, other_fields
from reasoning_store.results import Status

_ROUTED: Final = "openrouter/"
_NEUTRAL: Final = "thinking"
"""The field of a thought in a neutral event; no provider sent it there."""


@dataclass(slots=True, kw_only=True)
class KeptReply:
    """A reply as a history keeps it, and what the history says of it."""

    parts: list[Part] = field(default_factory=list)
    media: list[MediaBlock] = field(default_factory=list)
    others: list[Any] = field(default_factory=list)
    """Everything else, as it came."""
    provider: str | None = None
    model: str | None = None
    response_id: str | None = None
    usage: Usage | None = None
    finish_reason: str | None = None
    status: Status = "complete"

    def message(self, who: AnsweredBy) -> Message:
        """Return the message of the reply, without the others."""
        read = read_reply_parts(self.parts, who, model=self.model, provider=self.provider)
        origin = read.origin
        if self.response_id is not None:
            origin = replace(origin or Origin(), response_id=self.response_id)
        return replace(
            read,
            blocks=(*read.blocks, *self.media),
            origin=origin,
            usage=self.usage or read.usage,
            finish_reason=self.finish_reason or read.finish_reason,
            status=read.status if self.status == "complete" else self.status,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """A provider's own form: who it is, its protocol, and how parts are written in it."""

    provider: str | None
    api: str
    body: Callable[[Sequence[Part]], Any]


def read_reply_parts(
    parts: Sequence[Part],
    who: AnsweredBy,
    *,
    model: str | None = None,
    provider: str | None = None,
) -> Message:
    """Return the message of a reply; ``provider`` and ``model`` are those of the history."""
    marks = (
        name
        for part in parts
        for name in provider_metadata(part)
        if name in _FORMS and metadata_of(part, name)
    )
    name = next(marks, None)
    parts = [part for part in parts if not part.get("server_executed") or _hosted_item(part)]
    if name is None:
        return _read_neutral(parts, who.ingress_options(provider=provider, model=model))
    form = _FORMS[name]
    if form is _FORMS["openai"] and model is not None and model.startswith(_ROUTED):
        form = _FORMS["openrouter"]  # its plugin is built upon OpenAI's, names included
    ingress_options = who.ingress_options(provider=form.provider or provider, model=model)
    return normalize_response(
        form.body(parts), api=form.api, starts_inside=False, merge=True, **ingress_options
    )


def _read_neutral(parts: Sequence[Part], options: Mapping[str, Any]) -> Message:
    normalizer = StreamNormalizer(api="thinking_events", starts_inside=False, merge=True, **options)
    for number, part in enumerate(parts):
        for event in _events(part):
            normalizer.feed({**event, "contentIndex": number})
    message = normalizer.finish()
    fields = iter([part.get("source_field") for part in parts if is_thought(part)])
    blocks = tuple(
        replace(block, source_field=next(fields, None))
        if isinstance(block, ThinkingBlock) and block.source_field == _NEUTRAL
        else block
        for block in message.blocks
    )
    origin = None if message.origin is None else replace(message.origin, api=None)
    return replace(message, blocks=blocks, origin=None if origin == Origin() else origin)


def _events(part: Part) -> list[dict[str, Any]]:
    kind, text = part["type"], part.get("text")
    if kind == "reasoning" and (own := provider_metadata(part)):
        return [
            {"type": "reasoning-start", "id": "0", "providerMetadata": dict(own)},
            {"type": "reasoning-delta", "id": "0", "delta": text or ""},
            {"type": "reasoning-end", "id": "0"},
        ]
    if kind == "reasoning" and text:
        return [
            {"type": "thinking_start"},
            {"type": "thinking_delta", "delta": text},
            {"type": "thinking_end"},
        ]
    if kind == "text" and text:
        return [{"type": "text_delta", "delta": text}]
    if kind == "tool_call":
        call = {"id": part.get("tool_call_id") or "", "name": part.get("name") or ""}
        given = part.get("arguments")
        if isinstance(given, str):
            return [
                {"type": "toolcall_start", **call},
                {"type": "toolcall_delta", **call, "delta": given},
                {"type": "toolcall_end", "toolCall": call},
            ]
        whole = {**call, "arguments": given}
        return [{"type": "toolcall_start", **call}, {"type": "toolcall_end", "toolCall": whole}]
    return []


def _arguments(part: Part) -> Any:
    """Return the arguments of a call as a value; a text that is no JSON stays one."""
    given = part.get("arguments")
    return parse_arguments(given, otherwise=given) if isinstance(given, str) else given


# Forms


def _hosted_item(part: Part) -> Mapping[str, Any]:
    """Return the item of a hosted tool that its provider takes back; of another part, nothing."""
    return object_field(metadata_of(part, "openrouter"), "response_item")


def _items(parts: Sequence[Part]) -> dict[str, Any]:
    """Output items of the Responses protocol."""
    items: list[dict[str, Any]] = []
    for part in parts:
        kind, about = part["type"], metadata_of(part, "openai")
        if hosted := _hosted_item(part):
            items.append(dict(hosted))
        elif kind == "item":
            items.append(dict(about))
        elif kind == "reasoning":
            items.append({"type": "reasoning", **_reasoning(part, about)})
        elif kind == "text":
            content = [{"type": "output_text", "text": part.get("text") or ""}]
            items.append(
                {
                    **other_fields(about, ()),
                    "type": "message",
                    "role": "assistant",
                    "content": content,
                }
            )
        elif kind == "tool_call":
            items.append(
                {
                    **other_fields(about, ()),
                    "type": "function_call",
                    "call_id": part.get("tool_call_id"),
                    "name": part.get("name") or "",
                    "arguments": part.get("arguments"),
                }
            )
    return {"output": items}


def _reasoning(part: Part, about: Mapping[str, Any]) -> dict[str, Any]:
    """The text of the part is that of the summary and the content, where the item has them."""
    text = part.get("text")
    if about.get("summary") or not text:
        return {"summary": [], **about}
    return {**about, "summary": [], "content": [{"type": "reasoning_text", "text": text}]}


def _content(parts: Sequence[Part]) -> dict[str, Any]:
    """Content blocks of the Messages protocol."""
    content: list[dict[str, Any]] = []
    for part in parts:
        kind, about = part["type"], metadata_of(part, "anthropic")
        if kind == "reasoning" and about.get("type") == "redacted_thinking":
            content.append({"type": "redacted_thinking", "data": about.get("data") or ""})
        elif kind == "reasoning":
            text = part.get("text") or ""
            seal = {"signature": about["signature"]} if about.get("signature") else {}
            content.append({"type": "thinking", "thinking": text, **seal})
        elif kind == "text":
            content.append({**about, "type": "text", "text": part.get("text") or ""})
        elif kind == "tool_call":
            content.append(
                {
                    "type": "tool_use",
                    "id": part.get("tool_call_id") or "",
                    "name": part.get("name") or "",
                    "input": _arguments(part),
                }
            )
    return {"role": "assistant", "content": content}


def _gemini(parts: Sequence[Part]) -> dict[str, Any]:
    """Parts of generateContent."""
    made: list[dict[str, Any]] = []
    for part in parts:
        kind, about = part["type"], metadata_of(part, "gemini")
        seal = about.get("thoughtSignature")
        sealed = {"thoughtSignature": seal} if isinstance(seal, str) else {}
        if kind == "reasoning":
            made.append({"text": part.get("text") or "", "thought": True, **sealed})
        elif kind == "text":
            made.append({"text": part.get("text") or "", **sealed})
        elif kind == "tool_call":
            call = {"name": part.get("name") or "", "args": _arguments(part) or {}}
            named = {"id": part["tool_call_id"]} if part.get("tool_call_id") else {}
            made.append({"functionCall": {**call, **named}, **sealed})
    return {"candidates": [{"content": {"role": "model", "parts": made}}]}


def _converse(parts: Sequence[Part]) -> dict[str, Any]:
    """Content blocks of Bedrock's Converse."""
    content: list[dict[str, Any]] = []
    for part in parts:
        kind, text = part["type"], part.get("text") or ""
        if kind == "reasoning":
            thought = {**metadata_of(part, "bedrock"), "text": text}
            content.append({"reasoningContent": {"reasoningText": thought}})
        elif kind == "text":
            content.append({"text": text})
        elif kind == "tool_call":
            named = {"toolUseId": part.get("tool_call_id") or "", "name": part.get("name") or ""}
            content.append({"toolUse": {**named, "input": _arguments(part)}})
    return {"output": {"message": {"role": "assistant", "content": content}}}


def _choice(parts: Sequence[Part]) -> dict[str, Any]:
    """A choice of Chat Completions, with the reasoning details that a router adds."""
    details: list[Any] = []
    calls: list[Any] = []
    for part in parts:
        if part["type"] == "reasoning":
            plain = {"type": "reasoning.text", "text": part.get("text")}
            details += metadata_of(part, DETAILS).get("details") or [plain]
        if part["type"] == "tool_call":
            arguments = part.get("arguments")
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            of = {"name": part.get("name") or "", "arguments": text}
            calls.append({"id": part.get("tool_call_id"), "type": "function", "function": of})
    message = {
        "content": "".join(part["text"] for part in parts if part["type"] == "text"),
        "reasoning_details": details,
        "tool_calls": calls or None,
    }
    return {"choices": [{"message": message}]}


_FORMS: Final[Mapping[str, _Form]] = {
    "openai": _Form(provider="openai", api="openai.responses", body=_items),
    "openrouter": _Form(provider="openrouter", api="openai.responses", body=_items),
    "anthropic": _Form(provider="anthropic", api="anthropic.messages", body=_content),
    "gemini": _Form(provider="google", api="gemini.generate_content", body=_gemini),
    "bedrock": _Form(provider="aws", api="bedrock.converse", body=_converse),
    DETAILS: _Form(provider=None, api="openai.chat", body=_choice),
}
