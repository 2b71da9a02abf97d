"""A live reply as server-sent events: its chunks, and a word when the conversation has changed.

Each page has a thread of its own while a reply arrives, because a follower waits for the next
chunk. A stream without news ends after a while, and the browser asks again: so a server that
stops waits for no page.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

from reasoning_store import (
    Chunk,
    ReasoningChunk,
    ReasoningStoreError,
    Session,
    TextChunk,
    ToolCallChunk,
)

_RETRY: Final = "retry: 1000\n\n"
_LOOK_SECONDS: Final = 1.0
_LOOKS: Final = 15
"""How often a stream without news looks for some before it ends."""


async def live_events(session: Session, head: int) -> AsyncIterator[str]:
    """Yield the events of a page that shows ``head`` messages."""
    yield _RETRY
    for _ in range(_LOOKS):
        is_live = False
        async for event in _in_thread(session):
            is_live = True
            yield event
        if is_live or await asyncio.to_thread(session.head) != head:
            yield _event("changed", {})
            return
        await asyncio.sleep(_LOOK_SECONDS)


async def _in_thread(session: Session) -> AsyncIterator[str]:
    """Yield the events of a live reply, which a thread waits for."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[str | None] = asyncio.Queue()
    left = threading.Event()

    def send(event: str | None) -> None:
        try:
            loop.call_soon_threadsafe(arrived.put_nowait, event)
        except RuntimeError:  # the server has stopped
            left.set()

    def follow() -> None:
        try:
            for event in _chunk_events(session):
                send(event)
                if left.is_set():
                    return
        except ReasoningStoreError:
            pass  # the page reads the conversation again, and shows the error
        finally:
            send(None)

    threading.Thread(target=follow, name="reasoning-store-page", daemon=True).start()
    try:
        while (event := await arrived.get()) is not None:
            yield event
    finally:
        left.set()


def _chunk_events(session: Session) -> Iterator[str]:
    begun = False
    for chunk in session.follow():
        if not begun:
            begun = True
            yield _event("begin", {})
        if (found := _piece(chunk)) is not None:
            yield _event("piece", found)


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
