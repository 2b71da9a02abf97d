"""The replies of the models: asked for, recorded, and followed from any process."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import scripted_model
from openai import AsyncOpenAI

import reasoning_store as rs
from reasoning_store.results import Stored

MODELS: dict[str, dict[str, Any]] = {
    model: {"provider": provider, "model": model}
    for provider, _, model in (
        name.partition("/")
        for name in os.environ.get("MODELS", "deepseek/deepseek-flash moonshot/kimi-k3").split()
    )
}
"""The models to choose from; a chat begins with the first."""
SYSTEM = "You are a helpful assistant. Answer in Markdown."
LIMIT = int(os.environ.get("CONTEXT_LIMIT", "4000"))
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"name": "get_weather", "description": "The weather in a city, now.", "parameters": CITY}]
STREAMED = {"stream": True, "stream_options": {"include_usage": True}}
SUM_UP = "Sum up this conversation for the model that continues it: facts, decisions, open points."
PATIENCE = 60.0
"""Seconds for which a page waits for the next step of a reply."""
PAUSE = 0.05
log = logging.getLogger(__name__)


async def make_call(call: rs.ToolCallBlock) -> rs.ToolResponseBlock:
    """Run a tool. Here yours run."""
    return rs.ToolResponseBlock(call_id=call.id, tool_name=call.name, result="4 C, light rain")


async def ask(request: rs.Request) -> AsyncIterator[Any]:
    """Ask the model for a stream."""
    if "OPENAI_API_KEY" not in os.environ:
        return await scripted_model.create(request.target.provider, **request.kwargs)
    stream: AsyncIterator[Any] = await AsyncOpenAI(max_retries=0).chat.completions.create(
        **request.kwargs
    )
    return stream


def model_of(session: rs.AsyncSession) -> dict[str, Any]:
    """Return the model that the user chose for a chat."""
    return MODELS.get(session.metadata.get("model", ""), next(iter(MODELS.values())))


def context_of(session: rs.AsyncSession) -> rs.AsyncContext:
    """Return the part of a chat that its model gets to see."""
    return session.context(**model_of(session), system=SYSTEM, tools=TOOLS, limit=LIMIT)


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
    chat = context_of(session)
    try:
        while True:
            request = await chat.request(STREAMED)
            notes = [one.text for one in request.warnings if one.code.endswith("_left_out")]
            stream = await ask(request)
            async with chat.record(stream, metadata={"notes": notes or None}) as recording:
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


def is_live(history: Sequence[Stored], is_here: bool) -> bool:
    """Whether a reply is arriving, in this process or another, or can still be expected."""
    if is_here or not history:
        return is_here
    last = history[-1]
    if last.message.role == "assistant" and last.message.status != "streaming":
        return not is_over(last.message)
    return datetime.now(UTC) - last.created_at < timedelta(seconds=PATIENCE)


async def sum_up(model: dict[str, Any], messages: Sequence[rs.Message]) -> str:
    said = rs.user("\n\n".join(f"{one.role}: {one.text}" for one in messages if one.text))
    normalizer = rs.StreamNormalizer(**model)
    async for event in await ask(rs.build_request([said], **model, system=SUM_UP, extra=STREAMED)):
        normalizer.feed(event)
    answer = normalizer.finish()
    if not answer.text or answer.finish_reason == "length":
        raise RuntimeError("the model gave no whole summary")
    return answer.text
