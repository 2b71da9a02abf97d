"""The verbs of branches: listed, forked, made current."""

from __future__ import annotations

from sqlalchemy import Connection

from reasoning_store.ledger import arguments, branches, forking, sessions
from reasoning_store.ledger.values import BranchRow, SessionRow
from reasoning_store.ledger.verbs.drafting import DraftVerbs
from reasoning_store.ledger.verbs.writing import Resolve


class BranchVerbs(DraftVerbs):
    """The lines of a conversation."""

    def branches(self, session_key: int) -> list[BranchRow]:
        return self._read(lambda connection: branches.all_of(connection, session_key), single=True)

    def get_branch(self, session_key: int, branch: int) -> BranchRow:
        return self._read(
            lambda connection: branches.get(connection, session_key, branch)[0], single=True
        )

    def fork(
        self,
        session_key: int,
        branch: int,
        at: int,
        *,
        current: bool = False,
        created_at: int | None = None,
        resolve: Resolve | None = None,
    ) -> int:
        """Return a new branch that shares the messages before ``at`` and nothing after.

        It has its own copies of the compactions that end before it. With ``current`` it is,
        in the same step, the one that opening the session gives. Where the last that it
        shares is a draft which has lost its recorder, that ends first: ``resolve`` is that of
        ``append``.
        """
        now = self._time(created_at)
        shared = arguments.number(at, "at") - 1
        self.end_draft_at(session_key, branch, shared, resolve)

        def work(connection: Connection) -> int:
            number = forking.fork(connection, session_key, branch, at, created_at=now)
            if current:
                sessions.change(connection, session_key, "current_branch", number)
            return number

        return self._write(work)

    def activate(self, session_key: int, branch: int) -> SessionRow:
        """Make a branch the one that opening the session gives."""

        def work(connection: Connection) -> SessionRow:
            branches.get(connection, session_key, branch)
            return sessions.change(connection, session_key, "current_branch", branch)

        return self._write(work)
