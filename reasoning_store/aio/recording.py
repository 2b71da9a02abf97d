"""AsyncRecording: a reply that is recorded from an asynchronous loop."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable
from contextlib import aclosing, suppress
from copy import copy
from functools import partial, wraps
from types import TracebackType
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar, cast

from reasoning_store.aio.threads import Threads
from reasoning_store.conversation.chunks import Chunk
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.recording.recording import RecordedReply, Recording
from reasoning_store.recording.reply_recorder import ReplyRecorder
from reasoning_store.recording.streams import (
    FED,
    check_stream,
    is_whole,
    noting_failure,
)
from reasoning_store.stored_values import Stored

_END: Final = object()
P = ParamSpec("P")
S = TypeVar("S")


class AsyncRecording(RecordedReply):
    """A reply that is recorded from an asynchronous loop. Made by ``AsyncSession.record``.

    Iterate it with ``async for`` under ``async with``: see ``Recording``.
    """

    def __init__(
        self,
        threads: Threads,
        make: Callable[[], Recording],
        stream: AsyncIterable[Any] | Iterable[Any],
    ) -> None:
        check_stream(stream, awaited=True)
        self._threads = threads
        self._make = make
        self._stream = stream
        self._reply: ReplyRecorder | None = None
        self._waiting: asyncio.Task[Any] | None = None
        """The task that waits for the stream's next event."""
        self._cancelled: asyncio.Task[Any] | None = None
        """The one whose waiting a stop has ended."""

    def __repr__(self) -> str:
        described = "not begun" if self._reply is None else self._reply.described
        return f"<{type(self).__name__} {described}>"

    async def save(self) -> Stored | None:
        """Store a reply whose end the store refused (``StoreBusy``, ``StoreFull``).

        Call it once the store answers again, and as often as it takes: a reply is stored once.
        ``Conflict`` means that another append came first and ended it as interrupted.
        """
        if self._reply is None:
            raise InvalidCall(
                "this recording has not begun", hint="async for chunk in it reads its stream"
            )
        return await self._threads.write_always(self._reply.save)

    async def __aenter__(self) -> Self:
        await self._begin()
        self._is_entered = True
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._reply is not None:
            if not self._reply.over:
                await self._leave(self._reply, error)
            elif not self._is_iterated:
                await _close(self._stream, error)
            self._reply.report(error)

    def __aiter__(self) -> AsyncIterator[Chunk]:
        self._begin_iteration()
        return self._chunks()

    async def feed(self, event: Any) -> list[Chunk]:
        """Read one event, and return its chunks. See ``Recording.feed``."""
        return self._feed(event)

    async def finish(self) -> list[Chunk]:
        """Store the reply that was fed, now that its stream has ended. See ``Recording``."""
        return await self._threads.write_always(self._fed().complete)

    async def _begin(self) -> ReplyRecorder:
        if self._reply is None:
            try:
                self._reply = (await self._threads.read(self._make))._reply
            except BaseException as error:
                await _close(self._stream, error)
                raise
            self._reply.on_stop = partial(self._end_waiting, asyncio.get_running_loop())
            try:
                await self._threads.write(self._reply.begin)
            except BaseException as error:
                await self._leave(self._reply, error)
                raise
        return self._reply

    async def _chunks(self) -> AsyncGenerator[Chunk]:
        reply = await self._begin()
        try:
            reply.wait()
            if is_whole(self._stream):
                for chunk in reply.feed_whole(self._stream):
                    yield chunk
            else:
                async with aclosing(_events(self._stream)) as events:
                    while (event := await self._next_event(events, reply)) is not _END:
                        for chunk in reply.feed(event):
                            yield chunk
                        reply.wait()
            rest = await self._threads.write_always(reply.complete)
            if reply.is_stopped:
                await _close(self._stream, None)
        except (
            GeneratorExit
        ):  # the end of an ``async with`` block stores it, else its lease ends it
            await _close(self._stream, None)
            raise
        except BaseException as error:
            await self._leave(reply, error)
            raise
        for chunk in rest:
            yield chunk

    async def _next_event(self, events: AsyncGenerator[Any], reply: ReplyRecorder) -> Any:
        """Return the stream's next event; ``_END`` after the last, and once the reply is stopped.

        A stop from elsewhere ends this waiting as a timeout does: the task is cancelled, and the
        cancellation goes no further than here.
        """
        if reply.is_stopped:
            return _END
        task = self._waiting = asyncio.current_task()
        before = 0 if task is None else task.cancelling()
        try:
            return await anext(events, _END)
        except asyncio.CancelledError:
            if self._cancelled is not task or task is None or task.uncancel() > before:
                raise
            return _END
        finally:
            self._waiting = None

    def _end_waiting(self, loop: asyncio.AbstractEventLoop) -> None:
        def cancel() -> None:
            if self._waiting is not None and self._cancelled is None:
                self._cancelled = self._waiting
                self._waiting.cancel()

        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(cancel)

    async def _leave(self, reply: ReplyRecorder, error: BaseException | None) -> None:
        # A cancelled task waits for its reply to be stored, however often it is cancelled.
        goes_on = error
        try:
            await self._threads.write_always(reply.store_partly, error)
        except Exception as failure:
            if error is None:
                goes_on = failure
                raise
            reply.note_failure(failure, error)
        finally:
            await _close(self._stream, goes_on)


def recorded(
    verb: Callable[Concatenate[S, P], Recording],
) -> Callable[Concatenate[Any, P], AsyncRecording]:
    """Return a synchronous handle's ``record`` for the asynchronous one; it is not awaited."""

    @wraps(verb)
    def run(self: Any, /, stream: Any = FED, **named: Any) -> AsyncRecording:
        # The copy stays on its branch, wherever the handle moves.
        return AsyncRecording(self._threads, partial(verb, copy(self._sync), **named), stream)

    return cast("Callable[Concatenate[Any, P], AsyncRecording]", run)


async def _events(stream: AsyncIterable[Any] | Iterable[Any]) -> AsyncGenerator[Any]:
    if isinstance(stream, AsyncIterable):
        async for event in stream:
            yield event
    else:
        for event in stream:
            yield event


async def _close(stream: Any, error: BaseException | None) -> None:
    for name in ("aclose", "close"):
        close = getattr(stream, name, None)
        if callable(close):
            with noting_failure(error):
                closing = close()
                if inspect.isawaitable(closing):
                    await closing
            return
