"""One conversation on one of its branches.

A handle holds no messages: each verb reads what it needs, with the settings that hold then
(BR-008). Everything that arrives is stored (BR-002); settings decide about requests alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Unpack, overload

from reasoning_store.conversation.blocks import Message
from reasoning_store.conversation.validation import describe
from reasoning_store.egress.budget import WARN_AT, Budget
from reasoning_store.ledger.records import Deleted, Erased, SessionRow
from reasoning_store.sessions.branch import SessionBranch, metadata_change, of_branch
from reasoning_store.sessions.context import Context, of_context
from reasoning_store.sessions.facts import SessionFacts
from reasoning_store.sessions.settings import SessionSettings
from reasoning_store.sessions.view import ContextNames, spell_names
from reasoning_store.store_state import StoreState
from reasoning_store.stored_values import Compaction, Stored, Withheld, compaction

if TYPE_CHECKING:
    from reasoning_store.egress.compaction_plan import Plan
    from reasoning_store.egress.request import Request
    from reasoning_store.ledger.erasure import Only, OnlyMessages
    from reasoning_store.sessions.recovery import Ask, Recovery


class Session(SessionFacts):
    """One conversation. Made by ``Store.session``."""

    def __init__(self, state: StoreState, row: SessionRow, branch: int) -> None:
        self._state = state
        self._row = row
        self._branch = branch

    def __repr__(self) -> str:
        of = f" of {describe(self.owner)}" if self.owner else ""
        return f"<{type(self).__name__} {describe(self.id)}{of}, branch {self._branch}>"

    @property
    def branch_id(self) -> int:
        """The branch of this handle."""
        return self._branch

    def _facts(self) -> SessionRow:
        return self._row

    def rename(self, title: str | None) -> None:
        """Set the title of the session, or remove it."""
        safe = self._own_branch().masked(title)
        self._row = self._state.ledger.sessions.rename(self._row.key, safe)

    def set_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Replace the metadata that the application stores with the session."""
        self._row = self._state.ledger.sessions.set_metadata(self._row.key, metadata)

    def update_metadata(
        self, changes: Mapping[str, Any], *, expected: Mapping[str, Any] | None = None
    ) -> None:
        """Change some keys of the metadata, at once; a value of None removes its key.

        ``expected`` has keys and the values that they must have now (None: no such key), else
        nothing is changed (``Conflict``).
        """
        change = metadata_change(changes, expected)
        self._row = self._state.ledger.sessions.update_metadata(self._row.key, change)

    def archive(self, *, archived: bool = True) -> None:
        """Take the session out of the usual list, or put it back."""
        self._row = self._state.ledger.sessions.archive(self._row.key, archived=archived)

    @property
    def settings(self) -> SessionSettings:
        return SessionSettings(self._state, self._row)

    @overload
    def append(
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
    def append(
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

    def append(
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
        """Store a message at the end, or several as one.

        Repeated with the same ``idempotency_key`` and the same messages, it returns what
        was stored the first time. ``after`` is the position or the id of the message that must
        be the last one; if another message follows it already, nothing is stored (``Conflict``).
        ``id`` is an id of your own, and stored once: a message that is there is returned, and the
        others are appended. Several messages take a list of ids, and of times. ``update_metadata``
        and ``expected`` are those of ``update_metadata(...)``, in the same step.
        """
        change = None
        if update_metadata is not None or expected is not None:
            change = metadata_change(update_metadata or {}, expected)
        stored = self._own_branch().append(message, id, idempotency_key, after, created_at, change)
        if change is not None:
            self._row = self._own_branch().session()
        return stored[0] if isinstance(message, Message) else stored

    record = of_context(Context.record)
    history = of_branch(SessionBranch.history)
    head = of_branch(SessionBranch.head)
    get = of_branch(SessionBranch.get)
    annotate = of_branch(SessionBranch.annotate)
    follow = of_branch(SessionBranch.follow)
    stop = of_branch(SessionBranch.stop)

    @spell_names
    def context(self, *, limit: int | None = None, **names: Unpack[ContextNames]) -> Context:
        """Name a model, its system prompt, tools and limit once for many calls.

        The context's ``request``, ``usage``, ``what_if``, ``compression`` and ``record`` are
        those of the session with these names. Without names the model is the one that gave the
        last recorded reply. ``system`` and ``tools`` are counted, and never stored.
        """
        return Context(self, limit, **names)

    build_request = of_context(Context.request)
    usage = of_context(Context.usage)
    what_if = of_context(Context.what_if)
    compression = of_context(Context.compression)

    def compact(self, plan: Plan, *, summary: str | Message | None = None) -> Compaction | None:
        """Apply a plan, and return the summary, else the clearing; ``compactions`` has both.

        ``summary`` is the text or user message that you made of ``plan.to_summarize.messages``; it
        is sent in a frame that marks it as a summary. Nothing is deleted: ``undo`` takes all of it
        back, or ``settings.unset`` where the plan only strips, and nothing is returned. If its
        range was erased in or compacted since, it is a ``Conflict``.
        """
        from reasoning_store.sessions.compaction import SessionCompaction

        return SessionCompaction(self._own_branch().view).compact(plan, summary)

    def compactions(self) -> list[Compaction]:
        """Return the summaries in force on this branch, in order, then a clearing."""
        rows = self._state.ledger.views.compactions(self._row.key, self._branch)
        return [compaction(row) for row in rows]

    def withhold(
        self,
        at: int | str,
        block: int | None = None,
        part: str | int = "block",
        *,
        reason: str | None = None,
    ) -> list[Withheld]:
        """Leave a part of a message out of every request, on all branches that share it.

        ``block`` is its index in the message; without one all thoughts are left out, or all media.
        ``part`` is ``"block"``, ``"seal"`` for a call whose signature alone is wrong, or the index
        of a piece of a tool's result. A call takes its response along, and a response its call.
        Returns what was not left out before.
        """
        from reasoning_store.sessions.recovery import SessionRecovery

        return SessionRecovery(self._own_branch()).withhold(at, block, part, reason)

    def withheld(self) -> list[Withheld]:
        """Return what requests of this branch leave out, in the order of its messages."""
        from reasoning_store.sessions.recovery import SessionRecovery

        return SessionRecovery(self._own_branch()).withheld()

    def recover(self, error: object, request: Request, *, ask: Ask | None = None) -> Recovery:
        """Bring a refused request back: leave out what was refused, or send what is missing.

        ``error`` is the SDK's exception, the body of the response or its text. If the refusal names
        no block, all of the open turn that it can be about are left out; with ``ask``, which sends
        a request and returns its error or None, the one is searched: of n blocks with at most
        log2 n + 1 requests.
        """
        from reasoning_store.sessions.recovery import SessionRecovery

        return SessionRecovery(self._own_branch()).recover(error, request, ask)

    @overload
    def undo(self, id: int, *, force: bool = False) -> Compaction: ...

    @overload
    def undo(self, id: str, *, force: bool = False) -> Withheld: ...

    def undo(self, id: int | str, *, force: bool = False) -> Compaction | Withheld:
        """Take back a summary, a clearing, or a part that is left out.

        Of a summary or a clearing all that ``compact`` did goes: the messages are sent again, the
        compactions that it superseded hold again, and a setting has its value of before, unless it
        was changed since. A part that is sent again can make later thoughts void, at a provider
        that binds them to what precedes them: then it is a ``Conflict``, unless ``force``.
        """
        if isinstance(id, str):
            from reasoning_store.sessions.recovery import SessionRecovery

            return SessionRecovery(self._own_branch()).undo(id, force=force)
        return compaction(self._state.ledger.compactions.undo(self._row.key, self._branch, id))

    def budget(self, *, limit: int | None = None, warn_at: float = WARN_AT) -> Budget:
        """Return the reasoning tokens of this session, on all its branches, against a limit.

        ``crossed`` names each mark once, to one of all the processes that ask.
        """
        from reasoning_store.sessions.compaction import session_budget

        return session_budget(self._state.ledger, self._row.key, limit=limit, warn_at=warn_at)

    def _own_branch(self) -> SessionBranch:
        return SessionBranch(self._state, self._row, self._branch)

    def fork(self, *, at: int | str) -> Session:
        """Return a new branch that shares the messages before ``at`` and nothing after.

        Neither this handle nor the current branch moves. A reply that is still being recorded
        cannot be shared (``Conflict``); one whose recorder is gone can.
        """
        return self.branch(self._own_branch().fork(at))

    def edit(self, position: int | str, message: Message) -> Stored:
        """Replace the message at ``position``, on a new branch that becomes the current one.

        The new message has the role of the old one, which stays, with all after it, on its
        branch. This handle moves to the new branch. An id always names the same message.
        """
        stored = self._own_branch().edit(position, message)
        self._branch = stored.branch
        return stored

    def regenerate(self, position: int | str) -> Session:
        """Move this handle to a new branch that ends before the reply at ``position``.

        The branch becomes the current one when a message or a reply arrives there: a request that
        fails leaves the old reply where it was.
        """
        self._branch = self._own_branch().fork_before_reply(position)
        return self

    def pop_turn(self) -> Session:
        """Move to a new current branch that ends before the last turn; nothing is deleted."""
        self._branch = self._own_branch().fork_before_turn()
        return self

    def drop_tail(self, *, at: int | str) -> list[Stored]:
        """Take back the message at ``at`` and all after it, and return them; nothing is deleted.

        This handle moves to a new current branch. ``at=1`` leaves a session without messages.
        """
        self._branch, dropped = self._own_branch().drop_tail(at)
        return dropped

    branches = of_branch(SessionBranch.branches)

    def branch(self, id: int) -> Session:
        """Return this session on another of its branches."""
        self._state.ledger.branches.get(self._row.key, id)
        return Session(self._state, self._row, id)

    def activate(self, id: int) -> None:
        """Make a branch the one that opening the session gives."""
        self._state.ledger.branches.activate(self._row.key, id)

    def delete(self, *, only: OnlyMessages = None) -> Deleted:
        """Delete this session at once, in a time that depends on its own length alone.

        ``erase`` also makes sure that its bytes are gone. A reply that is being recorded there
        ends with ``NotFound``. With ``only="messages"`` the session stays: its title, settings
        and metadata, and one branch without messages, to which this handle moves.
        """
        deleted = self._state.ledger.erasure.delete_session(self._row.key, only=only)
        self._branch = 1
        return deleted

    def erase(self, position: int | str | None = None, *, only: Only = None) -> Erased:
        """Erase the bytes of this session, of one message, or with ``only="reasoning"`` of the
        thinking there; ``only="messages"`` is as in ``delete``.

        An erased message leaves its position and its role, in every branch that shares it,
        and takes its tool pair with it. A reply that is being recorded there ends for it, as
        interrupted: its recorder goes on, and raises ``Conflict`` at its end. The bytes leave the
        database; ``copies`` names the files that may still hold them, and to erase again, to
        open the store or ``Store.scrub`` finishes that.
        """
        erased = self._own_branch().erase(position, only=only)
        self._branch = 1 if only == "messages" else self._branch
        return erased
