"""Withholdings: the parts of messages that requests leave out, because a provider refused them.

A row belongs to the row of its message, so the branches that share the message share it, and it
goes when the message goes. A withholding that is taken back stays, with its time: an earlier
request was made with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, and_, bindparam, insert, select, update

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import Origin
from reasoning_store.conversation.errors import Conflict, NotFound
from reasoning_store.conversation.validation import describe
from reasoning_store.conversation.withholding import WithheldPart
from reasoning_store.ledger import sessions
from reasoning_store.ledger.database.database import Database
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.decode import parsed
from reasoning_store.ledger.keys import Clock
from reasoning_store.ledger.records import BranchRow, MessagePlace
from reasoning_store.ledger.tables import at_position, messages, of_same_message, withholdings

_w, _m = withholdings.c, messages.c
_OF_SESSION = (
    select(
        _w.branch,
        _w.position,
        _m.id,
        _w.block,
        _w.part,
        _w.tokens,
        _w.reason,
        _w.target,
        _w.digest,
        _w.error,
        _w.created_at,
        _w.undone_at,
    )
    .join_from(withholdings, messages, and_(*of_same_message(_m, _w)))
    .where(_w.session_key == bindparam("key"))
    .order_by(_w.position, _w.branch, _w.block, _w.part)
)
_ALL = Statement(_OF_SESSION)
_IN_FORCE = Statement(_OF_SESSION.where(_w.undone_at.is_(None)))
_THIS = (*at_position(_w), _w.block == bindparam("this"), _w.part == bindparam("of_part"))
_UNDONE_AT = Statement(select(_w.undone_at).where(*_THIS))
_INSERT = Statement(insert(withholdings))
_AGAIN = Statement(
    update(withholdings)
    .where(*_THIS)
    .values(
        {
            name: bindparam(name)
            for name in ("digest", "tokens", "reason", "error", "target", "created_at")
        }
        | {"undone_at": None}
    )
)
_UNDO = Statement(update(withholdings).where(*_THIS).values(undone_at=bindparam("now")))
_DIGEST = Statement(select(_m.digest).where(*at_position(_m)))


@dataclass(frozen=True, slots=True, kw_only=True)
class WithheldRow:
    """A part of a message that is left out, or was."""

    place: MessagePlace
    message_id: str = ""
    part: WithheldPart
    digest: bytes
    """Of the seal, or of the bytes: what a client sends again is known by it."""
    error: str | None = None
    """The refusal, masked."""
    created_at: int = 0
    undone_at: int | None = None

    @property
    def id(self) -> str:
        return f"{self.message_id}/{self.part.block}/{self.part.part}"


@dataclass(frozen=True, slots=True)
class NewWithholding:
    """A part of a message that is to be left out."""

    row: WithheldRow
    was: bytes
    """The digest of the message that it was found in."""


def of_session(connection: Connection, key: int, *, every: bool = False) -> list[WithheldRow]:
    """Return what is left out in a session, in the order of its messages; or ever was."""
    return [_row(row) for row in (_ALL if every else _IN_FORCE).rows(connection, {"key": key})]


def parts_of(
    connection: Connection, key: int, branch: BranchRow
) -> dict[int, tuple[WithheldPart, ...]]:
    """Return by its position what is left out of each message of a branch."""
    parts: dict[int, tuple[WithheldPart, ...]] = {}
    for row in of_session(connection, key):
        if branch.holds(row.place):
            at = row.place.position
            parts[at] = (*parts.get(at, ()), row.part)
    return parts


def put(connection: Connection, key: int, row: WithheldRow, *, again: bool = True) -> bool:
    """Write a withholding, also one that was taken back if ``again``; return whether it is new."""
    this = _params(key, row)
    found = _UNDONE_AT.row(connection, this)
    if found is not None and found[0] is None:
        return False
    columns = {
        "digest": row.digest,
        "tokens": row.part.tokens,
        "reason": row.part.reason,
        "error": row.error,
        "target": _target_json(row.part.target),
        "created_at": row.created_at,
    }
    if found is not None and again:
        _AGAIN.run(connection, this | columns)
    elif found is None:
        names = {"session_key": key, "branch": row.place.branch, "position": row.place.position}
        more = {"block": row.part.block, "part": row.part.part, "undone_at": row.undone_at}
        _INSERT.run(connection, names | columns | more)
    return True


class Withholdings:
    """The withholdings of a session."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def of_session(self, session_key: int, *, every: bool = False) -> list[WithheldRow]:
        return self._database.read(of_session, key=session_key, every=every)

    def add(self, session_key: int, new: Sequence[NewWithholding]) -> list[WithheldRow]:
        """Leave parts out, all or none; return those that were not left out before."""
        now = self._clock.now()

        def write(connection: Connection) -> list[WithheldRow]:
            sessions.lock(connection, session_key)
            added = []
            for one in new:
                this = _params(session_key, one.row)
                if _DIGEST.row(connection, this) != (one.was,):
                    raise Conflict(
                        f"message {one.row.place.position} has changed meanwhile",
                        hint="read it again",
                    )
                row = replace(one.row, created_at=now)
                if put(connection, session_key, row):
                    added.append(row)
            return added

        return self._database.write(write)

    def undo(self, session_key: int, id: str) -> WithheldRow:
        """Send a part again."""
        now = self._clock.now()

        def write(connection: Connection) -> WithheldRow:
            sessions.lock(connection, session_key)
            row = find(of_session(connection, session_key), id)
            _UNDO.run(connection, _params(session_key, row) | {"now": now})
            return replace(row, undone_at=now)

        return self._database.write(write)


def find(rows: Iterable[WithheldRow], id: str) -> WithheldRow:
    """Return the withholding of an id among those in force."""
    for row in rows:
        if row.id == id:
            return row
    raise NotFound(
        f"nothing that is left out has the id {describe(id)}", hint="withheld() lists the ids"
    )


def _params(key: int, row: WithheldRow) -> dict[str, Any]:
    place, part = row.place, row.part
    this = {"this": part.block, "of_part": part.part}
    return {"key": key, "of": place.branch, "at": place.position, **this}


def _target_json(target: Origin | None) -> str | None:
    return None if target is None else codec.dumps(codec.to_json(target))


def _row(row: Sequence[Any]) -> WithheldRow:
    branch, position, id, block, part, tokens, reason, target, digest, error, made, undone = row
    return WithheldRow(
        place=MessagePlace(branch, position),
        message_id=id,
        part=WithheldPart(block, part, tokens, reason, _target(target)),
        digest=digest,
        error=error,
        created_at=made,
        undone_at=undone,
    )


def _target(text: str | None) -> Origin | None:
    found: Mapping[str, Any] | None = None if text is None else parsed(text)
    return None if found is None else codec.from_json(Origin, found)
