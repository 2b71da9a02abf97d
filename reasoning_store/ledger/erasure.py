"""Erasure of a session, an owner, a message, or only of the reasoning in it.

A verb reads the stored rows page by page, and the caller counts what is left of each message,
before the one transaction that writes. An SQLite file is then rewritten: only VACUUM clears the
copies of rows that SQLite left in unused bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeAlias

from sqlalchemy import Connection

from reasoning_store.conversation import seals
from reasoning_store.conversation.blocks import Counts, Message
from reasoning_store.conversation.errors import InvalidCall, NotFound
from reasoning_store.ledger import branches, history
from reasoning_store.ledger.database.database import Database
from reasoning_store.ledger.drafts import Drafts
from reasoning_store.ledger.messages import Messages
from reasoning_store.ledger.records import (
    BranchRow,
    Deleted,
    Erased,
    Resolve,
    Segment,
    StoredRow,
)
from reasoning_store.ledger.rows import erasure_rows
from reasoning_store.ledger.rows.erasure_rows import Change
from reasoning_store.ledger.rows.keys import Clock
from reasoning_store.ledger.searching import search_rows

Only: TypeAlias = Literal["reasoning", "messages"] | None
OnlyMessages: TypeAlias = Literal["messages"] | None
Count: TypeAlias = Callable[[Message, str], Counts]
"""A function of the caller: the counts of a message in an encoding. It is called outside of any
transaction."""
_PAGE = 200


class Erasure:
    """Erasing of sessions, owners, messages and reasoning."""

    def __init__(
        self, database: Database, clock: Clock, messages: Messages, drafts: Drafts
    ) -> None:
        self._database = database
        self._clock = clock
        self._messages = messages
        self._drafts = drafts

    def erase_session(
        self,
        session_key: int,
        *,
        only: Only = None,
        count: Count | None = None,
        resolve: Resolve | None = None,
    ) -> Erased:
        """Erase a session, or only its messages or its reasoning, on all of its branches.

        ``count`` counts anew what is left of a message; without it the counts of what is
        left stay what they were. ``resolve`` makes a message of a reply that is being
        recorded: to lose its reasoning it has to end (``append``).
        """
        _check(only)
        try:
            erased = self._erase(session_key, only, count, resolve)
        except NotFound:
            if not self._database.needs_scrub():
                raise
            erased = Erased()  # its rows went before, and the bytes were left
        return self._scrubbed(erased)

    def erase_owner(
        self,
        owner: str,
        *,
        only: Only = None,
        before: int | None = None,
        count: Count | None = None,
        resolve: Resolve | None = None,
    ) -> Erased:
        """Erase all sessions of an owner and its settings profiles, or only a part of all.

        With ``before`` only sessions without a message since that time. Each session is one
        transaction: what is interrupted can be called again.
        """
        _check(only)
        keys = self._sessions_of(owner, before)
        total = Erased()
        for key in keys:
            try:
                total = _sum(total, self._erase(key, only, count, resolve, before))
            except NotFound:
                continue  # erased by another meanwhile
        if only is None and before is None:
            (profiles,) = self._write_erasure(
                lambda connection: (erasure_rows.remove_profiles(connection, owner),)
            )
            total = replace(total, profiles=profiles)
        return self._scrubbed(total)

    def erase_message(
        self,
        session_key: int,
        branch: int,
        position: int,
        *,
        only: Only = None,
        count: Count | None = None,
        resolve: Resolve | None = None,
    ) -> Erased:
        """Erase a message in every branch that shares it, or only its reasoning.

        Position and role stay, its status is ``erased``. Tool pairs go together: the calls
        that it answers, and the answers to its calls. A reply that is still a draft ends as
        interrupted for this, recorded or not: ``resolve`` is that of ``append``.
        """
        _check(only, "reasoning")
        self._drafts.end_draft_at(session_key, branch, position, resolve, at_once=True)
        if only is None:
            changes = self._database.read(
                lambda connection: erasure_rows.to_empty(connection, session_key, branch, position)
            )
        else:
            row, encoding = self._database.read(
                lambda connection: (
                    history.get(connection, session_key, branch, position, thinking=False),
                    branches.read_branch(connection, session_key, branch).encoding,
                )
            )
            changes = _unthought([row], encoding, count)
        return self._scrubbed(self._apply(session_key, changes))

    def delete_session(self, session_key: int, *, only: OnlyMessages = None) -> Deleted:
        """Remove a session at once, or its messages, without a proof that no file has the bytes."""
        _check(only, "messages")
        return self._deleted([session_key], None, only=only)

    def delete_owner(self, owner: str, *, before: int | None = None) -> Deleted:
        """Remove all sessions of an owner and its settings profiles.

        With ``before`` only sessions without a message since that time. Each session is one
        transaction.
        """
        deleted = self._deleted(self._sessions_of(owner, before), before, is_named=False)
        if before is not None:
            return deleted
        profiles = self._database.write(
            lambda connection: erasure_rows.remove_profiles(connection, owner)
        )
        return replace(deleted, profiles=profiles)

    def _deleted(
        self,
        keys: Sequence[int],
        before: int | None,
        *,
        is_named: bool = True,
        only: OnlyMessages = None,
    ) -> Deleted:
        total = Deleted()
        for key in keys:
            try:
                sessions, messages, thoughts = self._database.write(
                    partial(self._remove, key=key, before=before, only=only)
                )
            except NotFound:
                if is_named:
                    raise
                continue  # another process deleted it meanwhile
            total = Deleted(
                sessions=total.sessions + (sessions if only is None else 0),
                messages=total.messages + messages,
                thinking_blocks=total.thinking_blocks + thoughts,
            )
        if total.sessions or total.messages:
            self._database.empty_log()
        return total

    def _sessions_of(self, owner: str, before: int | None) -> list[int]:
        return self._database.read(
            lambda connection: erasure_rows.sessions_of(connection, owner, before), single=True
        )

    def _remove(
        self, connection: Connection, *, key: int, before: int | None, only: Only
    ) -> tuple[int, int, int]:
        now = self._clock.now()
        if before is not None and not erasure_rows.is_idle(connection, key, before, now):
            return 0, 0, 0
        if only is None:
            return erasure_rows.remove(connection, key)
        return erasure_rows.remove_messages(connection, key, now)

    def _erase(
        self,
        key: int,
        only: Only,
        count: Count | None,
        resolve: Resolve | None,
        before: int | None = None,
    ) -> Erased:
        if only != "reasoning":
            sessions, messages, thoughts = self._write_erasure(
                partial(self._remove, key=key, before=before, only=only)
            )
            sessions = sessions if only is None else 0
            return Erased(sessions=sessions, messages=messages, thinking_blocks=thoughts)
        changes: list[Change] = []
        lineages = self._database.read(
            lambda connection: branches.all_of(connection, key), single=True
        )
        for lineage in lineages:
            draft = self._drafts.get(key, lineage.number)
            if draft is not None:
                self._messages.end_draft(draft, resolve, (), now=self._clock.now())
        for rows, encoding in self._pages(key):
            changes += _unthought(rows, encoding, count)
        return self._apply(key, changes)

    def _pages(self, key: int) -> Iterator[tuple[list[StoredRow], str]]:
        """Yield the rows of every branch without their thinking, each once."""
        for lineage in self._database.read(
            lambda connection: branches.all_of(connection, key), single=True
        ):
            for first in range(lineage.first, lineage.next_position, _PAGE):
                part = Segment(lineage.number, first, min(first + _PAGE, lineage.next_position) - 1)

                def page(
                    connection: Connection, lineage: BranchRow = lineage, part: Segment = part
                ) -> tuple[list[StoredRow], str]:
                    encoding = branches.reread(connection, key, lineage).encoding
                    return history.of_segments(connection, key, [part], thinking=False), encoding

                yield self._database.read(page)

    def _apply(self, key: int, changes: list[Change]) -> Erased:
        now = self._clock.now()
        _, messages, thoughts = self._write_erasure(
            lambda connection: erasure_rows.apply(connection, key, changes, now=now)
        )
        return Erased(messages=messages, thinking_blocks=thoughts)

    def _write_erasure(self, work: Callable[[Connection], tuple[int, ...]]) -> tuple[int, ...]:
        """Erase, and note in the same transaction that the bytes are to leave the files."""

        def erasing(connection: Connection) -> tuple[int, ...]:
            done = work(connection)
            if any(done):
                search_rows.leave_no_words(connection)
                self._database.require_scrub(connection)
            return done

        return self._database.write(erasing)

    def _scrubbed(self, erased: Erased) -> Erased:
        return replace(erased, copies=self._database.scrub())


def _check(only: Any, *allowed: str) -> None:
    """Refuse any other value: it might mean that something is kept."""
    allowed = allowed or ("reasoning", "messages")
    if only is not None and only not in allowed:
        names = " or ".join(f'"{name}"' for name in allowed)
        raise InvalidCall(f"only: {names}, or nothing for all of it")


def _unthought(rows: list[StoredRow], encoding: str, count: Count | None) -> list[Change]:
    """Return how messages lose their reasoning, and its seals elsewhere, where they have any.

    They were read without their thinking.
    """
    changes = []
    for row in rows:
        left = seals.without_reasoning(row.message)
        if row.headers is not None or left is not row.message:
            counts = (
                Counts(visible=row.counts.visible, exactness=row.counts.exactness)
                if count is None
                else count(left, encoding)
            )
            changes.append(erasure_rows.without_reasoning(row, left, counts))
    return changes


def _sum(one: Erased, other: Erased) -> Erased:
    return Erased(
        sessions=one.sessions + other.sessions,
        messages=one.messages + other.messages,
        thinking_blocks=one.thinking_blocks + other.thinking_blocks,
    )
