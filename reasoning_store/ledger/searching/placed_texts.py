"""The texts at the places that a statement found, read by another one.

A place is the key, branch and position of a message. One statement that looks for places and
then into other tables at each of them is more than Citus takes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, and_, bindparam, or_

from reasoning_store.ledger.database.statement import Statement

Place = tuple[int, int, int]
_AT_ONCE = 50
_NOWHERE = (-1, -1, -1)
_NAMES = ("session_key", "branch", "position")


def at_places(table: Table) -> ColumnElement[bool]:
    """Return the condition that a row is at one of the places that ``read_at`` gives."""
    columns = [table.c[name] for name in _NAMES]
    return or_(
        *[
            and_(*[column == bindparam(f"{column.name}{n}") for column in columns])
            for n in range(_AT_ONCE)
        ]
    )


def read_at(
    connection: Connection, statement: Statement, places: Iterable[Place]
) -> dict[Place, Any]:
    """Return what a statement has at each place: its rows begin with the place."""
    found: dict[Place, Any] = {}
    wanted = sorted({*places})
    for first in range(0, len(wanted), _AT_ONCE):
        some = wanted[first : first + _AT_ONCE]
        some += [_NOWHERE] * (_AT_ONCE - len(some))
        params = {
            f"{name}{n}": value
            for n, place in enumerate(some)
            for name, value in zip(_NAMES, place, strict=True)
        }
        for key, branch, position, *value in statement.rows(connection, params):
            found[key, branch, position] = value[0] if value else True
    return found
