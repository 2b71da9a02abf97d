"""The verbs of drafts: a reply that is recorded while it arrives.

A recorder holds the ``DraftRow`` that ``begin_draft`` gave it. ``keep_drafts`` answers whether
the draft is still its own: somebody else may have ended it, and then the recorder goes on
without writing, and is told at its end.

To show a conversation with its draft, read the draft first: where a message stands at its
position by the time the messages are read, the draft has become that message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection

from reasoning_store.blocks import Origin
from reasoning_store.errors import Conflict, UsageError
from reasoning_store.ledger import arguments, branches, columns, drafts, reading
from reasoning_store.ledger.columns import Prepared
from reasoning_store.ledger.values import DraftRow, Entry, Growth, StoredRow
from reasoning_store.ledger.verbs.writing import Resolve, WritingVerbs, new_rows, same

LEASE = 30.0
"""Seconds for which a draft is its recorder's without a word from it; then it is a message
that was interrupted."""


class DraftVerbs(WritingVerbs):
    """Replies that are still arriving."""

    def begin_draft(
        self,
        session_key: int,
        branch: int,
        *,
        origin: Origin | None = None,
        sent: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        resolve: Resolve | None = None,
    ) -> DraftRow:
        """Begin the one draft that a branch can have; one that is there ends as interrupted.

        ``idempotency_key`` names the attempt. Where a message was written under it, or a
        draft that has lost its recorder, this is a Conflict that carries the rows; where a
        reply is being recorded under it just now, it is a Conflict, and that one goes on.
        ``resolve`` is that of ``append``.
        """
        branches.check(branch)
        now = self._clock()
        draft = DraftRow(
            session_key=session_key,
            branch=branch,
            id=self._new_id(),
            position=0,
            origin=origin,
            metadata=None,
            sent=None if sent is None else dict(sent),
            idempotency_key=None if idempotency_key is None else columns.repeat(idempotency_key),
            created_at=now,
        )
        row = drafts.columns_of(draft, until=_leased(now))

        while True:
            begun = self._write(lambda connection: drafts.begin(connection, row))
            if begun is not None:
                position, created_at = begun
                return replace(draft, position=position, created_at=created_at)
            other = self._read(lambda connection: self._other_draft(connection, draft))
            if other is not None:
                self._end(other, resolve, (), now=self._clock())

    def _other_draft(self, connection: Connection, draft: DraftRow) -> DraftRow | None:
        """Return the draft that has to end first; raise what cannot be got past."""
        key, now = draft.session_key, self._clock()
        if draft.idempotency_key is not None:
            stored = reading.by_idempotency_key(connection, key, draft.idempotency_key)
            if stored is not None:
                raise Conflict(
                    "a reply was already recorded under this idempotency key",
                    stored=stored,
                    hint="it is this error's .stored; another attempt has another key",
                )
            for branch in drafts.under_key(connection, key, draft.idempotency_key):
                found = drafts.get(connection, key, branch, now=now)
                if found is None or found.expired:
                    return found
                raise Conflict(
                    "a reply is being recorded under this idempotency key",
                    hint="read it with history(); another attempt has another key",
                )
        return drafts.get(connection, key, draft.branch, now=now)

    def keep_drafts(self, growths: Sequence[Growth], *, last: bool = False) -> list[bool]:
        """Write what has arrived of several drafts since, in one step, and renew their leases.

        Parts are JSON that only their writer understands, numbered 1, 2, 3 ...; those that are
        there already are nothing. ``last`` says that their recorders are gone with this: what
        has arrived is interrupted now. False of a draft says that it was ended by somebody else,
        and that nothing was written of it.
        """
        until = None if last else _leased(self._clock())
        return self._write(
            lambda connection: [drafts.grow(connection, one, until=until) for one in growths],
            again_when_lost=True,
        )

    def finish_draft(
        self,
        draft: DraftRow,
        entries: Sequence[Entry],
        *,
        beside: Sequence[Entry] = (),
    ) -> list[StoredRow]:
        """End a draft: its message, and what follows it, take the place of its parts.

        The first message has the draft's id, all of them its time. Each of ``beside`` is another
        answer to the same: in the same step it becomes the message of a fork that begins where
        the draft's does.
        Repeated with the same messages it returns the same rows. Where somebody else has
        ended it this is a Conflict that carries the rows which that made of it, if any; the
        other answers stand beside these all the same.
        """
        if not entries:
            raise UsageError("finish_draft: no message was given; see drop_draft")
        at = draft.created_at
        first, *rest = entries
        batch = [self._prepared(first, at, id=draft.id)]
        batch += [self._prepared(entry, at) for entry in rest]
        prepared = columns.keyed(batch, draft.idempotency_key)
        others = [self._prepared(entry, at) for entry in beside]

        position = self._append(
            draft.session_key,
            draft.branch,
            prepared,
            ending=draft.id,
            now=max(self._clock(), draft.created_at),
            beside=others,
        )
        if position is not None:
            return new_rows(draft.branch, position, prepared)
        try:
            return self._read(lambda connection: _what_became(connection, draft, prepared))
        except Conflict as conflict:
            became = conflict.stored[0] if conflict.stored else None
            if others and became is not None and became.id == draft.id:
                # Whoever ended it knew of the first one only.
                self._beside(
                    draft.session_key, draft.branch, became.position, others, now=self._clock()
                )
            raise

    def end_draft_at(
        self,
        session_key: int,
        branch: int,
        position: int,
        resolve: Resolve | None,
        *,
        at_once: bool = False,
    ) -> None:
        """End the draft that readers see at a position, so that a message stands there.

        One that is still being recorded is a Conflict, unless it is to end ``at_once``, as
        interrupted. Where readers see no draft, this is nothing.
        """
        arguments.number(position, "position")
        found = self._read(
            lambda connection: branches.get(connection, session_key, branch)[0], single=True
        )
        # What has arrived of a draft may be much: it is read only where it is asked for.
        draft = self.draft(session_key, branch) if position == found.next_position else None
        if draft is None or draft.position != position or not draft.parts:
            return
        if not (draft.expired or at_once):
            raise Conflict(
                f"the reply at position {position} is still being recorded",
                hint=f"wait for its end, or share what stands before it: fork(at={position})",
            )
        self._end(draft, resolve, (), now=self._clock())

    def drop_draft(self, draft: DraftRow) -> bool:
        """Remove a draft of which nothing has arrived; False where it has ended."""
        return self._write(lambda connection: drafts.drop(connection, draft))

    def draft(self, session_key: int, branch: int) -> DraftRow | None:
        """Return the draft of a branch with all of its parts, if there is one."""
        now = self._clock()
        return self._read(
            lambda connection: drafts.get(connection, session_key, branch, now=now), single=True
        )


def _leased(now: int) -> int:
    return now + int(LEASE * 1_000_000)


def _what_became(
    connection: Connection, draft: DraftRow, prepared: Sequence[Prepared]
) -> list[StoredRow]:
    """Return what an earlier try of this end wrote; raise what somebody else did instead."""
    there = reading.from_position(
        connection, draft.session_key, draft.branch, draft.position, count=len(prepared)
    )
    stored = [row for row in there[:1] if row.id == draft.id] or None
    if stored is not None and same(there, prepared):
        return there
    if stored is None and draft.idempotency_key is not None:
        stored = reading.by_idempotency_key(connection, draft.session_key, draft.idempotency_key)
    raise Conflict(
        "this reply was ended while it was being recorded",
        stored=stored,
        hint="what was stored of it, if anything, is this error's .stored",
    )
