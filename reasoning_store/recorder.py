"""The promised face of one reply that is being streamed.

A recording stores one assistant message, never a user's or a tool's, and calls neither a
tool nor a model. At the end of its stream the message is complete. Left early - a break,
an exception of the application's or of the stream's, a cancelled task - what arrived is
stored as interrupted, the stream is closed if it can be, and the exception goes on
unchanged.

What becomes of the reply is ``replies``'s. Here a loop drives it, in ``aio_recorder`` an
asynchronous one. It must not know what a draft is, or how a reply is read.
"""

from __future__ import annotations

import weakref
from collections.abc import Generator, Iterable, Iterator
from types import TracebackType
from typing import Any, Self

from reasoning_store import streams
from reasoning_store.blocks import Message, ToolCallBlock
from reasoning_store.chunks import Chunk
from reasoning_store.collected import elsewhere
from reasoning_store.errors import UsageError
from reasoning_store.replies import Reply
from reasoning_store.stored import Stored


class Recording:
    """A reply that is recorded from a loop. Made by ``Session.record``.

    Iterate it for the chunks, bare or under ``with``; afterwards ``stored``, ``message``
    and ``tool_calls`` tell what was kept.
    """

    def __init__(self, reply: Reply, stream: Iterable[Any]) -> None:
        self._reply = reply
        self._stream = stream
        # The loop that iterates owns the generator: when the loop is left, it ends at once.
        self._running: weakref.ref[Any] | None = None
        self._entered = False

    @property
    def stored(self) -> Stored | None:
        """What was stored; ``None`` before the end, and where nothing had arrived."""
        return self._reply.stored

    @property
    def message(self) -> Message | None:
        """The message: what was stored, or before that what has arrived so far."""
        return self._reply.message

    @property
    def tool_calls(self) -> tuple[ToolCallBlock, ...]:
        """The calls the model asks for; the application makes them and appends the answers."""
        return self.message.tool_calls if self.message is not None else ()

    def __enter__(self) -> Self:
        self._begin()
        self._entered = True
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
            # Where that was interrupted, or another thread is in it still, what arrived so far
            # is kept.
            if not self._reply.over:
                self._leave(error)
        self._reply.tell(error)

    def __iter__(self) -> Iterator[Chunk]:
        if self._running is not None or self._reply.over:
            raise UsageError("a recording is iterated once", hint="record another stream")
        generator = self._chunks()
        self._running = weakref.ref(generator)
        return generator

    def _chunks(self) -> Generator[Chunk]:
        self._begin()
        reply = self._reply
        try:
            reply.expect()
            if streams.is_whole(self._stream):
                yield from reply.feed_whole(self._stream)
            else:
                for raw in self._stream:
                    yield from reply.feed(raw)
                    reply.expect()
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
        if elsewhere(lambda: self._leave(None)):
            return
        goes_on = error
        try:
            self._reply.leave(error)
        except Exception as failure:
            goes_on = failure if error is None else error
            # Nobody hears what is raised while the loop's iterator is let go of.
            if not (self._entered and isinstance(error, GeneratorExit)):
                raise
        finally:
            streams.close(self._stream, goes_on)
