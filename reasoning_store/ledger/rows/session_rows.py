"""The row of a session as a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reasoning_store.conversation.errors import CorruptRow
from reasoning_store.ledger.records import SessionRow
from reasoning_store.ledger.rows.decode import UNREADABLE, parsed
from reasoning_store.ledger.tables import sessions

_t = sessions.c
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
