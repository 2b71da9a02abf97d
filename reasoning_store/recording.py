"""A reply that is read in a loop and stored at its end.

A recording stores one assistant message, and calls neither a tool nor a model. At the end of its
stream the message is complete. If the loop is left early - a break, an exception of the
application or of the stream, a cancelled task - what arrived is stored as interrupted, the stream
is closed if it can be, and the exception goes on unchanged.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import aclosing, contextmanager
from types import TracebackType
from typing import Any, Self

from reasoning_store.conversation import json_values
from reasoning_store.conversation.blocks import Message, ToolCallBlock
from reasoning_store.conversation.chunks import Chunk
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.reply_recorder import ReplyRecorder
from reasoning_store.stored import Stored
from reasoning_store.threads import Threads

_FRAMING = ("data:", "event:", "id:", "retry:", ":")
_OURS = "append(message) stores a message; a recording reads the provider's events"


class Recording:
    """A reply that is recorded from a loop. Made by ``Session.record``.

    Iterate it for the chunks, bare or under ``with``; afterwards ``stored``, ``message`` and
    ``tool_calls`` hold the result.
    """

    def __init__(self, reply: ReplyRecorder, stream: Iterable[Any]) -> None:
        self._reply = reply
        self._stream = stream
        # The loop owns the generator, so that it ends when the loop is left.
        self._running: weakref.ref[Any] | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._reply.described}>"

    @property
    def stored(self) -> Stored | None:
        """The stored message; ``None`` before the end, and if nothing had arrived."""
        return self._reply.stored

    @property
    def message(self) -> Message | None:
        """The message: the stored one, or before the end what has arrived."""
        return self._reply.message

    @property
    def tool_calls(self) -> tuple[ToolCallBlock, ...]:
        """The calls that the model asks for; you make them and append the answers."""
        return self.message.tool_calls if self.message is not None else ()

    def save(self) -> Stored | None:
        """Store a reply whose end the store refused (``StoreBusy``, ``StoreFull``).

        Call it once the store answers again, and as often as it takes: a reply is stored once.
        ``Conflict`` means that another append came first and ended it as interrupted.
        """
        return self._reply.save()

    def __enter__(self) -> Self:
        self._begin()
        self._reply.has_block = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            running = self._running() if self._running is not None else None
            if running is not None and not running.gi_running:
                running.close()
        finally:
            # Another thread may still be in the generator.
            if not self._reply.over:
                self._leave(error)
        if not isinstance(error, GeneratorExit):
            self._reply.finish_left()
            self._reply.report(error)

    def __iter__(self) -> Iterator[Chunk]:
        if self._running is not None or self._reply.over:
            raise InvalidCall("a recording is iterated once", hint="record another stream")
        generator = self._chunks()
        self._running = weakref.ref(generator)
        return generator

    def _chunks(self) -> Generator[Chunk]:
        self._begin()
        reply = self._reply
        try:
            reply.wait()
            if is_whole(self._stream):
                yield from reply.feed_whole(self._stream)
            else:
                for event in self._stream:
                    if reply.is_empty:
                        check_first(event)
                    yield from reply.feed(event)
                    reply.wait()
            rest = reply.complete()
        except BaseException as error:
            self._leave(error)
            raise
        yield from rest

    def _begin(self) -> None:
        try:
            self._reply.begin()
        except BaseException as error:
            self._leave(error)
            raise

    def _leave(self, error: BaseException | None) -> None:
        goes_on = error
        try:
            if isinstance(error, GeneratorExit):
                self._reply.leave_later()
            else:
                self._reply.leave(error)
        except Exception as failure:
            goes_on = failure if error is None else error
            raise
        finally:
            with noting_failure(goes_on):
                closing = getattr(self._stream, "close", None)
                if callable(closing):
                    closing()


class AsyncRecording:
    """A reply that is recorded from an asynchronous loop. Made by ``AsyncSession.record``.

    Iterate it with ``async for``, bare or under ``async with``.
    """

    def __init__(
        self,
        threads: Threads,
        make: Callable[[], ReplyRecorder],
        stream: AsyncIterable[Any] | Iterable[Any],
    ) -> None:
        self._threads = threads
        self._make = make
        self._stream = stream
        self._reply: ReplyRecorder | None = None
        self._running: weakref.ref[Any] | None = None
        self._entered = False

    def __repr__(self) -> str:
        described = "not begun" if self._reply is None else self._reply.described
        return f"<{type(self).__name__} {described}>"

    @property
    def stored(self) -> Stored | None:
        """The stored message; ``None`` before the end, and if nothing had arrived."""
        return self._reply.stored if self._reply is not None else None

    @property
    def message(self) -> Message | None:
        """The message: the stored one, or before the end what has arrived."""
        return self._reply.message if self._reply is not None else None

    @property
    def tool_calls(self) -> tuple[ToolCallBlock, ...]:
        """The calls that the model asks for; you make them and append the answers."""
        return self.message.tool_calls if self.message is not None else ()

    async def save(self) -> Stored | None:
        """Store a reply whose end the store refused (``StoreBusy``, ``StoreFull``).

        Call it once the store answers again, and as often as it takes: a reply is stored once.
        ``Conflict`` means that another append came first and ended it as interrupted.
        """
        if self._reply is None:
            raise InvalidCall(
                "this recording has not begun", hint="async for chunk in it reads its stream"
            )
        return await self._threads.must(self._reply.save)

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
        # Another task may still be in the generator, as with a timeout around its next chunk.
        if running is not None and not running.ag_running:
            await running.aclose()
        if self._reply is not None:
            if not self._reply.over:
                await self._leave(self._reply, error)
            self._reply.report(error)

    def __aiter__(self) -> AsyncIterator[Chunk]:
        over = self._reply is not None and self._reply.over
        if self._running is not None or over:
            raise InvalidCall("a recording is iterated once", hint="record another stream")
        generator = self._chunks()
        self._running = weakref.ref(generator)
        return generator

    async def _begin(self) -> ReplyRecorder:
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
            reply.wait()
            if is_whole(self._stream):
                for chunk in reply.feed_whole(self._stream):
                    yield chunk
            else:
                async with aclosing(_events(self._stream)) as events:
                    async for event in events:
                        if reply.is_empty:
                            check_first(event)
                        for chunk in reply.feed(event):
                            yield chunk
                        reply.wait()
            rest = await self._threads.must(reply.complete)
        except BaseException as error:
            await self._leave(reply, error)
            raise
        for chunk in rest:
            yield chunk

    async def _leave(self, reply: ReplyRecorder, error: BaseException | None) -> None:
        # A cancelled task waits for its reply to be stored, however often it is cancelled.
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


@contextmanager
def noting_failure(error: BaseException | None) -> Iterator[None]:
    """Close a stream here: a failure becomes a note on ``error``, or is raised without one."""
    try:
        yield
    except Exception as failure:
        if error is None:
            raise
        error.add_note(f"the stream could not be closed: {type(failure).__name__}")


def is_whole(given: Any) -> bool:
    """Whether this is a whole response: a mapping, or an SDK's object that is no stream."""
    if isinstance(given, Mapping):
        return True
    # Such objects can be iterated, too: they give their fields.
    dumps = callable(getattr(given, "model_dump", None))
    return dumps and not isinstance(given, Iterator | AsyncIterator)


def check_stream(given: Any, *, awaited: bool) -> None:
    """Refuse a value that gives no events; ``awaited`` if it may be asynchronous."""
    if isinstance(given, str | bytes | bytearray):
        raise InvalidCall(
            "record() reads provider events, not text",
            hint="append(rs.normalize_response(text)) stores a whole answer",
        )
    if is_whole(given) or isinstance(given, Iterable):
        return
    if isinstance(given, AsyncIterable):
        if awaited:
            return
        raise InvalidCall("this stream is asynchronous", hint="record it with rs.AsyncStore")
    if isinstance(given, Awaitable):
        raise InvalidCall("this stream was not awaited", hint="record(await client...create(...))")
    raise InvalidCall(
        f"a stream can be iterated, and {type(given).__name__} cannot be",
        hint=_OURS if _is_ours(given) else "enter a context manager first: with ... as stream",
    )


def check_first(event: Any) -> None:
    """Refuse a stream whose first event is no event: bytes, a line, text, or ours."""
    if isinstance(event, bytes | bytearray | memoryview) or (
        isinstance(event, str) and (event.startswith(_FRAMING) or json_values.is_object(event))
    ):
        raise InvalidCall(
            "this stream gives bytes or lines, not events",
            hint="reasoning_store.wire.sse turns them into events: JSONEvents, NDJSONDecoder",
        )
    if isinstance(event, str):
        raise InvalidCall(
            "this stream gives pieces of text, not events",
            hint="record the provider's events, and take the text from the chunks you get",
        )
    if _is_ours(event):
        raise InvalidCall(
            f"this stream gives {type(event).__name__} objects, not events", hint=_OURS
        )


def _is_ours(given: Any) -> bool:
    """Whether this is a message or a chunk, which a recording makes and does not read."""
    return type(given).__module__.partition(".")[0] == __name__.partition(".")[0]
