"""The chat product: its routes, and nothing of how a conversation is stored.

    uvicorn chat:app

It answers with scripted models. Set OPENAI_API_KEY, and OPENAI_BASE_URL and MODELS for another
server than OpenAI's, and it asks that. The routes under /api/chat are those that the AI SDK's
`useChat` asks by default, so a page of React works with them as well.
"""

from __future__ import annotations

import asyncio
import binascii
import os
from base64 import b64decode
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from fastapi.staticfiles import StaticFiles
from pydantic import BaseModel
from replies import MODELS, STREAMED, Replies, context_of, follow, is_live, model_of, sum_up

import reasoning_store as rs
from reasoning_store.results import AsyncOwner, ReportRow, Stored

URL = os.environ.get("REASONING_STORE_URL", "sqlite:///chat.db")
PRICES = {"deepseek-flash": (0.15, 0.003, 0.60), "kimi-k3": (0.60, 0.10, 2.50)}
"""Dollars for a million tokens of input, of input from a cache, and of output. Here yours go."""
BUDGET = int(os.environ.get("THINKING_BUDGET", "50000"))
"""The tokens of thinking that one user may have in a day."""
TOGGLES = ("reasoning.includeInContext", "reasoning.stripFromContext")


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


def replies(request: Request) -> Any:
    return request.app.state.replies


Mine = Annotated[AsyncOwner, Depends(owner)]
Running = Annotated[Replies, Depends(replies)]


# A chat: the AI SDK's routes


class Sent(BaseModel):
    """What `useChat` sends: the messages that its page shows, of which the last counts."""

    id: str
    messages: list[dict[str, Any]] = []
    trigger: str = "submit-message"
    messageId: str | None = None
    after: str | None = None
    """The last message that the page shows: where another one follows it, this one is refused."""
    model: str | None = None


@app.post("/api/chat")
async def send(sent: Sent, mine: Mine, running: Running) -> Response:
    """Store what the user said, edited or wants again, and stream the reply."""
    is_again = sent.trigger == "regenerate-message"
    last = sent.messages[-1] if sent.messages else {}
    message = None if is_again else user_message(last.get("parts", []))
    metadata = {} if sent.model is None else {"model": check_model(sent.model)}
    session = await mine.session(sent.id, create=not is_again)
    await session.update_metadata(metadata)
    if message is None:
        await session.regenerate(sent.messageId or await last_reply(session))
    elif sent.messageId:
        await session.stop()
        await session.edit(sent.messageId, message)
    else:
        stored = await session.append(message, idempotency_key=last.get("id"), after=sent.after)
        if not stored.is_new:  # sent again: it begins no second reply
            return await streamed(session)
    if session.title is None and message is not None:
        await session.rename(message.text.strip()[:60] or "New chat")
    running.begin(session)
    return await streamed(session)


async def last_reply(session: rs.AsyncSession) -> str:
    """Return the id of the last UI message, which the AI SDK leaves out where it means that."""
    return str(rs.ui_messages(await session.history())[-1]["id"])


def user_message(parts: Sequence[dict[str, Any]]) -> rs.Message:
    """Return the message of a UI message's texts and files; a file's address holds its bytes."""
    blocks: list[rs.Block | str] = []
    for part in parts:
        if part["type"] == "text":
            blocks.append(part["text"])
        elif part["type"] == "file":
            mime, kind = part["mediaType"], part["mediaType"].partition("/")[0]
            try:
                data = b64decode(part["url"].partition(";base64,")[2], validate=True)
            except binascii.Error:
                raise HTTPException(422, "a file's url is a data URL in base64") from None
            blocks.append(
                rs.MediaBlock(
                    kind=kind if kind in ("image", "audio", "video") else "file",
                    mime_type=mime,
                    name=part.get("filename"),
                    data=data,
                )
            )
    if not blocks:
        raise HTTPException(422, "a message has a text or a file")
    return rs.user(*blocks)


def check_model(model: str) -> str:
    if model not in MODELS:
        raise HTTPException(422, f"model: one of {', '.join(MODELS)}")
    return model


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


# A chat: what the page shows and changes of it


class Changes(BaseModel):
    """What a page changes of a chat."""

    title: str | None = None
    archived: bool | None = None
    branch: int | None = None
    model: str | None = None
    settings: dict[str, Any] = {}


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
    context = context_of(session)
    usage, choices, plan = await asyncio.gather(
        context.usage(), context.what_if(), context.compression()
    )
    return {
        "id": chat,
        "title": session.title,
        "live": live,
        "model": model_of(session)["model"],
        "messages": rs.ui_messages(history, settings),
        "settings": {key: settings[key].value for key in TOGGLES},
        "compactions": [
            {"id": one.id, "kind": one.kind, "last": one.last, "summary": one.summary}
            for one in await session.compactions()
        ],
        "context": {
            "used": usage.effective,
            "limit": usage.limit,
            "kinds": asdict(usage.by_kind),
            "shorter": plan.after if plan.steps else None,
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


@app.patch("/api/chats/{chat}", status_code=204)
async def change(chat: str, changes: Changes, mine: Mine) -> None:
    session = await mine.session(chat)
    if changes.title is not None:
        await session.rename(changes.title)
    if changes.archived is not None:
        await session.archive(archived=changes.archived)
    if changes.branch is not None:
        await session.activate(changes.branch)
    if changes.model is not None:
        await session.update_metadata({"model": check_model(changes.model)})
    for key, value in changes.settings.items():
        if key not in TOGGLES:
            raise HTTPException(422, f"{key}: one of {', '.join(TOGGLES)}")
        await session.settings.set(key, value)


@app.put("/api/chats/{chat}/messages/{message}", status_code=204)
async def rate(chat: str, message: str, facts: dict[str, Any], mine: Mine) -> None:
    """Keep the user's opinion with a message."""
    session = await mine.session(chat)
    await session.annotate(message, {"rating": facts.get("rating")})


@app.get("/api/chats/{chat}/request")
async def preview(chat: str, mine: Mine) -> dict[str, Any]:
    """Return the next request, and what became of each thought in it."""
    request = await context_of(await mine.session(chat)).request(STREAMED)
    return {
        "body": request.body,
        "thoughts": [one._asdict() for one in request.verdicts],
        "warnings": [asdict(one) for one in request.warnings],
    }


@app.post("/api/chats/{chat}/compactions", status_code=204)
async def compact(chat: str, mine: Mine) -> None:
    """Make the next requests shorter: with a summary of the oldest turns, where it needs one."""
    session = await mine.session(chat)
    plan = await context_of(session).compression()
    summary = None
    if plan.to_summarize is not None:
        summary = await sum_up(model_of(session), plan.to_summarize.messages)
    await session.compact(plan, summary=summary)


@app.delete("/api/chats/{chat}/compactions/{id}", status_code=204)
async def undo(chat: str, id: int, mine: Mine) -> None:
    session = await mine.session(chat)
    await session.undo(id)


@app.delete("/api/chats/{chat}", status_code=204)
async def delete(chat: str, mine: Mine) -> None:
    session = await mine.session(chat)
    await session.stop()
    await session.delete()


@app.get("/api/chats/{chat}/markdown")
async def read(chat: str, mine: Mine) -> Response:
    """Return a chat as a text that people can read."""
    session = await mine.session(chat)
    lines = [f"# {session.title}"]
    for item in await session.history():
        if item.message.role in ("user", "assistant"):
            lines.append(f"## {'You' if item.message.role == 'user' else 'The model'}")
        for block in rs.visible_parts(item):
            match block:
                case rs.TextBlock():
                    lines.append(block.text)
                case rs.ThinkingBlock():
                    lines += [f"> {line}" for line in block.thought.splitlines()]
                case rs.ToolCallBlock():
                    lines.append(f"`{block.name} {block.parameters}`")
                case rs.ToolResponseBlock():
                    lines.append(f"`{block.result}`")
                case rs.MediaBlock():
                    lines.append(f"*{block.name or block.mime_type}*")
    return download("\n\n".join(lines), "text/markdown", "chat.md")


# All chats of a user


@app.get("/api/models")
async def models() -> list[str]:
    return list(MODELS)


@app.get("/api/chats")
async def chats(mine: Mine, after: str | None = None, archived: bool = False) -> dict[str, Any]:
    page = await mine.sessions(after=after, archived=archived)
    items = [{"id": one.id, "title": one.title, "preview": one.preview} for one in page.items]
    return {"items": items, "next": page.next}


@app.get("/api/search")
async def search(q: str, mine: Mine, after: str | None = None) -> dict[str, Any]:
    page = await mine.search(q, within="all", after=after)
    items = [{"id": one.session, "title": one.title, "preview": one.snippet} for one in page.items]
    return {"items": items, "next": page.next}


@app.get("/api/usage")
async def usage(mine: Mine) -> dict[str, Any]:
    """Return the user's tokens and their price by day and model, and today's thinking."""
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    budget = await mine.budget(limit=BUDGET, since=midnight)
    rows = await mine.report(by=("day", "model"))
    return {
        "rows": [asdict(row) | {"dollars": price(row)} for row in rows[::-1] if row.model],
        "thinking": {"used": budget.used, "limit": budget.limit},
    }


def price(row: ReportRow) -> float | None:
    if row.model not in PRICES:
        return None
    fresh, cached, output = PRICES[row.model]
    spent = (row.input - row.cached) * fresh + row.cached * cached + row.output * output
    return spent / 1_000_000


@app.get("/api/export")
async def export(mine: Mine) -> Response:
    """Return everything that is stored for the user; `restore` takes it."""
    lines = [line async for line in mine.export_lines()]
    return download("".join(lines), "application/jsonl", "chats.jsonl")


@app.post("/api/import")
async def restore(request: Request, mine: Mine) -> dict[str, int]:
    done = await mine.import_lines((await request.body()).splitlines())
    return {"sessions": done.sessions, "messages": done.messages}


@app.delete("/api/chats")
async def erase(mine: Mine) -> dict[str, Any]:
    """Erase everything of the user, and name the files that may still hold some of it."""
    erased = await mine.erase()
    return {"sessions": erased.sessions, "copies": erased.copies}


def download(text: str, media_type: str, name: str) -> Response:
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return PlainTextResponse(text, media_type=media_type, headers=headers)


app.mount("/", StaticFiles(directory=Path(__file__).with_name("page"), html=True))
