"""Drafts: replies that are recorded while they arrive.

A recorder holds the ``DraftRow`` that ``begin`` gave it; ``write_parts`` returns whether the draft
is still its own. To show a conversation with its draft, read the draft first: a message that is at
its position by the time the messages are read is what the draft has become.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection

from reasoning_store.conversation.blocks import Origin
from reasoning_store.conversation.errors import Conflict, InvalidCall, StoreBusy
from reasoning_store.conversation.identity import Asked
from reasoning_store.conversation.validation import check_number, describe
from reasoning_store.ledger import branches, encode, history, message_ids, stored_drafts
from reasoning_store.ledger.database.database import Database
from reasoning_store.ledger.encode import EncodedMessage
from reasoning_store.ledger.keys import Clock
from reasoning_store.ledger.messages import Messages, new_rows, same
from reasoning_store.ledger.records import (
    Arrival,
    DraftMessage,
    DraftRow,
    NewMessage,
    NewParts,
    Segment,
    StoredRow,
)


@dataclass(frozen=True, slots=True)
class DraftSignals:
    """The requests of other processes to a draft's recorder."""

    stop: str | None
    is_followed: bool


class Drafts:
    """Replies that are still arriving."""

    def __init__(self, database: Database, clock: Clock, messages: Messages) -> None:
        self._database = database
        self._clock = clock
        self._messages = messages
        self._unsure: dict[tuple[int, str], str] = {}
        """By session and idempotency key: a draft of which no one knows whether it has begun."""

    def begin(
        self,
        session_key: int,
        branch: int,
        *,
        origin: Origin | None = None,
        request_facts: Mapping[str, Any] | None = None,
        annotations: Mapping[str, Any] | None = None,
        id: str | None = None,
        idempotency_key: str | None = None,
        asked: Asked | None = None,
        draft_message: DraftMessage | None = None,
    ) -> DraftRow:
        """Begin the one draft of a branch.

        ``idempotency_key`` names the attempt, and so does an ``id`` of the application's:

        - a message has it: a Conflict with the rows
        - a draft that has lost its recorder has it: its message is stored, and this is a Conflict
          with that row; without a message the draft is dropped
        - a reply with it is being recorded: a Conflict, and that recording goes on
        - a draft of another attempt is on the branch: it ends as interrupted

        ``draft_message`` is that of ``append``.
        """
        branches.check_branch(branch)
        now = self._clock.now()
        key_text = _key_text(id, idempotency_key)
        attempt = None if key_text is None else (session_key, key_text)
        if id is not None:
            self._refuse_stored(session_key, id)
        unsure = None if attempt is None else self._unsure.pop(attempt, None)
        draft = DraftRow(
            session_key=session_key,
            branch=branch,
            id=id or unsure or self._clock.new_id(),
            position=0,
            origin=origin,
            annotations=None if annotations is None else dict(annotations),
            request_facts=None if request_facts is None else dict(request_facts),
            idempotency_key=key_text,
            created_at=now,
            asked=asked,
        )
        row = stored_drafts.columns_of(draft, until=stored_drafts.lease_end(now))

        while True:
            try:
                begun = self._database.write(
                    lambda connection: stored_drafts.begin(connection, row), again_when_lost=True
                )
            except StoreBusy:
                if attempt is not None:
                    self._unsure[attempt] = draft.id
                raise
            if begun is not None:
                position, created_at = begun
                return replace(draft, position=position, created_at=created_at)
            other = self._database.read(self._other_draft, draft)
            if other is not None:
                self._messages.end_draft(other, draft_message, (), now=self._clock.now())

    def _refuse_stored(self, session_key: int, id: str) -> None:
        """Refuse an id that a message has, also one that the store made."""

        def read(connection: Connection) -> list[StoredRow]:
            place = message_ids.written_at(connection, session_key, id)
            if place is None:
                return []
            segment = Segment(place.branch, place.position, place.position)
            return history.of_segments(connection, session_key, [segment], thinking=True)

        if stored := self._database.read(read):
            raise Conflict(
                f"the id {describe(id)} is that of another message, or of an erased one",
                stored=stored,
                hint="an id belongs to one message of its session: pass another one",
            )

    def _other_draft(self, connection: Connection, draft: DraftRow) -> DraftRow | None:
        """Return the draft that has to end first; raise what cannot be got past."""
        key, now = draft.session_key, self._clock.now()
        if draft.idempotency_key is not None:
            stored = history.by_idempotency_key(connection, key, draft.idempotency_key)
            if stored is not None:
                raise Conflict(
                    "a reply was already recorded under this id or idempotency key",
                    stored=stored,
                    hint="it is this error's .stored; another attempt has another key",
                )
            for branch in stored_drafts.under_key(connection, key, draft.idempotency_key):
                found = stored_drafts.get(connection, key, branch, now=now)
                if found is None or found.expired:
                    return found
                raise Conflict(
                    "a reply is being recorded under this id or idempotency key",
                    hint="read it with history(); another attempt has another key",
                )
        return stored_drafts.get(connection, key, draft.branch, now=now)

    def write_parts(self, new: Sequence[NewParts], *, last: bool = False) -> list[bool]:
        """Write what has arrived of several drafts since, in one step, and renew their leases.

        Parts are JSON that only their writer understands, numbered 1, 2, 3 ...; those that are
        there already are not written again. With ``last`` their recorders end with this, and the
        drafts are interrupted now. False for a draft means that another ended it, and that nothing
        of it was written.
        """
        until = None if last else stored_drafts.lease_end(self._clock.now())
        return self._database.write(
            lambda connection: [
                stored_drafts.write_parts(connection, one, until=until) for one in new
            ],
            again_when_lost=True,
        )

    def finish(
        self,
        draft: DraftRow,
        entries: Sequence[NewMessage],
        *,
        alternatives: Sequence[NewMessage] = (),
    ) -> list[StoredRow]:
        """End a draft: its message, and what follows it, take the place of its parts.

        The first message has the draft's id, all of them its time. Each of ``alternatives`` is
        another answer to the same request: in the same step it becomes the message of a fork that
        begins at the draft's position. Repeated with the same messages it returns the same rows. If
        another has ended the draft, this is a Conflict that has the rows of the draft, if any; the
        alternatives are stored all the same.
        """
        if not entries:
            raise InvalidCall("finish: no message was given; see drop")
        created_at = draft.created_at
        first, *rest = entries
        batch = [self._messages.encode_entry(first, created_at, id=draft.id)]
        batch += [self._messages.encode_entry(entry, created_at) for entry in rest]
        encoded = encode.mark_batch(batch, draft.idempotency_key)
        others = [self._messages.encode_entry(entry, created_at) for entry in alternatives]

        position = self._messages.append_encoded(
            draft.session_key,
            draft.branch,
            encoded,
            ending=draft.id,
            now=max(self._clock.now(), draft.created_at),
            alternatives=others,
        )
        if position is not None:
            return new_rows(draft.branch, position, encoded)
        try:
            return self._database.read(_rows_of_end, draft, encoded)
        except Conflict as conflict:
            ended = conflict.stored[0] if conflict.stored else None
            if others and ended is not None and ended.id == draft.id:
                # The one who ended it knew of the first one only.
                self._messages.write_alternatives(
                    draft.session_key, draft.branch, ended.position, others, now=self._clock.now()
                )
            raise

    def end_draft_at(
        self,
        session_key: int,
        branch: int,
        position: int,
        draft_message: DraftMessage | None,
        *,
        at_once: bool = False,
    ) -> None:
        """End the draft that readers see at a position, so that it becomes a message.

        One that is still being recorded is a Conflict, unless it is to end ``at_once``, as
        interrupted. If readers see no draft, nothing happens.
        """
        check_number("position", position)
        found = self._database.read_one(branches.get, session_key, branch)
        # What has arrived of a draft may be much: it is read only where it is asked for.
        draft = self.get(session_key, branch) if position == found.next_position else None
        if draft is None or draft.position != position or not draft.parts:
            return
        if not (draft.expired or at_once):
            raise Conflict(
                f"the reply at position {position} is still being recorded",
                hint=f"wait for its end, or share the messages before it: fork(at={position})",
            )
        self._messages.end_draft(draft, draft_message, (), now=self._clock.now())

    def arrived(self, session_key: int, branch: int, *, after: int = 0) -> Arrival | None:
        """Return what has arrived of a branch's draft after so many parts, if there is one."""
        branches.check_branch(branch)
        now = self._clock.now()
        return self._database.read_one(
            stored_drafts.arrived, session_key, branch, after=after, now=now
        )

    def ended_as(self, session_key: int, branch: int, id: str, position: int) -> StoredRow | None:
        """Return the message that a draft ended as, if it is there."""
        rows = self._database.read(history.from_position, session_key, branch, position, count=1)
        return next((row for row in rows if row.id == id), None)

    def follow(self, session_key: int, branch: int, arrival: Arrival) -> None:
        """Have a draft written more often, for a reader in another process: for half a minute."""
        now = self._clock.now()
        until = stored_drafts.lease_end(now)
        if now + (until - now) // 2 < arrival.followed_until <= until:
            return
        self._database.write(
            lambda connection: stored_drafts.follow(
                connection, session_key, branch, arrival.id, until=until
            ),
            single=True,
            again_when_lost=True,
        )

    def stop(self, session_key: int, branch: int, reason: str) -> bool:
        """Ask the recorder of a live draft to stop; False without such a draft."""
        branches.check_branch(branch)
        now = self._clock.now()
        return self._database.write(
            lambda connection: stored_drafts.stop(connection, session_key, branch, reason, now=now),
            again_when_lost=True,
        )

    def signals(self, drafts: Sequence[DraftRow]) -> list[DraftSignals | None]:
        """Return what others ask of the recorders of drafts; None of one that has lost it."""
        now = self._clock.now()
        latest = stored_drafts.lease_end(stored_drafts.lease_end(now))

        def read(connection: Connection) -> list[DraftSignals | None]:
            found = [stored_drafts.signals(connection, draft) for draft in drafts]
            return [
                None if one is None else DraftSignals(one[0], is_followed=now < one[1] <= latest)
                for one in found
            ]

        return self._database.read(read)

    def drop(self, draft: DraftRow) -> bool:
        """Remove a draft of which nothing has arrived; False where it has ended."""
        return self._database.write(lambda connection: stored_drafts.drop(connection, draft))

    def get(self, session_key: int, branch: int) -> DraftRow | None:
        """Return the draft of a branch with all of its parts, if there is one."""
        now = self._clock.now()
        return self._database.read_one(stored_drafts.get, session_key, branch, now=now)


def _rows_of_end(
    connection: Connection, draft: DraftRow, encoded: Sequence[EncodedMessage]
) -> list[StoredRow]:
    """Return what an earlier try of this end wrote; raise what another did instead."""
    there = history.from_position(
        connection, draft.session_key, draft.branch, draft.position, count=len(encoded)
    )
    stored = [row for row in there[:1] if row.id == draft.id] or None
    if stored is not None and same(there, encoded):
        return there
    if stored is None and draft.idempotency_key is not None:
        stored = history.by_idempotency_key(connection, draft.session_key, draft.idempotency_key)
    raise Conflict(
        "this reply was ended while it was being recorded",
        stored=stored,
        hint="what was stored of it, if anything, is this error's .stored",
    )


def _key_text(id: str | None, idempotency_key: str | None) -> str | None:
    """Return the column of the key of an attempt, which an id of the application's is, too."""
    if id is None:
        return None if idempotency_key is None else encode.checked_key_digest(idempotency_key)
    if idempotency_key is not None:
        raise InvalidCall(
            "id: the key of a message already, and idempotency_key is another",
            hint="pass one of them",
        )
    return encode.repeat_of_id(encode.own_id(id))
