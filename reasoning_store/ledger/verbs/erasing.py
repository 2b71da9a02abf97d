"""The verbs that erase: a session, an owner, a message, or only what was thought there.

What is erased is what was stored when the verb was called. It is read and worked out page
by page, with the caller's count of what is left, before the one transaction that writes it.

An embedded file is then rewritten: deleting overwrites a row, but copies of rows that the
library once moved from page to page stay behind in unused bytes, which only VACUUM clears.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from sqlalchemy import Connection

from reasoning_store.blocks import Counts, Message
from reasoning_store.errors import NotFound, UsageError
from reasoning_store.ledger import branches, erasing, faults, reading
from reasoning_store.ledger.erasing import Change
from reasoning_store.ledger.values import BranchRow, Erased, Segment, StoredRow
from reasoning_store.ledger.verbs.drafting import DraftVerbs
from reasoning_store.ledger.verbs.writing import Resolve

Only: TypeAlias = Literal["reasoning"] | None
Count: TypeAlias = Callable[[Message, str], Counts]
"""What a message counts in an encoding: the caller's answer, asked for outside of any
transaction."""
_PAGE = 200


class ErasingVerbs(DraftVerbs):
    """What was written, gone."""

    def erase_session(
        self,
        session_key: int,
        *,
        only: Only = None,
        count: Count | None = None,
        resolve: Resolve | None = None,
    ) -> Erased:
        """Erase a session, or only the reasoning in it, on all of its branches.

        ``count`` counts anew what is left of a message; without it the counts of what is
        left stay what they were. ``resolve`` makes a message of a reply that is being
        recorded: to lose its reasoning it has to end (``append``).
        """
        _check(only)
        return self._scrubbed(self._erase(session_key, only, count, resolve))

    def erase_owner(
        self,
        owner: str,
        *,
        only: Only = None,
        count: Count | None = None,
        resolve: Resolve | None = None,
    ) -> Erased:
        """Erase all sessions of an owner and its settings profiles, or only all reasoning.

        Each session is one transaction: what is interrupted can be called again.
        """
        _check(only)
        keys = self._read(lambda connection: erasing.sessions_of(connection, owner), single=True)
        total = Erased()
        for key in keys:
            try:
                total = _sum(total, self._erase(key, only, count, resolve))
            except NotFound:
                continue  # erased by somebody else meanwhile
        if only is None:
            profiles = self._write(
                lambda connection: erasing.remove_profiles(connection, owner), single=True
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
        _check(only)
        self.end_draft_at(session_key, branch, position, resolve, at_once=True)
        if only is None:
            changes = self._read(
                lambda connection: erasing.to_empty(connection, session_key, branch, position)
            )
        else:
            row, encoding = self._read(
                lambda connection: (
                    reading.get(connection, session_key, branch, position, thinking=False),
                    branches.get(connection, session_key, branch)[1],
                )
            )
            changes = _unthought([row], encoding, count)
        return self._scrubbed(self._apply(session_key, changes))

    def _erase(self, key: int, only: Only, count: Count | None, resolve: Resolve | None) -> Erased:
        if only is None:
            messages, thoughts = self._write(lambda connection: erasing.remove(connection, key))
            return Erased(sessions=1, messages=messages, thinking_blocks=thoughts)
        changes: list[Change] = []
        lineages = self._read(lambda connection: branches.all_of(connection, key), single=True)
        for lineage in lineages:
            draft = self.draft(key, lineage.number)
            if draft is not None:
                self._end(draft, resolve, (), now=self._clock())
        for rows, encoding in self._pages(key):
            changes += _unthought(rows, encoding, count)
        return self._apply(key, changes)

    def _pages(self, key: int) -> Iterator[tuple[list[StoredRow], str]]:
        """Yield the rows of every branch without their thinking, each once."""
        for lineage in self._read(lambda connection: branches.all_of(connection, key), single=True):
            for first in range(lineage.first, lineage.next_position, _PAGE):
                part = Segment(lineage.number, first, min(first + _PAGE, lineage.next_position) - 1)

                def page(
                    connection: Connection, lineage: BranchRow = lineage, part: Segment = part
                ) -> tuple[list[StoredRow], str]:
                    _, encoding = branches.again(connection, key, lineage)
                    return reading.of_segments(connection, key, [part], thinking=False), encoding

                yield self._read(page)

    def _apply(self, key: int, changes: list[Change]) -> Erased:
        now = self._clock()
        messages, thoughts = self._write(
            lambda connection: erasing.apply(connection, key, changes, now=now)
        )
        return Erased(messages=messages, thinking_blocks=thoughts)

    def _scrubbed(self, erased: Erased) -> Erased:
        """Let the bytes leave the files, and name those that they did not leave."""
        anything = erased != Erased()
        copies = faults.guarded(
            lambda: self._database.scrub() if anything else self._database.copies()
        )
        return replace(erased, copies=copies)


def _check(only: Any) -> None:
    """Refuse what might have been meant to spare something."""
    if only not in (None, "reasoning"):
        raise UsageError('only: "reasoning", or nothing to erase all of it')


def _unthought(rows: list[StoredRow], encoding: str, count: Count | None) -> list[Change]:
    return [
        erasing.unthought(
            row,
            Counts(visible=row.counts.visible, exactness=row.counts.exactness)
            if count is None
            else count(row.message, encoding),
        )
        for row in rows
        if row.marks is not None
    ]


def _sum(one: Erased, other: Erased) -> Erased:
    return Erased(
        sessions=one.sessions + other.sessions,
        messages=one.messages + other.messages,
        thinking_blocks=one.thinking_blocks + other.thinking_blocks,
    )
