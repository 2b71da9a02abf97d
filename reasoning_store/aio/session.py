"""AsyncSession: the verbs of Session, awaited."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, overload

from reasoning_store.aio.following import AsyncFollowing
from reasoning_store.aio.recording import AsyncRecording
from reasoning_store.aio.threads import Threads, awaited, awaited_as
from reasoning_store.conversation.blocks import Message
from reasoning_store.conversation.identity import Asked
from reasoning_store.conversation.reasoning_settings import ReasoningSettings
from reasoning_store.egress.request import Request
from reasoning_store.ledger.records import SessionRow
from reasoning_store.recording.following import ReplyFollower
from reasoning_store.recording.reply_recorder import ReplyRecorder
from reasoning_store.recording.streams import FED
from reasoning_store.sessions.context import Context
from reasoning_store.sessions.facts import SessionFacts
from reasoning_store.sessions.session import Session
from reasoning_store.sessions.settings import SessionSettings
from reasoning_store.sessions.view import ContextOptions
from reasoning_store.stored_values import Stored


def _session(threads: Threads, sync: Session) -> AsyncSession:
    return AsyncSession(threads, sync)


class AsyncSession(SessionFacts):
    """One conversation. Made by ``AsyncStore.session``; the verbs are those of ``Session``."""

    def __init__(self, threads: Threads, sync: Session) -> None:
        self._threads = threads.lane_of((sync.owner, sync.id))
        self._sync = sync

    def __repr__(self) -> str:
        return repr(self._sync).replace("<Session", f"<{type(self).__name__}", 1)

    @property
    def branch_id(self) -> int:
        """The branch of this handle."""
        return self._sync.branch_id

    def _facts(self) -> SessionRow:
        return self._sync._facts()

    @property
    def settings(self) -> AsyncSessionSettings:
        return AsyncSessionSettings(self._threads, self._sync.settings)

    rename = awaited(Session.rename, by=Threads.write)
    set_metadata = awaited(Session.set_metadata, by=Threads.write)
    update_metadata = awaited(Session.update_metadata, by=Threads.write)
    archive = awaited(Session.archive, by=Threads.write)

    @overload
    async def append(
        self,
        message: Message,
        *,
        id: str | None = None,
        idempotency_key: str | None = None,
        after: int | str | None = None,
        created_at: datetime | None = None,
        update_metadata: Mapping[str, Any] | None = None,
        expected: Mapping[str, Any] | None = None,
    ) -> Stored: ...

    @overload
    async def append(
        self,
        message: Sequence[Message],
        *,
        id: Sequence[str | None] | None = None,
        idempotency_key: str | None = None,
        after: int | str | None = None,
        created_at: datetime | Sequence[datetime | None] | None = None,
        update_metadata: Mapping[str, Any] | None = None,
        expected: Mapping[str, Any] | None = None,
    ) -> list[Stored]: ...

    async def append(
        self,
        message: Message | Sequence[Message],
        *,
        id: str | Sequence[str | None] | None = None,
        idempotency_key: str | None = None,
        after: int | str | None = None,
        created_at: datetime | Sequence[datetime | None] | None = None,
        update_metadata: Mapping[str, Any] | None = None,
        expected: Mapping[str, Any] | None = None,
    ) -> Stored | list[Stored]:
        """Store a message at the end, or several as one. See ``Session.append``."""
        append: Callable[..., Stored | list[Stored]] = self._sync.append
        return await self._threads.write(
            append,
            message,
            id=id,
            idempotency_key=idempotency_key,
            after=after,
            created_at=created_at,
            update_metadata=update_metadata,
            expected=expected,
        )

    def record(
        self,
        stream: AsyncIterable[Any] | Iterable[Any] = FED,
        *,
        request: Request | None = None,
        provider: str | None = None,
        model: str | None = None,
        api: str | None = None,
        base_url: str | None = None,
        id: str | None = None,
        idempotency_key: str | None = None,
        starts_inside: bool | None = None,
        merge: bool = False,
        metadata: Mapping[str, Any] | None = None,
        asked: Asked | None = None,
    ) -> AsyncRecording:
        """Return a recording of one reply, to iterate with ``async for``. Not awaited."""
        options = ContextOptions(provider, model, api, base_url)
        make = partial(
            ReplyRecorder,
            self._sync._own_branch(),
            request,
            options,
            id=id,
            idempotency_key=idempotency_key,
            starts_inside=starts_inside,
            merge=merge,
            metadata=metadata,
            asked=asked,
        )
        return AsyncRecording(self._threads, make, stream)

    def follow(self, after: str | None = None) -> AsyncFollowing:
        """Follow the reply that is being recorded, with ``async for``. See ``Session.follow``."""
        return AsyncFollowing(
            self._threads, partial(ReplyFollower, self._sync._own_branch()), after
        )

    stop = awaited(Session.stop, by=Threads.write)
    history = awaited(Session.history)
    get = awaited(Session.get)
    annotate = awaited(Session.annotate, by=Threads.write)

    def context(
        self,
        *,
        provider: str | None = None,
        model: str | None = None,
        api: str | None = None,
        base_url: str | None = None,
        system: Any = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        settings: ReasoningSettings | Mapping[str, Any] | None = None,
        limit: int | None = None,
    ) -> AsyncContext:
        """Name a model, its system prompt, tools and limit once for many calls."""
        context = self._sync.context(
            provider=provider,
            model=model,
            api=api,
            base_url=base_url,
            system=system,
            tools=tools,
            settings=settings,
            limit=limit,
        )
        return AsyncContext(self._threads, context)

    build_request = awaited(Session.build_request)
    usage = awaited(Session.usage)
    what_if = awaited(Session.what_if)
    compression = awaited(Session.compression)
    compact = awaited(Session.compact, by=Threads.write)
    compactions = awaited(Session.compactions)
    undo = awaited(Session.undo, by=Threads.write)
    budget = awaited(Session.budget, by=Threads.write)

    fork = awaited_as(Session.fork, _session, by=Threads.write)
    edit = awaited(Session.edit, by=Threads.write)

    async def regenerate(self, position: int | str) -> AsyncSession:
        """Move this handle to a branch without the reply. See ``Session.regenerate``."""
        await self._threads.write(self._sync.regenerate, position)
        return self

    async def pop_turn(self) -> AsyncSession:
        """Move this handle to a branch without the last turn. See ``Session.pop_turn``."""
        await self._threads.write(self._sync.pop_turn)
        return self

    head = awaited(Session.head)
    drop_tail = awaited(Session.drop_tail, by=Threads.write)
    branches = awaited(Session.branches)

    branch = awaited_as(Session.branch, _session)
    activate = awaited(Session.activate, by=Threads.write)
    delete = awaited(Session.delete, by=Threads.write)
    erase = awaited(Session.erase, by=Threads.run_long)


class AsyncContext:
    """The part of a conversation that one model gets to see: you name the model once.

    Made by ``AsyncSession.context``; the verbs are those of ``Context``.
    """

    def __init__(self, threads: Threads, sync: Context) -> None:
        self._threads = threads
        self._sync = sync

    def __repr__(self) -> str:
        return repr(self._sync).replace("<Context", f"<{type(self).__name__}", 1)

    request = awaited(Context.request)
    last_request = awaited(Context.last_request)
    usage = awaited(Context.usage)
    what_if = awaited(Context.what_if)
    compression = awaited(Context.compression)

    def record(
        self,
        stream: AsyncIterable[Any] | Iterable[Any],
        *,
        idempotency_key: str | None = None,
        starts_inside: bool | None = None,
        merge: bool = False,
        metadata: Mapping[str, Any] | None = None,
    ) -> AsyncRecording:
        """Return a recording of the reply to this context's last request. Not awaited."""
        make = partial(
            self._sync._reply,
            idempotency_key=idempotency_key,
            starts_inside=starts_inside,
            merge=merge,
            metadata=metadata,
        )
        return AsyncRecording(self._threads, make, stream)


class AsyncSessionSettings:
    """The settings of one session: set once, read for every request.

    Made by ``AsyncSession.settings``.
    """

    def __init__(self, threads: Threads, sync: SessionSettings) -> None:
        self._threads = threads
        self._sync = sync

    set = awaited(SessionSettings.set, by=Threads.write)
    unset = awaited(SessionSettings.unset, by=Threads.write)
    use = awaited(SessionSettings.use, by=Threads.write)
    profile = awaited(SessionSettings.profile)
    resolved = awaited(SessionSettings.resolved)
