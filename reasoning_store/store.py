"""A store of conversations, and the conversations of one owner in it."""

from __future__ import annotations

import _thread
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from reasoning_store.conversation import validation
from reasoning_store.conversation.blocks import Message
from reasoning_store.conversation.echoes import message_echo
from reasoning_store.conversation.errors import Conflict, InvalidCall, NotFound
from reasoning_store.conversation.settings import checked
from reasoning_store.conversation.validation import check_text, check_truth, describe
from reasoning_store.egress.budget import WARN_AT, Budget, assess_budget
from reasoning_store.ledger.database import migrate
from reasoning_store.ledger.database import open as engine
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import (
    BackedUp,
    Deleted,
    Erased,
    Imported,
    ReportRow,
    Verified,
)
from reasoning_store.session import Session
from reasoning_store.store_state import StoreState
from reasoning_store.stored import Page, microseconds
from reasoning_store.tokens import DEFAULT_ENCODING, ENCODINGS, counter

if TYPE_CHECKING:
    from reasoning_store.contract_files import Contracts
    from reasoning_store.conversation.reasoning_settings import ReasoningSettings
    from reasoning_store.ingress.masking import Masker
    from reasoning_store.ledger.erasure import Only
    from reasoning_store.ledger.reports import By
    from reasoning_store.ledger.searching.search import Branches, Within
    from reasoning_store.ledger.transfer.transfer import OnConflict
    from reasoning_store.searching import Hit, Thought
    from reasoning_store.session_settings import OwnerSettings

_LOOKED_UP = 3
"""How many replies of a client are looked up."""
_OWNER = 'as in for_owner("user-7"); without one the owner is ""'
CONNECTIONS = 8
"""How many connections a store keeps: readers of an SQLite file, all of them on a server."""


@dataclass(frozen=True, slots=True)
class FoundConversation:
    """The stored conversation of messages that a client sent."""

    session: Session
    """The session, on the branch that holds most of the messages."""
    positions: tuple[int | None, ...]
    """The position of each message there; ``None`` where the message is not stored."""
    last: int
    """The last position of the branch."""


class Owner:
    """One owner's sessions. Another owner's are not found, as if they were absent.

    Made by ``Store.for_owner``.
    """

    def __init__(self, state: StoreState, owner: str) -> None:
        self._state = state
        self._owner = owner

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {describe(self._owner)}>"

    @property
    def settings(self) -> OwnerSettings:
        """This owner's default settings, and its profiles."""
        from reasoning_store.session_settings import OwnerSettings

        return OwnerSettings(self._state, self._owner)

    def session(
        self,
        id: str | None = None,
        *,
        create: bool = False,
        profile: str | None = None,
        settings: ReasoningSettings | Mapping[str, Any] | None = None,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Session:
        """Return a session on its current branch.

        Without an id a new one is made. With ``create`` one that does not exist is made, in one
        step with its profile, its own settings, title and metadata; one that exists is returned
        as it is. An unknown profile or a bad setting makes no session.
        """
        ledger = self._state.ledger
        check_truth("create", create)
        own = checked(settings)
        if id is not None:
            try:
                row = ledger.sessions.get(self._owner, id)
                return Session(self._state, row, row.current_branch)
            except NotFound:
                if not create:
                    raise
        try:
            row = ledger.sessions.create(
                self._owner,
                id,
                encoding=self._state.encoding,
                title=title,
                metadata=metadata,
                settings=own,
                profile=profile,
            )
        except Conflict:
            # Another made it meanwhile.
            row = ledger.sessions.get(self._owner, id or "")
        return Session(self._state, row, row.current_branch)

    def sessions(
        self,
        *,
        limit: int = 50,
        after: str | None = None,
        archived: bool | None = False,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        since: datetime | None = None,
        before: datetime | None = None,
    ) -> Page[Session]:
        """Return sessions, the latest first, without reading any history.

        ``archived`` None returns both kinds. ``title`` is a part of the title, in any case;
        ``metadata`` has keys and values that the session's metadata has, too. The last message
        is from ``since`` on and before ``before``. Each item has a ``message_count`` and a
        ``preview`` of the last message.
        """
        page = self._state.ledger.sessions.page(
            self._owner,
            limit=limit,
            after=after,
            archived=archived,
            title=title,
            metadata=metadata,
            since=microseconds(since, "since"),
            before=microseconds(before, "before"),
        )
        return Page(
            [Session(self._state, row, row.current_branch) for row in page.items], page.next
        )

    def search(
        self,
        text: str,
        *,
        within: Within = "answers",
        branches: Branches = "current",
        limit: int = 20,
        after: str | None = None,
    ) -> Page[Hit]:
        """Return the texts in this owner's sessions that have these words, the latest first.

        All words are wanted, in any order, a word of three letters or more also as the beginning
        of one; ``"words in quotes"`` stand so in the text, and ``-word`` does not. Case and
        accents do not count. "answers" is what users and models said, and titles, "thinking" what
        was thought and is not hidden. "current" leaves out what only a branch that was left has.

        What was said since the last search is added to the index first. Only a page without
        ``next`` is the last one, however few hits another has.
        """
        from reasoning_store.searching import hit_of

        page = self._state.ledger.search.find(
            self._owner, text, within=within, on=branches, limit=limit, after=after
        )
        return Page([hit_of(found) for found in page.items], page.next)

    def thoughts(
        self,
        *,
        provider: str | None = None,
        model: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[Thought]:
        """Return what was thought in this owner's sessions, on every branch, the latest first.

        From ``since`` on and before ``until``. ``model`` is a name or a pattern, as "*claude*".
        A message whose thinking is encrypted has no text, and is not among them.
        """
        from reasoning_store.searching import thought_of

        page = self._state.ledger.thoughts.page(
            self._owner,
            provider=provider,
            model=model,
            since=microseconds(since, "since"),
            until=microseconds(until, "until"),
            limit=limit,
            after=after,
        )
        return Page([thought_of(found) for found in page.items], page.next)

    def delete(self, *, before: datetime | None = None) -> Deleted:
        """Delete all of this owner's sessions and profiles at once.

        With ``before`` only sessions without a message since that time, and no profile: a
        session with a reply that is being recorded stays. Each session is a step of its own.
        ``erase`` also makes sure that the bytes are gone.
        """
        return self._state.ledger.erasure.delete_owner(
            self._owner, before=microseconds(before, "before")
        )

    def find_conversation(
        self, messages: Sequence[Message], *, session_id: str | None = None
    ) -> FoundConversation | None:
        """Return the stored conversation of messages that a client sends back, if there is one.

        A client keeps role, text and calls and loses the thinking: a message is found by what
        it keeps. The client may have left messages out, changed some and added new ones. The
        last three replies are looked up in all sessions; with ``session_id`` only that session
        is compared, on all of its branches.
        """
        from reasoning_store.ingress.masking import mask_message

        masker = self._state.masker
        checked = [
            validation.check_message(message, f"messages.{place}.")
            for place, message in enumerate(messages)
        ]
        safe = [one if masker is None else mask_message(one, masker) for one in checked]
        replies = [place for place, one in enumerate(safe) if one.role == "assistant"]
        found = self._state.ledger.echoes.find(
            self._owner,
            [message_echo(one) for one in safe],
            [*reversed(replies)][:_LOOKED_UP],
            session_id,
        )
        if found is None:
            return None
        row, match = found
        return FoundConversation(
            Session(self._state, row, match.branch), match.positions, match.last
        )

    def erase(self, *, only: Only = None, before: datetime | None = None) -> Erased:
        """Erase all of this owner's sessions and profiles for real, or only the reasoning.

        With ``before`` only sessions without a message since that time, and no profile. Each
        session is a step of its own: call it again if it was interrupted.
        """
        state = self._state
        return state.ledger.erasure.erase_owner(
            self._owner,
            only=only,
            before=microseconds(before, "before"),
            count=state.count,
            resolve=state.resolve,
        )

    def report(
        self,
        by: By | Sequence[By] = "session",
        *,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[ReportRow]:
        """Return this owner's tokens by session, owner, model or day (UTC), or by several.

        From ``since`` on and before ``until``. A message that several branches share counts
        once. ``reasoning``, ``counted`` and ``unreported`` mean what they mean in a budget: the
        reasoning used is ``reasoning + counted``. It is a sum of what is stored: an erased
        message is not in it.
        """
        return self._report(by, since, until, owner=self._owner)

    def budget(
        self,
        *,
        limit: int | None = None,
        warn_at: float = WARN_AT,
        since: datetime | None = None,
    ) -> Budget:
        """Return the reasoning tokens of this owner from ``since`` on, against a limit.

        The numbers are those of ``report``. It remembers nothing, so ``crossed`` is empty: ask
        for the ``state``.
        """
        rows = self._report("owner", since, None, owner=self._owner)
        found = assess_budget(
            reasoning=sum(row.reasoning for row in rows),
            counted=sum(row.counted for row in rows),
            unreported=sum(row.unreported for row in rows),
            limit=limit,
            warn_at=warn_at,
        )
        return replace(found, crossed=())

    def export_lines(self, session: str | Session | None = None) -> Iterator[str]:
        """Yield everything stored for this owner as lines of JSON: of one session, or of all.

        Nothing is left out, opaque payloads and undone summaries included, and ``import_lines``
        restores it. Settings profiles are the owner's: the export of one session holds the name
        of its profile, and not the profile.
        """
        ledger = self._state.ledger
        if session is None:
            return ledger.transfer.export_lines(owner=self._owner)
        id = session.id if isinstance(session, Session) else session
        return ledger.transfer.export_lines(ledger.sessions.get(self._owner, id).key)

    def import_lines(
        self, lines: Iterable[str | bytes], *, on_conflict: OnConflict = "refuse"
    ) -> Imported:
        """Store the lines of an export, all for this owner.

        Each session is one transaction: one that is absent is loaded, the same content is
        nothing, a longer one is appended, and anything else is a ``Conflict``, or with
        ``on_conflict="skip"`` the session is left out and named. Call an import that was cut off
        again with the same lines. A malformed line is refused by its number.
        """
        return self._import_lines(lines, on_conflict, owner=self._owner)

    def _report(
        self,
        by: By | Sequence[By],
        since: datetime | None,
        until: datetime | None,
        *,
        owner: str | None,
    ) -> list[ReportRow]:
        return self._state.ledger.reports.read(
            by,
            since=microseconds(since, "since"),
            until=microseconds(until, "until"),
            owner=owner,
        )

    def _import_lines(
        self, lines: Iterable[str | bytes], on_conflict: OnConflict, *, owner: str | None
    ) -> Imported:
        from reasoning_store import import_checks
        from reasoning_store.ingress.draft_parts import mask_parts
        from reasoning_store.ingress.masking import mask_message

        state = self._state
        masker = state.masker
        return state.ledger.transfer.import_lines(
            lines,
            owner=owner,
            count=state.count,
            mask=None if masker is None else partial(mask_message, masker=masker),
            mask_parts=None if masker is None else partial(mask_parts, masker=masker),
            check=import_checks.check_line,
            on_conflict=on_conflict,
        )


def _load_contracts(given: Contracts | None) -> None:
    source = os.environ.get("REASONING_STORE_CONTRACTS") if given is None else given
    if source:
        from reasoning_store.contract_files import load_contracts

        load_contracts(source)


class Store(Owner):
    """A store at a database URL: ``sqlite:///chat.db``, ``postgresql+psycopg://...``.

    ``sqlite://`` is in memory. An SQLite file is created, and its schema upgraded, when it is
    opened; a PostgreSQL database is upgraded by command. ``masker`` masks every write.
    ``encoding`` counts new sessions. ``read_only`` opens a store that is there and writes
    nothing: also a file that cannot be written, or one in a folder that cannot. ``schema`` is
    the schema of the tables on a PostgreSQL server: where they are found, else
    ``reasoning_store``; ``?schema=`` in the URL does the same. ``contracts`` are hosts and models
    of your own, in a TOML file or a mapping; they hold for the whole process. Without it the
    file that ``REASONING_STORE_CONTRACTS`` names is read.

    ``session``, ``sessions``, ``search``, ``thoughts``, ``settings``, ``budget``, ``delete`` and
    ``erase`` are those of the owner ``""``, and ``for_owner`` gives another's. ``report``,
    ``export_lines`` and ``import_lines`` are about all owners.
    """

    def __init__(
        self,
        url: str,
        *,
        masker: Masker | None = None,
        encoding: str = DEFAULT_ENCODING,
        read_only: bool = False,
        schema: str | None = None,
        contracts: Contracts | None = None,
    ) -> None:
        _load_contracts(contracts)
        counter(encoding)  # refuses an unknown name now, and loads nothing yet
        if masker is not None:
            from reasoning_store.ingress.masking import check_masker

            check_masker(masker)
        check_truth("read_only", read_only)
        where = engine.with_schema(url, schema)
        ledger = Ledger.open(where, connections=CONNECTIONS, read_only=read_only)
        super().__init__(StoreState(ledger, masker, encoding), "")
        self._place = engine.place(url)
        self._writers = 1 if engine.parse(url).get_backend_name() == "sqlite" else CONNECTIONS
        """The number of writes that can run at once."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._place}>"

    def for_owner(self, owner: str) -> Owner:
        """Return the same verbs for this owner only. Without one the owner is ``""``."""
        return Owner(self._state, check_text("owner", owner, hint=_OWNER))

    def report(
        self,
        by: By | Sequence[By] = "session",
        *,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[ReportRow]:
        """Return all owners' tokens by session, owner, model or day (UTC), or by several.

        From ``since`` on and before ``until``. A message that several branches share counts
        once. ``reasoning``, ``counted`` and ``unreported`` mean what they mean in a budget: the
        reasoning used is ``reasoning + counted``. It is a sum of what is stored: an erased
        message is not in it.
        """
        return self._report(by, since, until, owner=None)

    def export_lines(self, session: str | Session | None = None) -> Iterator[str]:
        """Yield everything stored for all owners as lines of JSON: of one session, or of all.

        Nothing is left out, opaque payloads and undone summaries included, and ``import_lines``
        restores it. Settings profiles are the owner's: the export of one session holds the name
        of its profile, and not the profile.
        """
        if session is None:
            return self._state.ledger.transfer.export_lines(owner=None)
        if isinstance(session, Session):
            return self.for_owner(session.owner).export_lines(session)
        return super().export_lines(session)

    def import_lines(
        self, lines: Iterable[str | bytes], *, on_conflict: OnConflict = "refuse"
    ) -> Imported:
        """Store the lines of an export, each session for its own owner.

        Each session is one transaction: one that is absent is loaded, the same content is
        nothing, a longer one is appended, and anything else is a ``Conflict``, or with
        ``on_conflict="skip"`` the session is left out and named. Call an import that was cut off
        again with the same lines. A malformed line is refused by its number.
        """
        return self._import_lines(lines, on_conflict, owner=None)

    def verify(self) -> Verified:
        """Read all rows, and return those that are not as they were written."""
        return self._state.ledger.audit.verify(encodings=ENCODINGS)

    def backup(self, path: str | PathLike[str], *, overwrite: bool = False) -> BackedUp:
        """Write a copy of an embedded database while it is in use, and compare it.

        A file that is at ``path`` stays, unless ``overwrite``.
        """
        check_truth("overwrite", overwrite)
        return self._state.ledger.backup(path, overwrite=overwrite)

    def scrub(self) -> tuple[str, ...]:
        """Finish erasures that were interrupted; return the files that may still hold bytes.

        An erasure does this itself, and so does opening a file that an interrupted one left.
        """
        return self._state.ledger.database.scrub()

    @property
    def revision(self) -> str:
        """The revision of the database's schema."""
        return self._state.ledger.revision

    def close(self) -> None:
        """Close every connection; what has arrived of replies that are still recorded is stored."""
        self._state.draft_writer.write_all()
        self._state.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is GeneratorExit:
            # The garbage collector may be ending a generator, in a thread that holds a lock.
            _thread.start_new_thread(self.close, ())
        else:
            self.close()


def inside(owner: Owner) -> tuple[StoreState, str]:
    """Return the state of a store, and the owner, for an importer."""
    if not isinstance(owner, Owner):
        raise InvalidCall(
            f"a Store or an Owner, not {validation.type_name(owner)}",
            hint="with an AsyncStore, open a Store of the same url in asyncio.to_thread",
        )
    return owner._state, owner._owner


def upgrade(url: str, *, schema: str | None = None) -> str:
    """Bring a database's schema up to date and return its revision.

    ``Store`` does this by itself for an embedded SQLite file; for PostgreSQL this is the
    one way. ``schema`` is that of ``Store``.
    """
    engine.upgrade(engine.with_schema(url, schema))
    return migrate.REVISIONS[-1]
