"""Erasure of a session, an owner, a message, or only of the reasoning in it.

A verb reads the stored rows page by page, and the caller counts what is left of each message,
before the one transaction that writes. An SQLite file is then rewritten: only VACUUM clears the
copies of rows that SQLite left in unused bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, fields
from functools import partial
from typing import Any, Literal, TypeAlias

from sqlalchemy import Connection

from reasoning_store.conversation import seals
from reasoning_store.conversation.blocks import Counts
from reasoning_store.conversation.errors import InvalidCall, NotFound
from reasoning_store.ledger import branches, history, removal
from reasoning_store.ledger.database.database import Database
from reasoning_store.ledger.drafts import Drafts
from reasoning_store.ledger.keys import Clock
from reasoning_store.ledger.messages import Messages
from reasoning_store.ledger.records import (
    BranchRow,
    Count,
    Deleted,
    DraftMessage,
    Erased,
    Segment,
    StoredRow,
)
from reasoning_store.ledger.removal import Change
from reasoning_store.ledger.searching import search_rows

Only: TypeAlias = Literal["reasoning", "messages"] | None
OnlyMessages: TypeAlias = Literal["messages"] | None


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
        draft_message: DraftMessage | None = None,
    ) -> Erased:
        """Erase a session, or only its messages or its reasoning, on all of its branches.

        ``count`` counts anew what is left of a message; without it the counts of what is
        left stay what they were. ``draft_message`` makes a message of a reply that is being
        recorded: to lose its reasoning it has to end (``append``).
        """
        _check_only(only)
        try:
            gone = self._erase(session_key, only, count, draft_message)
        except NotFound:
            if not self._database.unerased():
                raise
            gone = Deleted()  # its rows went before, and the bytes were left
        return self._scrubbed(gone)

    def erase_owner(
        self,
        owner: str,
        *,
        only: Only = None,
        before: int | None = None,
        count: Count | None = None,
        draft_message: DraftMessage | None = None,
    ) -> Erased:
        """Erase all sessions of an owner and its settings profiles, or only a part of all.

        With ``before`` only sessions without a message since that time; of their reasoning, that
        of older messages in all sessions. Each session is one transaction: what is interrupted can
        be called again.
        """
        _check_only(only)
        gone = self._each(
            owner,
            None if only == "reasoning" else before,
            lambda key: self._erase(key, only, count, draft_message, before),
        )
        if only is None and before is None:
            profiles = self._write_erasure(
                lambda connection: removal.remove_profiles(connection, owner)
            )
            gone = _sum(gone, profiles)
        return self._scrubbed(gone)

    def erase_message(
        self,
        session_key: int,
        branch: int,
        position: int,
        *,
        only: Only = None,
        count: Count | None = None,
        draft_message: DraftMessage | None = None,
    ) -> Erased:
        """Erase a message in every branch that shares it, or only its reasoning.

        Position and role stay, its status is ``erased``. Tool pairs go together: the calls
        that it answers, and the answers to its calls. A reply that is still a draft ends as
        interrupted for this, recorded or not: ``draft_message`` is that of ``append``.
        """
        _check_only(only, "reasoning")
        self._drafts.end_draft_at(session_key, branch, position, draft_message, at_once=True)
        if only is None:
            changes = self._database.read(removal.to_empty, session_key, branch, position)
        else:
            row, encoding = self._database.read(
                lambda connection: (
                    history.get(connection, session_key, branch, position, thinking=False),
                    branches.get(connection, session_key, branch).encoding,
                )
            )
            changes = _changes_without_reasoning([row], encoding, count)
        return self._scrubbed(self._apply(session_key, changes))

    def delete_session(self, session_key: int, *, only: OnlyMessages = None) -> Deleted:
        """Remove a session at once, or its messages, without a proof that no file has the bytes."""
        _check_only(only, "messages")
        gone = self._database.write(partial(self._remove, key=session_key, before=None, only=only))
        return self._deleted(gone or Deleted())

    def delete_owner(self, owner: str, *, before: int | None = None) -> Deleted:
        """Remove all sessions of an owner and its settings profiles.

        With ``before`` only sessions without a message since that time. Each session is one
        transaction.
        """
        gone = self._each(
            owner,
            before,
            lambda key: self._database.write(
                partial(self._remove, key=key, before=before, only=None)
            ),
        )
        if before is None:
            profiles = self._database.write(
                lambda connection: removal.remove_profiles(connection, owner)
            )
            gone = _sum(gone, profiles or Deleted())
        return self._deleted(gone)

    def _deleted(self, gone: Deleted) -> Deleted:
        if gone.sessions or gone.messages:
            self._database.empty_log()
        return gone

    def _each(
        self, owner: str, before: int | None, delete: Callable[[int], Deleted | None]
    ) -> Deleted:
        """Delete of each session of an owner; another process may delete one meanwhile."""
        keys = self._database.read_one(removal.sessions_of, owner, before)
        total = Deleted()
        for key in keys:
            with suppress(NotFound):
                total = _sum(total, delete(key) or Deleted())
        return total

    def _remove(
        self, connection: Connection, *, key: int, before: int | None, only: Only
    ) -> Deleted | None:
        now = self._clock.now()
        if before is not None and not removal.is_idle(connection, key, before, now):
            return None
        if only is None:
            return removal.remove(connection, key)
        return removal.remove_messages(connection, key, now)

    def _erase(
        self,
        key: int,
        only: Only,
        count: Count | None,
        draft_message: DraftMessage | None,
        before: int | None = None,
    ) -> Deleted:
        if only != "reasoning":
            return self._write_erasure(partial(self._remove, key=key, before=before, only=only))

        def is_older(time: int) -> bool:
            return before is None or time < before

        changes: list[Change] = []
        lineages = self._database.read_one(branches.all_of, key)
        for lineage in lineages:
            draft = self._drafts.get(key, lineage.number)
            if draft is not None and is_older(draft.created_at):
                self._messages.end_draft(draft, draft_message, (), now=self._clock.now())
        for rows, encoding in self._pages(key):
            older = [row for row in rows if is_older(row.created_at)]
            changes += _changes_without_reasoning(older, encoding, count)
        return self._apply(key, changes) if changes else Deleted()

    def _pages(self, key: int) -> Iterator[tuple[list[StoredRow], str]]:
        """Yield the rows of every branch without their thinking, each once."""
        for lineage in self._database.read_one(branches.all_of, key):
            for part in lineage.own_messages.pages():

                def page(
                    connection: Connection, lineage: BranchRow = lineage, part: Segment = part
                ) -> tuple[list[StoredRow], str]:
                    encoding = branches.reread(connection, key, lineage).encoding
                    return history.of_segments(connection, key, [part], thinking=False), encoding

                yield self._database.read(page)

    def _apply(self, key: int, changes: list[Change]) -> Deleted:
        now = self._clock.now()
        return self._write_erasure(
            lambda connection: removal.apply(connection, key, changes, now=now)
        )

    def _write_erasure(self, work: Callable[[Connection], Deleted | None]) -> Deleted:
        """Erase, and note in the same transaction that the bytes are to leave the files.

        ``work`` returns None where it changed nothing.
        """

        def erasing(connection: Connection) -> Deleted:
            gone = work(connection)
            if gone is not None:
                search_rows.remove_deleted_words(connection)
                self._database.require_scrub(connection)
            return gone or Deleted()

        return self._database.write(erasing)

    def _scrubbed(self, gone: Deleted) -> Erased:
        return Erased(**asdict(gone), copies=self._database.scrub())


def _check_only(only: Any, *allowed: str) -> None:
    """Refuse any other value: it might mean that something is kept."""
    allowed = allowed or ("reasoning", "messages")
    if only is not None and only not in allowed:
        names = " or ".join(f'"{name}"' for name in allowed)
        raise InvalidCall(f"only: {names}, or nothing for all of it")


def _changes_without_reasoning(
    rows: list[StoredRow], encoding: str, count: Count | None
) -> list[Change]:
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
            changes.append(removal.without_reasoning(row, left, counts))
    return changes


def _sum(one: Deleted, other: Deleted) -> Deleted:
    return Deleted(
        *[getattr(one, item.name) + getattr(other, item.name) for item in fields(Deleted)]
    )
