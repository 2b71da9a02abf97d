"""The place of an id's message: its branch and its position."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, select

from reasoning_store.conversation.errors import InvalidCall, NotFound
from reasoning_store.conversation.json_values import is_valid_text
from reasoning_store.conversation.validation import describe
from reasoning_store.ledger import branches, encode
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.keys import owner_key
from reasoning_store.ledger.records import MessagePlace
from reasoning_store.ledger.tables import branches as branches_table
from reasoning_store.ledger.tables import drafts, messages, sessions

_m, _d, _h = messages.c, drafts.c, branches_table.c
_STORED = Statement(
    select(_m.branch, _m.position)
    .where(_m.session_key == bindparam("key"), _m.id == bindparam("id"))
    .order_by(_m.branch, _m.position)
    .limit(1)
)
_OF_OWNER = (
    select(_m.session_key, _m.branch)
    .join_from(messages, sessions, _m.session_key == sessions.c.session_key)
    .where(_m.id == bindparam("id"), sessions.c.owner_key == bindparam("owner"))
    .limit(1)
)
_PLACE = (_m.session_key, _m.branch, _m.position)
_OLDEST = Statement(_OF_OWNER.order_by(_m.created_at, *_PLACE))
_LATEST = Statement(_OF_OWNER.order_by(_m.created_at.desc(), *_PLACE))
_ARRIVING_OF_OWNER = Statement(
    select(_d.session_key, _d.branch)
    .join_from(drafts, sessions, _d.session_key == sessions.c.session_key)
    .where(_d.id == bindparam("id"), sessions.c.owner_key == bindparam("owner"))
    .limit(1)
)
_ARRIVING = Statement(
    select(_h.branch, _h.next_position)
    .where(_d.session_key == bindparam("key"), _d.id == bindparam("id"), _d.parts > 0)
    .where(_h.session_key == _d.session_key, _h.branch == _d.branch, _h.draft == _d.id)
)


def no_message(id: str) -> NotFound:
    return NotFound(
        f"there is no message {describe(id)} in this session",
        hint="history() has the id of each message, and a position is a number",
    )


def _can_be_stored(id: str) -> bool:
    return encode.fits_text_column(id) and is_valid_text(id)


def written_at(connection: Connection, key: int, id: str) -> MessagePlace | None:
    """Return the branch that a message was written on, and its position; None: it is not there."""
    if not _can_be_stored(id):
        return None
    row = _STORED.row(connection, {"key": key, "id": id})
    return None if row is None else MessagePlace(*row)


def find(connection: Connection, owner: str, id: str, *, latest: bool) -> tuple[int, int] | None:
    """Return the session of an owner's message or arriving reply, and its branch.

    Of several messages it is the oldest, or the latest.
    """
    if not _can_be_stored(id):
        return None
    names = {"id": id, "owner": owner_key(owner)}
    stored = (_LATEST if latest else _OLDEST).row(connection, names)
    row = stored or _ARRIVING_OF_OWNER.row(connection, names)
    return None if row is None else (row[0], row[1])


def locate(connection: Connection, key: int, branch: int, id: str) -> MessagePlace:
    """Return where a message is, or the reply that is arriving: on ``branch``, where that has it.

    Else on the branch that it was written on.
    """
    place = written_at(connection, key, id)
    if place is None:
        row = _ARRIVING.row(connection, {"key": key, "id": id}) if _can_be_stored(id) else None
        if row is None:
            raise no_message(id)
        return MessagePlace(*row)
    lineage = branches.get(connection, key, branch)
    return place._replace(branch=branch) if lineage.holds(place) else place


def locate_all(
    connection: Connection, key: int, branch: int, ids: Sequence[str]
) -> tuple[int, list[int]]:
    """Return one branch that has all these messages, and the position of each there."""
    last = max(
        [locate(connection, key, branch, id) for id in ids], key=lambda place: place.position
    )
    places = [locate(connection, key, last.branch, id) for id in ids]
    if any(place.branch != last.branch for place in places):
        raise InvalidCall(
            "these messages are not on one branch",
            hint="a range is of one branch: take both ids from one history()",
        )
    return last.branch, [place.position for place in places]
