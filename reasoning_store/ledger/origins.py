"""The origins of a session: each stored once, under a number made of its content."""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, select

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import Origin
from reasoning_store.conversation.errors import CorruptRow
from reasoning_store.ledger.database.statement import Statement, by_dialect
from reasoning_store.ledger.decode import parsed
from reasoning_store.ledger.tables import origins

_o = origins.c
_THESE = _o.session_key == bindparam("key")
INSERT = by_dialect(lambda insert: insert(origins).on_conflict_do_nothing())
"""Write an origin, unless it is there: its number is made of its content."""
_GET = Statement(select(_o.origin).where(_THESE, _o.number == bindparam("number")))
_ALL = Statement(select(_o.number, _o.origin).where(_THESE))


def one(connection: Connection, key: int, number: int) -> Origin:
    row = _GET.row(connection, {"key": key, "number": number})
    if row is None:
        raise CorruptRow("a message names an origin that is not there")
    return codec.from_json(Origin, parsed(row[0]))


def texts(connection: Connection, key: int) -> list[tuple[int, str]]:
    """Return the numbers and the JSON of a session's origins."""
    return [(number, text) for number, text in _ALL.rows(connection, {"key": key})]


def all_of(connection: Connection, key: int) -> dict[int, Origin]:
    """Return the origins of a session by number."""
    rows = _ALL.rows(connection, {"key": key})
    return {number: codec.from_json(Origin, parsed(text)) for number, text in rows}
