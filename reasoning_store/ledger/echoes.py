"""The stored conversation of messages that a client sends back, found by their echoes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, select

from reasoning_store.conversation.echoes import align_echoes
from reasoning_store.ledger import branches
from reasoning_store.ledger import sessions as session_rows
from reasoning_store.ledger.database.database import Database
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.records import BranchRow, MessagePlace, SessionRow
from reasoning_store.ledger.rows.conditions import in_range
from reasoning_store.ledger.rows.owner_rows import OF_OWNER, owner_params
from reasoning_store.ledger.tables import messages, sessions

_m = messages.c
_MOST_PLACES = 32
"""How many messages of one echo are looked at: the latest."""
_MOST_BRANCHES = 64
"""How many branches of a session are compared: the latest."""
_FIND = Statement(
    select(_m.session_key, _m.branch, _m.position)
    .join_from(messages, sessions, _m.session_key == sessions.c.session_key)
    .where(_m.echo == bindparam("echo"), *OF_OWNER)
    .order_by(_m.created_at.desc(), _m.session_key)
    .limit(_MOST_PLACES)
)
_ECHOES = Statement(select(_m.position, _m.echo).where(*in_range(_m)).order_by(_m.position))


class EchoMatch(NamedTuple):
    """The branch on which messages are stored."""

    session_key: int
    branch: int
    positions: tuple[int | None, ...]
    """The position of each message; ``None`` where the message is not stored there."""
    last: int
    """The last position of the branch."""


def match_branches(
    connection: Connection,
    key: int,
    sent: Sequence[int | None],
    *,
    holding: MessagePlace | None = None,
) -> EchoMatch | None:
    """Return the branch of a session that holds most of the messages, and least after them.

    ``holding`` is the place of a message that the branch has to hold.
    """
    best: EchoMatch | None = None
    best_score: tuple[int, int, int] | None = None
    latest = branches.all_of(connection, key)[-_MOST_BRANCHES:]
    for branch in reversed(latest):
        if holding is not None and not branch.holds(holding):
            continue
        match = _match(connection, key, branch, sent)
        matched = [position for position in match.positions if position is not None]
        after = match.last - (matched[-1] if matched else 0)
        score = (len(matched), -after, branch.number)
        if best_score is None or score > best_score:
            best, best_score = match, score
    return best


def _match(
    connection: Connection, key: int, branch: BranchRow, sent: Sequence[int | None]
) -> EchoMatch:
    rows = [
        row
        for segment in branch.segments
        for row in _ECHOES.rows(
            connection,
            {
                "key": key,
                "of": segment.branch,
                "first": segment.first,
                "last": segment.last,
            },
        )
    ]
    indexes = align_echoes(sent, [echo for _, echo in rows])
    positions = tuple(None if index is None else int(rows[index][0]) for index in indexes)
    return EchoMatch(key, branch.number, positions, branch.totals.position)


class Echoes:
    """The stored conversations of what clients send back."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(
        self,
        owner: str,
        sent: Sequence[int | None],
        anchors: Sequence[int],
        session_id: str | None = None,
    ) -> tuple[SessionRow, EchoMatch] | None:
        """Return the session and the branch that hold most of the messages.

        ``anchors`` are the indexes of the messages that are looked up in all of the owner's
        sessions, the most telling first; the first that is stored decides which sessions are
        compared. They are not needed where the session is known.
        """

        def read(connection: Connection) -> tuple[SessionRow, EchoMatch] | None:
            if session_id is not None:
                row = session_rows.get(connection, owner, session_id)
                match = match_branches(connection, row.key, sent)
                return None if match is None else (row, match)
            for index in anchors:
                places = _FIND.rows(connection, {"echo": sent[index], **owner_params(owner)})
                matches = [
                    match
                    for key, *place in places
                    if (
                        match := match_branches(connection, key, sent, holding=MessagePlace(*place))
                    )
                ]
                if matches:
                    best = max(
                        matches, key=lambda one: len(one.positions) - one.positions.count(None)
                    )
                    return session_rows.by_key(connection, best.session_key), best
            return None

        return self._database.read(read)
