"""A chat in the browser, with a tool loop, whose replies do not depend on the browser.

    export OPENAI_BASE_URL=https://api.deepseek.com OPENAI_API_KEY=...
    uvicorn app:app --workers 2

Two halves that meet only in the store. A task of the worker that was asked records the reply,
tool calls and all, whether or not anybody looks. Whoever looks, at any worker, reads what is
in the store so far and follows it as it grows; what arrives is written once a second. A browser
that comes back says where it stood (an EventSource does so by itself) and gets the rest.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Header, HTTPException, Request
from fastapi.responses import HTMLResponse, StreamingResponse
from following import Place, news
from openai import AsyncOpenAI
from pydantic import BaseModel

import reasoning_store as rs

URL = os.environ.get("REASONING_STORE_URL", "sqlite:///chat.db")
TO: dict[str, Any] = {
    "provider": os.environ.get("PROVIDER", "deepseek"),
    "model": os.environ.get("MODEL", "deepseek-chat"),
}
LOOK_EVERY = 0.1
"""Seconds between two looks of a reader."""
SIGN_OF_LIFE = 15.0
"""Seconds of silence after which a reader's connection is tried."""

TOOLS = [
    {
        "name": "get_weather",
        "description": "The weather in a city, now.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    }
]
log = logging.getLogger(__name__)


@dataclass
class Worker:
    """What one worker process holds: no conversation, only what it is doing."""

    store: rs.AsyncStore
    client: AsyncOpenAI
    replies: set[asyncio.Task[None]] = field(default_factory=set)

    def reply(self, session: rs.AsyncSession) -> None:
        task = asyncio.create_task(reply(self.client, session))
        self.replies.add(task)
        task.add_done_callback(self.replies.discard)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with rs.AsyncStore(URL) as store, AsyncOpenAI(max_retries=0) as client:
        app.state.worker = worker = Worker(store, client)
        yield
        for task in worker.replies:
            task.cancel()  # what has arrived is stored as interrupted
        await asyncio.gather(*worker.replies, return_exceptions=True)


app = FastAPI(lifespan=lifespan)


class Said(BaseModel):
    """What a user said. ``key`` names the attempt, ``after`` what stood before it."""

    text: str
    key: str
    after: int


@app.post("/chats/{chat}/messages", status_code=202)
async def say(chat: str, said: Said, request: Request) -> dict[str, str]:
    """Store what the user said, begin the reply, and return the place from which to follow it.

    Sent again with the same key, because the first answer was lost, it begins no second reply.
    Where somebody else has spoken since ``after``, it is refused.
    """
    worker: Worker = request.app.state.worker
    session = await worker.store.session(chat, create=True)
    try:
        stored = await session.append(
            rs.user(said.text), idempotency_key=said.key, after=said.after
        )
    except rs.Conflict as conflict:
        raise HTTPException(409, str(conflict)) from None
    if stored.is_new:
        worker.reply(session)
    return {"follow": str(Place(stored.position + 1))}


async def reply(client: AsyncOpenAI, session: rs.AsyncSession) -> None:
    """Record the model's reply, making the calls it asks for until it asks for none."""
    try:
        while True:
            request = await session.build_request(**TO, tools=TOOLS, extra={"stream": True})
            stream = await client.chat.completions.create(**request.kwargs)
            async with session.record(stream, request=request) as recording:
                async for _ in recording:
                    pass
            if not recording.tool_calls:
                return
            await session.append([rs.tool(answer(call)) for call in recording.tool_calls])
    except Exception:
        log.exception("the reply in %s ended early; what had arrived is stored", session.id)
        await conclude(session)


async def conclude(session: rs.AsyncSession) -> None:
    """Say that a reply is over of which nothing had arrived, so that nobody waits for it."""
    last = (await session.history(limit=1))[-1]
    if last.message.role != "assistant":
        nothing = rs.assistant(status="interrupted", finish_reason="error")
        await session.append(nothing, after=last.position)


def answer(call: rs.ToolCallBlock) -> rs.ToolResponseBlock:
    """Here your tools run."""
    return rs.ToolResponseBlock(call_id=call.id, tool_name=call.name, result="4 C")


@app.get("/chats/{chat}/events")
async def follow(
    chat: str,
    request: Request,
    start: str = "1.0.0",
    last_event_id: Annotated[str | None, Header()] = None,
) -> StreamingResponse:
    """Stream what lies behind a place, up to the end of the turn."""
    worker: Worker = request.app.state.worker
    try:
        place = Place.parse(last_event_id or start)
        session = await worker.store.session(chat)
    except ValueError:
        raise HTTPException(422, "a place is position.block.characters") from None
    except rs.NotFound as missing:
        raise HTTPException(404, str(missing)) from None
    return StreamingResponse(
        events(session, place),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
    )


async def events(session: rs.AsyncSession, place: Place) -> AsyncIterator[str]:
    """Read the store, and yield what is new, until the turn is over."""
    resolved = await session.settings.resolved()
    thinking = resolved["reasoning.includeInResponse"].value
    silent = 0.0
    while True:
        try:
            stored = await session.get(place.position)
        except rs.NotFound:
            found = []  # the model has not begun to speak
        else:
            found = list(news(stored.message, place, thinking=thinking))
        for event in found:
            yield str(event)
            place = event.place
            if event.name == "done":
                return
        silent = 0.0 if found else silent + LOOK_EVERY
        if silent >= SIGN_OF_LIFE:
            yield ": still here\n\n"
            silent = 0.0
        if not found:
            await asyncio.sleep(LOOK_EVERY)


@app.get("/chats/{chat}")
async def history(chat: str, request: Request) -> dict[str, Any]:
    """Return what has been said, as a user sees it, and where to follow on if it goes on."""
    worker: Worker = request.app.state.worker
    try:
        session = await worker.store.session(chat)
    except rs.NotFound:
        return {"messages": [], "end": 0, "follow": None, "usage": None}
    said = await session.history()
    whole = [item for item in said if item.message.status != "streaming"]
    end = whole[-1].position if whole else 0
    usage = await session.usage(**TO, tools=TOOLS, limit=128_000)
    return {
        "messages": [
            {"role": item.message.role, "text": item.message.text}
            for item in whole
            if item.message.role in ("user", "assistant")
        ],
        "end": end,
        "follow": None if is_over(said) else str(Place(end + 1)),
        "usage": str(usage),
    }


def is_over(said: list[rs.results.Stored]) -> bool:
    """Whether it is the user's turn to speak."""
    last = said[-1].message if said else None
    if last is None or last.status == "interrupted":
        return True
    return last.role == "assistant" and last.status == "complete" and not last.tool_calls


@app.get("/")
async def page() -> HTMLResponse:
    return HTMLResponse(Path(__file__).with_name("index.html").read_text("utf-8"))
