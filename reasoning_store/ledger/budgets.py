"""The reasoning that a session has used, on all of its branches, and the marks it has crossed.

Every append adds to the sums. A reply that was made again counts; so does what is erased later.
"""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, select, update

from reasoning_store.conversation import codec
from reasoning_store.conversation.errors import CorruptRow
from reasoning_store.ledger.database.database import Database
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.decode import UNREADABLE, parsed
from reasoning_store.ledger.records import BudgetRow, ReasoningUsed
from reasoning_store.ledger.sessions import no_session
from reasoning_store.ledger.tables import sessions

_s = sessions.c
_THIS = _s.session_key == bindparam("key")
_GET = Statement(
    select(_s.sum_reasoning, _s.sum_counted, _s.sum_unreported, _s.crossed).where(_THIS)
)
_CROSS = Statement(
    update(sessions)
    .where(_THIS, _s.crossed.is_not_distinct_from(bindparam("before")))
    .values(crossed=bindparam("after"))
    .returning(_s.session_key)
)


def get(connection: Connection, key: int) -> BudgetRow:
    """Return the reasoning that a session has used, and the marks that were returned."""
    return _get(connection, key)[0]


def _get(connection: Connection, key: int) -> tuple[BudgetRow, str | None]:
    row = _GET.row(connection, {"key": key})
    if row is None:
        raise no_session()
    *sums, crossed = row
    try:
        marks = () if crossed is None else tuple([str(mark) for mark in parsed(crossed)])
    except UNREADABLE:
        raise CorruptRow("the budget of a session cannot be read back") from None
    return BudgetRow(ReasoningUsed(*sums), marks), crossed


class Budgets:
    """The reasoning that sessions have used."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, session_key: int) -> BudgetRow:
        """Return the reasoning that a session has used, on all branches, and its reported marks."""
        return self._database.read_one(get, session_key)

    def remember(self, session_key: int, name: str) -> bool:
        """Store that a mark was reported; True for the first caller, of all processes."""

        def work(connection: Connection) -> bool:
            while True:
                found, before = _get(connection, session_key)
                if name in found.crossed:
                    return False
                after = codec.dumps([*found.crossed, name])
                crossed = {"key": session_key, "before": before, "after": after}
                if _CROSS.row(connection, crossed) is not None:
                    return True

        return self._database.write(work)
