"""A statement whose NULLs are spelt is the one that would have bound them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import product

import pytest

from reasoning_store.ledger.sql import spelt

VALUES = (7, "?", b"?", "NULL", 0, "")
"""None of them absent, and some that look as if they were, or as if they were a place."""
INSERT = f"INSERT INTO t VALUES ({', '.join('?' * len(VALUES))})"  # noqa: S608


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as opened:
        opened.execute("CREATE TABLE t (a, b, c, d, e, f)")
        yield opened


def test_every_value_comes_to_its_own_column(connection: sqlite3.Connection) -> None:
    """Whichever of the others are absent: all 64 kinds of rows."""
    for kept in product((True, False), repeat=len(VALUES)):
        row = tuple(value if here else None for value, here in zip(VALUES, kept, strict=True))

        text, values = spelt(INSERT, row)
        connection.execute(text, values)

        assert None not in values
        assert connection.execute("SELECT * FROM t").fetchall() == [row]
        connection.execute("DELETE FROM t")


@pytest.mark.parametrize("text", [INSERT + " RETURNING '?'", INSERT.replace("?, ", "", 1)])
def test_a_place_too_many_or_too_few_is_refused(text: str) -> None:
    """Also where it is none, in a text of the statement: no value shifts by it."""
    for row in (VALUES, (None, *VALUES[1:])):
        with pytest.raises(ValueError, match="zip"):
            spelt(text, row)
