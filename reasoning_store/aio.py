"""The promised asynchronous face: the same names, awaited.

There is one logic. Each verb of ``Store`` and ``Session`` runs whole in one hop to a thread
of the store's own: one thread for the writes of an SQLite file, a few for its reads, as
many as there are connections on PostgreSQL. So nothing here touches the database, the
event loop never waits for a disk, and both faces stand in the same lane.

A verb that has begun is waited for, also when its task is cancelled; then the cancellation
goes on. One that has not begun yet never does.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, overload

from reasoning_store.blocks import Message, ToolCallBlock
from reasoning_store.chunks import Chunk
from reasoning_store.egress.request import Request
from reasoning_store.egress.usage import ContextUsage
from reasoning_store.errors import UsageError
from reasoning_store.ingress.masking import Masker
from reasoning_store.recorder import Reply
from reasoning_store.session import Branch, Session, SessionSettings, Stored
from reasoning_store.settings import ReasoningSettings, Resolved
from reasoning_store.store import Owner, Store
from reasoning_store.tokenizers import DEFAULT_ENCODING

P = ParamSpec("P")
T = TypeVar("T")
Settings = ReasoningSettings | Mapping[str, Any] | None

_READERS = 4


class Hops:
    """Threads for one store: writes in order, reads beside one another."""

    def __init__(self, *, writers: int, readers: int) -> None:
        self._writes = ThreadPoolExecutor(writers, thread_name_prefix="reasoning-store-write")
        self._reads = (
            ThreadPoolExecutor(readers, thread_name_prefix="reasoning-store-read")
            if readers
            else self._writes
        )

    async def write(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await _hop(self._writes, partial(work, *args, **kwargs))

    async def must(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Write also when the task is cancelled before the write has begun."""
        return await _hop(self._writes, partial(work, *args, **kwargs), may_be_dropped=False)

    async def read(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await _hop(self._reads, partial(work, *args, **kwargs))

    def close(self) -> None:
        self._writes.shutdown(wait=False)
        self._reads.shutdown(wait=False)


async def _hop(
    executor: ThreadPoolExecutor, work: Callable[[], T], *, may_be_dropped: bool = True
) -> T:
    begun = executor.submit(work)
    waiting = asyncio.wrap_future(begun)
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        if may_be_dropped and begun.cancel():
            raise  # it was still in the queue, and has done nothing
        while not waiting.done():
            try:
                await asyncio.wait([waiting])
            except asyncio.CancelledError:
                continue  # asked again; a transaction cannot be left in the middle
        if not waiting.cancelled():
            waiting.exception()  # seen: the cancellation is what the caller is told
        raise


@dataclass(frozen=True, slots=True)
class AsyncPage:
    """A page of sessions, and what to ask for the next one."""

    items: list[AsyncSession]
    next: str | None


class AsyncOwner:
    """One owner's sessions; another's are not found, the same as absent ones."""

    _hops: Hops
    _sync: Owner  # the same, to be called in a thread

    async def session(
        self,
        id: str | None = None,
        *,
        create: bool = False,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> AsyncSession:
        """Return a session on its current branch. See ``Store.session``."""
        found = await self._hops.write(
            self._sync.session, id, create=create, title=title, metadata=metadata
        )
        return AsyncSession(self._hops, found)

    async def sessions(
        self, *, limit: int = 50, after: str | None = None, archived: bool = False
    ) -> AsyncPage:
        """Return sessions, the latest first, without reading any history."""
        page = await self._hops.read(
            self._sync.sessions, limit=limit, after=after, archived=archived
        )
        return AsyncPage([AsyncSession(self._hops, item) for item in page.items], page.next)


class _OneOwner(AsyncOwner):
    def __init__(self, hops: Hops, sync: Owner) -> None:
        self._hops = hops
        self._sync = sync


class AsyncStore(AsyncOwner):
    """A store at a database URL, for programs with an event loop. See ``Store``."""

    def __init__(
        self, url: str, *, masker: Masker | None = None, encoding: str = DEFAULT_ENCODING
    ) -> None:
        self._open = partial(Store, url, masker=masker, encoding=encoding)
        self._store: Store | None = None

    async def __aenter__(self) -> Self:
        if self._store is not None:
            raise UsageError("the store is open already")
        opening = Hops(writers=1, readers=0)
        try:
            store = await opening.write(self._open)
        finally:
            opening.close()
        self._store = self._sync = store
        writers = store.writers
        self._hops = Hops(writers=writers, readers=_READERS if writers == 1 else 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def for_owner(self, owner: str) -> AsyncOwner:
        """Return the same verbs for this owner only. Without one the owner is ``""``."""
        sync = self._opened.for_owner(owner)
        return _OneOwner(self._hops, sync)

    @property
    def revision(self) -> str:
        """The revision of the database's schema."""
        return self._opened.revision

    async def close(self) -> None:
        if self._store is not None:
            store, self._store = self._store, None
            await self._hops.write(store.close)
            self._hops.close()

    @property
    def _opened(self) -> Store:
        if self._store is None:
            raise UsageError("the store is not open", hint="async with rs.AsyncStore(url) as store")
        return self._store


class AsyncSession:
    """One conversation. Made by ``AsyncStore.session``; the verbs are those of ``Session``."""

    def __init__(self, hops: Hops, sync: Session) -> None:
        self._hops = hops
        self._sync = sync

    @property
    def id(self) -> str:
        return self._sync.id

    @property
    def owner(self) -> str:
        return self._sync.owner

    @property
    def title(self) -> str | None:
        return self._sync.title

    @property
    def metadata(self) -> dict[str, Any]:
        return self._sync.metadata

    @property
    def updated_at(self) -> datetime:
        """When something was last said, as of when this handle was made."""
        return self._sync.updated_at

    @property
    def settings(self) -> AsyncSessionSettings:
        return AsyncSessionSettings(self._hops, self._sync.settings)

    async def rename(self, title: str | None) -> None:
        """Give the session another title, or none."""
        await self._hops.write(self._sync.rename, title)

    async def archive(self, *, archived: bool = True) -> None:
        """Take the session out of the usual list, or put it back."""
        await self._hops.write(self._sync.archive, archived=archived)

    @overload
    async def append(
        self,
        message: Message,
        *,
        idempotency_key: str | None = None,
        after: int | None = None,
        created_at: datetime | None = None,
    ) -> Stored: ...

    @overload
    async def append(
        self,
        message: Sequence[Message],
        *,
        idempotency_key: str | None = None,
        after: int | None = None,
        created_at: datetime | None = None,
    ) -> list[Stored]: ...

    async def append(
        self,
        message: Message | Sequence[Message],
        *,
        idempotency_key: str | None = None,
        after: int | None = None,
        created_at: datetime | None = None,
    ) -> Stored | list[Stored]:
        """Store a message at the end, or several as one. See ``Session.append``."""
        append: Callable[..., Stored | list[Stored]] = self._sync.append
        return await self._hops.write(
            append,
            message,
            idempotency_key=idempotency_key,
            after=after,
            created_at=created_at,
        )

    def record(
        self,
        stream: AsyncIterable[Any] | Iterable[Any],
        *,
        request: Request | None = None,
        provider: str | None = None,
        model: str | None = None,
        api: str | None = None,
        base_url: str | None = None,
        idempotency_key: str | None = None,
    ) -> AsyncRecording:
        """Return a recording of one reply, to iterate with ``async for``. Not awaited."""
        make = partial(
            self._sync._reply, request, (provider, model, api, base_url), idempotency_key
        )
        return AsyncRecording(self._hops, make, stream)

    async def history(
        self, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> list[Stored]:
        """Return the messages, all of their thinking included (BR-002), oldest first."""
        return await self._hops.read(self._sync.history, limit=limit, before=before, after=after)

    async def get(self, position: int) -> Stored:
        """Return one message."""
        return await self._hops.read(self._sync.get, position)

    async def fork(self, *, at: int) -> AsyncSession:
        """Return a new branch that shares the messages before ``at`` and nothing after."""
        return AsyncSession(self._hops, await self._hops.write(self._sync.fork, at=at))

    async def edit(self, position: int, message: Message) -> Stored:
        """Say something else at ``position``. See ``Session.edit``."""
        return await self._hops.write(self._sync.edit, position, message)

    async def regenerate(self, position: int) -> AsyncSession:
        """Make room for another reply in place of the one at ``position``."""
        await self._hops.write(self._sync.regenerate, position)
        return self

    async def pop_turn(self) -> AsyncSession:
        """Take the last turn back, from its user message on. See ``Session.pop_turn``."""
        await self._hops.write(self._sync.pop_turn)
        return self

    async def branches(self) -> list[Branch]:
        """Return every branch, the oldest first."""
        return await self._hops.read(self._sync.branches)

    async def branch(self, id: int) -> AsyncSession:
        """Return this session on another of its branches."""
        return AsyncSession(self._hops, await self._hops.read(self._sync.branch, id))

    async def activate(self, id: int) -> None:
        """Make a branch the one that opening the session gives."""
        await self._hops.write(self._sync.activate, id)

    async def build_request(
        self,
        *,
        settings: Settings = None,
        provider: str | None = None,
        model: str | None = None,
        api: str | None = None,
        base_url: str | None = None,
        system: Any = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Request:
        """Return the next request, with the settings that hold now."""
        return await self._hops.read(
            self._sync.build_request,
            settings=settings,
            provider=provider,
            model=model,
            api=api,
            base_url=base_url,
            system=system,
            tools=tools,
            extra=extra,
        )

    async def usage(
        self,
        *,
        limit: int | None = None,
        settings: Settings = None,
        provider: str | None = None,
        model: str | None = None,
        api: str | None = None,
        base_url: str | None = None,
        system: Any = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        at: int | None = None,
    ) -> ContextUsage:
        """Return what the next request would count (BR-004), from carried state alone."""
        return await self._hops.read(
            self._sync.usage,
            limit=limit,
            settings=settings,
            provider=provider,
            model=model,
            api=api,
            base_url=base_url,
            system=system,
            tools=tools,
            at=at,
        )


class AsyncSessionSettings:
    """The settings of one session: set once, read for every request."""

    def __init__(self, hops: Hops, sync: SessionSettings) -> None:
        self._hops = hops
        self._sync = sync

    async def set(self, key: str, value: Any) -> None:
        """Set one key for this session. A bad value changes nothing (ERR-001)."""
        await self._hops.write(self._sync.set, key, value)

    async def unset(self, key: str) -> None:
        """Let the weaker layers decide about this key again."""
        await self._hops.write(self._sync.unset, key)

    async def resolved(self) -> dict[str, Resolved]:
        """Return every key with the value that holds now, and the layer it comes from."""
        return await self._hops.read(self._sync.resolved)


class AsyncRecording:
    """A reply that is recorded from an asynchronous loop. Made by ``AsyncSession.record``.

    Iterate it with ``async for``, bare or under ``async with``.
    """

    def __init__(
        self,
        hops: Hops,
        make: Callable[[], Reply],
        stream: AsyncIterable[Any] | Iterable[Any],
    ) -> None:
        self._hops = hops
        self._make = make
        self._stream = stream
        self._reply: Reply | None = None
        # The loop that iterates owns the generator, as in a synchronous recording.
        self._running: weakref.ref[AsyncGenerator[Chunk]] | None = None

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
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        running = self._running() if self._running is not None else None
        if running is not None:
            await running.aclose()
        if self._reply is not None and not self._reply.over:
            await self._leave(self._reply, error)
        if self._reply is not None and self._reply.conflict is not None and error is None:
            raise self._reply.conflict

    def __aiter__(self) -> AsyncIterator[Chunk]:
        if self._running is not None:
            raise UsageError("a recording is iterated once", hint="record another stream")
        generator = self._chunks()
        self._running = weakref.ref(generator)
        return generator

    async def _begin(self) -> Reply:
        if self._reply is None:
            self._reply = await self._hops.read(self._make)
            try:
                await self._hops.write(self._reply.begin)
            except BaseException as error:
                await self._leave(self._reply, error)
                raise
        return self._reply

    async def _chunks(self) -> AsyncGenerator[Chunk]:
        reply = await self._begin()
        try:
            reply.expect()
            async with aclosing(_events(self._stream)) as events:
                async for raw in events:
                    for chunk in reply.feed(raw):
                        yield chunk
                    reply.expect()
        except BaseException as error:
            await self._leave(reply, error)
            raise
        for chunk in await self._hops.write(reply.complete):
            yield chunk

    async def _leave(self, reply: Reply, error: BaseException | None) -> None:
        # Shielded: a cancelled task waits for its reply to be stored, then goes on ending. Some
        # frameworks cancel again at every await, so not even the queue may let go of it.
        try:
            await self._hops.must(reply.leave, error)
        finally:
            await _close(self._stream)


async def _events(stream: AsyncIterable[Any] | Iterable[Any]) -> AsyncGenerator[Any]:
    if isinstance(stream, AsyncIterable):
        async for raw in stream:
            yield raw
    else:
        for raw in stream:
            yield raw


async def _close(stream: Any) -> None:
    for name in ("aclose", "close"):
        close = getattr(stream, name, None)
        if callable(close):
            closing = close()
            if asyncio.iscoroutine(closing):
                await closing
            return
