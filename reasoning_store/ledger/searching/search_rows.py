"""The SQL of the index of the search: the messages that it lacks, and those that it finds.

An entry holds the different words of one text: a title, the text of a message, or its thinking.
Marks among its words name its owner and its kind, so that one lookup finds an owner's texts alone.
The entries are in the order of time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Connection,
    Text,
    and_,
    bindparam,
    cast,
    delete,
    exists,
    func,
    insert,
    literal_column,
    select,
)

from reasoning_store.conversation.blocks import Message, TextBlock, ThinkingBlock
from reasoning_store.conversation.search_words import distinct_words
from reasoning_store.ledger.database.statement import Statement, by_dialect, driver
from reasoning_store.ledger.owners import OF_OWNER
from reasoning_store.ledger.records import Segment, StoredRow
from reasoning_store.ledger.searching.search_lookup import (
    ANSWER,
    STEPS,
    THINKING,
    TITLE,
    first_number,
    marked,
    marks_of,
)
from reasoning_store.ledger.tables import (
    at_position,
    branches,
    in_range,
    messages,
    of_same_message,
    search_entries,
    search_progress,
    sessions,
)

_e, _p, _s, _b, _m = search_entries.c, search_progress.c, sessions.c, branches.c, messages.c
_SECURE_SINCE = (3, 42)
_DONE = func.coalesce(_p.next_position, _b.first)
_UNINDEXED = Statement(
    select(_s.session_key, _s.erased_at, _b.branch, _DONE, _b.next_position)
    .select_from(
        sessions.join(branches, _b.session_key == _s.session_key).outerjoin(
            search_progress, and_(_p.session_key == _b.session_key, _p.branch == _b.branch)
        )
    )
    .where(*OF_OWNER, _b.next_position > _DONE)
    .limit(bindparam("limit"))
)
_UNINDEXED_TITLES = Statement(
    select(_s.session_key, _s.created_at, _s.title)
    .select_from(
        sessions.outerjoin(search_progress, and_(_p.session_key == _s.session_key, _p.branch == 0))
    )
    .where(*OF_OWNER, _s.title.is_distinct_from(_p.title))
    .limit(bindparam("limit"))
)
# An erasure locks the session for itself; an append does not wait for this lock.
_LOCK_SHARED = Statement(
    select(_s.erased_at, _s.title)
    .where(_s.session_key == bindparam("key"))
    .with_for_update(read=True, key_share=True)
)
_SET_PROGRESS = by_dialect(
    lambda insert: (
        insert(search_progress)
        .values({name: bindparam(name) for name in ("session_key", "branch", "next_position")})
        .on_conflict_do_update(
            index_elements=["session_key", "branch"],
            set_={"next_position": bindparam("next_position")},
            where=_p.next_position == bindparam("was"),
        )
        .returning(_p.branch)
    )
)
_SET_TITLE = by_dialect(
    lambda insert: (
        insert(search_progress)
        .values(
            session_key=bindparam("session_key"),
            branch=0,
            next_position=1,
            title=bindparam("title"),
        )
        .on_conflict_do_update(
            index_elements=["session_key", "branch"],
            set_={"title": bindparam("title")},
            where=_p.title.is_distinct_from(bindparam("title")),
        )
        .returning(_p.branch)
    )
)
_FILE_ENTRY = Statement(insert(search_entries))
_SERVER_ENTRY = Statement(
    insert(search_entries).values(
        {
            **{column.name: bindparam(column.name) for column in _e},
            "words": func.array_to_tsvector(
                func.string_to_array(bindparam("words", type_=Text), literal_column("' '"))
            ),
        }
    )
)
_ENTRIES = Statement(select(_e.position, _e.kind, cast(_e.words, Text)).where(*in_range(_e)))
_OWNER = Statement(select(_s.owner_key).where(_s.session_key == bindparam("key")))
_MISPLACED = Statement(
    select(_e.branch, _e.position)
    .where(_e.session_key == bindparam("key"), _e.kind != literal_column(str(TITLE)))
    .where(~exists().where(*of_same_message(_m, _e)))
    .limit(literal_column("100"))
)
_HIGHEST = Statement(
    select(func.max(_e.number)).where(_e.number.between(bindparam("first"), bindparam("last")))
)
_REMOVE = Statement(delete(search_entries).where(*at_position(_e)))
_REMOVE_MESSAGES = (
    Statement(delete(search_entries).where(_e.session_key == bindparam("key"), _e.branch > 0)),
    Statement(
        delete(search_progress).where(
            search_progress.c.session_key == bindparam("key"), search_progress.c.branch > 0
        )
    ),
)
_REMOVE_KIND = Statement(
    delete(search_entries).where(*at_position(_e), _e.kind == bindparam("kind"))
)


@dataclass(frozen=True, slots=True)
class UnindexedPart:
    """A part of a branch that is not in the index yet, up to ``until``."""

    key: int
    erased_at: int | None
    """The session's last erasure when this was read; after a later one the part is not added."""
    branch: int
    first: int
    until: int

    @property
    def messages(self) -> Segment:
        return Segment(self.branch, self.first, self.until - 1)


def unindexed_parts(
    connection: Connection, whose: dict[str, Any], limit: int
) -> list[UnindexedPart]:
    """Return branches of an owner whose messages are not all in the index."""
    return [UnindexedPart(*row) for row in _UNINDEXED.rows(connection, {**whose, "limit": limit})]


def unindexed_titles(
    connection: Connection, whose: dict[str, Any], limit: int
) -> list[tuple[int, int, str | None]]:
    """Return sessions whose title is not the one in the index: key, when it was made, title."""
    return [
        (key, at, title)
        for key, at, title in _UNINDEXED_TITLES.rows(connection, {**whose, "limit": limit})
    ]


def texts_of(message: Message) -> dict[int, str]:
    """Return the texts of a message that are searched, by kind: those that people are shown."""
    if message.role not in ("user", "assistant"):
        return {}
    said = [block.text for block in message.blocks if isinstance(block, TextBlock)]
    thought = [
        block.thought
        for block in message.blocks
        if isinstance(block, ThinkingBlock) and block.thought and not block.is_hidden
    ]
    return {
        kind: "\n".join(parts) for kind, parts in ((ANSWER, said), (THINKING, thought)) if parts
    }


@dataclass(frozen=True, slots=True)
class Entry:
    position: int
    kind: int
    created_at: int
    words: str


def entries_of(row: StoredRow, owner_key: int) -> list[Entry]:
    """Return the entries of a message."""
    return [
        Entry(row.position, kind, row.created_at, marked(words, owner_key, kind))
        for kind, said in texts_of(row.message).items()
        if (words := distinct_words(said))
    ]


def add_entries(connection: Connection, part: UnindexedPart, entries: Sequence[Entry]) -> None:
    """Write the entries of a part; not where another did, or something was erased meanwhile."""
    held = _LOCK_SHARED.row(connection, {"key": part.key})
    if held is None or held[0] != part.erased_at:
        return
    progress = {
        "session_key": part.key,
        "branch": part.branch,
        "next_position": part.until,
        "was": part.first,
    }
    if _SET_PROGRESS(connection).row(connection, progress) is not None:
        _insert(connection, part.key, part.branch, entries)


def set_title(
    connection: Connection, key: int, title: str | None, entries: Sequence[Entry]
) -> None:
    """Put the title of a session into the index, if it still has that title."""
    held = _LOCK_SHARED.row(connection, {"key": key})
    if held is None or held[1] != title:
        return
    if _SET_TITLE(connection).row(connection, {"session_key": key, "title": title}) is not None:
        _REMOVE.run(connection, {"key": key, "of": 0, "at": 0})
        _insert(connection, key, 0, entries)


def _insert(connection: Connection, key: int, branch: int, entries: Iterable[Entry]) -> None:
    in_file = connection.dialect.name == "sqlite"
    numbers = _Numbers(connection)
    rows = []
    for entry in entries:
        first = first_number(entry.created_at)
        rows.append(
            {
                "session_key": key,
                "branch": branch,
                "position": entry.position,
                "kind": entry.kind,
                "number": numbers.take(first) if in_file else first,
                "words": entry.words,
            }
        )
    (_FILE_ENTRY if in_file else _SERVER_ENTRY).many(connection, rows)


class _Numbers:
    """Numbers for the entries of one transaction: a file has each of them once."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._free: dict[int, int] = {}
        self._begin: dict[int, int] = {}

    def take(self, at: int) -> int:
        """Return a number of a moment, or of the next one that has any left."""
        first = self._begin.get(at, at)
        while True:
            last = first + STEPS - 1
            if first not in self._free:
                ((highest,),) = _HIGHEST.rows(self._connection, {"first": first, "last": last})
                self._free[first] = first if highest is None else highest + 1
            number = self._free[first]
            if number <= last:
                self._free[first] += 1
                self._begin[at] = first
                return number
            first += STEPS


def remove_entries(connection: Connection, places: Sequence[dict[str, Any]]) -> None:
    """Take messages out of the index."""
    _REMOVE.many(connection, places)


def remove_messages(connection: Connection, key: int) -> None:
    """Take all messages of a session out of the index; its title stays."""
    for statement in _REMOVE_MESSAGES:
        statement.run(connection, {"key": key})


def remove_thinking(connection: Connection, places: Sequence[dict[str, Any]]) -> None:
    """Take what was thought in messages out of the index."""
    _REMOVE_KIND.many(connection, [{**place, "kind": THINKING} for place in places])


def entries_in(
    connection: Connection, key: int, branch: int, first: int, last: int
) -> dict[int, dict[int, frozenset[str]]]:
    """Return the words of the entries in a part of a branch, marks among them, by kind."""
    found: dict[int, dict[int, frozenset[str]]] = {}
    span = {"key": key, "of": branch, "first": first, "last": last}
    for position, kind, words in _ENTRIES.rows(connection, span):
        # A server writes them between quotes, which no word has.
        found.setdefault(position, {})[kind] = frozenset(words.replace("'", "").split())
    return found


def owner_of(connection: Connection, key: int) -> int:
    """Return the key of a session's owner."""
    row = _OWNER.row(connection, {"key": key})
    return 0 if row is None else row[0]


def misplaced_entries(connection: Connection, key: int) -> list[tuple[int, int]]:
    """Return the branch and position of entries that no message is at."""
    return [(branch, at) for branch, at in _MISPLACED.rows(connection, {"key": key})]


def is_entry_of(message: Message, owner_key: int, kind: int, words: frozenset[str]) -> bool:
    """Whether an entry holds the words of a message.

    Python's own table of letters grows: so the words of a text beyond ASCII may be others than they
    were.
    """
    said = texts_of(message).get(kind)
    if said is None or not words.issuperset(marks_of(owner_key, kind)):
        return False
    return not said.isascii() or words == {*marks_of(owner_key, kind), *distinct_words(said)}


def remove_deleted_words(connection: Connection) -> None:
    """Remove the words of deleted entries from the index of a file.

    If library and index can, they have removed them already.
    """
    if connection.dialect.name != "sqlite":
        return
    raw = driver(connection)
    found = raw.execute("SELECT sqlite_version(), k, v FROM search_index_config").fetchall()
    version = tuple(map(int, found[0][0].split(".")))
    if version < _SECURE_SINCE or ("secure-delete", 1) not in [row[1:] for row in found]:
        raw.execute("INSERT INTO search_index (search_index) VALUES ('optimize')")
