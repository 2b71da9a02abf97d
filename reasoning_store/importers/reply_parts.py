"""Replies that were kept as parts: thoughts, texts and calls, one after the other.

A reply goes through ingress and should come out as if it had arrived from its provider. If
something of it is sealed, or is the provider's own (``provider_metadata``, under the provider's
name), the parts are written in that provider's form and read by its reader, so that ciphertext and
signatures are in the places of its protocol. Other replies are read as neutral events: their origin
names the model, and a protocol only if the provider is known.

Knows parts and forms; must not know files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from reasoning_store.conversation.blocks import Message, Origin, ThinkingBlock
from reasoning_store.ingress.normalizer import StreamNormalizer, Tags, normalize_response
from reasoning_store.wire.event_fields import other_fields

_ROUTED: Final = "openrouter/"
_NEUTRAL: Final = "thinking"
"""The field of a thought in a neutral event; no provider sent it there."""

Part: TypeAlias = dict[str, Any]
"""``type`` is reasoning or text, with ``text``; tool_call, with ``tool_call_id``, ``name`` and
``arguments``; or tool_result, which ends the reply. Another type is left out."""


def reasoning_part(text: Any, field: str | None = None) -> Part:
    """Return a thought; ``field`` is the one in which its provider sent it."""
    said = text if isinstance(text, str) else ""
    return {"type": "reasoning", "text": said, "source_field": field}


def text_part(text: Any) -> Part:
    return {"type": "text", "text": text if isinstance(text, str) else ""}


def sealed_part(text: Any, provider: str, seal: Mapping[str, Any]) -> Part:
    """Return a thought with the data that its provider wants back."""
    return {**reasoning_part(text), "provider_metadata": {provider: dict(seal)}}


def call_part(id: str | None, name: str | None, arguments: Any) -> Part:
    """Return a call; ``arguments`` are an object, or its JSON."""
    return {"type": "tool_call", "tool_call_id": id, "name": name, "arguments": arguments}


def result_part(id: str | None, name: str | None, result: Any, *, is_error: bool = False) -> Part:
    """Return what a tool answered, as a part between those of its reply."""
    about = {"tool_call_id": id, "name": name, "output": result, "is_error": is_error}
    return {"type": "tool_result", **about}


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredBy:
    """The model that answered, as far as the caller knows, and the rule for inline delimiters."""

    provider: str | None = None
    model: str | None = None
    base_url: str | None = None
    tags: Tags = "always"

    def ingress_options(
        self, *, provider: str | None = None, model: str | None = None
    ) -> dict[str, Any]:
        """Return the keywords with which ingress reads a reply of a history.

        ``provider`` and ``model`` are those that the history names.
        """
        return {
            "provider": self.provider or provider,
            "model": self.model or model,
            "base_url": self.base_url,
            "tags": self.tags,
            "starts_inside": False,  # kept text is an answer, whatever opened it once
            "merge": True,  # a history keeps each thought that is no copy of another
        }


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
    spoken = [part for part in parts if not part.get("server_executed")]
    if name is None:
        return _read_neutral(spoken, who.ingress_options(provider=provider, model=model))
    form = _FORMS[name]
    if form is _FORMS["openai"] and model is not None and model.startswith(_ROUTED):
        form = _FORMS["openrouter"]  # its plugin is built upon OpenAI's, names included
    ingress_options = who.ingress_options(provider=form.provider or provider, model=model)
    return normalize_response(form.body(parts), api=form.api, **ingress_options)


def _read_neutral(parts: Sequence[Part], options: Mapping[str, Any]) -> Message:
    normalizer = StreamNormalizer(api="thinking_events", **options)
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
    message = replace(message, blocks=blocks)
    if options.get("provider") or options.get("base_url"):
        return message
    model = options.get("model")
    return replace(message, origin=Origin(model=model) if model else None)


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
        call = {
            "id": part.get("tool_call_id") or "",
            "name": part.get("name") or "",
            "arguments": part.get("arguments"),
        }
        return [{"type": "toolcall_start", **call}, {"type": "toolcall_end", "toolCall": call}]
    return []


def is_thought(part: Part) -> bool:
    """Whether a part holds reasoning, and not only the note that there was some."""
    if part["type"] != "reasoning":
        return False
    about = [value for value in provider_metadata(part).values() if isinstance(value, dict)]
    sealed = ("signature", "thoughtSignature", "encrypted_content", "data", "details")
    return bool(part.get("text")) or any(known.get(name) for known in about for name in sealed)


def provider_metadata(part: Part) -> Mapping[str, Any]:
    about = part.get("provider_metadata")
    return about if isinstance(about, dict) else {}


def metadata_of(part: Part, provider: str) -> Mapping[str, Any]:
    about = provider_metadata(part).get(provider)
    return about if isinstance(about, dict) else {}


# Forms


def _items(parts: Sequence[Part]) -> dict[str, Any]:
    """Output items of the Responses protocol."""
    items: list[dict[str, Any]] = []
    for part in parts:
        kind, about = part["type"], metadata_of(part, "openai")
        hosted = metadata_of(part, "openrouter").get("response_item")
        if isinstance(hosted, dict):
            items.append(hosted)
        elif part.get("server_executed"):
            continue
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
        if part.get("server_executed"):
            continue
        if kind == "reasoning" and about.get("type") == "redacted_thinking":
            content.append({"type": "redacted_thinking", "data": about.get("data") or ""})
        elif kind == "reasoning":
            text = part.get("text") or ""
            seal = {"signature": about["signature"]} if about.get("signature") else {}
            content.append({"type": "thinking", "thinking": text, **seal})
        elif kind == "text":
            content.append({"type": "text", "text": part.get("text") or ""})
        elif kind == "tool_call":
            content.append(
                {
                    "type": "tool_use",
                    "id": part.get("tool_call_id") or "",
                    "name": part.get("name") or "",
                    "input": part.get("arguments"),
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
        if part.get("server_executed"):
            continue
        if kind == "reasoning":
            made.append({"text": part.get("text") or "", "thought": True, **sealed})
        elif kind == "text":
            made.append({"text": part.get("text") or "", **sealed})
        elif kind == "tool_call":
            call = {"name": part.get("name") or "", "args": part.get("arguments") or {}}
            named = {"id": part["tool_call_id"]} if part.get("tool_call_id") else {}
            made.append({"functionCall": {**call, **named}, **sealed})
    return {"candidates": [{"content": {"role": "model", "parts": made}}]}


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


DETAILS: Final = "reasoning_details"
"""The name under which a part has reasoning details; the provider is not known by them."""
_FORMS: Final[Mapping[str, _Form]] = {
    "openai": _Form(provider="openai", api="openai.responses", body=_items),
    "openrouter": _Form(provider="openrouter", api="openai.responses", body=_items),
    "anthropic": _Form(provider="anthropic", api="anthropic.messages", body=_content),
    "gemini": _Form(provider="google", api="gemini.generate_content", body=_gemini),
    DETAILS: _Form(provider=None, api="openai.chat", body=_choice),
}
