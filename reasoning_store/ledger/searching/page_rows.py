"""The rows of a page of hits: messages of any sessions, each with its session, read together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, TypeAlias

from sqlalchemy import Connection, and_, bindparam, column, literal_column, select, values

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import Origin
from reasoning_store.ledger.branches import COLUMNS as BRANCH_COLUMNS
from reasoning_store.ledger.branches import decode_branch
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.decode import Page, parsed, stored_rows
from reasoning_store.ledger.message_columns import READ
from reasoning_store.ledger.records import BranchRow, SessionRow, StoredRow
from reasoning_store.ledger.session_pages import COLUMNS, decode_sessions
from reasoning_store.ledger.tables import (
    bodies,
    branches,
    messages,
    of_same_message,
    origins,
    sessions,
    thinking_blocks,
)

MessageKey: TypeAlias = tuple[int, int, int]
"""Session key, branch and position; the branch of a title is 0."""
PageRow: TypeAlias = tuple[SessionRow, BranchRow, StoredRow | None]
"""A session, its current branch, and the message; None: a title was asked for."""
_s, _b, _m, _w, _o, _t = (
    table.c for table in (sessions, branches, messages, bodies, origins, thinking_blocks)
)
_AT_ONCE = 32
"""Messages that one statement reads: a usual page, with what is looked at beyond it."""
_NAMES = tuple([(f"key{n}", f"branch{n}", f"position{n}") for n in range(_AT_ONCE)])
_NOWHERE = dict.fromkeys(chain(*_NAMES), -1)
_KEY = (_m.session_key, _m.branch, _m.position)
# A table that is joined: from conditions joined by OR a server may read every message instead.
_ASKED = (
    values(*[column(one.name, one.type) for one in _KEY])
    .data(
        [
            tuple([bindparam(name, type_=one.type) for name, one in zip(names, _KEY, strict=True)])
            for names in _NAMES
        ]
    )
    .cte("asked")
)
_IS_CURRENT = and_(_b.session_key == _s.session_key, _b.branch == _s.current_branch)
_SESSIONS = Statement(
    select(*COLUMNS, *BRANCH_COLUMNS)
    .select_from(
        _ASKED.join(sessions, _s.session_key == _ASKED.c.session_key).join(branches, _IS_CURRENT)
    )
    .where(_ASKED.c.branch == literal_column("0"))
)
_MESSAGES = Statement(
    select(
        *COLUMNS,
        *BRANCH_COLUMNS,
        *(_m.branch, _w.text, _w.data, _o.origin, _m.position),
        *(_m[name] for name in READ),
    ).select_from(
        _ASKED.join(messages, and_(*of_same_message(_m, _ASKED.c)))
        .join(sessions, _s.session_key == _m.session_key)
        .join(branches, _IS_CURRENT)
        .join(bodies, and_(*of_same_message(_w, _m)))
        .outerjoin(origins, and_(_o.session_key == _m.session_key, _o.number == _m.origin))
    )
)
_THINKING = Statement(
    select(
        *(_t.session_key, _t.branch, _t.position),
        *(_t.ordinal, _t.tokens, _t.source_field, _t.thought, _t.data, _t.is_hidden),
    )
    .select_from(_ASKED.join(thinking_blocks, and_(*of_same_message(_t, _ASKED.c))))
    .order_by(_t.ordinal)
)
_BRANCH, _OWN = len(COLUMNS), len(COLUMNS) + len(BRANCH_COLUMNS)
_ORIGIN = 1 + READ.index("origin")


def read(
    connection: Connection, places: Sequence[MessageKey], *, thinking: bool
) -> Iterator[PageRow | None]:
    """Yield the message at each place, or None if it is not there; a few are read at once."""
    for first in range(0, len(places), _AT_ONCE):
        asked = places[first : first + _AT_ONCE]
        once = chain(*dict.fromkeys(asked))
        params = {**_NOWHERE, **dict(zip(chain(*_NAMES), once, strict=False))}
        found: dict[MessageKey, PageRow] = {}
        thoughts: dict[MessageKey, list[Any]] = {}
        if any(not branch for _, branch, _ in asked):
            for row in _SESSIONS.rows(connection, params):
                found[row[0], 0, 0] = _page_row(row, None)
        if thinking:
            for key, branch, *block in _THINKING.rows(connection, params):
                thoughts.setdefault((key, branch, block[0]), []).append(block)
        for row in _MESSAGES.rows(connection, params):
            branch, text, data, origin, *head = row[_OWN:]
            by = {} if origin is None else {head[_ORIGIN]: codec.from_json(Origin, parsed(origin))}
            place = row[0], branch, head[0]
            own = thoughts.get(place, []) if thinking else None
            (message,) = stored_rows(branch, [Page([head], [(head[0], text, data)], by)], own)
            found[place] = _page_row(row, message)
        yield from map(found.get, asked)


def _page_row(row: Sequence[Any], message: StoredRow | None) -> PageRow:
    (session,) = decode_sessions([row[:_BRANCH]])
    return session, decode_branch(row[_BRANCH:_OWN]), message
