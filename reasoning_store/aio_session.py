"""The promised asynchronous face of one conversation: the verbs of ``Session``, awaited.

Each runs whole in one hop to a thread of the store's own. It must not know what a verb does:
see ``session`` and ``sending``.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, overload

from reasoning_store import streams
from reasoning_store.aio_recorder import AsyncRecording
from reasoning_store.blocks import Message
from reasoning_store.egress import amounts as _amounts
from reasoning_store.egress import budget as _budget
from reasoning_store.egress.budget import Budget
from reasoning_store.egress.request import Request
from reasoning_store.egress.usage import ContextUsage
from reasoning_store.egress.what_if import WhatIf
from reasoning_store.layers import SessionSettings
from reasoning_store.ledger.values import Erased
from reasoning_store.ledger.verbs.erasing import Only
from reasoning_store.session import Session
from reasoning_store.settings import ReasoningSettings, Resolved
from reasoning_store.shortening import Plan
from reasoning_store.stored import Branch, Compaction, Stored
from reasoning_store.threads import Threads

Settings = ReasoningSettings | Mapping[str, Any] | None


class AsyncSession:
    """One conversation. Made by ``AsyncStore.session``; the verbs are those of ``Session``."""

    def __init__(self, threads: Threads, sync: Session) -> None:
        self._threads = threads.lane_of((sync.owner, sync.id))
        self._sync = sync

    @property
    def id(self) -> str:
        return self._sync.id

    @property
    def owner(self) -> str:
        return self._sync.owner

    @property
    def branch_id(self) -> int:
        """The branch that this handle stands on."""
        return self._sync.branch_id

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
        return AsyncSessionSettings(self._threads, self._sync.settings)

    async def rename(self, title: str | None) -> None:
        """Give the session another title, or none."""
        await self._threads.write(self._sync.rename, title)

    async def set_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Replace what the application keeps about the session."""
        await self._threads.write(self._sync.set_metadata, metadata)

    async def archive(self, *, archived: bool = True) -> None:
        """Take the session out of the usual list, or put it back."""
        await self._threads.write(self._sync.archive, archived=archived)

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
        return await self._threads.write(
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
        starts_inside: bool | None = None,
        merge: bool = False,
    ) -> AsyncRecording:
        """Return a recording of one reply, to iterate with ``async for``. Not awaited."""
        streams.check(stream, awaited=True)
        names = (provider, model, api, base_url)
        make = partial(
            self._sync._reply,
            request,
            names,
            idempotency_key,
            starts_inside=starts_inside,
            merge=merge,
        )
        return AsyncRecording(self._threads, make, stream)

    async def history(
        self,
        *,
        limit: int | None = None,
        tokens: int | None = None,
        before: int | None = None,
        after: int | None = None,
    ) -> list[Stored]:
        """Return the messages, all of their thinking included (BR-002). See ``Session.history``."""
        return await self._threads.read(
            self._sync.history, limit=limit, tokens=tokens, before=before, after=after
        )

    async def get(self, position: int) -> Stored:
        """Return one message."""
        return await self._threads.read(self._sync.get, position)

    async def fork(self, *, at: int) -> AsyncSession:
        """Return a new branch that shares the messages before ``at`` and nothing after."""
        return AsyncSession(self._threads, await self._threads.write(self._sync.fork, at=at))

    async def edit(self, position: int, message: Message) -> Stored:
        """Say something else at ``position``. See ``Session.edit``."""
        return await self._threads.write(self._sync.edit, position, message)

    async def regenerate(self, position: int) -> AsyncSession:
        """Make room for another reply in place of the one at ``position``."""
        await self._threads.write(self._sync.regenerate, position)
        return self

    async def pop_turn(self) -> AsyncSession:
        """Take the last turn back, from its user message on. See ``Session.pop_turn``."""
        await self._threads.write(self._sync.pop_turn)
        return self

    async def branches(self) -> list[Branch]:
        """Return every branch, the oldest first."""
        return await self._threads.read(self._sync.branches)

    async def branch(self, id: int) -> AsyncSession:
        """Return this session on another of its branches."""
        return AsyncSession(self._threads, await self._threads.read(self._sync.branch, id))

    async def activate(self, id: int) -> None:
        """Make a branch the one that opening the session gives."""
        await self._threads.write(self._sync.activate, id)

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
        return await self._threads.read(
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
        return await self._threads.read(
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

    async def what_if(
        self,
        *,
        settings: Settings = None,
        provider: str | None = None,
        model: str | None = None,
        api: str | None = None,
        base_url: str | None = None,
        system: Any = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> WhatIf:
        """Return what every include and strip would send, side by side."""
        return await self._threads.read(
            self._sync.what_if,
            settings=settings,
            provider=provider,
            model=model,
            api=api,
            base_url=base_url,
            system=system,
            tools=tools,
        )

    async def compression(
        self,
        *,
        limit: int,
        threshold: float = _amounts.THRESHOLD,
        reserve: int = 0,
        target: float | None = None,
        min_growth: int | None = None,
        min_freed: int | None = None,
        summary_tokens: int | None = None,
        clear: bool = True,
        settings: Settings = None,
        provider: str | None = None,
        model: str | None = None,
        api: str | None = None,
        base_url: str | None = None,
        system: Any = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> Plan:
        """Return whether the next request should get shorter. See ``Session.compression``."""
        return await self._threads.read(
            self._sync.compression,
            limit=limit,
            threshold=threshold,
            reserve=reserve,
            target=target,
            min_growth=min_growth,
            min_freed=min_freed,
            summary_tokens=summary_tokens,
            clear=clear,
            settings=settings,
            provider=provider,
            model=model,
            api=api,
            base_url=base_url,
            system=system,
            tools=tools,
        )

    async def compact(
        self, plan: Plan, *, summary: str | Message | None = None
    ) -> Compaction | None:
        """Do what a plan says. See ``Session.compact``."""
        return await self._threads.write(self._sync.compact, plan, summary=summary)

    async def compactions(self) -> list[Compaction]:
        """Return the summaries in force on this branch, in order, then a clearing."""
        return await self._threads.read(self._sync.compactions)

    async def undo(self, id: int) -> Compaction:
        """Take a summary or a clearing back: what it stands for goes out again."""
        return await self._threads.write(self._sync.undo, id)

    async def budget(self, *, limit: int | None = None, warn_at: float = _budget.WARN_AT) -> Budget:
        """Return what this session has thought, held against a limit. See ``Session.budget``."""
        return await self._threads.write(self._sync.budget, limit=limit, warn_at=warn_at)

    async def erase(self, position: int | None = None, *, only: Only = None) -> Erased:
        """Erase for real: this session, one message, or only reasoning. See ``Session.erase``."""
        return await self._threads.aside(self._sync.erase, position, only=only)


class AsyncSessionSettings:
    """The settings of one session: set once, read for every request.

    Made by ``AsyncSession.settings``.
    """

    def __init__(self, threads: Threads, sync: SessionSettings) -> None:
        self._threads = threads
        self._sync = sync

    async def set(self, key: str, value: Any) -> None:
        """Set one key for this session. A bad value changes nothing (ERR-001)."""
        await self._threads.write(self._sync.set, key, value)

    async def unset(self, key: str) -> None:
        """Let the weaker layers decide about this key again."""
        await self._threads.write(self._sync.unset, key)

    async def use(self, profile: str | None) -> None:
        """Take what this session does not set from a profile of its owner's; None: from none."""
        await self._threads.write(self._sync.use, profile)

    async def profile(self) -> str | None:
        """Return the name of the profile that is used."""
        return await self._threads.read(self._sync.profile)

    async def resolved(self) -> dict[str, Resolved]:
        """Return every key with the value that holds now, and the layer it comes from."""
        return await self._threads.read(self._sync.resolved)
