"""The promised asynchronous face: the same names, awaited.

There is one logic. Each verb of ``Store`` and ``Session`` runs whole in one hop to a thread
of the store's own (``threads``): a few write an SQLite file, each session in one of them, and a
few read it; on PostgreSQL there are as many as connections. This face must not touch the
database: so the event loop never waits for a disk, and both faces stand in the same lane.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, AsyncIterator, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from os import PathLike
from types import TracebackType
from typing import Any, Self

from reasoning_store.aio_session import AsyncSession
from reasoning_store.errors import UsageError
from reasoning_store.ingress.masking import Masker
from reasoning_store.layers import OwnerSettings, Profile, Profiles
from reasoning_store.ledger.reporting import By
from reasoning_store.ledger.values import BackedUp, Erased, Imported, ReportRow, Verified
from reasoning_store.ledger.verbs.erasing import Only
from reasoning_store.ledger.verbs.importing import OnConflict
from reasoning_store.settings import ReasoningSettings
from reasoning_store.store import Owner, Store
from reasoning_store.threads import Threads
from reasoning_store.tokenizers import DEFAULT_ENCODING

_READERS = 4
_LANES = 8


@dataclass(frozen=True, slots=True)
class AsyncPage:
    """A page of sessions, and what to ask for the next one."""

    items: list[AsyncSession]
    next: str | None


class AsyncOwner(ABC):
    """One owner's sessions; another's are not found, the same as absent ones.

    Made by ``AsyncStore.for_owner``. See ``Owner``.
    """

    @property
    @abstractmethod
    def _threads(self) -> Threads:
        """The threads that the verbs run in."""

    @property
    @abstractmethod
    def _sync(self) -> Owner:
        """The same, to be called in a thread."""

    @property
    def settings(self) -> AsyncOwnerSettings:
        """The settings profiles of this owner, for its sessions to use."""
        return AsyncOwnerSettings(self._threads, self._sync.settings)

    async def session(
        self,
        id: str | None = None,
        *,
        create: bool = False,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> AsyncSession:
        """Return a session on its current branch. See ``Store.session``."""
        found = await self._threads.write(
            self._sync.session, id, create=create, title=title, metadata=metadata
        )
        return AsyncSession(self._threads, found)

    async def sessions(
        self, *, limit: int = 50, after: str | None = None, archived: bool = False
    ) -> AsyncPage:
        """Return sessions, the latest first, without reading any history."""
        page = await self._threads.read(
            self._sync.sessions, limit=limit, after=after, archived=archived
        )
        return AsyncPage([AsyncSession(self._threads, item) for item in page.items], page.next)

    async def erase(self, *, only: Only = None) -> Erased:
        """Erase all of this owner's sessions and profiles for real. See ``Store.erase``."""
        return await self._threads.aside(self._sync.erase, only=only)

    async def report(
        self,
        by: By = "session",
        *,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[ReportRow]:
        """Return what was used, by session, owner, model or day. See ``Store.report``."""
        return await self._threads.read(self._sync.report, by, since=since, until=until)

    def export_lines(self, session: str | AsyncSession | None = None) -> AsyncIterator[str]:
        """Yield everything stored as lines of JSON, to iterate with ``async for``. Not awaited."""
        which = session._sync if isinstance(session, AsyncSession) else session
        return self._threads.each(partial(self._sync.export_lines, which))

    async def import_lines(
        self,
        lines: Iterable[str | bytes] | AsyncIterable[str | bytes],
        *,
        on_conflict: OnConflict = "refuse",
    ) -> Imported:
        """Take in the lines of an export, one by one. See ``Store.import_lines``.

        Cancelled, it stops where the next of asynchronous lines would come.
        """
        if not isinstance(lines, AsyncIterable):
            return await self._threads.aside(
                self._sync.import_lines, lines, on_conflict=on_conflict
            )
        pulled = _Pulled(lines)
        work = partial(self._sync.import_lines, pulled, on_conflict=on_conflict)
        return await self._threads.fed(work, stop=pulled.stop)


class _OneOwner(AsyncOwner):
    def __init__(self, threads: Threads, sync: Owner) -> None:
        self._of = threads, sync

    @property
    def _threads(self) -> Threads:
        return self._of[0]

    @property
    def _sync(self) -> Owner:
        return self._of[1]


class AsyncStore(AsyncOwner):
    """A store at a database URL, for programs with an event loop. See ``Store``."""

    def __init__(
        self, url: str, *, masker: Masker | None = None, encoding: str = DEFAULT_ENCODING
    ) -> None:
        self._open = partial(Store, url, masker=masker, encoding=encoding)
        self._opened: tuple[Threads, Store] | None = None

    async def __aenter__(self) -> Self:
        if self._opened is not None:
            raise UsageError("the store is open already", hint="each AsyncStore is entered once")
        opening = Threads(writers=1, readers=0)
        opened: list[Store] = []
        try:
            await opening.write(lambda: opened.append(self._open()))
        except BaseException:
            for store in opened:  # for a task that was cancelled meanwhile
                store.close()
            raise
        finally:
            opening.close()
        (store,) = opened
        writers = store._writers
        if writers == 1:
            threads = Threads(lanes=_LANES, writers=1, readers=_READERS)
        else:
            threads = Threads(writers=writers, readers=0)
        self._opened = threads, store
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
        return _OneOwner(self._threads, self._sync.for_owner(owner))

    async def verify(self) -> Verified:
        """Go through all that is stored, and say what is not as it was written."""
        return await self._threads.aside(self._sync.verify)

    async def backup(self, path: str | PathLike[str], *, overwrite: bool = False) -> BackedUp:
        """Write a copy of an embedded database while it is in use. See ``Store.backup``."""
        return await self._threads.aside(self._sync.backup, path, overwrite=overwrite)

    @property
    def revision(self) -> str:
        """The revision of the database's schema."""
        return self._sync.revision

    async def close(self) -> None:
        if self._opened is not None:
            (threads, store), self._opened = self._opened, None
            try:
                # A loop that was left by a bare break is ended by a task that the event loop
                # begins at its next turn; it has asked for its write by the turn behind.
                for _ in range(2):
                    await asyncio.sleep(0)
            finally:
                try:
                    await threads.last(store.close)
                finally:
                    threads.close()

    @property
    def _threads(self) -> Threads:
        return self._threads_and_store[0]

    @property
    def _sync(self) -> Store:
        return self._threads_and_store[1]

    @property
    def _threads_and_store(self) -> tuple[Threads, Store]:
        if self._opened is None:
            raise UsageError("the store is not open", hint="async with rs.AsyncStore(url) as store")
        return self._opened


class AsyncOwnerSettings:
    """The settings that are kept for an owner. Made by ``AsyncOwner.settings``."""

    profiles: AsyncProfiles

    def __init__(self, threads: Threads, sync: OwnerSettings) -> None:
        self.profiles = AsyncProfiles(threads, sync.profiles)


class AsyncProfiles:
    """The settings profiles of one owner. Made by ``AsyncOwner.settings``."""

    def __init__(self, threads: Threads, sync: Profiles) -> None:
        self._threads = threads
        self._sync = sync

    async def set(self, name: str, settings: ReasoningSettings | Mapping[str, Any]) -> Profile:
        """Keep settings under a name, in the place of what stood under it."""
        return await self._threads.write(self._sync.set, name, settings)

    async def change(
        self,
        name: str,
        settings: ReasoningSettings | Mapping[str, Any],
        *,
        unset: Collection[str] = (),
    ) -> Profile:
        """Change some keys of a profile, and leave the others as they are."""
        return await self._threads.write(self._sync.change, name, settings, unset=unset)

    async def get(self, name: str) -> Profile:
        """Return one profile."""
        return await self._threads.read(self._sync.get, name)

    async def all(self) -> list[Profile]:
        """Return every profile, by name."""
        return await self._threads.read(self._sync.all)

    async def drop(self, name: str) -> None:
        """Remove a profile. Sessions that use it take nothing from it any more."""
        await self._threads.write(self._sync.drop, name)


class _Pulled:
    """Asynchronous lines for a thread that pulls them, one by one, from this loop."""

    def __init__(self, lines: AsyncIterable[str | bytes]) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines = aiter(lines)
        self._asked: Future[str | bytes | None] | None = None
        self._stopped = False

    def __iter__(self) -> Iterator[str | bytes]:
        return self

    def __next__(self) -> str | bytes:
        asked = self._asked = asyncio.run_coroutine_threadsafe(self._following(), self._loop)
        if self._stopped:
            asked.cancel()
        line = asked.result()
        if line is None:
            raise StopIteration
        return line

    async def _following(self) -> str | bytes | None:
        return await anext(self._lines, None)

    def stop(self) -> None:
        """Wait for no line any more; whoever asks for one hears that it was cancelled."""
        self._stopped = True
        if self._asked is not None:
            self._asked.cancel()
