"""The SQL of a session's reasoning budget: what was thought there, and what was told of it.

The sums stand on the session, and every append adds to them in the statement that touches
its row anyway. So they speak of all branches: a reply that was made again was thought all
the same, and what is erased later stays used.
"""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, select, update

from reasoning_store import codec
from reasoning_store.errors import CorruptRow
from reasoning_store.ledger.rows import UNREADABLE, parsed
from reasoning_store.ledger.sessions import no_session
from reasoning_store.ledger.sql import Sql
from reasoning_store.ledger.tables import sessions
from reasoning_store.ledger.values import BudgetRow, Thought

_s = sessions.c
_THIS = _s.session_key == bindparam("key")
_GET = Sql(select(_s.sum_reasoning, _s.sum_counted, _s.sum_unreported, _s.crossed).where(_THIS))
_CROSS = Sql(
    update(sessions)
    .where(_THIS, _s.crossed.is_not_distinct_from(bindparam("before")))
    .values(crossed=bindparam("after"))
    .returning(_s.session_key)
)


def get(connection: Connection, key: int) -> BudgetRow:
    """Return what a session has thought, and the marks that were told."""
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
    return BudgetRow(Thought(*sums), marks), crossed


def remember(connection: Connection, key: int, mark: str) -> bool:
    """Remember that a mark was told; False where it was told before."""
    while True:
        found, before = _get(connection, key)
        if mark in found.crossed:
            return False
        after = codec.dumps([*found.crossed, mark])
        if _CROSS.row(connection, {"key": key, "before": before, "after": after}) is not None:
            return True
