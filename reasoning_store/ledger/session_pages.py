"""Sessions as values, and pages of an owner's: filtered, latest first, with their last message."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection, and_, bindparam, case, func, select, tuple_
from sqlalchemy.sql.elements import literal_column

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import TextBlock
from reasoning_store.conversation.errors import CorruptRow
from reasoning_store.conversation.validation import check_mapping, check_number, check_text
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.decode import UNREADABLE, parsed
from reasoning_store.ledger.owners import (
    HIGHEST,
    OF_OWNER,
    owner_params,
    read_cursor,
    time_params,
    write_cursor,
)
from reasoning_store.ledger.records import Page, SessionRow
from reasoning_store.ledger.tables import at_position, bodies, branches, sessions

PREVIEW = 200
"""The most characters of a preview."""
_READ = 65_536
"""The JSON of a message is read for a preview up to this many characters: media are longer."""
_CHUNK = 200
"""How many sessions are looked at together, where a title or metadata is looked for."""
_AT_ONCE = 50
_t, _b, _w = sessions.c, branches.c, bodies.c
ARCHIVED = 1
COLUMNS = (
    _t.session_key,
    _t.owner,
    _t.id,
    _t.title,
    _t.metadata,
    _t.settings,
    _t.encoding,
    _t.current_branch,
    _t.created_at,
    _t.updated_at,
    _t.archived,
    _t.erased_at,
    _t.profile,
)
"""The columns that ``decode_sessions`` takes."""

_PAGE = (
    select(*COLUMNS)
    .where(*OF_OWNER)
    .where(
        _t.updated_at >= bindparam("since"),
        _t.updated_at < bindparam("until"),
        tuple_(_t.updated_at, _t.session_key)
        < tuple_(bindparam("after_time", type_=_t.updated_at.type), bindparam("after_key")),
    )
    .order_by(_t.updated_at.desc(), _t.session_key.desc())
    .limit(bindparam("limit"))
)
_LIST = Statement(_PAGE.where(_t.archived == bindparam("archived")))
_LIST_ALL = Statement(_PAGE)
_TEXT = func.substr(_w.text, 1, literal_column(str(PREVIEW)))
_DATA = case(
    (and_(_w.text.is_(None), func.length(_w.data) < literal_column(str(_READ))), _w.data),
)
_HEADS = Statement(
    select(_b.session_key, _b.branch, _b.first, _b.segments, _b.next_position, _TEXT, _DATA)
    .join_from(
        sessions,
        branches,
        and_(_b.session_key == _t.session_key, _b.branch == _t.current_branch),
    )
    .outerjoin(
        bodies,
        and_(
            _w.session_key == _b.session_key,
            _w.branch == _b.branch,
            _w.position == _b.next_position - literal_column("1"),
        ),
    )
    .where(_t.session_key.in_([bindparam(f"key{n}") for n in range(_AT_ONCE)]))
)
_BODY = Statement(select(_TEXT, _DATA).where(*at_position(_w)))


_OWNERS = Statement(
    select(_t.owner_key, func.min(_t.owner))
    .where(_t.owner_key > bindparam("after"))
    .group_by(_t.owner_key)
    .order_by(_t.owner_key)
    .limit(bindparam("limit"))
)


def decode_sessions(rows: Sequence[Sequence[Any]]) -> list[SessionRow]:
    """Return the sessions of rows."""
    try:
        return [decode_session(row) for row in rows]
    except UNREADABLE:
        raise CorruptRow("a session cannot be read back") from None


def decode_session(row: Sequence[Any]) -> SessionRow:
    """Return the session of a row of ``COLUMNS``."""
    key, owner, id_, title, metadata, settings, encoding, branch, *times, profile = row
    created, updated, archived, erased = times
    made = SessionRow(
        key=key,
        owner=owner,
        id=id_,
        title=title,
        metadata=parsed(metadata),
        settings=parsed(settings),
        encoding=encoding,
        current_branch=branch,
        created_at=created,
        updated_at=updated,
        archived=archived == ARCHIVED,
        erased_at=erased,
        profile=profile,
    )
    if type(made.metadata) is not dict or type(made.settings) is not dict:
        raise TypeError("an object was written")
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFilter:
    """Which of an owner's sessions a page holds."""

    archived: bool | None = False
    """None is both."""
    title: str | None = None
    """A part of the title, in any case."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Each of these values is what the session's metadata has under its key."""
    since: int | None = None
    before: int | None = None
    """The time of the last message is from ``since`` on, and before ``before``."""

    def __post_init__(self) -> None:
        if self.title is not None:
            check_text("title", self.title)
        check_mapping("metadata", self.metadata)

    @property
    def is_read(self) -> bool:
        """Whether rows are read to be compared."""
        return self.title is not None or bool(self.metadata)

    def holds(self, row: SessionRow) -> bool:
        """Return whether a session's title and metadata are those that are looked for."""
        if self.title is not None and self.title.casefold() not in (row.title or "").casefold():
            return False
        return all(
            key in row.metadata and same_value(row.metadata[key], value)
            for key, value in self.metadata.items()
        )


def same_value(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: 1 is not true."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def read_page(
    connection: Connection, owner: str, which: SessionFilter, *, limit: int, after: str | None
) -> Page[SessionRow]:
    """Return one page of the owner's sessions, latest first; of messages only the last is read."""
    check_number("limit", limit, least=1, hint="as in sessions(limit=50)")
    found: list[SessionRow] = []
    for row in _matching(connection, owner, which, limit=limit, after=after):
        found.append(row)
        if len(found) > limit:
            break
    items = _with_heads(connection, found[:limit])
    more = len(found) > limit
    return Page(items, write_cursor((items[-1].updated_at, items[-1].key)) if more else None)


def read_owners(connection: Connection, *, limit: int, after: str | None) -> Page[str]:
    """Return one page of the owners who have sessions, in the order of their keys."""
    check_number("limit", limit, least=1, hint="as in owners(limit=50)")
    key = -1 if after is None else read_cursor(after, "owners", (HIGHEST,))[0]
    params = {"after": key, "limit": min(limit + 1, HIGHEST)}
    rows = _OWNERS.rows(connection, params)
    following = str(rows[limit - 1][0]) if len(rows) > limit else None
    return Page([owner for _, owner in rows[:limit]], following)


def _matching(
    connection: Connection, owner: str, which: SessionFilter, *, limit: int, after: str | None
) -> Iterator[SessionRow]:
    time, key = read_cursor(after, "sessions", (HIGHEST, HIGHEST))
    chunk = max(limit + 1, _CHUNK) if which.is_read else limit + 1
    params: dict[str, Any] = {
        **owner_params(owner),
        **time_params(which.since, which.before),
        "limit": min(chunk, HIGHEST),
    }
    if which.archived is not None:
        params["archived"] = int(which.archived)
    statement = _LIST_ALL if which.archived is None else _LIST
    while True:
        rows = statement.rows(connection, {**params, "after_time": time, "after_key": key})
        made = decode_sessions(rows)
        yield from filter(which.holds, made)
        if len(made) < chunk:
            return
        time, key = made[-1].updated_at, made[-1].key


def _with_heads(connection: Connection, rows: Sequence[SessionRow]) -> list[SessionRow]:
    """Return the sessions with the number of their messages and the text of the last."""
    heads: dict[int, tuple[int, str | None]] = {}
    for first in range(0, len(rows), _AT_ONCE):
        keys = [row.key for row in rows[first : first + _AT_ONCE]]
        keys += [-1] * (_AT_ONCE - len(keys))
        params = {f"key{n}": key for n, key in enumerate(keys)}
        for key, _, own, segments, following, text, data in _HEADS.rows(connection, params):
            last = following - 1
            if own > last >= 1:  # a fork without messages of its own
                (of,) = [branch for branch, low, high in parsed(segments) if low <= last <= high]
                place = {"key": key, "of": of, "at": last}
                text, data = _BODY.row(connection, place) or (None, None)
            heads[key] = last, _preview(text, data)
    return [
        replace(row, message_count=heads[row.key][0], preview=heads[row.key][1])
        if row.key in heads
        else row
        for row in rows
    ]


def _preview(text: str | None, data: str | None) -> str | None:
    if text is None and data is not None:
        blocks = [codec.block_from_json(one) for one in parsed(data).get("blocks", ()) if one]
        texts = [block.text for block in blocks if isinstance(block, TextBlock)]
        text = "".join(texts)[:PREVIEW] if texts else None
    return text
