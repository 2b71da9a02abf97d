"""The SQL of a search: an entry's place, and the places that a query finds in the index."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Connection,
    Text,
    bindparam,
    cast,
    select,
    text,
    tuple_,
)

from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.conversation.search_query import Query
from reasoning_store.conversation.validation import check_text
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.tables import QUERY, search_entries, sessions

TITLE, ANSWER, THINKING = KINDS = range(3)
_e, _s = search_entries.c, sessions.c
STEPS = 256
"""Entries of one microsecond that are in order."""
_FARTHEST = (1 << 54) - 1
_LAST = (1 << 63) - 1
_CURSOR = re.compile(r"(-?[0-9]{1,19})\.([0-9]{1,19})\.([0-9]{1,9})\.([0-9]{1,19})\.([0-2])")
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
WHOSE = (_s.owner_key == bindparam("owner_key"), _s.owner == bindparam("owner"))
_ON_SERVER = Statement(
    select(*_PLACE)
    .select_from(search_entries.join(sessions, _s.session_key == _e.session_key))
    .where(
        *WHOSE,
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
        return f"{self.number}.{self.key}.{self.branch}.{self.position}.{self.kind}"


def place_at(created_at: int, key: int, branch: int, position: int, kind: int) -> Place:
    """Return the place of a text with a time."""
    return Place(first_number(created_at), key, branch, position, kind)


def first_number(created_at: int) -> int:
    """Return the first number of the entries of a time."""
    return max(-_FARTHEST, min(created_at, _FARTHEST)) * STEPS


BEHIND_ALL = Place(_LAST, _LAST, (1 << 31) - 1, _LAST, THINKING)


def place_of(cursor: str | None) -> Place:
    """Return the place after which a page of hits begins."""
    if cursor is None:
        return BEHIND_ALL
    found = _CURSOR.fullmatch(check_text("after", cursor))
    numbers = [] if found is None else [int(part) for part in found.groups()]
    if not numbers or max(map(abs, numbers)) > _LAST:
        raise InvalidCall("after: not the .next of a page of hits", hint="after=page.next")
    return Place(*numbers)


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
    both, either, end = (" AND ", " OR ", '" *') if in_file else (" & ", " | ", "':*")
    quote = '"' if in_file else "'"

    def named(word: str, *, is_open: bool = False) -> str:
        return f"{quote}{word}{end if is_open else quote}"

    wanted = {
        named(word, is_open=term.is_open and at == len(term.words) - 1): None
        for term in query.wanted
        for at, word in enumerate(term.words)
    }
    marks = [marks_of(owner_key, kind) for kind in kinds]
    every = [
        named(marks[0][0]),
        f"({either.join([named(kind) for _, kind in marks])})",
        *wanted,
    ]
    # Words that stand side by side may stand apart as well: those are looked at in the text.
    alone = [
        named(term.words[0], is_open=term.is_open)
        for term in query.unwanted
        if len(term.words) == 1
    ]
    made = both.join(every)
    if alone:
        without = either.join(alone)
        made = f"({made}) NOT ({without})" if in_file else f"{made} & !({without})"
    return made
