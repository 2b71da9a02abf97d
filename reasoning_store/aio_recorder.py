"""The promised asynchronous face of one reply that is being streamed.

It drives the same ``Reply`` as ``recorder.Recording``; only who waits differs. It must not
know what becomes of a reply.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable
from contextlib import aclosing
from types import TracebackType
from typing import Any, Self

from reasoning_store import streams
from reasoning_store.blocks import Message, ToolCallBlock
from reasoning_store.chunks import Chunk
from reasoning_store.errors import UsageError
from reasoning_store.replies import Reply
from reasoning_store.stored import Stored
from reasoning_store.threads import Threads


class AsyncRecording:
    """A reply that is recorded from an asynchronous loop. Made by ``AsyncSession.record``.

    Iterate it with ``async for``, bare or under ``async with``.
    """

    def __init__(
        self,
        threads: Threads,
        make: Callable[[], Reply],
        stream: AsyncIterable[Any] | Iterable[Any],
    ) -> None:
        self._threads = threads
        self._make = make
        self._stream = stream
        self._reply: Reply | None = None
        # The loop that iterates owns the generator, as in a synchronous recording.
        self._running: weakref.ref[Any] | None = None
        self._entered = False

    @property
    def stored(self) -> Stored | None:
        """What was stored; ``None`` before the end, and where nothing had arrived."""
        return self._reply.stored if self._reply is not None else None

    @property
    def message(self) -> Message | None:
        """The message: what was stored, or before that what has arrived so far."""
        return self._reply.message if self._reply is not None else None

    @property
    def tool_calls(self) -> tuple[ToolCallBlock, ...]:
        """The calls the model asks for; the application makes them and appends the answers."""
        return self.message.tool_calls if self.message is not None else ()

    async def __aenter__(self) -> Self:
        await self._begin()
        self._entered = True
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        running = self._running() if self._running is not None else None
        # Another task may wait in it still, as where its next chunk is waited for with a timeout.
        if running is not None and not running.ag_running:
            await running.aclose()
        if self._reply is not None:
            if not self._reply.over:
                await self._leave(self._reply, error)
            self._reply.tell(error)

    def __aiter__(self) -> AsyncIterator[Chunk]:
        over = self._reply is not None and self._reply.over
        if self._running is not None or over:
            raise UsageError("a recording is iterated once", hint="record another stream")
        generator = self._chunks()
        self._running = weakref.ref(generator)
        return generator

    async def _begin(self) -> Reply:
        if self._reply is None:
            try:
                self._reply = await self._threads.read(self._make)
            except BaseException as error:
                await _close(self._stream, error)
                raise
            try:
                await self._threads.write(self._reply.begin)
            except BaseException as error:
                await self._leave(self._reply, error)
                raise
        return self._reply

    async def _chunks(self) -> AsyncGenerator[Chunk]:
        reply = await self._begin()
        try:
            reply.expect()
            if streams.is_whole(self._stream):
                for chunk in reply.feed_whole(self._stream):
                    yield chunk
            else:
                async with aclosing(_events(self._stream)) as events:
                    async for raw in events:
                        for chunk in reply.feed(raw):
                            yield chunk
                        reply.expect()
            rest = await self._threads.must(reply.complete)
        except BaseException as error:
            await self._leave(reply, error)
            raise
        for chunk in rest:
            yield chunk

    async def _leave(self, reply: Reply, error: BaseException | None) -> None:
        # Shielded: a cancelled task waits for its reply to be stored, then goes on ending. Some
        # frameworks cancel again at every await, so not even the queue may let go of it.
        goes_on = error
        try:
            await self._threads.must(reply.leave, error)
        except Exception as failure:
            goes_on = failure if error is None else error
            if not (self._entered and isinstance(error, GeneratorExit)):
                reply.lose(failure, error)
            reply.failure = failure
        finally:
            await _close(self._stream, goes_on)


async def _events(stream: AsyncIterable[Any] | Iterable[Any]) -> AsyncGenerator[Any]:
    if isinstance(stream, AsyncIterable):
        async for raw in stream:
            yield raw
    else:
        for raw in stream:
            yield raw


async def _close(stream: Any, error: BaseException | None) -> None:
    for name in ("aclose", "close"):
        close = getattr(stream, name, None)
        if callable(close):
            with streams.kept(error):
                closing = close()
                if inspect.isawaitable(closing):
                    await closing
            return
