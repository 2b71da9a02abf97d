"""The verbs that write messages: prepare, intern, append, and who answers a used key.

Everything slow or able to fail in a caller's value (JSON, digests) is done before the
transaction starts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from sqlalchemy import Connection

from reasoning_store.blocks import MOST_TOKENS
from reasoning_store.errors import Conflict, CorruptRow, UsageError
from reasoning_store.ledger import (
    appending,
    arguments,
    branches,
    columns,
    drafts,
    engine,
    erasing,
    faults,
    forking,
    interning,
    reading,
    rows,
    sessions,
)
from reasoning_store.ledger.columns import Prepared
from reasoning_store.ledger.opened import Opened
from reasoning_store.ledger.values import MOST, DraftRow, Entry, StoredRow

Resolve: TypeAlias = Callable[[DraftRow], Entry | None]
"""What has arrived of a draft, as a message: the caller's answer, asked for outside of any
transaction. The same draft has the same answer, and there always is one."""
T = TypeVar("T")
_REMEMBERED = 4096
_ATTEMPTS = 50
"""Drafts come and go: many times over, what was in the way may be gone when looked at."""


class WritingVerbs(Opened):
    """Messages, written once."""

    def __init__(self, database: engine.Database) -> None:
        super().__init__(database)
        self._interned: dict[tuple[int, int], None] = {}

    def append(
        self,
        session_key: int,
        branch: int,
        entries: Sequence[Entry],
        *,
        after: int | None = None,
        idempotency_key: str | None = None,
        created_at: int | None = None,
        resolve: Resolve | None = None,
    ) -> list[StoredRow]:
        """Append messages behind one another, all or none of them.

        ``idempotency_key`` covers all of ``entries``: given again with equal messages it
        returns what was written first, with others it is a Conflict. ``after`` is the
        position that the first of them must follow.

        A reply that is being recorded on the branch ends with this: ``resolve`` is asked,
        outside of any transaction, for the message that has arrived of it, and may answer
        None where that is nothing. Without ``resolve`` it is a Conflict.
        """
        if not entries:
            raise UsageError("append: no message was given", hint='rs.user("text") makes one')
        _refuse_erased(entries)
        if after is not None:
            after = min(max(arguments.number(after, "after"), -1), MOST)
        key_text = None if idempotency_key is None else columns.repeat(idempotency_key)
        at = self._time(created_at)
        prepared = columns.keyed([self._prepared(entry, at) for entry in entries], key_text)
        branches.check(branch)

        attempts = 1
        first = self._append(session_key, branch, prepared, after=after, now=at)
        while first is None:
            found = self._read(
                lambda connection: self._in_the_way(
                    connection, session_key, branch, prepared, key_text, after
                )
            )
            if isinstance(found, list):
                return found
            if found is not None:
                first = self._end(found, resolve, prepared, after=after, now=at)
            elif attempts < _ATTEMPTS:
                # What was in the way is there no more: it was written or erased meanwhile.
                attempts += 1
                first = self._append(session_key, branch, prepared, after=after, now=at)
            else:
                raise CorruptRow("a message stands where the branch says that none does")
        return new_rows(branch, first, prepared)

    def edit(self, session_key: int, branch: int, at: int, entry: Entry) -> StoredRow:
        """Write a message in the place of the one at ``at``, on a fork that becomes current.

        One step: where the message or the place is refused, there is no fork.
        """
        _refuse_erased([entry])
        now = self._clock()
        prepared = [self._prepared(entry, now)]

        def work(connection: Connection) -> StoredRow:
            fork = forking.fork(connection, session_key, branch, at, created_at=now)
            appending.append(
                connection, session_key, fork, prepared, after=None, ending=None, now=now
            )
            sessions.change(connection, session_key, "current_branch", fork)
            return new_rows(fork, at, prepared)[0]

        written = self._with_origins(session_key, prepared, work)
        if written is None:
            raise sessions.no_session()
        return written

    def _in_the_way(
        self,
        connection: Connection,
        session_key: int,
        branch: int,
        prepared: Sequence[Prepared],
        key_text: str | None,
        after: int | None,
    ) -> list[StoredRow] | DraftRow | None:
        """Say why an append wrote nothing: what it wrote before, the draft in its way.

        Raises what it cannot get past; None says that by now nothing is in its way.
        """
        if key_text is not None:
            stored = reading.by_idempotency_key(connection, session_key, key_text)
            if stored is not None:
                if same(stored, prepared):
                    return stored
                if erasing.was_erased(connection, session_key, stored):
                    raise Conflict(
                        "what this idempotency key stands for was erased",
                        stored=stored,
                        hint="to say it again, use another key",
                    )
                raise Conflict(
                    "this idempotency key stands for another message",
                    stored=stored,
                    hint="it is this error's .stored; another message has another key",
                )
        draft = drafts.get(connection, session_key, branch, now=self._clock())
        if draft is None:
            last = branches.get(connection, session_key, branch)[0].state.position
        elif key_text is not None and draft.idempotency_key == key_text:
            raise Conflict(
                "a reply is being recorded under this idempotency key",
                hint="use another key",
            )
        else:
            # Its message stands before ours, unless nothing of it has arrived.
            last = draft.position - (not draft.parts)
        if after is not None and after != last:
            raise _stale(connection, session_key, branch, last, after)
        return draft

    def _end(
        self,
        draft: DraftRow,
        resolve: Resolve | None,
        behind: Sequence[Prepared],
        *,
        now: int,
        after: int | None = None,
    ) -> int | None:
        """Make a draft the message that has arrived of it, and append others in the same step.

        Returns the position of the first of the others; None says that the draft had ended.
        """
        if resolve is None:
            raise Conflict(
                "a reply is being recorded on this branch",
                hint="append through a session, which ends it as interrupted",
            )
        taken = self._write(
            lambda connection: drafts.take_away(connection, draft), again_when_lost=True
        )
        if taken is None:
            return None
        entry = resolve(taken)
        now = max(now, taken.created_at)
        ended: list[Prepared] = []
        if entry is not None:
            item = self._prepared(entry, taken.created_at, id=taken.id)
            ended = columns.keyed([item], taken.idempotency_key)
        first = taken.position + len(ended)
        if after is not None and after != first - 1:
            # By now the draft is nobody's: what arrived of it is kept all the same.
            self._append(draft.session_key, draft.branch, ended, ending=taken.id, now=now)
            key, branch, last = draft.session_key, draft.branch, first - 1
            raise self._read(lambda connection: _stale(connection, key, branch, last, after))
        if not (ended or behind):
            dropped = self._write(lambda connection: drafts.drop(connection, taken))
            return first if dropped else None
        start = self._append(
            draft.session_key, draft.branch, [*ended, *behind], ending=taken.id, now=now
        )
        return None if start is None else start + len(ended)

    def _prepared(self, entry: Entry, created_at: int, *, id: str | None = None) -> Prepared:
        message, counts = entry.message, entry.counts
        if message.role != "assistant" and message.thinking:
            # What is carried, and what may go back, is a model's own thinking.
            raise UsageError(
                f"only a model thinks: a message of the role {message.role} has a thinking block",
                hint="append it as rs.assistant(...), or make the block text",
            )
        if message.status == "streaming":
            raise UsageError(
                "a message that is still streaming is not appended",
                hint="record(stream) keeps what has arrived of it, and appends it at its end",
            )
        for tokens in (counts.visible, *counts.thinking):
            if not 0 <= tokens <= MOST_TOKENS:
                raise UsageError("counts: a number of tokens is out of range")
        if not columns.may_free(message, counts):
            raise UsageError("counts: clearing the results does not free that many tokens")
        return columns.prepare(entry, id=id or self._new_id(), created_at=created_at)

    def _append(
        self,
        session_key: int,
        branch: int,
        prepared: Sequence[Prepared],
        *,
        now: int,
        after: int | None = None,
        ending: str | None = None,
        beside: Sequence[Prepared] = (),
    ) -> int | None:
        """Return the first position; None says that something else stands in the way.

        Each of ``beside`` is appended to a fork of its own, which begins there.
        """
        # What a second run would write is there already: refused by its key, or by the
        # draft that has ended with the first.
        harmless = ending is not None or prepared[0].columns["idempotency_key"] is not None

        def work(connection: Connection) -> int | None:
            first = appending.append(
                connection, session_key, branch, prepared, after=after, ending=ending, now=now
            )
            if first is not None:
                for other in beside:
                    _append_beside(connection, session_key, branch, first, other, now=now)
            return first

        try:
            return self._with_origins(
                session_key,
                [*prepared, *beside],
                work,
                single=not beside,
                again_when_lost=harmless,
            )
        except faults.Taken:
            return None

    def _beside(
        self,
        session_key: int,
        branch: int,
        at: int,
        prepared: Sequence[Prepared],
        *,
        now: int,
    ) -> None:
        """Append each to a fork of its own, which begins at ``at``; all or none of them."""

        def work(connection: Connection) -> None:
            for one in prepared:
                _append_beside(connection, session_key, branch, at, one, now=now)

        self._with_origins(session_key, prepared, work)

    def _with_origins(
        self,
        session_key: int,
        prepared: Sequence[Prepared],
        work: Callable[[Connection], T],
        *,
        single: bool = False,
        again_when_lost: bool = False,
    ) -> T | None:
        """Write what refers to the origins of messages; None says that they cannot be there."""
        for _ in range(2):
            try:
                self._intern(session_key, prepared)
                return self._write(work, single=single, again_when_lost=again_when_lost)
            except faults.Dangling:
                # The session was erased since its origins were interned, and may be there again.
                self._interned.clear()
        return None

    def _intern(self, session_key: int, prepared: Sequence[Prepared]) -> None:
        wanted = {
            item.origin
            for item in prepared
            if item.origin and (session_key, item.origin[0]) not in self._interned
        }
        if not wanted:
            return
        self._write(
            lambda connection: interning.intern(connection, session_key, wanted),
            again_when_lost=True,  # what is there already is written no second time
        )
        if len(self._interned) > _REMEMBERED:
            self._interned.clear()
        self._interned.update(dict.fromkeys((session_key, number) for number, _ in wanted))


def _append_beside(
    connection: Connection, key: int, branch: int, at: int, other: Prepared, *, now: int
) -> None:
    fork = forking.fork(connection, key, branch, at, created_at=now)
    appending.append(connection, key, fork, [other], after=None, ending=None, now=now)


def _refuse_erased(entries: Sequence[Entry]) -> None:
    if any([entry.message.status == "erased" for entry in entries]):
        raise UsageError("an erased message is not appended", hint="erase(position)")


def new_rows(branch: int, first: int, prepared: Sequence[Prepared]) -> list[StoredRow]:
    return [
        rows.new_row(item.entry, item.columns, branch, position)
        for position, item in enumerate(prepared, first)
    ]


def same(stored: Sequence[StoredRow], prepared: Sequence[Prepared]) -> bool:
    """Whether these are the messages that were to be written."""
    return [row.digest for row in stored] == [item.columns["digest"] for item in prepared]


def _stale(connection: Connection, key: int, branch: int, last: int, after: int) -> Conflict:
    """Return the conflict of an append that something else has come before: the first of it."""
    return Conflict(
        f"the last message is at {last}, not at {after}",
        stored=reading.from_position(connection, key, branch, after + 1, count=1) or None,
        hint="read the messages after it, then decide anew",
    )
