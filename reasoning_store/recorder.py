"""The promised face of one reply that is being streamed.

A recording stores one assistant message, never a user's or a tool's, and calls neither a
tool nor a model. At the end of its stream the message is complete. Left early - a break,
an exception of the application's or of the stream's, a cancelled task - what arrived is
stored as interrupted, the stream is closed if it can be, and the exception goes on
unchanged.

``Reply`` is the whole logic, in steps that either only compute or only write. ``Recording``
drives it from a loop, ``aio.AsyncRecording`` from an asynchronous one.
"""

from __future__ import annotations

import weakref
from collections.abc import Generator, Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from reasoning_store.blocks import Message, ToolCallBlock
from reasoning_store.chunks import Chunk
from reasoning_store.egress.request import Request
from reasoning_store.egress.select import Target
from reasoning_store.errors import Conflict, ReasoningStoreError, UsageError
from reasoning_store.ingress.normalizer import StreamNormalizer

if TYPE_CHECKING:
    from reasoning_store.session import Session, Stored


class Reply:
    """One reply on its way into a session: what has arrived, and what becomes of it."""

    def __init__(
        self,
        session: Session,
        *,
        to: Target,
        tags: Literal["auto", "always", "never"],
        request: Request | None,
        idempotency_key: str | None,
    ) -> None:
        self._session = session
        self._to = to
        self._request = request
        self._key = idempotency_key
        self._normalizer = StreamNormalizer(
            to.provider, to.model, to.contract.api, base_url=to.base_url, tags=tags
        )
        self._arrived = False
        self.over = False
        self.stored: Stored | None = None

    @property
    def message(self) -> Message | None:
        """What was stored, or before that what has arrived so far."""
        if self.stored is not None:
            return self.stored.message
        return self._normalizer.snapshot() if self._arrived else None

    def refuse_repeat(self) -> None:
        """Refuse an attempt whose key has been used. Reads the store."""
        if self._key is None or self._arrived:
            return
        first = self._session._first_under(self._key)
        if first is not None:
            self.over = True
            raise Conflict(
                "a reply was already recorded under this idempotency key",
                stored=first,
                hint="the first one is this error's .stored; a new attempt takes a new key",
            )

    def feed(self, raw: Any) -> list[Chunk]:
        """Take in one event. Computes only."""
        self._arrived = True
        return self._normalizer.feed(raw)

    def complete(self) -> list[Chunk]:
        """End a reply whose stream has ended. Writes the store."""
        rest = self._normalizer.close()
        self._save(interrupted=False)
        return rest

    def leave(self, error: BaseException | None) -> None:
        """Keep what arrived of a reply that was left. Writes the store."""
        try:
            self._save(interrupted=True)
        except ReasoningStoreError as failure:
            # The application's own exception goes on; what could not be stored is said on it.
            if error is None or isinstance(error, GeneratorExit):
                raise
            error.add_note(f"the interrupted reply could not be stored: {failure}")

    def _save(self, *, interrupted: bool) -> None:
        self.over = True
        if self._arrived:
            message = self._normalizer.finish(interrupted)
            self.stored = self._session._store_reply(
                message,
                self._normalizer.others,
                to=self._to,
                request=self._request,
                idempotency_key=self._key,
            )


class Recording:
    """A reply that is recorded from a loop. Made by ``Session.record``.

    Iterate it for the chunks, bare or under ``with``; afterwards ``stored``, ``message``
    and ``tool_calls`` tell what was kept.
    """

    def __init__(self, reply: Reply, stream: Iterable[Any]) -> None:
        self._reply = reply
        self._stream = stream
        # The loop that iterates owns the generator: when the loop is left, it ends at once.
        self._running: weakref.ref[Generator[Chunk]] | None = None

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
        self._refuse_repeat()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        running = self._running() if self._running is not None else None
        if running is not None:
            running.close()
        if not self._reply.over:
            self._leave(error)

    def __iter__(self) -> Iterator[Chunk]:
        if self._running is not None or self._reply.over:
            raise UsageError("a recording is iterated once", hint="record another stream")
        generator = self._chunks()
        self._running = weakref.ref(generator)
        return generator

    def _chunks(self) -> Generator[Chunk]:
        self._refuse_repeat()
        try:
            for raw in self._stream:
                yield from self._reply.feed(raw)
        except BaseException as error:
            self._leave(error)
            raise
        yield from self._reply.complete()

    def _refuse_repeat(self) -> None:
        try:
            self._reply.refuse_repeat()
        except Conflict:
            close_stream(self._stream)
            raise

    def _leave(self, error: BaseException | None) -> None:
        try:
            self._reply.leave(error)
        finally:
            close_stream(self._stream)


def close_stream(stream: Any) -> None:
    """Close a stream that can be closed; a list cannot."""
    close = getattr(stream, "close", None)
    if callable(close):
        close()
