"""Replies that were kept in no provider's form: thoughts, texts and calls, one after the other.

They go through ingress as neutral events, like a reply that arrives now. Of such a reply only
the model is known: its origin names a protocol only where a caller names the provider.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from reasoning_store.conversation.blocks import Message, Origin
from reasoning_store.ingress.normalizer import StreamNormalizer

Part: TypeAlias = dict[str, Any]
"""``type`` is reasoning or text, with ``text``; tool_call, with ``tool_call_id``, ``name`` and
``arguments``; or tool_result, which ends the reply. Another type is left out."""


def reasoning_part(text: Any) -> Part:
    return {"type": "reasoning", "text": text if isinstance(text, str) else ""}


def text_part(text: Any) -> Part:
    return {"type": "text", "text": text if isinstance(text, str) else ""}


def call_part(id: str | None, name: str | None, arguments: Any) -> Part:
    """Return a call; ``arguments`` are an object, or its JSON."""
    return {"type": "tool_call", "tool_call_id": id, "name": name, "arguments": arguments}


def result_part(id: str | None, name: str | None, result: Any, *, is_error: bool = False) -> Part:
    """Return what a tool answered, as a part between those of its reply."""
    about = {"tool_call_id": id, "name": name, "output": result, "is_error": is_error}
    return {"type": "tool_result", **about}


def read_neutral_reply(parts: Sequence[Part], options: Mapping[str, Any]) -> Message:
    """Return the message of a reply; ``options`` are keywords of ingress."""
    normalizer = StreamNormalizer(api="thinking_events", **options)
    for number, part in enumerate(parts):
        for event in _events(part):
            normalizer.feed({**event, "contentIndex": number})
    message = normalizer.finish()
    if options.get("provider") or options.get("base_url"):
        return message
    model = options.get("model")
    return replace(message, origin=Origin(model=model) if model else None)


def _events(part: Part) -> list[dict[str, Any]]:
    kind, text = part["type"], part.get("text")
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
