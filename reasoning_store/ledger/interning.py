"""The SQL of origins: each kept once a session, under a number made of its content."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, bindparam, select

from reasoning_store import codec
from reasoning_store.blocks import Origin
from reasoning_store.errors import Conflict, CorruptRow
from reasoning_store.ledger.rows import parsed
from reasoning_store.ledger.sql import Sql, by_dialect
from reasoning_store.ledger.tables import origins

_o = origins.c
_THESE = _o.session_key == bindparam("key")
_INSERT = by_dialect(lambda insert: insert(origins).on_conflict_do_nothing())
_GET = Sql(select(_o.origin).where(_THESE, _o.number == bindparam("number")))
_ALL = Sql(select(_o.number, _o.origin).where(_THESE))


def intern(connection: Connection, key: int, wanted: Iterable[tuple[int, str]]) -> None:
    """Write the origins that are not there yet."""
    insert = _INSERT(connection)
    for number, text in sorted(wanted):
        insert.run(connection, {"session_key": key, "number": number, "origin": text})
        row = _GET.row(connection, {"key": key, "number": number})
        if row is None or row[0] != text:
            raise Conflict("another origin of this session has the same number")


def one(connection: Connection, key: int, number: int) -> Origin:
    row = _GET.row(connection, {"key": key, "number": number})
    if row is None:
        raise CorruptRow("a message names an origin that is not there")
    return codec.origin_from_json(parsed(row[0]))


def texts(connection: Connection, key: int) -> list[tuple[int, str]]:
    """Return the numbers and the JSON of a session's origins."""
    return [(number, text) for number, text in _ALL.rows(connection, {"key": key})]


def all_of(connection: Connection, key: int) -> dict[int, Origin]:
    """Return the origins of a session by number."""
    return {number: codec.origin_from_json(parsed(text)) for number, text in texts(connection, key)}
