"""One of several worker processes of a chat application: what its pages ask of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

import reasoning_store as rs
from reasoning_store import results
from reasoning_store.testing import stream

T = TypeVar("T")
Said = tuple[str, str]
"""A thought and a text, as far as they have come."""
Row = tuple[str, int, str, str, Said]
"""The id, the position, the role, the status and the words of a message."""


def answer(question: str) -> rs.Message:
    words = " ".join(f"{question}: word {number}." for number in range(8))
    return rs.assistant(rs.ThinkingBlock(thought=f"Thinking of {question}. {words}"), words)


def said_by(message: rs.Message) -> Said:
    return "".join(block.thought for block in message.thinking), message.text


class _Words:
    """What chunks have said."""

    def __init__(self) -> None:
        self.said: Said = "", ""

    def add(self, chunk: rs.Chunk) -> None:
        thought, text = self.said
        if isinstance(chunk, rs.ReasoningChunk):
            self.said = thought + chunk.text, text
        elif isinstance(chunk, rs.TextChunk):
            self.said = thought, text + chunk.text

    @property
    def length(self) -> int:
        return sum(map(len, self.said))


class _LiveReply:
    """A reply that is recorded: its model sends an event when a page lets it."""

    def __init__(self, session: rs.AsyncSession, question: str, api: str) -> None:
        self._rest = stream(answer(question), api=api, pieces=6)
        self._sent: asyncio.Queue[Any] = asyncio.Queue()
        self.shown = _Words()
        self._reply = session.record(
            self._events(), model="m", api=api, idempotency_key=f"reply to {question}"
        )
        self._task = asyncio.create_task(self._record())

    async def _events(self) -> AsyncIterator[Any]:
        while (event := await self._sent.get()) is not None:
            yield event
            self._sent.task_done()

    async def _record(self) -> None:
        async for chunk in self._reply:
            self.shown.add(chunk)

    async def begin(self) -> None:
        while not self.shown.length:
            await self.go_on()

    async def go_on(self) -> None:
        """Send the next event, if any is left, and wait until it was read."""
        if self._rest:
            self._sent.put_nowait(self._rest.pop(0))
            await self._sent.join()

    def complete(self) -> None:
        for event in [*self._rest, None]:
            self._sent.put_nowait(event)

    def leave(self) -> None:
        self._task.cancel()

    async def ended(self) -> results.Stored:
        await asyncio.gather(self._task, return_exceptions=True)
        assert self._task.cancelled() or self._task.exception() is None, self._task.exception()
        stored = self._reply.stored
        assert stored is not None
        return stored


class ChatWorker:
    """A worker with a store of its own, whose verbs any thread may call."""

    def __init__(self, url: str) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._store: rs.AsyncStore = self._run(rs.AsyncStore(url).__aenter__())
        self._live: dict[str, _LiveReply] = {}
        self._watching: dict[str, list[asyncio.Task[Said]]] = {}

    def close(self) -> None:
        self._run(self._store.close())

    def ask(self, chat: str, question: str, api: str) -> str:
        """Store a question and begin to record its answer; return the id of the question."""

        async def work() -> str:
            session = await self._store.session(chat)
            asked = await session.append(rs.user(question), idempotency_key=question)
            self._live[chat] = _LiveReply(session, question, api)
            await self._live[chat].begin()
            return asked.id

        return self._run(work())

    def ask_again(self, chat: str, question: str) -> tuple[str, bool]:
        """Send a question once more, as a browser does; return its id, and whether it was new."""

        async def work() -> tuple[str, bool]:
            session = await self._store.session(chat)
            asked = await session.append(rs.user(question), idempotency_key=question)
            key = f"reply to {question}"
            try:
                async for _ in session.record([{}], model="m", idempotency_key=key):
                    pass
            except rs.Conflict:
                return asked.id, asked.is_new
            raise AssertionError("a reply was recorded twice")

        return self._run(work())

    def go_on(self, chat: str) -> int:
        """Let the model send the next event; return how many characters were shown by now."""

        async def work() -> int:
            await self._live[chat].go_on()
            return self._live[chat].shown.length

        return self._run(work())

    def end(self, chat: str, how: str) -> None:
        """Let the model send the rest, or be left by the page that shows it, or wait for ever."""
        reply = self._live[chat]
        if how == "complete":
            self._loop.call_soon_threadsafe(reply.complete)
        elif how == "left":
            self._loop.call_soon_threadsafe(reply.leave)

    def stop(self, chat: str, reason: str) -> bool:
        async def work() -> bool:
            return await (await self._store.session(chat)).stop(reason)

        return self._run(work())

    def ended(self, chat: str) -> tuple[str, int, str | None, Any, Said, Said]:
        """Return what was acknowledged of the reply, and what was shown of it."""

        async def work() -> tuple[str, int, str | None, Any, Said, Said]:
            reply = self._live.pop(chat)
            stored = await reply.ended()
            message = stored.message
            why = stored.annotations.get("stopReason")
            finish, said = message.finish_reason, said_by(message)
            return stored.id, stored.position, finish, why, said, reply.shown.said

        return self._run(work())

    def read(self, chat: str, after: str | None, characters: int) -> tuple[Said, str | None]:
        """Follow the reply for so many characters, and return them with the cursor."""

        async def work() -> tuple[Said, str | None]:
            following, words = (await self._store.session(chat)).follow(after), _Words()
            while words.length < characters:
                words.add(await anext(following))
            return words.said, following.cursor

        return self._run(work())

    def watch(self, chat: str) -> None:
        """Follow the reply to its end; this returns after its first chunk."""

        async def work() -> None:
            following = (await self._store.session(chat)).follow()
            words = _Words()
            words.add(await anext(following))

            async def go_on() -> Said:
                async for chunk in following:
                    words.add(chunk)
                return words.said

            self._watching.setdefault(chat, []).append(asyncio.create_task(go_on()))

        self._run(work())

    def watched(self, chat: str) -> list[Said]:
        """Return all that was seen of the reply by those who followed it to its end."""

        async def work() -> list[Said]:
            return [await task for task in self._watching.pop(chat, [])]

        return self._run(work())

    def reload(self, chat: str) -> list[Row]:
        """Return the conversation as a page that is loaded now shows it."""

        async def work() -> list[Row]:
            history = await (await self._store.session(chat)).history()
            return [
                (s.id, s.position, s.message.role, s.message.status, said_by(s.message))
                for s in history
            ]

        return self._run(work())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
