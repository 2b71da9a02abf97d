"""The verbs of compactions and of views: a summary put in the place of a range, and back.

Old tool results are cleared by the same rows. Who writes a summary, when, and whether a
call inside it is answered behind it is the caller's. Here a range has to be whole turns
that have ended.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from reasoning_store.ledger import branches, compacting, compactions, views
from reasoning_store.ledger.opened import Opened
from reasoning_store.ledger.summaries import (
    Basis,
    ClearingRow,
    ViewRows,
    Wanted,
)
from reasoning_store.ledger.values import State, StoredRow


class CompactionVerbs(Opened):
    """Summaries, and the conversation as they leave it."""

    def shorten(self, session_key: int, branch: int, wanted: Sequence[Wanted]) -> list[ClearingRow]:
        """Make several compactions of a branch, all or none.

        A summary stands for a range; a clearing, which has none, empties the tool results up
        to a position before the open turn. Each supersedes those inside; one that reaches
        over an end of it is a Conflict. Where the range is no longer what was ``expected``,
        the basis that it was made from, that is a Conflict, and nothing is written.
        """
        branches.check(branch)
        made = [(one, compacting.summary_columns(one.summary)) for one in wanted]
        now = self._clock()
        return self._write(
            lambda connection: [
                compacting.compact(connection, session_key, branch, one, columns, now=now)
                for one, columns in made
            ]
        )

    def basis(self, session_key: int, branch: int, first: int, last: int) -> Basis:
        """Return what a range is now; refuse one that no summary can stand for."""

        def work(connection: Connection) -> Basis:
            found, _ = branches.get(connection, session_key, branch)
            return compacting.basis(connection, session_key, found, first, last)

        return self._read(work)

    def clearing_basis(self, session_key: int, branch: int, upto: int) -> Basis:
        """Return what is to be cleared now; refuse a place up to which no results can be."""

        def work(connection: Connection) -> Basis:
            found, _ = branches.get(connection, session_key, branch)
            return compacting.clearing_basis(connection, session_key, found, upto)

        return self._read(work)

    def compactions(
        self, session_key: int, branch: int, *, every: bool = False
    ) -> list[ClearingRow]:
        """Return the compactions in force: summaries in order, then a clearing.

        ``every`` returns all that the branch ever had,
        undone and superseded ones too, by number.
        """

        def work(connection: Connection) -> list[ClearingRow]:
            found, _ = branches.get(connection, session_key, branch)
            if every:
                return compactions.all_of(connection, session_key, branch)
            turn_start = found.state.turn_start
            return compactions.in_force(connection, session_key, branch, turn_start)

        return self._read(work)

    def undo(self, session_key: int, branch: int, number: int) -> ClearingRow:
        """Take a compaction back on this branch; those that it superseded are in force again.

        A second time is nothing; one that a wider one supersedes is a Conflict.
        """
        branches.check(branch)
        now = self._clock()
        return self._write(
            lambda connection: compacting.undo(connection, session_key, branch, number, now=now)
        )

    def view(
        self,
        session_key: int,
        branch: int,
        at: int | None = None,
        *,
        thinking_from: int = 1,
        by_column: bool = False,
    ) -> ViewRows:
        """Return the messages that no summary stands for, and the summaries, in order.

        A summary stands where its range began. Messages inside a range are not read, nor is
        the thinking of messages before ``thinking_from``. Old tool results are cleared.
        With ``by_column`` long runs of plain messages come as ``PlainRows``.
        """
        return self._read(
            lambda connection: views.view(
                connection,
                session_key,
                branch,
                at,
                thinking_from=thinking_from,
                by_column=by_column,
            )
        )

    def following(
        self,
        session_key: int,
        branch: int,
        after: int,
        in_force: Sequence[int],
        *,
        thinking_from: int = 1,
    ) -> list[StoredRow] | None:
        """Return what a view has behind a position; ``in_force`` are the compactions it had.

        None says that others are in force by now.
        """
        return self._read(
            lambda connection: views.following(
                connection, session_key, branch, after, in_force, thinking_from=thinking_from
            )
        )

    def states_at(
        self, session_key: int, branch: int, positions: Sequence[int]
    ) -> dict[int, State]:
        """Return the states that the messages at these positions carry, with no summary.

        What a search over a conversation asks for; three positions are one statement.
        """

        def work(connection: Connection) -> dict[int, State]:
            found, _ = branches.get(connection, session_key, branch)
            states = branches.states(connection, session_key, found, list(positions))
            return {position: states[position][0] for position in positions}

        return self._read(work)
