"""The promised face of one conversation, on one of its branches.

A handle holds no history: each verb reads what it needs now, with the settings that hold
now (BR-008). Storing is always complete and no setting has a say in it (BR-002); what a
setting decides is what the next request carries. It must not know SQL, or what may leave.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, overload

from reasoning_store import checking, streams
from reasoning_store.blocks import Message
from reasoning_store.egress.request import Request
from reasoning_store.errors import Conflict, NotFound, UsageError
from reasoning_store.layers import SessionSettings
from reasoning_store.ledger import arguments
from reasoning_store.ledger.collecting import uncollected
from reasoning_store.ledger.values import Erased
from reasoning_store.ledger.verbs.erasing import Only
from reasoning_store.recorder import Recording
from reasoning_store.replies import Reply
from reasoning_store.sending import on_its_branch
from reasoning_store.shortening import Shortening
from reasoning_store.stored import (
    Branch,
    Stored,
    branch,
    draft_so_far,
    microseconds,
    siblings,
    time_of,
    told,
)


class Session(Shortening):
    """One conversation. Made by ``Store.session``."""

    @property
    def id(self) -> str:
        return self._row.id

    @property
    def owner(self) -> str:
        return self._row.owner

    @property
    def branch_id(self) -> int:
        """The branch that this handle stands on."""
        return self._branch

    @property
    def title(self) -> str | None:
        return self._row.title

    @property
    def metadata(self) -> dict[str, Any]:
        return dict(self._row.metadata)

    @property
    def updated_at(self) -> datetime:
        """When something was last said, as of when this handle was made."""
        return time_of(self._row.updated_at)

    def rename(self, title: str | None) -> None:
        """Give the session another title, or none."""
        self._row = self._workings.ledger.rename(self._row.key, title)

    def set_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Replace what the application keeps about the session."""
        self._row = self._workings.ledger.set_metadata(self._row.key, metadata)

    def archive(self, *, archived: bool = True) -> None:
        """Take the session out of the usual list, or put it back."""
        self._row = self._workings.ledger.archive(self._row.key, archived=archived)

    @property
    def settings(self) -> SessionSettings:
        return SessionSettings(self._workings, self._row)

    # Writing

    @overload
    def append(
        self,
        message: Message,
        *,
        idempotency_key: str | None = None,
        after: int | None = None,
        created_at: datetime | None = None,
    ) -> Stored: ...

    @overload
    def append(
        self,
        message: Sequence[Message],
        *,
        idempotency_key: str | None = None,
        after: int | None = None,
        created_at: datetime | None = None,
    ) -> list[Stored]: ...

    def append(
        self,
        message: Message | Sequence[Message],
        *,
        idempotency_key: str | None = None,
        after: int | None = None,
        created_at: datetime | None = None,
    ) -> Stored | list[Stored]:
        """Store a message at the end, or several as one.

        Repeated with the same ``idempotency_key`` and the same messages, it returns what
        was stored the first time. ``after`` is the position that must be the last one;
        when something stands behind it already, nothing is stored (``Conflict``).
        """
        # Anything else goes on as one message, and is refused there as not being one.
        given: Any = message
        several = type(given) is list or checking.are_several(given)
        batch = enumerate(given) if several else [(None, given)]
        # Masking, counting and JSON are done before the ledger's lane is asked for.
        entries = [self._workings.entry(item, self._row.encoding, at=at) for at, item in batch]
        here = self._branch
        self._workings.draft_keeper.keep_on(self._row.key, here)
        try:
            rows = self._workings.ledger.append(
                self._row.key,
                here,
                entries,
                after=after,
                idempotency_key=idempotency_key,
                created_at=microseconds(created_at, "created_at"),
                resolve=self._workings.resolve,
            )
        except Conflict as conflict:
            raise told(conflict) from None
        stored = [Stored(row) for row in rows]
        return stored[0] if isinstance(message, Message) else stored

    def record(
        self,
        stream: Iterable[Any],
        *,
        request: Request | None = None,
        provider: str | None = None,
        model: str | None = None,
        api: str | None = None,
        base_url: str | None = None,
        idempotency_key: str | None = None,
        starts_inside: bool | None = None,
        merge: bool = False,
    ) -> Recording:
        """Return a recording of one reply: iterate it for clean chunks, and it is stored.

        What the stream is follows from the ``request`` it answers, or from ``provider``,
        ``model`` and ``api``. A whole response is recorded as well. ``starts_inside`` is for
        models whose template opens a thought in the prompt: only its end is in the text. Behind
        native thinking ``merge`` keeps what is thought in tags, too, where it says something else.
        """
        streams.check(stream, awaited=False)
        names = (provider, model, api, base_url)
        reply = self._reply(
            request, names, idempotency_key, starts_inside=starts_inside, merge=merge
        )
        return Recording(reply, stream)

    def _reply(
        self,
        request: Request | None,
        names: tuple[str | None, str | None, str | None, str | None],
        idempotency_key: str | None,
        *,
        starts_inside: bool | None,
        merge: bool,
    ) -> Reply:
        """Return a reply to ``request``, or one of whoever is named, ready to be fed."""
        if request is not None:
            if not isinstance(request, Request):
                raise UsageError(
                    f"a request is what build_request() gives, not {type(request).__name__}",
                    hint="without one, name the provider and the model",
                )
            origin, tags = request.target, request.settings.tags
        else:
            origin, tags = self._whom(*names).origin, self._policy(None).settings.tags
        if starts_inside is not None:
            arguments.truth(starts_inside, "starts_inside")
        arguments.truth(merge, "merge")
        return Reply(
            self._workings,
            self._row,
            self._branch,
            origin=origin,
            tags=tags,
            starts_inside=starts_inside,
            merge=merge,
            request=request,
            idempotency_key=idempotency_key,
        )

    # Reading

    @uncollected
    @on_its_branch
    def history(
        self,
        *,
        limit: int | None = None,
        tokens: int | None = None,
        before: int | None = None,
        after: int | None = None,
    ) -> list[Stored]:
        """Return the messages, all of their thinking included (BR-002), oldest first.

        ``before`` and ``after`` are positions; ``limit`` and ``tokens`` keep those next to
        ``after`` where only that is given, else the latest. A window never parts a call
        from its response, so one by ``limit`` may hold a few messages more.

        A reply that is being recorded stands last, as far as it has arrived, with the status
        ``streaming``; ``interrupted`` where its recorder is gone.
        """
        ledger = self._workings.ledger
        # The draft first: where its message is there by the time the messages are read, it
        # has become that message.
        draft = ledger.draft(self._row.key, self._branch) if before is None else None
        rows = ledger.history(
            self._row.key, self._branch, limit=limit, tokens=tokens, before=before, after=after
        )
        others = siblings(ledger.branches(self._row.key), self._branch)
        found = [Stored(row) for row in rows]
        for position, branches in others.items():
            place = position - rows[0].position if rows else -1
            if 0 <= place < len(rows):
                found[place] = Stored(rows[place], branches)
        arriving = draft_so_far(draft) if draft is not None else None
        last = found[-1].position if found else (after or 0)
        if arriving is not None and last == arriving.position - 1:
            found.append(arriving)
        return found

    @on_its_branch
    def get(self, position: int) -> Stored:
        """Return one message; of a reply that is being recorded, what has arrived so far."""
        ledger = self._workings.ledger
        draft = ledger.draft(self._row.key, self._branch)
        try:
            row = ledger.get(self._row.key, self._branch, position)
            others = siblings(ledger.branches(self._row.key), self._branch)
            return Stored(row, others.get(position, ()))
        except NotFound:
            arriving = draft_so_far(draft) if draft is not None else None
            if arriving is None or arriving.position != position:
                raise
            return arriving

    # Branches

    def fork(self, *, at: int) -> Session:
        """Return a new branch that shares the messages before ``at`` and nothing after.

        Neither this handle nor the session's current branch moves. The last that it shares
        may be a reply whose recorder is gone; one that is still being recorded may not
        (``Conflict``).
        """
        workings = self._workings
        return self.branch(
            workings.ledger.fork(self._row.key, self._branch, at, resolve=workings.resolve)
        )

    def edit(self, position: int, message: Message) -> Stored:
        """Say something else at ``position``, on a new branch that becomes the current one.

        What stood there and after it stays on the branch where it was. This handle goes on
        with the new branch.
        """
        arguments.number(position, "position")
        entry = self._workings.entry(message, self._row.encoding)
        row = self._workings.ledger.edit(self._row.key, self._branch, position, entry)
        self._branch = row.branch
        return Stored(row)

    def regenerate(self, position: int) -> Session:
        """Make room for another reply in place of the one at ``position``, and return this handle.

        It stands on a new branch, now the current one, that ends before that reply.
        """
        here = self._branch
        if Session(self._workings, self._row, here).get(position).message.role != "assistant":
            raise UsageError(
                f"the message at {position} is not a model's reply",
                hint="edit(position, message) says something else in a user's place",
            )
        self._go_back(here, position)
        return self

    def pop_turn(self) -> Session:
        """Take the last turn back, from its user message on, and return this handle.

        It stands on a new branch, now the current one; nothing is deleted.
        """
        here = self._branch
        start = self._workings.ledger.head(self._row.key, here).turn_start
        if start is None:
            raise UsageError("there is no turn to take back: no user has said anything yet")
        self._go_back(here, start)
        return self

    def _go_back(self, branch: int, at: int) -> None:
        """Stand on a new fork of a branch that ends before ``at``, and is the current one."""
        self._branch = self._workings.ledger.fork(self._row.key, branch, at, current=True)

    def branches(self) -> list[Branch]:
        """Return every branch, the oldest first."""
        current = self._session().current_branch
        rows = self._workings.ledger.branches(self._row.key)
        return [branch(row, current=current) for row in rows]

    def branch(self, id: int) -> Session:
        """Return this session on another of its branches."""
        self._workings.ledger.get_branch(self._row.key, id)
        return Session(self._workings, self._row, id)

    def activate(self, id: int) -> None:
        """Make a branch the one that opening the session gives."""
        self._workings.ledger.activate(self._row.key, id)

    # Erasing

    def erase(self, position: int | None = None, *, only: Only = None) -> Erased:
        """Erase for real: this session, one message, or with ``only="reasoning"`` what was
        thought there.

        An erased message leaves its position and its role, in every branch that shares it,
        and takes its tool pair with it. A reply that is being recorded there ends for it, as
        interrupted: its recorder goes on, and is told at its end. The bytes leave the
        database; ``copies`` names the files that may still hold them.
        """
        ledger, counts = self._workings.ledger, self._workings.counts
        resolve = self._workings.resolve
        try:
            if position is not None:
                return ledger.erase_message(
                    self._row.key, self._branch, position, only=only, count=counts, resolve=resolve
                )
            return ledger.erase_session(self._row.key, only=only, count=counts, resolve=resolve)
        finally:
            # Whoever asked meanwhile may have read what is gone now.
            self._workings.views.forget(self._row.key)
