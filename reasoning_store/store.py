"""The promised face: a store of conversations.

Here and in ``session`` and ``recorder`` the rooms meet: what arrives is masked and counted
before the ledger is asked to write it, what is read is given to egress with the policy of
this moment. Glue: it must not have a rule of its own. Handles belong to no thread.

``Store`` opens an embedded SQLite file and brings its schema up to date by itself; a
PostgreSQL database is upgraded by command only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from os import PathLike
from types import TracebackType
from typing import Any, Self

from reasoning_store import checking, incoming
from reasoning_store.collected import elsewhere
from reasoning_store.errors import Conflict, NotFound, UsageError
from reasoning_store.ingress import masking
from reasoning_store.ingress.drafting import remasked
from reasoning_store.ingress.masking import Masker, masked
from reasoning_store.layers import OwnerSettings
from reasoning_store.ledger import arguments, engine, faults, migrate
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.reporting import By
from reasoning_store.ledger.values import (
    BackedUp,
    Erased,
    Imported,
    ReportRow,
    Verified,
)
from reasoning_store.ledger.verbs.erasing import Only
from reasoning_store.ledger.verbs.importing import OnConflict
from reasoning_store.session import Session
from reasoning_store.stored import microseconds
from reasoning_store.tokenizers import DEFAULT_ENCODING, ENCODINGS, counter
from reasoning_store.workings import Workings

_OWNER = 'as in for_owner("user-7"); without one the owner is ""'
CONNECTIONS = 8
"""How many connections a store keeps: readers of an SQLite file, all of them on a server."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page of sessions, and what to ask for the next one."""

    items: list[Session]
    next: str | None


class Owner:
    """One owner's sessions; another's are not found, the same as absent ones.

    Made by ``Store.for_owner``.
    """

    def __init__(self, workings: Workings, owner: str) -> None:
        self._workings = workings
        self._owner = owner
        self._only: str | None = owner
        """Whose conversations the verbs over many of them are about; None: everybody's."""

    @property
    def settings(self) -> OwnerSettings:
        """The settings profiles of this owner, for its sessions to use."""
        return OwnerSettings(self._workings, self._owner)

    def session(
        self,
        id: str | None = None,
        *,
        create: bool = False,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Session:
        """Return a session on its current branch.

        Without an id a new one is made. With ``create`` one that does not exist is made,
        with this title and metadata; one that exists is returned as it is.
        """
        ledger = self._workings.ledger
        arguments.truth(create, "create")
        if id is not None:
            try:
                row = ledger.get_session(self._owner, id)
                return Session(self._workings, row, row.current_branch)
            except NotFound:
                if not create:
                    raise
        try:
            row = ledger.create_session(
                self._owner,
                id,
                encoding=self._workings.encoding,
                title=title,
                metadata=metadata,
            )
        except Conflict:
            # Somebody made it since we looked.
            row = ledger.get_session(self._owner, id or "")
        return Session(self._workings, row, row.current_branch)

    def sessions(
        self, *, limit: int = 50, after: str | None = None, archived: bool = False
    ) -> Page:
        """Return sessions, the latest first, without reading any history."""
        arguments.truth(archived, "archived")
        page = self._workings.ledger.sessions(
            self._owner, limit=limit, after=after, archived=archived
        )
        return Page(
            [Session(self._workings, row, row.current_branch) for row in page.items], page.next
        )

    def erase(self, *, only: Only = None) -> Erased:
        """Erase all of this owner's sessions and profiles for real, or only the reasoning.

        Each session goes in a step of its own: what is interrupted can be called again.
        """
        workings = self._workings
        try:
            return workings.ledger.erase_owner(
                self._owner, only=only, count=workings.counts, resolve=workings.resolve
            )
        finally:
            workings.views.forget_all()

    def report(
        self,
        by: By = "session",
        *,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[ReportRow]:
        """Return what was used, by session, owner, model or day (UTC).

        From ``since`` on and before ``until``. A message that several branches share counts
        once; ``unreported`` is how many replies came without numbers, which is not zero. It
        is a sum of what is stored: what was erased took its numbers along.
        """
        return self._workings.ledger.report(
            by,
            since=microseconds(since, "since"),
            until=microseconds(until, "until"),
            owner=self._only,
        )

    def export_lines(self, session: str | Session | None = None) -> Iterator[str]:
        """Yield everything stored as lines of JSON: of one session, or of all.

        Nothing is left out, opaque payloads and undone summaries too, and ``import_lines``
        gives the same again. Settings profiles are the owner's: the export of one session
        has the name of the one that it uses, and not the profile.
        """
        ledger = self._workings.ledger
        if session is None:
            return ledger.export_lines(owner=self._only)
        if not isinstance(session, Session):
            return ledger.export_lines(ledger.get_session(self._owner, session).key)
        owner = session.owner if self._only is None else self._only
        return ledger.export_lines(ledger.get_session(owner, session.id).key)

    def import_lines(
        self, lines: Iterable[str | bytes], *, on_conflict: OnConflict = "refuse"
    ) -> Imported:
        """Take in the lines of an export, one by one; what is there already stays.

        An import that was cut off is called again with the same lines. A malformed line is
        refused by its number. A session that differs here is a ``Conflict``, or
        with ``on_conflict="skip"`` it is left out and named.
        """
        workings = self._workings
        masker = workings.masker
        return workings.ledger.import_lines(
            lines,
            owner=self._only,
            count=workings.counts,
            mask=None if masker is None else partial(masked, masker=masker),
            mask_parts=None if masker is None else partial(remasked, masker=masker),
            check=incoming.check,
            on_conflict=on_conflict,
        )


class Store(Owner):
    """A store at a database URL: ``sqlite:///chat.db``, ``postgresql+psycopg://...``.

    ``sqlite://`` is in memory. ``masker`` stands before every write; ``encoding`` is what
    new sessions are counted in.

    Its sessions and settings, and what ``erase`` erases, are those of the owner ``""``;
    ``for_owner`` gives another's. Reports, exports and imports are everybody's here.
    """

    def __init__(
        self, url: str, *, masker: Masker | None = None, encoding: str = DEFAULT_ENCODING
    ) -> None:
        counter(encoding)  # refuses an unknown name now, and loads nothing yet
        masking.check(masker)
        ledger = Ledger.open(url, connections=CONNECTIONS)
        super().__init__(Workings(ledger, masker, encoding), "")
        self._only = None
        self._writers = 1 if engine.parse(url).get_backend_name() == "sqlite" else CONNECTIONS
        """How many writes can be under way at once: an SQLite file has one lane."""

    def for_owner(self, owner: str) -> Owner:
        """Return the same verbs for this owner only. Without one the owner is ``""``."""
        # Beyond this point None means everybody: a caller without an owner must not see everything.
        return Owner(self._workings, arguments.text(owner, "owner", hint=_OWNER))

    def verify(self) -> Verified:
        """Go through all that is stored, and say what is not as it was written."""
        return self._workings.ledger.verify(encodings=ENCODINGS)

    def backup(self, path: str | PathLike[str], *, overwrite: bool = False) -> BackedUp:
        """Write a copy of an embedded database while it is in use, compared and then put there.

        What stands at ``path`` stays, unless ``overwrite``.
        """
        arguments.truth(overwrite, "overwrite")
        return self._workings.ledger.backup(path, overwrite=overwrite)

    @property
    def revision(self) -> str:
        """The revision of the database's schema."""
        return self._workings.ledger.revision

    def close(self) -> None:
        """Close every connection; what has arrived of replies still being recorded is kept."""
        if elsewhere(self.close):
            return
        self._workings.draft_keeper.keep_all()
        self._workings.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def inside(owner: Owner) -> tuple[Workings, str]:
    """Return what another face works with: the workings, and whose sessions they are."""
    if not isinstance(owner, Owner):
        raise UsageError(
            f"a Store or an Owner, not {checking.type_name(owner)}",
            hint="beside an AsyncStore, open a Store of the same url in asyncio.to_thread",
        )
    return owner._workings, owner._owner


def upgrade(url: str) -> str:
    """Bring a database's schema up to date and return its revision.

    ``Store`` does this by itself for an embedded SQLite file; for PostgreSQL this is the
    one way.
    """
    faults.guarded(lambda: engine.upgrade(url))
    return migrate.REVISIONS[-1]
