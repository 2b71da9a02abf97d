"""Messages: encoded before any transaction, appended in one, and repeated keys answered."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, select

from reasoning_store.conversation.blocks import MOST_TOKENS
from reasoning_store.conversation.errors import (
    Conflict,
    CorruptRow,
    InvalidCall,
    ReasoningStoreError,
    StoreBusy,
)
from reasoning_store.conversation.validation import check_number, describe
from reasoning_store.ledger import (
    appends,
    branches,
    decode,
    encode,
    history,
    message_ids,
    removal,
    sessions,
    stored_drafts,
)
from reasoning_store.ledger.database import driver_errors
from reasoning_store.ledger.database.database import Database
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.encode import EncodedMessage
from reasoning_store.ledger.keys import Clock
from reasoning_store.ledger.records import (
    MOST,
    DraftMessage,
    DraftRow,
    MetadataChange,
    NewMessage,
    Segment,
    StoredRow,
)
from reasoning_store.ledger.tables import at_position, messages

_ATTEMPTS = 50
"""How often an append is tried while others write in its place."""


_AT_POSITION = Statement(select(messages.c.id).where(*at_position(messages.c)))


class Messages:
    """Messages, written once."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def append(
        self,
        session_key: int,
        branch: int,
        entries: Sequence[NewMessage],
        *,
        after: int | None = None,
        idempotency_key: str | None = None,
        created_at: int | None = None,
        change: MetadataChange | None = None,
        draft_message: DraftMessage | None = None,
    ) -> list[StoredRow]:
        """Append messages one after another, all or none of them.

        ``idempotency_key`` covers all of ``entries``: given again with equal messages it
        returns what was written first, with others it is a Conflict. The id of an entry
        does the same for its one message: one that is stored already is returned.
        ``after`` is the position that the first of them must follow. ``change`` is made in
        the same step.

        A reply that is being recorded on the branch ends with this: ``draft_message`` is asked,
        outside of any transaction, for the message that has arrived of it, and returns None if
        nothing has. Without ``draft_message`` it is a Conflict.
        """
        if not entries:
            raise InvalidCall("append: no message was given", hint='rs.user("text") makes one')
        _refuse_erased(entries)
        if after is not None:
            after = min(max(check_number("after", after), -1), MOST)
        key_text = None if idempotency_key is None else encode.checked_key_digest(idempotency_key)
        created_at = self._clock.time(created_at)
        encoded = encode.mark_batch(
            [self.encode_entry(entry, created_at) for entry in entries], key_text
        )
        branches.check_branch(branch)
        has_ids = any([entry.id is not None for entry in entries])
        for attempt in range(_ATTEMPTS):
            known = self._stored_before(session_key, encoded) if has_ids else {}
            new = [item for item in encoded if item.columns["id"] not in known]
            if not new:
                return [known[item.columns["id"]] for item in encoded]
            obstacle: list[StoredRow] | DraftRow | None = None
            if attempt > 0:
                obstacle = self._database.read(
                    self._read_obstacle, session_key, branch, new, key_text, after
                )
            if isinstance(obstacle, list):
                rows = obstacle
            else:
                now = max([item.columns["created_at"] for item in new])
                if obstacle is None:
                    first = self.append_encoded(
                        session_key, branch, new, after=after, now=now, change=change
                    )
                else:
                    first = self.end_draft(
                        obstacle, draft_message, new, after=after, now=now, change=change
                    )
                if first is None:
                    continue  # another writer was first
                rows = new_rows(branch, first, new)
            if not known:
                return rows
            known.update({row.id: row for row in rows})
            return [known[item.columns["id"]] for item in encoded]
        raise self._database.read(_lost_every_time, session_key, branch)

    def edit(self, session_key: int, branch: int, at: int, entry: NewMessage) -> StoredRow:
        """Write a message in the place of the one at ``at``, on a fork that becomes current.

        One step: where the message or the place is refused, there is no fork.
        """
        _refuse_erased([entry])
        now = self._clock.now()
        encoded = [self.encode_entry(entry, now)]

        def work(connection: Connection) -> StoredRow:
            fork = branches.fork(connection, session_key, branch, at, created_at=now)
            appends.append(connection, session_key, fork, encoded, after=None, ending=None, now=now)
            sessions.change(connection, session_key, "current_branch", fork)
            return new_rows(fork, at, encoded)[0]

        return self._database.write(work)

    def drop_tail(self, session_key: int, branch: int, at: int) -> tuple[int, list[StoredRow]]:
        """Return a fork without the message at ``at`` and those after it, and these messages.

        The fork becomes current in the same step. If nothing is dropped, no fork is made.
        """
        now = self._clock.now()

        def work(connection: Connection) -> tuple[int, list[StoredRow]]:
            lineage = branches.get(connection, session_key, branch)
            if at == lineage.next_position:
                return branch, []
            fork = branches.fork(connection, session_key, branch, at, created_at=now)
            sessions.change(connection, session_key, "current_branch", fork)
            return fork, history.from_position(connection, session_key, branch, at, count=MOST)

        return self._database.write(work)

    def _stored_before(
        self, session_key: int, encoded: Sequence[EncodedMessage]
    ) -> dict[str, StoredRow]:
        """Return the messages that are stored under the ids that an application gave, by id.

        Conflict where one of them is another message.
        """

        def read(connection: Connection) -> dict[str, StoredRow]:
            stored: dict[str, StoredRow] = {}
            for item in encoded:
                id = item.entry.id
                place = id and message_ids.written_at(connection, session_key, id)
                if not (id and place):
                    continue
                segment = Segment(place.branch, place.position, place.position)
                (row,) = history.of_segments(connection, session_key, [segment], thinking=True)
                if not same([row], [item]):
                    raise Conflict(
                        f"the id {describe(id)} is that of another message, or of an erased one",
                        stored=[row],
                        hint="an id belongs to one message of its session: pass another one",
                    )
                stored[id] = row
            return stored

        return self._database.read(read)

    def _read_obstacle(
        self,
        connection: Connection,
        session_key: int,
        branch: int,
        encoded: Sequence[EncodedMessage],
        key_text: str | None,
        after: int | None,
    ) -> list[StoredRow] | DraftRow | None:
        """Return why an append wrote nothing; raise if ending a draft does not help.

        The rows that the same append wrote before, under its idempotency key; or the draft that is
        on the branch; or None, if the obstacle is gone by now.
        """
        if key_text is not None:
            stored = history.by_idempotency_key(connection, session_key, key_text)
            if stored is not None:
                if same(stored, encoded):
                    return stored
                if removal.was_erased(connection, session_key, stored):
                    raise Conflict(
                        "the message of this idempotency key was erased",
                        stored=stored,
                        hint="to store it again, use another key",
                    )
                raise Conflict(
                    "this idempotency key belongs to another message",
                    stored=stored,
                    hint="it is this error's .stored; another message has another key",
                )
        draft = stored_drafts.get(connection, session_key, branch, now=self._clock.now())
        if draft is None:
            last = branches.get(connection, session_key, branch).head
        elif key_text is not None and draft.idempotency_key == key_text:
            raise Conflict(
                "a reply is being recorded under this idempotency key",
                hint="another message has another key; if that recording could not store its end,"
                " call its .save()",
            )
        else:
            # Its message stands before ours, unless nothing of it has arrived.
            last = draft.position - (not draft.parts)
        if after is not None and after != last:
            raise _stale(connection, session_key, branch, last, after)
        return draft

    def end_draft(
        self,
        draft: DraftRow,
        draft_message: DraftMessage | None,
        following: Sequence[EncodedMessage],
        *,
        now: int,
        after: int | None = None,
        change: MetadataChange | None = None,
    ) -> int | None:
        """Make a draft the message that has arrived of it, and append others in the same step.

        Returns the position of the first of ``following``; None means that the draft had ended.
        """
        if draft_message is None:
            raise Conflict(
                "a reply is being recorded on this branch",
                hint="append through a session, which ends it as interrupted",
            )
        taken = self._database.write(
            lambda connection: stored_drafts.take_over(connection, draft), again_when_lost=True
        )
        if taken is None:
            return None
        entry = draft_message(taken)
        now = max(now, taken.created_at)
        ended: list[EncodedMessage] = []
        if entry is not None:
            item = self.encode_entry(entry, taken.created_at, id=taken.id)
            ended = encode.mark_batch([item], taken.idempotency_key)
        first = taken.position + len(ended)
        if after is not None and after != first - 1:
            # The draft is taken over, so that its message has to be stored all the same.
            self.append_encoded(draft.session_key, draft.branch, ended, ending=taken.id, now=now)
            key, branch, last = draft.session_key, draft.branch, first - 1
            raise self._database.read(_stale, key, branch, last, after)
        if not (ended or following):
            dropped = self._database.write(lambda connection: stored_drafts.drop(connection, taken))
            return first if dropped else None
        start = self.append_encoded(
            draft.session_key,
            draft.branch,
            [*ended, *following],
            ending=taken.id,
            now=now,
            change=change,
        )
        return None if start is None else start + len(ended)

    def encode_entry(
        self, entry: NewMessage, created_at: int, *, id: str | None = None
    ) -> EncodedMessage:
        message, counts = entry.message, entry.counts
        if message.role != "assistant" and message.thinking:
            # What is carried, and what may go back, is a model's own thinking.
            raise InvalidCall(
                f"only a model thinks: a message of the role {message.role} has a thinking block",
                hint="append it as rs.assistant(...), or make the block text",
            )
        if message.status == "streaming":
            raise InvalidCall(
                "a message that is still streaming is not appended",
                hint="record(stream) keeps what has arrived of it, and appends it at its end",
            )
        for tokens in (counts.visible, *counts.thinking):
            if not 0 <= tokens <= MOST_TOKENS:
                raise InvalidCall("counts: a number of tokens is out of range")
        if not encode.may_free(message, counts):
            raise InvalidCall("counts: clearing the results does not free that many tokens")
        if entry.created_at is not None:
            created_at = self._clock.time(entry.created_at)
        id = id or entry.id or self._clock.new_id()
        return encode.encode_message(entry, id=id, created_at=created_at)

    def append_encoded(
        self,
        session_key: int,
        branch: int,
        encoded: Sequence[EncodedMessage],
        *,
        now: int,
        after: int | None = None,
        ending: str | None = None,
        alternatives: Sequence[EncodedMessage] = (),
        change: MetadataChange | None = None,
    ) -> int | None:
        """Return the first position; None means that another append or a draft was there first.

        Each of ``alternatives`` is appended to a fork of its own, which begins there. If the
        metadata is not what ``change`` expects, it is a Conflict and nothing is written.
        """
        # What a second run would write is there already: refused by its key, or by the
        # draft that has ended with the first.
        harmless = ending is not None or encoded[0].columns["idempotency_key"] is not None

        def work(connection: Connection) -> int | None:
            first = appends.append(
                connection, session_key, branch, encoded, after=after, ending=ending, now=now
            )
            if first is not None:
                for other in alternatives:
                    _append_alternative(connection, session_key, branch, first, other, now=now)
                if change is not None:
                    sessions.change_metadata(connection, session_key, change)
            return first

        try:
            single = not alternatives and change is None
            return self._database.write(work, single=single, again_when_lost=harmless)
        except driver_errors.UniqueViolation:
            return None

    def write_alternatives(
        self,
        session_key: int,
        branch: int,
        at: int,
        encoded: Sequence[EncodedMessage],
        *,
        now: int,
    ) -> None:
        """Append each to a fork of its own, which begins at ``at``; all or none of them."""

        def work(connection: Connection) -> None:
            for other in encoded:
                _append_alternative(connection, session_key, branch, at, other, now=now)

        self._database.write(work)


def _append_alternative(
    connection: Connection, key: int, branch: int, at: int, other: EncodedMessage, *, now: int
) -> None:
    fork = branches.fork(connection, key, branch, at, created_at=now)
    appends.append(connection, key, fork, [other], after=None, ending=None, now=now)


def _refuse_erased(entries: Sequence[NewMessage]) -> None:
    if any([entry.message.status == "erased" for entry in entries]):
        raise InvalidCall("an erased message is not appended", hint="erase(position)")


def new_rows(branch: int, first: int, encoded: Sequence[EncodedMessage]) -> list[StoredRow]:
    return [
        decode.new_row(item.entry, item.columns, branch, position)
        for position, item in enumerate(encoded, first)
    ]


def same(stored: Sequence[StoredRow], encoded: Sequence[EncodedMessage]) -> bool:
    """Whether these are the messages that were to be written."""
    return [row.digest for row in stored] == [item.columns["digest"] for item in encoded]


def _stale(connection: Connection, key: int, branch: int, last: int, after: int) -> Conflict:
    """Return the conflict of an append that something else has come before: the first of it."""
    return Conflict(
        f"the last message is at {last}, not at {after}",
        stored=history.from_position(connection, key, branch, after + 1, count=1) or None,
        hint="read the messages after it, then decide anew",
    )


def _lost_every_time(connection: Connection, key: int, branch: int) -> ReasoningStoreError:
    """Return the error of an append that found its place taken each time."""
    place = {"key": key, "of": branch, "at": branches.get(connection, key, branch).next_position}
    if _AT_POSITION.row(connection, place) is not None:
        return CorruptRow("there is a message after the branch's last one")
    return StoreBusy(f"others wrote to this branch first, {_ATTEMPTS} times")
