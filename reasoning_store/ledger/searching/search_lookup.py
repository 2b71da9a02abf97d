"""The SQL of a search: an entry's place, and the places that a query finds in the index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Text, bindparam, cast, select, text, tuple_

from reasoning_store.conversation.search_query import Query
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.owners import (
    HIGHEST,
    HIGHEST_BRANCH,
    OF_OWNER,
    read_cursor,
    write_cursor,
)
from reasoning_store.ledger.tables import QUERY, search_entries, sessions

TITLE, ANSWER, THINKING = KINDS = range(3)
_e, _s = search_entries.c, sessions.c
STEPS = 256
"""Entries of one microsecond that are in order."""
_FARTHEST = (1 << 54) - 1
_PLACE = (_e.number, _e.session_key, _e.branch, _e.position, _e.kind)
_IN_FILE = Statement(
    text(
        """
        SELECT e.number, e.session_key, e.branch, e.position, e.kind
        FROM search_index f
        CROSS JOIN search_entries e ON e.number = f.rowid
        CROSS JOIN sessions s ON s.session_key = e.session_key
        WHERE f.search_index MATCH :query AND f.rowid < :number
          AND s.owner_key = :owner_key AND s.owner = :owner
        ORDER BY f.rowid DESC LIMIT :limit
        """
    ).columns(*_PLACE)
)
_ON_SERVER = Statement(
    select(*_PLACE)
    .select_from(search_entries.join(sessions, _s.session_key == _e.session_key))
    .where(
        *OF_OWNER,
        _e.words.op("@@")(cast(bindparam("query", type_=Text), QUERY)),
        tuple_(*_PLACE) < tuple_(*[bindparam(column.name, type_=column.type) for column in _PLACE]),
    )
    .order_by(*[column.desc() for column in _PLACE])
    .limit(bindparam("limit"))
)


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """The place of an entry: by time, then by its message and its kind."""

    number: int
    key: int
    branch: int
    position: int
    kind: int

    def __str__(self) -> str:
        return write_cursor((self.number, self.key, self.branch, self.position, self.kind))


def place_at(created_at: int, key: int, branch: int, position: int, kind: int) -> Place:
    """Return the place of a text with a time."""
    return Place(first_number(created_at), key, branch, position, kind)


def first_number(created_at: int) -> int:
    """Return the first number of the entries of a time."""
    return max(-_FARTHEST, min(created_at, _FARTHEST)) * STEPS


def place_of(cursor: str | None) -> Place:
    """Return the place after which a page of hits begins."""
    behind_all = (HIGHEST, HIGHEST, HIGHEST_BRANCH, HIGHEST, THINKING)
    return Place(*read_cursor(cursor, "hits", behind_all))


def marked(words: Sequence[str], owner_key: int, kind: int) -> str:
    """Return the words of an entry: no text has one that begins as the marks do."""
    return " ".join([*marks_of(owner_key, kind), *words])


def marks_of(owner_key: int, kind: int) -> tuple[str, str]:
    """Return the marks, among an entry's words, of its owner and its kind."""
    return f"_o{owner_key:x}", f"_k{kind}"


def find(
    connection: Connection,
    query: str,
    whose: dict[str, Any],
    *,
    before: Place,
    limit: int,
) -> list[Place]:
    """Return the places before one that an index query finds, the latest first."""
    params = {**whose, "query": query, "limit": limit, "number": before.number}
    if connection.dialect.name == "sqlite":
        rows = _IN_FILE.rows(connection, params)
    else:
        place = {
            "session_key": before.key,
            "branch": before.branch,
            "position": before.position,
            "kind": before.kind,
        }
        rows = _ON_SERVER.rows(connection, {**params, **place})
    return [Place(*row) for row in rows]


def index_query(connection: Connection, query: Query, owner_key: int, kinds: Iterable[int]) -> str:
    """Return what the index is asked: each text that is found has all the words, in any order."""
    in_file = connection.dialect.name == "sqlite"
    all_of, any_of, end = (" AND ", " OR ", '" *') if in_file else (" & ", " | ", "':*")
    quote = '"' if in_file else "'"

    def named(word: str, *, is_open: bool = False) -> str:
        return f"{quote}{word}{end if is_open else quote}"

    wanted = {
        named(word, is_open=term.is_open and index == len(term.words) - 1): None
        for term in query.wanted
        for index, word in enumerate(term.words)
    }
    marks = [marks_of(owner_key, kind) for kind in kinds]
    every = [
        named(marks[0][0]),
        f"({any_of.join([named(kind) for _, kind in marks])})",
        *wanted,
    ]
    # Words that stand side by side may stand apart as well: those are looked at in the text.
    alone = [
        named(term.words[0], is_open=term.is_open)
        for term in query.unwanted
        if len(term.words) == 1
    ]
    made = all_of.join(every)
    if alone:
        without = any_of.join(alone)
        made = f"({made}) NOT ({without})" if in_file else f"{made} & !({without})"
    return made
