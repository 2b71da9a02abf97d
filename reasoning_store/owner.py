"""The conversations of one owner in a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from reasoning_store.conversation import validation
from reasoning_store.conversation.blocks import Message
from reasoning_store.conversation.errors import Conflict, NotFound
from reasoning_store.conversation.identity import number_messages
from reasoning_store.conversation.settings import checked
from reasoning_store.conversation.validation import check_text, check_truth, describe
from reasoning_store.egress.budget import WARN_AT, Budget, assess_budget
from reasoning_store.ledger.records import Deleted, Erased, Imported, Page, ReportRow
from reasoning_store.sessions.session import Session
from reasoning_store.store_state import StoreState, visible_text
from reasoning_store.stored_values import microseconds

if TYPE_CHECKING:
    from reasoning_store.conversation.reasoning_settings import ReasoningSettings
    from reasoning_store.kept_histories import Conversation, ImportedHistory
    from reasoning_store.ledger.erasure import Only
    from reasoning_store.ledger.reports import By
    from reasoning_store.ledger.searching.search import Branches, Within
    from reasoning_store.ledger.transfer.transfer import OnConflict
    from reasoning_store.search_results import Hit, Thought
    from reasoning_store.sessions.identified import ClientConversation
    from reasoning_store.sessions.settings import OwnerSettings
    from reasoning_store.wire.contract_tables import Contracts


class Owner:
    """One owner's sessions. Another owner's are not found, as if they were absent.

    Made by ``Store.for_owner``.
    """

    def __init__(self, state: StoreState, owner: str) -> None:
        self._state = state
        self._owner = owner
        self._only: str | None = owner
        """The owner whose data is reported, exported and imported; None of a ``Store``: all."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {describe(self._owner)}>"

    @property
    def contracts(self) -> Contracts:
        """The hosts and models that this store knows, for functions that take ``contracts``."""
        return self._state.contracts

    @property
    def settings(self) -> OwnerSettings:
        """This owner's default settings, and its profiles."""
        from reasoning_store.sessions.settings import OwnerSettings

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

    def find_session(self, message_id: str, *, latest: bool = False) -> Session | None:
        """Return the session that has the message of this id, on the branch it was written on.

        A reply that is being recorded is found, too. ``session.get(message_id)`` is the message.
        Of several sessions with such a message it is the one whose message is the oldest, or the
        ``latest``; without one it is None.
        """
        found = self._state.ledger.history.find_session(
            self._owner,
            check_text("message_id", message_id),
            latest=check_truth("latest", latest),
        )
        return None if found is None else Session(self._state, *found)

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

        A text must have all words, in any order; a word of three letters or more also matches the
        beginning of a longer one. It must have ``"words in quotes"`` in this order, and must not
        have ``-word``. Case and accents are ignored. "answers" searches titles and the texts of
        users and models, "thinking" the thoughts that are not hidden. "current" searches only the
        current branches.

        The search first adds the texts since the last search to the index. Only a page without
        ``next`` is the last one, even if another page has few hits.
        """
        from reasoning_store.search_results import hit_of

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
        """Return the thoughts in this owner's sessions, on every branch, the latest first.

        From ``since`` on and before ``until``. ``model`` is a name or a pattern, as "*claude*".
        A message whose thinking is encrypted has no text, and is not among them.
        """
        from reasoning_store.search_results import thought_of

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

    def identify(
        self,
        messages: Sequence[Message],
        *,
        system: Sequence[str] = (),
        session_id: str | None = None,
        group: str | None = None,
    ) -> ClientConversation:
        """Return the stored conversation that a client's messages go on with.

        A client keeps role, text and calls and loses the thoughts. The conversation is known by
        the client's last reply: by all that stands before it, by the ids of its calls, without the
        system prompt, or by what stands since the reply before it; never because messages are
        alike. ``system`` is the system prompt. ``session_id`` names the session; ``group`` is the
        client's own name of the conversation, or of a group of them.
        """
        from reasoning_store.ingress.masking import mask_message, mask_value
        from reasoning_store.sessions.identified import ClientConversation

        masker = self._state.masker
        checked = [
            validation.check_message(message, f"messages.{place}.")
            for place, message in enumerate(messages)
        ]
        safe = [one if masker is None else mask_message(one, masker) for one in checked]
        system = system if masker is None else mask_value([*system], masker)
        chain = number_messages(self._owner, safe, system=system, group=group, visible=visible_text)
        identity = self._state.ledger.echoes.find(
            self._owner, safe, chain, visible=visible_text, session_id=session_id
        )
        asked, owner = chain.asked, self._owner
        return ClientConversation(self._state, owner, safe, asked, identity, session_id)

    def find_items(self, ids: Iterable[str]) -> dict[str, Message | None]:
        """Return, by the ids of items of the Responses protocol, the replies that hold them.

        Items that a client's replies brought are known; others are left out. The reply is ``None``
        where several conversations have an item of that id.
        """
        found = self._state.ledger.echoes.find_items(self._owner, ids)
        return {id: None if row is None else row.message for id, row in found.items()}

    def erase(self, *, only: Only = None, before: datetime | None = None) -> Erased:
        """Erase all of this owner's sessions and profiles for real.

        With ``only`` the sessions stay, and lose their ``"messages"`` or their ``"reasoning"``.

        With ``before`` only sessions without a message since that time, and no profile. With
        ``only="reasoning"`` it goes by the age of each thought, in all sessions. Each session is a
        step of its own: call it again if it was interrupted.
        """
        state = self._state
        return state.ledger.erasure.erase_owner(
            self._owner,
            only=only,
            before=microseconds(before, "before"),
            count=state.count,
            draft_message=state.draft_message,
        )

    def report(
        self,
        by: By | Sequence[By] = "session",
        *,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[ReportRow]:
        """Return tokens by session, owner, model or day (UTC), or by several.

        Those of this owner; of a ``Store``, of all owners. From ``since`` on and before
        ``until``. A message that several branches share counts once. ``reasoning``, ``counted``
        and ``unreported`` mean what they mean in a budget: the reasoning used is
        ``reasoning + counted``. It is a sum of what is stored: an erased message is not in it.
        """
        return self._state.ledger.reports.read(
            by,
            since=microseconds(since, "since"),
            until=microseconds(until, "until"),
            owner=self._only,
        )

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
        rows = self._state.ledger.reports.read(
            "owner", since=microseconds(since, "since"), until=None, owner=self._owner
        )
        found = assess_budget(
            reasoning=sum(row.reasoning for row in rows),
            counted=sum(row.counted for row in rows),
            unreported=sum(row.unreported for row in rows),
            limit=limit,
            warn_at=warn_at,
        )
        return replace(found, crossed=())

    def export_lines(
        self,
        session: str | Session | None = None,
        *,
        progress: Callable[[float], None] | None = None,
    ) -> Iterator[str]:
        """Yield what is stored as lines of JSON: of one session, or of all of this owner.

        A ``Store`` yields the sessions of all owners. Nothing is left out, opaque payloads and
        undone summaries included, and ``import_lines`` restores it. Settings profiles are the
        owner's: the export of one session holds the name of its profile, and not the profile.
        ``progress`` is called with about the share of the sessions that is done, from 0 to 1.
        """
        ledger, owner = self._state.ledger, self._owner
        if session is None:
            return ledger.transfer.export_lines(owner=self._only, progress=progress)
        if isinstance(session, Session):
            owner = session.owner if self._only is None else owner
            session = session.id
        return ledger.transfer.export_lines(ledger.sessions.get(owner, session).key)

    def import_lines(
        self, lines: Iterable[str | bytes], *, on_conflict: OnConflict = "refuse"
    ) -> Imported:
        """Store the lines of an export, all for this owner; a ``Store``, each for its own.

        Each session is one transaction: one that is absent is loaded, the same content is
        nothing, a longer one is appended, and anything else is a ``Conflict``, or with
        ``on_conflict="skip"`` the session is left out and named. Call an import that was cut off
        again with the same lines. A malformed line is refused by its number.
        """
        from reasoning_store import import_checks
        from reasoning_store.ingress.draft_parts import mask_parts
        from reasoning_store.ingress.masking import mask_message

        state = self._state
        masker = state.masker
        return state.ledger.transfer.import_lines(
            lines,
            owner=self._only,
            count=state.count,
            mask=None if masker is None else partial(mask_message, masker=masker),
            mask_parts=None if masker is None else partial(mask_parts, masker=masker),
            check=import_checks.check_line,
            on_conflict=on_conflict,
        )

    def import_conversations(
        self,
        conversations: Iterable[Conversation],
        *,
        dry_run: bool = False,
        keep_ids: bool = False,
    ) -> ImportedHistory:
        """Write what is new of conversations that another program kept, by their ids.

        Importing the same again writes nothing; of a source that has grown, what is new. Raises
        what reading the source raises; what was written before that stays, and is known then.
        With ``keep_ids`` a message keeps the id that it had, if no message of the session has it.
        """
        from reasoning_store.history_import import HistoryImport
        from reasoning_store.kept_histories import ImportedHistory

        own = self._state, self, self._owner
        imports = HistoryImport(*own, dry_run=dry_run, keep_ids=keep_ids)
        done = [imports.import_one(one) for one in conversations]
        return ImportedHistory(dry_run=dry_run, conversations=done)
