"""A reply that is read in a loop and stored at its end.

A recording stores one assistant message, and calls neither a tool nor a model. At the end of its
stream the message is complete. If the loop is left early - a break, an exception of the
application or of the stream, a cancelled task - what arrived is stored as interrupted, the stream
is closed if it can be, and the exception goes on unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

from reasoning_store.conversation.blocks import Message, ToolCallBlock
from reasoning_store.conversation.chunks import Chunk
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.recording.reply_recorder import ReplyRecorder
from reasoning_store.recording.streams import (
    check_fed,
    check_stream,
    is_whole,
    noting_failure,
)
from reasoning_store.stored_values import Stored


class RecordedReply:
    """The reply of a recording; ``None`` until it has begun."""

    _reply: ReplyRecorder | None
    _stream: Any
    _is_entered = _is_iterated = False

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

    @property
    def is_stopped(self) -> bool:
        """Whether ``Session.stop`` ended the reply: read no more of its stream."""
        return self._reply is not None and self._reply.is_stopped

    def _begin_iteration(self) -> None:
        over = self._reply is not None and self._reply.over
        if self._is_iterated or (over and not self.is_stopped):
            raise InvalidCall("a recording is iterated once", hint="record another stream")
        self._is_iterated = True

    def _fed(self) -> ReplyRecorder:
        check_fed(self._stream, is_begun=self._is_entered)
        assert self._reply is not None
        return self._reply

    def _feed(self, event: Any) -> list[Chunk]:
        reply = self._fed()
        chunks = reply.feed(event)
        reply.wait()
        return chunks


class Recording(RecordedReply):
    """A reply that is recorded from a loop. Made by ``Session.record``.

    Iterate it for the chunks, under ``with``; afterwards ``stored``, ``message`` and ``tool_calls``
    hold the result. Without ``with`` a loop that you leave early is ended by its lease: what
    arrived is written, and reads as interrupted a little later. A recording without a stream is
    fed under ``with``: ``feed`` each event, then ``finish``.
    """

    _reply: ReplyRecorder

    def __init__(self, reply: ReplyRecorder, stream: Any) -> None:
        check_stream(stream, awaited=False)
        self._reply = reply
        self._stream = stream

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._reply.described}>"

    def save(self) -> Stored | None:
        """Store a reply whose end the store refused (``StoreBusy``, ``StoreFull``).

        Call it once the store answers again, and as often as it takes: a reply is stored once.
        ``Conflict`` means that another append came first and ended it as interrupted.
        """
        return self._reply.save()

    def __enter__(self) -> Self:
        self._begin()
        self._is_entered = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._reply.over:
            self._leave(error)
        elif not self._is_iterated:
            self._close_stream(error)
        self._reply.report(error)

    def __iter__(self) -> Iterator[Chunk]:
        self._begin_iteration()
        return self._chunks()

    def feed(self, event: Any) -> list[Chunk]:
        """Read one event, and return its chunks; for a program that passes the events on.

        Call it under ``with``. Without ``finish`` the reply is stored as interrupted.
        """
        return self._feed(event)

    def finish(self) -> list[Chunk]:
        """Store the reply that was fed, now that its stream has ended; return the last chunks."""
        return self._fed().complete()

    def _chunks(self) -> Iterator[Chunk]:
        self._begin()
        reply = self._reply
        try:
            reply.wait()
            if is_whole(self._stream):
                yield from reply.feed_whole(self._stream)
            else:
                for event in () if reply.is_stopped else self._stream:
                    yield from reply.feed(event)
                    if reply.is_stopped:
                        break
                    reply.wait()
            rest = reply.complete()
            if reply.is_stopped:
                self._close_stream(None)
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
            # The garbage collector ends a generator in any thread, whatever lock that holds: its
            # reply is written by the draft writer, and ended by its lease.
            if not isinstance(error, GeneratorExit):
                self._reply.store_partly(error)
        except Exception as failure:
            goes_on = failure if error is None else error
            raise
        finally:
            self._close_stream(goes_on)

    def _close_stream(self, error: BaseException | None) -> None:
        with noting_failure(error):
            closing = getattr(self._stream, "close", None)
            if callable(closing):
                closing()
