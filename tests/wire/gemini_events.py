"""Events of Gemini's generateContent, and the messages that they become."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from reasoning_store.conversation.blocks import (
    Message,
)
from reasoning_store.ingress.normalizer import StreamNormalizer, normalize_response

CASES = Path(__file__).parents[1] / "cases" / "wire"


VARIANTS: list[dict[str, Any]] = json.loads((CASES / "gemini_generate_content.json").read_text())[
    "variants"
]


def chunk(*parts: Any, **more: Any) -> dict[str, Any]:
    """One event of a stream with these parts."""
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}}
    return {"candidates": [candidate | more.pop("candidate", {})], "responseId": "r1"} | more


def text(text: str, **more: Any) -> dict[str, Any]:
    return {"text": text} | more


def thought(text: str, **more: Any) -> dict[str, Any]:
    return {"text": text, "thought": True} | more


def call(name: str | None = None, **more: Any) -> dict[str, Any]:
    return {"functionCall": ({"name": name} if name else {}) | more}


def normalizer_after(events: Iterable[Any]) -> StreamNormalizer:
    normalizer = StreamNormalizer(provider="google")
    for event in events:
        normalizer.feed(event)
    normalizer.finish()
    return normalizer


def streamed(events: Iterable[Any]) -> Message:
    return normalizer_after(events).finish()


def whole(body: Any) -> Message:
    return normalize_response(body, provider="google")
