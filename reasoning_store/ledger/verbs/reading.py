"""The verbs that read messages, and what they have come to.

Whole values come back; no cursor is left open.
"""

from __future__ import annotations

from reasoning_store.ledger import branches, columns, paging, reading, views
from reasoning_store.ledger.collecting import uncollected
from reasoning_store.ledger.opened import Opened
from reasoning_store.ledger.summaries import InForce, Outlook, UsageRows
from reasoning_store.ledger.values import SentRow, State, StoredRow


class ReadingVerbs(Opened):
    """Messages and their sums, as they are stored."""

    def by_idempotency_key(self, session_key: int, idempotency_key: str) -> list[StoredRow] | None:
        """Return what was appended under a key, if anything was."""
        text = columns.repeat(idempotency_key)
        return self._read(
            lambda connection: reading.by_idempotency_key(connection, session_key, text)
        )

    @uncollected
    def history(
        self,
        session_key: int,
        branch: int,
        *,
        limit: int | None = None,
        tokens: int | None = None,
        before: int | None = None,
        after: int | None = None,
        thinking: bool = True,
    ) -> list[StoredRow]:
        """Return messages in order, those strictly between ``after`` and ``before``.

        ``limit`` and ``tokens`` (of all thinking too) keep those next to ``after`` where
        only that is given, else the latest. No call is parted from its response, and no
        reasoning from its call: for that a window by ``limit`` may hold some messages more,
        one by ``tokens`` holds fewer. Without ``thinking`` the table that holds it is not
        read.
        """
        return self._read(
            lambda connection: paging.history(
                connection,
                session_key,
                branch,
                limit=limit,
                tokens=tokens,
                before=before,
                after=after,
                thinking=thinking,
            )
        )

    def get(
        self, session_key: int, branch: int, position: int, *, thinking: bool = True
    ) -> StoredRow:
        return self._read(
            lambda connection: reading.get(
                connection, session_key, branch, position, thinking=thinking
            )
        )

    def splits(self, session_key: int, branch: int, position: int) -> bool:
        """Whether a call up to a position is answered behind it, in its turn or the next."""
        return self._read(
            lambda connection: paging.splits(connection, session_key, branch, position)
        )

    def head(self, session_key: int, branch: int) -> State:
        """Return the state at the head of a branch; its position is the last one there."""
        return self._read(
            lambda connection: branches.get(connection, session_key, branch)[0].state, single=True
        )

    def states(self, session_key: int, branch: int, at: int | None = None) -> UsageRows:
        """Return what a count of any policy needs at the head, or at an earlier position."""
        return self._read(lambda connection: views.usage(connection, session_key, branch, at))

    def outlook(
        self, owner: str, id: str, branch: int, at: int | None = None, *, sent: bool = True
    ) -> Outlook:
        """Return a session, what its next request needs to be counted, and the last sent."""
        return self._read(
            lambda connection: views.outlook(connection, owner, id, branch, at, sent=sent)
        )

    def last_sent(self, session_key: int, branch: int, at: int | None = None) -> SentRow | None:
        """Return the last recorded reply's request, at the head or at an earlier position."""
        return self._read(lambda connection: views.last_sent(connection, session_key, branch, at))

    def in_force_when_sent(self, session_key: int, sent: SentRow) -> InForce:
        """Return what was in force when the request of a recorded reply was made."""
        return self._read(
            lambda connection: views.in_force_when_sent(connection, session_key, sent)
        )

    def sent_from(self, session_key: int, branch: int, first: int) -> list[SentRow]:
        """Return the requests of the recorded replies from a position on."""
        return self._read(
            lambda connection: views.sent_from(connection, session_key, branch, first)
        )
