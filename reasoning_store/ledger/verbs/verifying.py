"""The verb that goes through everything stored and says what is not as it was written.

It reads only, in short transactions: a session at a time, a page of messages at a time, so
that it holds up nobody and its memory does not grow with the store.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial

from sqlalchemy import Connection

from reasoning_store.errors import CorruptRow, NotFound
from reasoning_store.ledger import auditing, sessions, verifying
from reasoning_store.ledger.opened import Opened
from reasoning_store.ledger.values import Problem, ProblemCode, Verified

_PAGE = 200


class VerifyingVerbs(Opened):
    """Whether what is stored is what was written."""

    def verify(self, *, encodings: Collection[str] | None = None) -> Verified:
        """Go through every session, and the database itself.

        ``encodings`` are those in which the caller can count; without them any name is one.
        """
        problems = [
            *self._tried("integrity", verifying.integrity),
            *self._tried("unreadable", auditing.profiles),
            *self._tried("stray", verifying.strays),
        ]
        count = total = 0
        after = -1
        while True:
            try:
                keys = self._read(partial(sessions.some_keys, after=after), single=True)
            except CorruptRow as error:
                problems.append(Problem("unreadable", str(error)))
                break
            for key in keys:
                try:
                    messages, found = self._verify_session(key, encodings)
                except NotFound:
                    continue  # erased meanwhile
                count += 1
                total += messages
                problems += found
            if not keys:
                break
            after = keys[-1]
        return Verified(count, total, tuple(problems))

    def _verify_session(
        self, key: int, encodings: Collection[str] | None
    ) -> tuple[int, list[Problem]]:
        """Return how many messages a session has, and its problems with its name on them."""
        try:
            found, lineages, problems = self._read(
                lambda connection: verifying.session(connection, key, encodings)
            )
        except CorruptRow as error:
            return 0, [Problem("unreadable", str(error), key)]
        messages = 0
        for lineage in lineages:
            messages += lineage.next_position - lineage.first
            for first in range(lineage.first, lineage.next_position, _PAGE):
                last = min(first + _PAGE, lineage.next_position) - 1
                problems += self._verify_messages(key, lineage.number, first, last)
        if found is None:
            return messages, problems
        return messages, [
            replace(problem, owner=found.owner, session=found.id) for problem in problems
        ]

    def _verify_messages(self, key: int, branch: int, first: int, last: int) -> list[Problem]:
        try:
            return self._read(
                lambda connection: verifying.messages_of(connection, key, branch, first, last)
            )
        except CorruptRow as error:
            # A damaged page of the file: one by one, to know which messages are in it.
            if first == last:
                return [Problem("unreadable", str(error), key, branch, first)]
        problems: list[Problem] = []
        for position in range(first, last + 1):
            problems += self._verify_messages(key, branch, position, position)
        return problems

    def _tried(
        self, code: ProblemCode, work: Callable[[Connection], list[Problem]]
    ) -> list[Problem]:
        try:
            return self._read(work)
        except CorruptRow as error:
            return [Problem(code, str(error))]
