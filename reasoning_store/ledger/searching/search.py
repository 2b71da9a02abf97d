"""Search: the index brought up to date when it is asked, and the messages that it finds.

An append writes nothing here. A search first adds the messages since the last one, step by step,
each step one short transaction: one that is killed is done again by the next search.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

from sqlalchemy import Connection

from reasoning_store.conversation.errors import InvalidCall, NotFound
from reasoning_store.conversation.search_query import Query, parse
from reasoning_store.conversation.search_words import distinct_words
from reasoning_store.conversation.validation import check_number
from reasoning_store.ledger import history, sessions
from reasoning_store.ledger.database.database import Database
from reasoning_store.ledger.owners import owner_params
from reasoning_store.ledger.records import (
    BranchRow,
    MessagePlace,
    Page,
    Segment,
    SessionRow,
    StoredRow,
)
from reasoning_store.ledger.searching import page_rows, search_lookup, search_rows
from reasoning_store.ledger.searching.search_lookup import ANSWER, THINKING, TITLE, Place, place_at
from reasoning_store.ledger.searching.search_rows import Entry, UnindexedPart, texts_of

Within: TypeAlias = Literal["answers", "thinking", "all"]
Branches: TypeAlias = Literal["current", "all"]
_KINDS = {"answers": (TITLE, ANSWER), "thinking": (THINKING,), "all": search_lookup.KINDS}
_PARTS, _TITLES, _EVERY = 256, 256, 1 << 62
_MOST_LOOKED_AT = 500
"""Texts that have the words, but perhaps not side by side, of one search."""
_STEP, _STEP_CHARACTERS = 512, 1 << 20
"""Messages, and characters of them, that one step adds: an append waits for no more."""


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A text that a search found."""

    session: SessionRow
    place: Place
    branch: int
    is_current: bool
    """Whether it is on the current branch of its session."""
    row: StoredRow | None
    """Its message; None: it is the title."""
    text: str
    places: Sequence[tuple[int, int]]


class Search:
    """The search for words in an owner's sessions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(
        self,
        owner: str,
        text: str,
        *,
        within: Within = "answers",
        on: Branches = "current",
        limit: int = 20,
        after: str | None = None,
    ) -> Page[FoundRow]:
        """Return the texts of an owner that have these words, latest first."""
        query = parse(text)
        _check("within", within, get_args(Within))
        _check("branches", on, get_args(Branches))
        check_number("limit", limit, least=1, hint="as in search(text, limit=20)")
        before = search_lookup.place_of(after)
        is_read_only = self._database.is_read_only
        if not is_read_only:
            self.catch_up(owner)

        def found(connection: Connection) -> tuple[list[FoundRow], Place | None]:
            reader = _Reader(connection, owner, query, _KINDS[within], on)
            items, left = reader.find(before, limit + 1)
            if is_read_only:
                unindexed = reader.find_unindexed(before)
                items += [one for one in unindexed if left is None or one.place > left]
                items.sort(key=lambda one: one.place, reverse=True)
            return items, left

        items, left = self._database.read(found)
        if len(items) > limit:
            left = items[limit - 1].place
        return Page(items[:limit], None if left is None else str(left))

    def catch_up(self, owner: str) -> None:
        """Add the messages since the last search."""
        whose = owner_params(owner)
        while True:
            titles = self._database.read_one(
                search_rows.unindexed_titles, whose=whose, limit=_TITLES
            )
            if titles:
                self._database.write(partial(_add_titles, titles=titles, whose=whose))
            parts = self._database.read_one(search_rows.unindexed_parts, whose=whose, limit=_PARTS)
            self._add_messages(parts, whose["owner_key"])
            if not titles and not parts:
                return

    def _add_messages(self, parts: Sequence[UnindexedPart], key: int) -> None:
        """Add messages of these parts, in steps."""
        step: list[tuple[UnindexedPart, list[Entry]]] = []
        for part in sorted(parts, key=lambda part: (part.key, part.branch)):
            for page in self._read(part, key):
                step.append(page)
                if _is_full(step):
                    self._database.write(partial(_add, step=step))
                    step = []
        if step:
            self._database.write(partial(_add, step=step))

    def _read(self, part: UnindexedPart, key: int) -> Iterator[tuple[UnindexedPart, list[Entry]]]:
        """Yield the pages of a part, each with its entries."""
        for segment in part.messages.pages():
            try:
                rows = self._database.read(_rows_of, part, segment)
            except NotFound:
                return  # erased meanwhile
            entries = [entry for row in rows for entry in search_rows.entries_of(row, key)]
            yield replace(part, first=segment.first, until=segment.last + 1), entries


def _rows_of(connection: Connection, part: UnindexedPart, segment: Segment) -> list[StoredRow]:
    """Return messages of a part; NotFound where its session was erased from since it was read."""
    if sessions.by_key(connection, part.key).erased_at != part.erased_at:
        raise sessions.no_session()
    return history.of_segments(connection, part.key, [segment], thinking=True)


def _check(name: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise InvalidCall(f"{name}: one of {', '.join(allowed)}")


def _is_full(step: Sequence[tuple[UnindexedPart, list[Entry]]]) -> bool:
    """Whether a step has as much as one transaction adds."""
    messages = sum(part.until - part.first for part, _ in step)
    characters = sum(len(entry.words) for _, entries in step for entry in entries)
    return messages >= _STEP or characters >= _STEP_CHARACTERS


def _add(connection: Connection, step: Sequence[tuple[UnindexedPart, list[Entry]]]) -> None:
    for part, entries in step:
        search_rows.add_entries(connection, part, entries)


def _add_titles(
    connection: Connection, titles: Sequence[tuple[int, int, str | None]], whose: dict[str, Any]
) -> None:
    for key, created_at, title in sorted(titles, key=lambda one: one[0]):
        entries = []
        if title is not None and (words := distinct_words(title)):
            marked = search_lookup.marked(words, whose["owner_key"], TITLE)
            entries.append(Entry(0, TITLE, created_at, marked))
        search_rows.set_title(connection, key, title, entries)


class _Reader:
    """The texts of entries of the index, on one snapshot."""

    def __init__(
        self, connection: Connection, owner: str, query: Query, kinds: Sequence[int], on: Branches
    ) -> None:
        self._connection = connection
        self._kinds = kinds
        self._query = query
        self._only_current = on == "current"
        self._whose = owner_params(owner)

    def find(self, before: Place, limit: int) -> tuple[list[FoundRow], Place | None]:
        """Return what is found, and the last place looked at, where others were left."""
        asked = search_lookup.index_query(
            self._connection, self._query, self._whose["owner_key"], self._kinds
        )
        size, looked_at = limit + 8, 0
        out: list[FoundRow] = []
        while looked_at < _MOST_LOOKED_AT:
            places = search_lookup.find(
                self._connection, asked, self._whose, before=before, limit=size
            )
            for found in self._read(places):
                out.append(found)
                if len(out) == limit:
                    return out, None
            if len(places) < size:
                return out, None
            looked_at += len(places)
            before, size = places[-1], min(2 * size, 512)
        return out, before

    def find_unindexed(self, before: Place) -> list[FoundRow]:
        """Return the hits among the messages that the index lacks: each text is read."""
        places = []
        for key, created_at, _ in search_rows.unindexed_titles(
            self._connection, self._whose, _EVERY
        ):
            places.append(place_at(created_at, key, 0, 0, TITLE))
        for part in search_rows.unindexed_parts(self._connection, self._whose, _EVERY):
            for segment in part.messages.pages():
                for row in history.of_segments(
                    self._connection, part.key, [segment], thinking=THINKING in self._kinds
                ):
                    places += [
                        place_at(row.created_at, part.key, part.branch, row.position, kind)
                        for kind, text in texts_of(row.message).items()
                        if self._query.places(text)
                    ]
        return list(
            self._read([place for place in places if place < before and place.kind in self._kinds])
        )

    def _read(self, places: Sequence[Place]) -> Iterator[FoundRow]:
        """Yield the texts at these places in which the query finds its words."""
        keys = [(place.key, place.branch, place.position) for place in places]
        rows = page_rows.read(self._connection, keys, thinking=THINKING in self._kinds)
        for place, found in zip(places, rows, strict=True):
            if found is not None and (hit := self._found(place, *found)) is not None:
                yield hit

    def _found(
        self, place: Place, session: SessionRow, current: BranchRow, row: StoredRow | None
    ) -> FoundRow | None:
        is_current = row is None or current.holds(MessagePlace(place.branch, place.position))
        if self._only_current and not is_current:
            return None
        text = (session.title if row is None else texts_of(row.message).get(place.kind)) or ""
        places = self._query.places(text)
        if not places:
            return None
        branch = current.number if is_current else place.branch
        return FoundRow(session, place, branch, is_current, row, text, places)
