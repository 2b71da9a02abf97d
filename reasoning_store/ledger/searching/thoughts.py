"""Thoughts across the sessions of an owner, by who thought them and when."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from sqlalchemy import Connection, bindparam, select, tuple_

from reasoning_store.conversation.validation import check_number, check_text
from reasoning_store.ledger.database.database import Database
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.decode import headers_of, parsed
from reasoning_store.ledger.owners import (
    HIGHEST,
    HIGHEST_BRANCH,
    OF_OWNER,
    owner_params,
    read_cursor,
    time_params,
    write_cursor,
)
from reasoning_store.ledger.records import Page, SessionRow, StoredRow
from reasoning_store.ledger.searching import page_rows
from reasoning_store.ledger.tables import messages, origins
from reasoning_store.ledger.tables import sessions as sessions_table

_m, _o, _s = messages.c, origins.c, sessions_table.c
_AT_ONCE = 200
_BEHIND_ALL = (HIGHEST, HIGHEST, HIGHEST_BRANCH, HIGHEST)
_ORIGINS = Statement(
    select(_o.number, _o.origin)
    .select_from(sessions_table.join(origins, _o.session_key == _s.session_key))
    .where(*OF_OWNER)
    .distinct()
)
_PLACE = (_m.created_at, _m.session_key, _m.branch, _m.position)
_NAMES = ("time", "key", "branch", "position")
_THINKING = Statement(
    select(*_PLACE, _m.origin, _m.shape)
    .select_from(sessions_table.join(messages, _m.session_key == _s.session_key))
    .where(*OF_OWNER, _m.shape.is_not(None))
    .where(_m.created_at >= bindparam("since"), _m.created_at < bindparam("until"))
    .where(
        tuple_(*_PLACE)
        < tuple_(*[bindparam(name, type_=of.type) for name, of in zip(_NAMES, _PLACE, strict=True)])
    )
    .order_by(*[column.desc() for column in _PLACE])
    .limit(bindparam("size"))
)


@dataclass(frozen=True, slots=True)
class ThoughtRow:
    """A message with the session that it is of."""

    session: SessionRow
    row: StoredRow


class Thoughts:
    """The thoughts of an owner's sessions, with their text; requests may leave them out."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def page(
        self,
        owner: str,
        *,
        provider: str | None = None,
        model: str | None = None,
        since: int | None = None,
        until: int | None = None,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[ThoughtRow]:
        """Return messages of an owner that have readable thinking, latest first."""
        for name, value in (("provider", provider), ("model", model)):
            if value is not None:
                check_text(name, value)
        check_number("limit", limit, least=1, hint="as in thoughts(limit=20)")
        params: dict[str, Any] = {
            **owner_params(owner),
            **time_params(since, until),
            **dict(zip(_NAMES, read_cursor(after, "thoughts", _BEHIND_ALL), strict=True)),
        }

        def read(connection: Connection) -> Page[ThoughtRow]:
            numbers = None
            if provider is not None or model is not None:
                known = _ORIGINS.rows(connection, params)
                numbers = {n for n, text in known if _is_by(parsed(text), provider, model)}
                if not numbers:
                    return Page([], None)
            places = _latest(connection, params, numbers, limit + 1)
            keys = [(key, branch, at) for _, key, branch, at in places[:limit]]
            items = [
                ThoughtRow(found[0], found[2])
                for found in page_rows.read(connection, keys, thinking=True)
                if found is not None and found[2] is not None
            ]
            more = len(places) > limit
            return Page(items, write_cursor(places[limit - 1]) if more else None)

        return self._database.read(read)


def _latest(
    connection: Connection, params: dict[str, Any], makers: set[int] | None, wanted: int
) -> list[tuple[int, ...]]:
    """Return the places of so many messages whose thinking has a text, the latest first.

    ``makers`` are the numbers of the origins that it may have; None is any.
    """
    out: list[tuple[int, ...]] = []
    size = min(max(wanted, _AT_ONCE), HIGHEST)
    while True:
        rows = _THINKING.rows(connection, {**params, "size": size})
        out += [
            tuple(place)
            for *place, origin, shape in rows
            if (makers is None or origin in makers)
            and any(header.readable for header in headers_of(shape))
        ]
        if len(out) >= wanted or len(rows) < size:
            return out[:wanted]
        params = {**params, **dict(zip(_NAMES, rows[-1], strict=False))}
        size = min(2 * size, HIGHEST)


def _is_by(origin: dict[str, Any], provider: str | None, model: str | None) -> bool:
    """Whether an origin is of a provider, and its model fits a pattern; case does not count."""
    by, of = origin.get("provider") or "", origin.get("model") or ""
    return (provider is None or by.casefold() == provider.casefold()) and (
        model is None or fnmatchcase(of.casefold(), model.casefold())
    )
