"""A live reply as server-sent events: its chunks, and a word when the conversation has changed.

A stream without news ends after a while, and the browser asks again: so a server that stops waits
for no page.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Final

from reasoning_store import (
    Chunk,
    ReasoningChunk,
    ReasoningStoreError,
    Session,
    TextChunk,
    ToolCallChunk,
)
from reasoning_store.server.threads import run_waiting

_RETRY: Final = "retry: 1000\n\n"
_LOOK_SECONDS: Final = 1.0
_LOOKS: Final = 15
"""How often a stream without news looks for some before it ends."""


async def live_events(session: Session, head: int) -> AsyncIterator[str]:
    """Yield the events of a page that shows ``head`` messages."""
    yield _RETRY
    for _ in range(_LOOKS):
        is_live = False
        with suppress(ReasoningStoreError):  # the page reads the conversation, and shows the error
            async for chunk in _follow(session):
                if not is_live:
                    is_live = True
                    yield _event("begin", {})
                if (found := _piece(chunk)) is not None:
                    yield _event("piece", found)
        if is_live or await asyncio.to_thread(session.head) != head:
            yield _event("changed", {})
            return
        await asyncio.sleep(_LOOK_SECONDS)


async def _follow(session: Session) -> AsyncIterator[Chunk]:
    """Yield the chunks of a live reply as they arrive."""
    chunks = await asyncio.to_thread(session.follow)
    while (chunk := await run_waiting(next, chunks, None)) is not None:
        yield chunk


def _piece(chunk: Chunk) -> dict[str, Any] | None:
    """Return the part of a chunk that a reader sees."""
    if chunk.choice:
        return None
    if isinstance(chunk, TextChunk):
        return {"kind": "text", "text": chunk.text}
    if isinstance(chunk, ReasoningChunk) and chunk.text:
        return {"kind": "thought", "text": chunk.text}
    if isinstance(chunk, ToolCallChunk):
        return {"kind": "call", "text": f"{chunk.name or ''}{chunk.arguments or ''}"}
    return None


def _event(name: str, data: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"
