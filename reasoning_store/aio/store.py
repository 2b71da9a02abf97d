"""AsyncStore and AsyncOwner: the verbs of Store and Owner, awaited.

Each verb runs whole in one hop to a thread of the store's own, so the event loop never waits for
a disk.
"""

from __future__ import annotations

from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from functools import partial
from os import PathLike
from types import TracebackType
from typing import Any, Self

from reasoning_store.aio.session import AsyncSession
from reasoning_store.aio.threads import Threads, awaited, awaited_as, written
from reasoning_store.conversation.blocks import Message
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.ingress.masking import Masker
from reasoning_store.ledger.database import opening
from reasoning_store.ledger.records import Imported, Page
from reasoning_store.ledger.transfer.transfer import OnConflict
from reasoning_store.owner import Owner
from reasoning_store.sessions.identified import ClientConversation
from reasoning_store.sessions.session import Session
from reasoning_store.sessions.settings import OwnerSettings, Profiles
from reasoning_store.store import Store
from reasoning_store.stored_values import Stored
from reasoning_store.tokens import DEFAULT_ENCODING
from reasoning_store.wire.contract_tables import Contracts

_LANES = 8


class AsyncClientConversation:
    """A conversation as its client sent it, and as it is stored. Made by ``AsyncOwner.identify``.

    See ``ClientConversation``.
    """

    def __init__(self, threads: Threads, sync: ClientConversation) -> None:
        self._threads = threads
        self._sync = sync
        self.asked, self.match = sync.asked, sync.match
        self.first_new, self.missed = sync.first_new, sync.missed
        self.session = _session_or_none(threads, sync.session)

    restore = awaited(ClientConversation.restore)

    async def append_reply(self, session: AsyncSession, reply: Message) -> Stored:
        """Append a reply that no recording stores. See ``ClientConversation.append_reply``."""
        return await self._threads.write(self._sync.append_reply, session._sync, reply)

    async def store(
        self, new: Sequence[Message], *, otherwise: AsyncSession | None = None
    ) -> AsyncSession:
        """Append what is new. See ``ClientConversation.store``."""
        other = None if otherwise is None else otherwise._sync
        stored = await self._threads.write(self._sync.store, new, otherwise=other)
        return AsyncSession(self._threads, stored)


def _session_or_none(threads: Threads, sync: Session | None) -> AsyncSession | None:
    return None if sync is None else AsyncSession(threads, sync)


def _page(threads: Threads, sync: Page[Session]) -> Page[AsyncSession]:
    return Page([AsyncSession(threads, item) for item in sync.items], sync.next)


class AsyncOwner:
    """One owner's sessions. Another owner's are not found, as if they were absent.

    Made by ``AsyncStore.for_owner``. See ``Owner``.
    """

    def __init__(self, opened: Callable[[], tuple[Threads, Owner]]) -> None:
        self._opened = opened

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {repr(self._sync)[1:-1].partition(' ')[2]}>"

    @property
    def _threads(self) -> Threads:
        return self._opened()[0]

    @property
    def _sync(self) -> Owner:
        return self._opened()[1]

    @property
    def contracts(self) -> Contracts:
        """The hosts and models that this store knows, for functions that take ``contracts``."""
        return self._sync.contracts

    @property
    def settings(self) -> AsyncOwnerSettings:
        """This owner's default settings, and its profiles."""
        return AsyncOwnerSettings(self._threads, self._sync.settings)

    session = awaited_as(Owner.session, AsyncSession, by=Threads.write)
    find_session = awaited_as(Owner.find_session, _session_or_none)
    sessions = awaited_as(Owner.sessions, _page)
    identify = awaited_as(Owner.identify, AsyncClientConversation)
    find_items = awaited(Owner.find_items)
    delete = awaited(Owner.delete, by=Threads.run_long)
    search = awaited(Owner.search, by=Threads.run_long)
    thoughts = awaited(Owner.thoughts)
    erase = awaited(Owner.erase, by=Threads.run_long)
    import_conversations = awaited(Owner.import_conversations, by=Threads.run_long)
    report = awaited(Owner.report)
    budget = awaited(Owner.budget)

    def export_lines(
        self,
        session: str | AsyncSession | None = None,
        *,
        progress: Callable[[float], None] | None = None,
    ) -> AsyncIterator[str]:
        """Yield everything stored as lines of JSON, to iterate with ``async for``. Not awaited."""
        which = session._sync if isinstance(session, AsyncSession) else session
        return self._threads.iterate(partial(self._sync.export_lines, which, progress=progress))

    async def import_lines(
        self,
        lines: Iterable[str | bytes] | AsyncIterable[str | bytes],
        *,
        on_conflict: OnConflict = "refuse",
    ) -> Imported:
        """Store the lines of an export; asynchronous ones are collected first.

        See ``Owner.import_lines``.
        """
        if isinstance(lines, AsyncIterable):
            lines = [line async for line in lines]
        return await self._threads.run_long(self._sync.import_lines, lines, on_conflict=on_conflict)


class AsyncStore(AsyncOwner):
    """A store at a database URL, for programs with an event loop. See ``Store``."""

    def __init__(
        self,
        url: str,
        *,
        masker: Masker | None = None,
        encoding: str = DEFAULT_ENCODING,
        read_only: bool = False,
        schema: str | None = None,
        contracts: str | PathLike[str] | Mapping[str, Any] | None = None,
        draft_seconds: float | None = None,
        followed_seconds: float | None = None,
        readers: int = opening.CONNECTIONS,
    ) -> None:
        super().__init__(self._open_store)
        self._open = partial(
            Store,
            url,
            masker=masker,
            encoding=encoding,
            read_only=read_only,
            schema=schema,
            contracts=contracts,
            draft_seconds=draft_seconds,
            followed_seconds=followed_seconds,
            readers=readers,
        )
        self._readers = readers
        self._store: tuple[Threads, Store] | None = None

    def _open_store(self) -> tuple[Threads, Store]:
        if self._store is None:
            raise InvalidCall(
                "the store is not open", hint="async with rs.AsyncStore(url) as store"
            )
        return self._store

    async def __aenter__(self) -> Self:
        if self._store is not None:
            raise InvalidCall("the store is open already", hint="each AsyncStore is entered once")
        starting = Threads(writers=1, readers=0)
        opened: list[Store] = []
        try:
            await starting.write(lambda: opened.append(self._open()))
        except BaseException:
            for store in opened:  # the task was cancelled meanwhile
                store.close()
            raise
        finally:
            starting.close()
        (store,) = opened
        if store._writers == 1:
            threads = Threads(lanes=_LANES, writers=1, readers=self._readers)
        else:
            threads = Threads(writers=store._writers, readers=0)
        self._store = threads, store
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} not open>" if self._store is None else super().__repr__()

    def for_owner(self, owner: str) -> AsyncOwner:
        """Return the same verbs for this owner only. Without one the owner is ``""``."""
        threads, store = self._open_store()
        pair = threads, store.for_owner(owner)
        return AsyncOwner(lambda: pair)

    owners = awaited(Store.owners)
    verify = awaited(Store.verify, by=Threads.run_long)
    backup = awaited(Store.backup, by=Threads.run_long)
    scrub = awaited(Store.scrub, by=Threads.run_long)

    # Of a database that no loop uses yet: not awaited.
    upgrade = staticmethod(Store.upgrade)
    revision_of = staticmethod(Store.revision_of)
    file_of = staticmethod(Store.file_of)
    diagnose = staticmethod(Store.diagnose)

    @property
    def revision(self) -> str:
        """The revision of the database's schema."""
        return self._open_store()[1].revision

    async def close(self) -> None:
        """Close every connection; store the parts of replies that are still recorded."""
        if self._store is None:
            return
        (threads, store), self._store = self._store, None
        await threads.close_after_writes(store.close)


class AsyncOwnerSettings:
    """An owner's default settings, and its profiles. Made by ``AsyncOwner.settings``."""

    profiles: AsyncProfiles

    def __init__(self, threads: Threads, sync: OwnerSettings) -> None:
        self.profiles = AsyncProfiles(threads, sync.profiles)
        self._threads = threads
        self._sync = sync

    set = written(OwnerSettings.set)
    unset = written(OwnerSettings.unset)
    resolved = awaited(OwnerSettings.resolved)


class AsyncProfiles:
    """The settings profiles of one owner. Made by ``AsyncOwner.settings``."""

    def __init__(self, threads: Threads, sync: Profiles) -> None:
        self._threads = threads
        self._sync = sync

    set = written(Profiles.set)
    change = written(Profiles.change)
    get = awaited(Profiles.get)
    all = awaited(Profiles.all)
    drop = written(Profiles.drop)
