"""Streams of thinking events, and the messages that they become."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reasoning_store.conversation.blocks import (
    Message,
)
from reasoning_store.ingress.normalizer import StreamNormalizer

SIGNATURE = "c2lnLWFiYw=="


THOUGHT = "Need the weather tool."


ANSWER = "It is 4 C in Oslo."


def streamed(events: Iterable[Any]) -> Message:
    normalizer = StreamNormalizer(api="thinking_events")
    for event in events:
        normalizer.feed(event)
    return normalizer.finish()


def snapshot(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(entries), "model": "m-1", "usage": {"input": 0}}


def host_events(
    *pieces: str, seal: str | None = None, place: int = 0, repeats: bool = True
) -> list[dict[str, Any]]:
    """One thinking block as such hosts send it."""
    entry = {"type": "thinking", "thinking": "".join(pieces)}
    sealed = entry | ({"thinkingSignature": seal} if seal else {})
    end: dict[str, Any] = {"type": "thinking_end", "contentIndex": place}
    if repeats:
        end |= {"content": "".join(pieces)}
    content = [{"type": "text", "text": ""}] * place + [sealed]
    return [
        {"type": "thinking_start", "contentIndex": place, "partial": snapshot()},
        *(
            {"type": "thinking_delta", "contentIndex": place, "delta": piece, "partial": {}}
            for piece in pieces
        ),
        end | {"partial": snapshot(*content)},
    ]
