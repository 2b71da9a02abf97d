"""Annotations: small facts that an application keeps with a message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, bindparam, select, update

from reasoning_store.conversation.errors import Conflict
from reasoning_store.ledger import branches, decode, encode, message_ids, stored_drafts
from reasoning_store.ledger.database.database import Database
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.records import MessagePlace
from reasoning_store.ledger.tables import at_position, messages

_m = messages.c
_HELD = Statement(select(_m.status, _m.annotations).where(*at_position(_m)).with_for_update())
_KEEP = Statement(
    update(messages).where(*at_position(_m)).values(annotations=bindparam("annotations"))
)


class Annotations:
    """The annotations that an application stores with messages."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def merge(
        self, session_key: int, branch: int, at: int | str, changes: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Merge into the annotations of a message, key by key, and return them.

        ``at`` is its position on ``branch``, or its id; None as a value removes the key.
        """

        def work(connection: Connection) -> dict[str, Any]:
            place = _place(connection, session_key, branch, at)
            this = {"key": session_key, "of": place.branch, "at": place.position}
            ((status, held),) = _HELD.rows(connection, this)
            if status == "erased":
                raise Conflict(
                    "the message was erased, and keeps nothing",
                    hint="update_metadata({...}) keeps facts with the session",
                )
            found = {} if held is None else decode.annotations_of(held)
            found.update(changes)
            found = {name: value for name, value in found.items() if value is not None}
            _KEEP.run(connection, {**this, "annotations": encode.annotations_json(found)})
            return found

        return self._database.write(work, again_when_lost=True)


def _arriving() -> Conflict:
    return Conflict(
        "the reply is still arriving",
        hint="annotate it when it has ended; its id stays the same",
    )


def _place(connection: Connection, key: int, branch: int, at: int | str) -> MessagePlace:
    """Return where the row of a stored message is."""
    if isinstance(at, str):
        place = message_ids.written_at(connection, key, at)
        if place is None:
            message_ids.locate(connection, key, branch, at)
            raise _arriving()
        return place
    lineage = branches.get(connection, key, branch)
    if at == lineage.next_position:
        draft = stored_drafts.get(connection, key, branch, now=0)
        if draft is not None and draft.parts:
            raise _arriving()
    return MessagePlace(branches.segment_at(lineage, at).branch, at)
