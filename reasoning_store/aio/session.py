"""AsyncSession: the verbs of Session, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias, Unpack

from reasoning_store.aio.following import AsyncFollowing
from reasoning_store.aio.recording import recorded
from reasoning_store.aio.threads import Threads, awaited, awaited_as, written
from reasoning_store.egress.request import Request
from reasoning_store.ledger.records import SessionRow
from reasoning_store.recording.following import ReplyFollower
from reasoning_store.sessions.context import Context
from reasoning_store.sessions.facts import SessionFacts
from reasoning_store.sessions.recovery import Ask, Recovery
from reasoning_store.sessions.session import Session
from reasoning_store.sessions.settings import SessionSettings
from reasoning_store.sessions.view import ContextNames, spell_names

AsyncAsk: TypeAlias = Callable[[Request], Awaitable[object]]
"""Sends a request, and returns the provider's error; None if it was taken."""


def _from_a_thread(ask: AsyncAsk) -> Ask:
    """Return a function for another thread that asks on this loop."""
    loop = asyncio.get_running_loop()

    async def asked(request: Request) -> object:
        return await ask(request)

    return lambda request: asyncio.run_coroutine_threadsafe(asked(request), loop).result()


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

    rename = written(Session.rename)
    set_metadata = written(Session.set_metadata)
    update_metadata = written(Session.update_metadata)
    archive = written(Session.archive)

    append = written(Session.append)
    record = recorded(Session.record)

    def follow(self, after: str | None = None) -> AsyncFollowing:
        """Follow the reply that is being recorded, with ``async for``. See ``Session.follow``."""
        return AsyncFollowing(
            self._threads, partial(ReplyFollower, self._sync._own_branch()), after
        )

    stop = written(Session.stop)
    history = awaited(Session.history)
    get = awaited(Session.get)
    annotate = written(Session.annotate)

    @spell_names
    def context(self, *, limit: int | None = None, **names: Unpack[ContextNames]) -> AsyncContext:
        """Name a model, its system prompt, tools and limit once for many calls."""
        return AsyncContext(self._threads, self._sync.context(limit=limit, **names))

    build_request = awaited(Session.build_request)
    usage = awaited(Session.usage)
    what_if = awaited(Session.what_if)
    compression = awaited(Session.compression)
    compact = written(Session.compact)
    compactions = awaited(Session.compactions)
    undo = written(Session.undo)
    withhold = written(Session.withhold)
    withheld = awaited(Session.withheld)

    async def recover(
        self, error: object, request: Request, *, ask: AsyncAsk | None = None
    ) -> Recovery:
        """Bring a refused request back; ``ask`` is awaited. See ``Session.recover``."""
        asked = None if ask is None else _from_a_thread(ask)
        return await self._threads.run_long(self._sync.recover, error, request, ask=asked)

    budget = written(Session.budget)

    fork = awaited_as(Session.fork, _session, by=Threads.write)
    edit = written(Session.edit)
    regenerate = awaited_as(Session.regenerate, _session, by=Threads.write)
    pop_turn = awaited_as(Session.pop_turn, _session, by=Threads.write)
    head = awaited(Session.head)
    drop_tail = written(Session.drop_tail)
    branches = awaited(Session.branches)

    branch = awaited_as(Session.branch, _session)
    activate = written(Session.activate)
    delete = written(Session.delete)
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

    async def recover(self, error: object, *, ask: AsyncAsk | None = None) -> Recovery:
        """Bring back this context's last request. See ``Context.recover``."""
        asked = None if ask is None else _from_a_thread(ask)
        return await self._threads.run_long(self._sync.recover, error, ask=asked)

    last_request = awaited(Context.last_request)
    usage = awaited(Context.usage)
    what_if = awaited(Context.what_if)
    compression = awaited(Context.compression)
    record = recorded(Context.record)


class AsyncSessionSettings:
    """The settings of one session: set once, read for every request.

    Made by ``AsyncSession.settings``.
    """

    def __init__(self, threads: Threads, sync: SessionSettings) -> None:
        self._threads = threads
        self._sync = sync

    set = written(SessionSettings.set)
    unset = written(SessionSettings.unset)
    use = written(SessionSettings.use)
    profile = awaited(SessionSettings.profile)
    resolved = awaited(SessionSettings.resolved)
