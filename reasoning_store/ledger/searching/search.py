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
from reasoning_store.ledger import branches, history, sessions
from reasoning_store.ledger.database.database import Database
from reasoning_store.ledger.records import BranchRow, Page, Segment, SessionRow, StoredRow
from reasoning_store.ledger.rows.owner_rows import owner_params
from reasoning_store.ledger.searching import search_lookup, search_rows
from reasoning_store.ledger.searching.search_lookup import ANSWER, THINKING, TITLE, Place, place_at
from reasoning_store.ledger.searching.search_rows import Entry, UnindexedPart

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
            reader = _Reader(connection, owner, query, on)
            items, left = reader.find(_KINDS[within], before, limit + 1)
            if is_read_only:
                unindexed = reader.find_unindexed(_KINDS[within], before)
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
                rows = self._database.read(
                    history.of_segments, key=part.key, segments=[segment], thinking=True
                )
            except NotFound:
                return  # erased meanwhile
            entries = [entry for row in rows for entry in search_rows.entries_of(row, key)]
            yield replace(part, first=segment.first, until=segment.last + 1), entries


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

    def __init__(self, connection: Connection, owner: str, query: Query, on: Branches) -> None:
        self._connection = connection
        self._query = query
        self._only_current = on == "current"
        self._whose = owner_params(owner)
        self._known: dict[int, tuple[SessionRow, BranchRow]] = {}

    def find(
        self, kinds: Sequence[int], before: Place, limit: int
    ) -> tuple[list[FoundRow], Place | None]:
        """Return what is found, and the last place looked at, where others were left."""
        asked = search_lookup.index_query(
            self._connection, self._query, self._whose["owner_key"], kinds
        )
        size, looked_at = limit + 8, 0
        out: list[FoundRow] = []
        while looked_at < _MOST_LOOKED_AT:
            places = search_lookup.find(
                self._connection, asked, self._whose, before=before, limit=size
            )
            for place in places:
                found = self._read_place(place)
                if found is not None:
                    out.append(found)
                if len(out) == limit:
                    return out, None
            if len(places) < size:
                return out, None
            looked_at += len(places)
            before, size = places[-1], min(2 * size, 512)
        return out, before

    def find_unindexed(self, kinds: Sequence[int], before: Place) -> list[FoundRow]:
        """Return the hits among the messages that the index lacks: each text is read."""
        places = []
        for key, created_at, _ in search_rows.unindexed_titles(
            self._connection, self._whose, _EVERY
        ):
            places.append(place_at(created_at, key, 0, 0, TITLE))
        for part in search_rows.unindexed_parts(self._connection, self._whose, _EVERY):
            for segment in part.messages.pages():
                for row in history.of_segments(
                    self._connection, part.key, [segment], thinking=THINKING in kinds
                ):
                    places += [
                        place_at(row.created_at, part.key, part.branch, row.position, kind)
                        for kind, text in search_rows.texts_of(row.message).items()
                        if self._query.places(text)
                    ]
        wanted = [place for place in places if place < before and place.kind in kinds]
        return [found for place in wanted if (found := self._read_place(place)) is not None]

    def _read_place(self, place: Place) -> FoundRow | None:
        """Return the text at a place, if the query still finds it there."""
        if place.key not in self._known:
            session = sessions.by_key(self._connection, place.key)
            self._known[place.key] = (
                session,
                branches.get(self._connection, place.key, session.current_branch),
            )
        session, current = self._known[place.key]
        is_current = place.kind == TITLE or any(
            one.branch == place.branch and one.first <= place.position <= one.last
            for one in current.segments
        )
        if self._only_current and not is_current:
            return None
        row = None
        if place.kind == TITLE:
            text = session.title or ""
        else:
            segment = Segment(place.branch, place.position, place.position)
            (row,) = history.of_segments(
                self._connection, place.key, [segment], thinking=place.kind == THINKING
            )
            text = search_rows.texts_of(row.message).get(place.kind, "")
        places = self._query.places(text)
        if not places:
            return None
        branch = current.number if is_current else place.branch
        return FoundRow(session, place, branch, is_current, row, text, places)
