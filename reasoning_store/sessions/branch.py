"""One branch of a session: its messages read, written, forked, followed and erased."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from reasoning_store.conversation.blocks import Message
from reasoning_store.conversation.errors import Conflict, InvalidCall
from reasoning_store.conversation.identity import Asked
from reasoning_store.conversation.validation import (
    are_several,
    check_mapping,
    check_position,
    check_text,
)
from reasoning_store.ledger.encode import own_id
from reasoning_store.ledger.message_ids import no_message
from reasoning_store.ledger.records import Erased, MetadataChange, SessionRow
from reasoning_store.sessions.view import SessionView
from reasoning_store.store_state import StoreState
from reasoning_store.stored_values import (
    Branch,
    Stored,
    as_public_conflict,
    branch,
    draft_so_far,
    microseconds,
    stored_history,
    versions,
)

if TYPE_CHECKING:
    from reasoning_store.ledger.erasure import Only
    from reasoning_store.recording.following import Following

P = ParamSpec("P")
T = TypeVar("T")
MOST_REASON = 200
"""The most characters of the reason of a stop."""


class SessionBranch:
    """Reads and changes one branch: another thread may move the session's handle meanwhile."""

    def __init__(self, state: StoreState, row: SessionRow, branch: int) -> None:
        self.state = state
        self.ledger = state.ledger
        self.row = row
        self.key = row.key
        self.number = branch

    @property
    def view(self) -> SessionView:
        """This branch as its next request reads it."""
        return SessionView(self.state, self.row, self.number)

    def locate(self, *at: int | str | None) -> tuple[SessionBranch, list[Any]]:
        """Return a branch that has the messages of these ids, and the position of each.

        This branch, if it has them all. A position stays as it is, and so does None.
        """
        ids = [one for one in at if isinstance(one, str)]
        if not ids:
            return self, list(at)
        branch, positions = self.ledger.history.locate(self.key, self.number, ids)
        found = dict(zip(ids, positions, strict=True))
        here = SessionBranch(self.state, self.row, branch)
        return here, [found[one] if isinstance(one, str) else one for one in at]

    def append(
        self,
        messages: Any,
        ids: Any,
        idempotency_key: str | None,
        after: int | str | None,
        created_at: Any,
        change: MetadataChange | None,
        *,
        asked: Asked | None = None,
        keeps_ids: bool = False,
    ) -> list[Stored]:
        """Store messages at the end, as one; ``asked`` is what a client asked that they answer.

        With ``keeps_ids`` the messages have ids of another program, which are not their keys.
        """
        # Anything else goes on as one message, and is refused there as not being one.
        several = type(messages) is list or are_several(messages)
        batch = list(enumerate(messages)) if several else [(None, messages)]
        # Masking, counting and JSON are done before the ledger's lane is asked for.
        prepare, encoding = self.state.prepare, self.row.encoding
        entries = [prepare(item, encoding, at=at, asked=asked) for at, item in batch]
        if ids is not None:
            if idempotency_key is not None and not keeps_ids:
                raise InvalidCall(
                    "id: the key of a message already, and idempotency_key is another",
                    hint="pass one of them",
                )
            own = _own_ids(ids, len(entries), several=several)
            entries = [replace(one, id=id) for one, id in zip(entries, own, strict=True)]
        if are_several(created_at):
            times = _each("created_at", created_at, len(entries), several=several)
            entries = [
                replace(one, created_at=microseconds(time, "created_at"))
                for one, time in zip(entries, times, strict=True)
            ]
            created_at = None
        self.state.draft_writer.write_branch(self.key, self.number)
        here, (last,) = self.locate(after)
        if here.number != self.number:
            raise Conflict(
                f"the message to append after is on branch {here.number}",
                hint=f"session.branch({here.number}).append(...) continues there",
            )
        try:
            rows = self.ledger.messages.append(
                self.key,
                self.number,
                entries,
                after=last,
                idempotency_key=idempotency_key,
                created_at=microseconds(created_at, "created_at"),
                change=change,
                draft_message=self.state.draft_message,
            )
        except Conflict as conflict:
            raise as_public_conflict(conflict) from None
        return [Stored(row) for row in rows]

    def head(self) -> int:
        """Return the position of the last message, and so the number of messages."""
        return self.ledger.branches.get(self.key, self.number).head

    def history(
        self,
        *,
        limit: int | None = None,
        tokens: int | None = None,
        before: int | str | None = None,
        after: int | str | None = None,
    ) -> list[Stored]:
        """Return the messages, all of their thinking included (BR-002), oldest first.

        ``before`` and ``after`` are positions or ids; ``limit`` and ``tokens`` keep those next to
        ``after`` where only that is given, else the latest. A window never parts a call
        from its response, so one by ``limit`` may hold a few messages more.

        A reply that is being recorded comes last, as far as it has arrived, with the status
        ``streaming``; ``interrupted`` where its recorder is gone.
        """
        here, (first, last) = self.locate(after, before)
        moment = here.ledger.history.moment(
            here.key, here.number, limit=limit, tokens=tokens, before=last, after=first
        )
        return stored_history(moment, here.number, with_draft=before is None, after=first)

    def get(self, position: int | str) -> Stored:
        """Return one message; of a reply that is being recorded, what has arrived so far.

        A position is one of this branch. An id names its message on any branch, here and in each
        verb that takes a position.
        """
        if isinstance(position, str):
            here, (at,) = self.locate(position)
            found = here.get(at)
            if found.id != position:  # a reply that has ended meanwhile, of which nothing came
                raise no_message(position)
            return found
        moment = self.ledger.history.moment_at(self.key, self.number, position)
        others = versions(moment, self.number).get(position, ())
        if (
            moment.draft is not None
            and (arriving := draft_so_far(moment.draft, others)) is not None
        ):
            return arriving
        rows = moment.rows or [self.ledger.history.get(self.key, self.number, position)]
        return Stored(rows[0], others)

    def edit(self, position: int | str, message: Message) -> Stored:
        """Store a message in place of another, on a new branch."""
        check_position("position", position)
        entry = self.state.prepare(message, self.row.encoding)
        here, (at,) = self.locate(position)
        role = here.get(position).message.role
        if message.role != role:
            raise InvalidCall(
                f"the message at {at} is of the role {role}, not {message.role}",
                hint="edit takes a message of that role"
                + (f"; regenerate({at}) asks for another reply" * (role == "assistant")),
            )
        return Stored(self.ledger.messages.edit(self.key, here.number, at, entry))

    def fork(self, at: int | str) -> int:
        """Make a new branch that shares the messages before ``at``."""
        here, (position,) = self.locate(at)
        draft_message = self.state.draft_message
        return self.ledger.branches.fork(
            self.key, here.number, position, draft_message=draft_message
        )

    def fork_before_reply(self, position: int | str) -> int:
        """Make a branch that ends before a reply, and becomes current with its first message."""
        here, (at,) = self.locate(position)
        if here.get(position).message.role != "assistant":
            raise InvalidCall(
                f"the message at {at} is not a model's reply",
                hint="edit(position, message) replaces a user's message",
            )
        return self.ledger.branches.fork(self.key, here.number, at, current="later")

    def drop_tail(self, at: int | str) -> tuple[int, list[Stored]]:
        """Make a new current branch that ends before a message; return it and what it lacks."""
        check_position("at", at)
        here, (position,) = self.locate(at)
        branch, rows = self.ledger.messages.drop_tail(self.key, here.number, position)
        return branch, [Stored(row) for row in rows]

    def branches(self) -> list[Branch]:
        """Return every branch, the oldest first."""
        current = self.session().current_branch
        return [branch(row, current=current) for row in self.ledger.branches.all_of(self.key)]

    def fork_before_turn(self) -> int:
        """Make a new current branch that ends before the last turn."""
        start = self.ledger.branches.turn_start(self.key, self.number)
        if start is None:
            raise InvalidCall("there is no turn to take back: the branch has no user message yet")
        return self.ledger.branches.fork(self.key, self.number, start, current=True)

    def follow(self, after: str | None = None) -> Following:
        """Follow the reply that is being recorded on this branch, from any process.

        Iterate it for the reply's chunks, from its begin or after a ``cursor``. It ends when the
        reply ends, and then ``history`` has the message; at once if no reply is live.
        """
        from reasoning_store.recording.following import Following, ReplyFollower

        return Following(ReplyFollower(self, after))

    def stop(self, reason: str = "user") -> bool:
        """End the reply that is being recorded on this branch, from any process or thread.

        Within a second the part that has arrived is stored as interrupted, with
        ``finish_reason="stopped"`` and the annotation ``stopReason``, and its stream is closed
        (one that a thread waits for, at its next event). Returns whether a reply was live.
        """
        if not isinstance(reason, str) or not 0 < len(reason) <= MOST_REASON:
            raise InvalidCall("reason: must be a short text", hint=f"1 to {MOST_REASON} characters")
        text = self.masked(check_text("reason", reason))
        was_live = self.ledger.drafts.stop(self.key, self.number, text)
        self.state.draft_writer.wake()  # it may be recorded here
        return was_live

    def annotate(self, position: int | str, annotations: Mapping[str, Any]) -> dict[str, Any]:
        """Merge facts of yours into those kept with a message, key by key, and return them all.

        None removes a key. A message has at most 16 KB of them, as JSON. They are exported and
        masked, go when the message is erased, and are never sent to a model.
        """
        check_position("position", position)
        wanted = self.masked(check_mapping("annotations", annotations))
        return self.ledger.annotations.merge(self.key, self.number, position, wanted)

    def masked(self, value: Any) -> Any:
        """Return a JSON value of the application without its secrets."""
        if self.state.masker is None:
            return value
        from reasoning_store.ingress.masking import mask_value

        return mask_value(value, self.state.masker)

    def erase(self, position: int | str | None, *, only: Only) -> Erased:
        """Erase the session, or a message; or only the reasoning of that."""
        erasure = self.ledger.erasure
        count, draft_message = self.state.count, self.state.draft_message
        if position is None:
            return erasure.erase_session(
                self.key, only=only, count=count, draft_message=draft_message
            )
        here, (at,) = self.locate(position)
        if isinstance(position, str):
            # A live reply may end as no message: then another message has its position.
            self.ledger.drafts.end_draft_at(self.key, here.number, at, draft_message, at_once=True)
            here, (at,) = here.locate(position)
        return erasure.erase_message(
            self.key, here.number, at, only=only, count=count, draft_message=draft_message
        )

    def session(self) -> SessionRow:
        return self.ledger.sessions.get(self.row.owner, self.row.id)


def of_branch(
    verb: Callable[Concatenate[SessionBranch, P], T],
) -> Callable[Concatenate[Any, P], T]:
    """Return a verb of a branch as one of the session that is on it."""

    @wraps(verb)
    def ask(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return verb(self._own_branch(), *args, **kwargs)

    return ask


def _own_ids(given: Any, count: int, *, several: bool) -> list[str | None]:
    """Return the application's own ids of messages, which differ from each other."""
    given = _each("id", given, count, several=several) if several else [given]
    found = [None if one is None else own_id(one) for one in given]
    used = [one for one in found if one is not None]
    if len(set(used)) < len(used):
        raise InvalidCall("id: two messages of the list have the same one")
    return found


def _each(name: str, given: Any, count: int, *, several: bool) -> list[Any]:
    """Return a list that has one value for each message."""
    values = list(given) if several and are_several(given) else None
    if values is None or len(values) != count:
        raise InvalidCall(
            f"{name}: a list for {count} messages, one value for each"
            if several
            else f"{name}: one value for one message, not a list"
        )
    return values


def metadata_change(changes: Any, expected: Any) -> MetadataChange:
    """Return a checked change of a session's metadata."""
    return MetadataChange(
        check_mapping("metadata", changes),
        check_mapping("expected", {} if expected is None else expected),
    )
