"""A chat product in one file: what its page needs, and nothing of how a conversation is stored.

    uvicorn chat:app

It answers with a scripted model. Set OPENAI_API_KEY, and OPENAI_BASE_URL, PROVIDER and MODEL for
another server than OpenAI's, and it asks that. The routes under /api/chat are those that the AI
SDK's `useChat` asks by default, so a page of React works with them as well.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import scripted_model
from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.responses import FileResponse, JSONResponse, StreamingResponse
from openai import AsyncOpenAI
from pydantic import BaseModel

import reasoning_store as rs
from reasoning_store.results import Stored

URL = os.environ.get("REASONING_STORE_URL", "sqlite:///chat.db")
MODEL: dict[str, Any] = {
    "provider": os.environ.get("PROVIDER", "deepseek"),
    "model": os.environ.get("MODEL", "deepseek-chat"),
}
SYSTEM = "You are a helpful assistant. Answer in Markdown."
LIMIT = int(os.environ.get("CONTEXT_LIMIT", "2000"))
BUDGET = int(os.environ.get("THINKING_BUDGET", "50000"))
"""The tokens of thinking that one user may have in a day."""
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"name": "get_weather", "description": "The weather in a city, now.", "parameters": CITY}]
PATIENCE = 60.0
"""Seconds for which a page waits for the next step of a reply."""
PAUSE = 0.05
TOGGLES = ("reasoning.includeInContext", "reasoning.stripFromContext")
log = logging.getLogger(__name__)


async def make_call(call: rs.ToolCallBlock) -> rs.ToolResponseBlock:
    """Run a tool. Here yours run."""
    return rs.ToolResponseBlock(call_id=call.id, tool_name=call.name, result="4 C, light rain")


# A reply


class Replies:
    """The replies that this process is recording, whether or not a page reads them."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def begin(self, session: rs.AsyncSession) -> None:
        task = self._tasks[session.id] = asyncio.create_task(record(session))
        task.add_done_callback(lambda _: self._tasks.pop(session.id, None))

    def has(self, chat: str) -> bool:
        return chat in self._tasks

    def cancel(self, chat: str) -> None:
        if task := self._tasks.get(chat):
            task.cancel()  # what has arrived is stored

    async def close(self) -> None:
        tasks = [*self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def record(session: rs.AsyncSession) -> None:
    """Record what the model says, making the calls that it asks for until it asks for none."""
    chat = session.context(**MODEL, system=SYSTEM, tools=TOOLS)
    try:
        while True:
            request = await chat.request({"stream": True})
            async with chat.record(await ask(**request.kwargs)) as recording:
                async for _ in recording:
                    pass
            if recording.message is None or is_over(recording.message):
                return
            answers = [rs.tool(await make_call(call)) for call in recording.tool_calls]
            await session.append(answers)
    except Exception:
        log.exception("the reply in %s ended early; what had arrived is stored", session.id)
        last = (await session.history(limit=1))[-1]
        if last.message.role != "assistant":  # so that no page waits for it
            failed = rs.assistant(status="interrupted", finish_reason="error")
            await session.append(failed, after=last.position)


def is_over(message: rs.Message) -> bool:
    """Whether it is the user's turn after this message of the model."""
    return message.status == "interrupted" or not message.tool_calls


async def follow(session: rs.AsyncSession, asked: int) -> AsyncIterator[rs.Chunk | Stored]:
    """Yield the reply to the message at a position: its stored steps, then what arrives.

    The reply may be recorded by any process.
    """
    place, silent = asked, 0.0
    while silent < PATIENCE:
        for item in await session.history(after=place):
            if item.message.status == "streaming":
                break
            yield item
            place, silent = item.position, 0.0
            if item.message.role == "assistant" and is_over(item.message):
                return
        followed = False
        async for chunk in session.follow():
            followed = True
            yield chunk
        if followed:
            place, silent = place + 1, 0.0
            if is_over((await session.get(place)).message):
                return
        else:
            await asyncio.sleep(PAUSE)
            silent += PAUSE


async def ask(**kwargs: Any) -> AsyncIterator[Any]:
    """Ask the model for a stream."""
    if "OPENAI_API_KEY" not in os.environ:
        return await scripted_model.create(**kwargs)
    stream: AsyncIterator[Any] = await AsyncOpenAI(max_retries=0).chat.completions.create(**kwargs)
    return stream


# The application


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with rs.AsyncStore(URL) as store:
        app.state.store, app.state.replies = store, Replies()
        yield
        await app.state.replies.close()


app = FastAPI(lifespan=lifespan)


@app.exception_handler(rs.ReasoningStoreError)
async def refuse(request: Request, error: rs.ReasoningStoreError) -> JSONResponse:
    status = {rs.NotFound: 404, rs.Conflict: 409}.get(type(error), 422)
    return JSONResponse({"detail": str(error), "hint": error.hint}, status)


def owner(request: Request) -> Any:
    """Return the conversations of the user who asks. Here your log-in goes."""
    return request.app.state.store.for_owner("you")


def replies(request: Request) -> Replies:
    found: Replies = request.app.state.replies
    return found


Mine = Annotated[Any, Depends(owner)]
Running = Annotated[Replies, Depends(replies)]


class Sent(BaseModel):
    """What `useChat` sends: the messages that its page shows, of which the last counts."""

    id: str
    messages: list[dict[str, Any]] = []
    trigger: str = "submit-message"
    messageId: str | None = None
    after: str | None = None
    """The last message that the page shows: where another one follows it, this one is refused."""


class Changes(BaseModel):
    """What a page changes of a chat."""

    title: str | None = None
    archived: bool | None = None
    branch: int | None = None
    settings: dict[str, Any] = {}


@app.post("/api/chat")
async def send(sent: Sent, mine: Mine, running: Running) -> Response:
    """Store what the user said, edited or wants again, and stream the reply."""
    session = await mine.session(sent.id, create=True)
    if sent.trigger == "regenerate-message" and sent.messageId:
        await session.regenerate(sent.messageId)
    else:
        message = sent.messages[-1]
        text = "".join(part["text"] for part in message["parts"] if part["type"] == "text")
        if sent.messageId:
            await session.stop()
            await session.edit(sent.messageId, rs.user(text))
        else:
            stored = await session.append(
                rs.user(text), idempotency_key=message.get("id"), after=sent.after
            )
            if not stored.is_new:  # sent again: it begins no second reply
                return await streamed(session)
        if session.title is None:
            await session.rename(text.strip()[:60] or "New chat")
    running.begin(session)
    return await streamed(session)


async def streamed(session: rs.AsyncSession) -> Response:
    """Stream the last reply from its beginning."""
    asked = last_question(await session.history())
    events = rs.ui_events(follow(session, asked), await session.settings.resolved())
    return StreamingResponse(rs.ui_sse(events), headers=rs.ui_headers())


@app.get("/api/chat/{chat}/stream")
async def resume(chat: str, mine: Mine, running: Running) -> Response:
    """Stream a reply that is arriving to a page that comes back, to whichever process."""
    session = await mine.session(chat)
    if not is_live(await session.history(limit=1), running.has(chat)):
        return Response(status_code=204)
    return await streamed(session)


@app.post("/api/chat/{chat}/stop", status_code=204)
async def stop(chat: str, mine: Mine, running: Running) -> None:
    session = await mine.session(chat)
    if not await session.stop():
        running.cancel(chat)  # between two steps, or before the first chunk


def last_question(history: Sequence[Stored]) -> int:
    return max((item.position for item in history if item.message.role == "user"), default=0)


@app.get("/api/chats")
async def chats(mine: Mine, after: str | None = None, archived: bool = False) -> dict[str, Any]:
    page = await mine.sessions(after=after, archived=archived)
    items = [{"id": one.id, "title": one.title, "updatedAt": one.updated_at} for one in page.items]
    return {"items": items, "next": page.next}


@app.get("/api/chats/{chat}")
async def show(chat: str, mine: Mine, running: Running) -> dict[str, Any]:
    """Return what a page shows: the messages, and what the model gets to see of them."""
    session = await mine.session(chat)
    settings = await session.settings.resolved()
    history = await session.history()
    live = is_live(history, running.has(chat))
    if live:  # the stream brings all that follows the user's message
        asked = last_question(history)
        history = [item for item in history if item.position <= asked]
    context = session.context(**MODEL, system=SYSTEM, tools=TOOLS, limit=LIMIT)
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    usage, choices, budget = await asyncio.gather(
        context.usage(), context.what_if(), mine.budget(limit=BUDGET, since=midnight)
    )
    return {
        "id": chat,
        "title": session.title,
        "live": live,
        "messages": rs.ui_messages(history, settings),
        "settings": {key: settings[key].value for key in TOGGLES},
        "budget": {"used": budget.used, "limit": budget.limit},
        "context": {
            "used": usage.effective,
            "limit": usage.limit,
            "model": MODEL["model"],
            "kinds": asdict(usage.by_kind),
            "choices": [
                {
                    "include": row.include_in_context,
                    "strip": row.strip_from_context,
                    "tokens": row.tokens.effective,
                }
                for row in choices.rows
            ],
        },
    }


def is_live(history: Sequence[Stored], is_here: bool) -> bool:
    """Whether a reply is arriving, in this process or another, or can still be expected."""
    if is_here or not history:
        return is_here
    last = history[-1]
    if last.message.role == "assistant" and last.message.status != "streaming":
        return not is_over(last.message)
    return datetime.now(UTC) - last.created_at < timedelta(seconds=PATIENCE)


@app.get("/api/search")
async def search(q: str, mine: Mine) -> dict[str, Any]:
    page = await mine.search(q)
    items = [{"id": one.session, "title": one.title, "snippet": one.snippet} for one in page.items]
    return {"items": items, "next": page.next}


@app.put("/api/chats/{chat}/messages/{message}", status_code=204)
async def rate(chat: str, message: str, facts: dict[str, Any], mine: Mine) -> None:
    """Keep the user's opinion with a message."""
    session = await mine.session(chat)
    await session.annotate(message, {"rating": facts.get("rating")})


@app.patch("/api/chats/{chat}", status_code=204)
async def change(chat: str, changes: Changes, mine: Mine) -> None:
    session = await mine.session(chat)
    if changes.title is not None:
        await session.rename(changes.title)
    if changes.archived is not None:
        await session.archive(archived=changes.archived)
    if changes.branch is not None:
        await session.activate(changes.branch)
    for key, value in changes.settings.items():
        if key not in TOGGLES:
            raise HTTPException(422, f"{key}: one of {', '.join(TOGGLES)}")
        await session.settings.set(key, value)


@app.delete("/api/chats/{chat}", status_code=204)
async def delete(chat: str, mine: Mine) -> None:
    session = await mine.session(chat)
    await session.stop()
    await session.delete()


@app.get("/")
async def page() -> FileResponse:
    return FileResponse(Path(__file__).with_name("index.html"))
