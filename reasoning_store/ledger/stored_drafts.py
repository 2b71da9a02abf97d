"""The SQL of drafts: replies that are still arriving.

A draft is one row, and parts that are only ever added at the end; it has no position of its
own, no count and no digest. ``branches.draft`` names the live one, so that an append sees it
in the row that it has to lock anyway (``appends``).

A draft ends in one of three ways. Its recorder ends it, by an append that deletes it. Its
recorder drops it. Or another writer ends it. That writer first claims the draft, so that nothing
can be added; then it builds the message from the parts, outside of any transaction, and appends
it. If it dies in between, the next writer does the same.

A branch that waits for a reply (``branches.instead_of``) becomes current with its draft, so that
readers find it there; if the draft is dropped, the branch that was current before is so again.

Parts are texts of JSON; no one here reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, and_, bindparam, delete, func, insert, select, update

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import Origin
from reasoning_store.conversation.errors import CorruptRow, InvalidCall, NotFound
from reasoning_store.conversation.identity import Asked
from reasoning_store.ledger import sessions
from reasoning_store.ledger.branches import check_branch, no_branch
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.decode import UNREADABLE, parsed
from reasoning_store.ledger.encode import MOST_OF_DRAFT, annotations_json, fits_text_column
from reasoning_store.ledger.records import Arrival, BranchRow, DraftRow, NewParts
from reasoning_store.ledger.tables import (
    branches,
    compactions,
    draft_parts,
    drafts,
    messages,
    of_branch,
)

LEASE = 30.0
"""Seconds for which a draft is its recorder's without a word from it; then it is a message
that was interrupted."""

_b, _c, _d, _p = branches.c, compactions.c, drafts.c, draft_parts.c
_THIS = (
    *of_branch(_d),
    _d.id == bindparam("this"),
)
_PARTS = and_(_p.session_key == _d.session_key, _p.branch == _d.branch)

_CLAIM = Statement(
    update(branches)
    .where(*of_branch(_b), _b.draft.is_(None))
    .values(draft=bindparam("this"))
    .returning(_b.next_position, _b.next_compaction, _b.instead_of)
)
_BEGUN = Statement(
    select(_b.next_position, _d.created_at)
    .where(*of_branch(_b), _b.draft == bindparam("this"))
    .where(_d.session_key == _b.session_key, _d.branch == _b.branch, _d.id == _b.draft)
    .where(_d.parts == 0, _d.lease_until.is_not(None))
)
_SHORTENED = Statement(
    select(func.max(_c.created_at), func.max(_c.undone_at)).where(*of_branch(_c))
)
_RELEASE = Statement(
    update(branches)
    .where(*of_branch(_b), _b.draft == bindparam("this"))
    .values(draft=None)
    .returning(_b.instead_of)
)
_NOTE_CURRENT = Statement(
    update(branches).where(*of_branch(_b)).values(instead_of=bindparam("was"))
)
_INSERT = Statement(insert(drafts))
_DELETE = Statement(delete(drafts).where(*_THIS))
_GET = Statement(
    select(
        _b.draft,
        _b.next_position,
        _d.id,
        _d.header,
        _d.sent,
        _d.idempotency_key,
        _d.created_at,
        _d.lease_until,
        _d.stop,
        _d.parts,
        _p.body,
    )
    .select_from(
        branches.outerjoin(
            drafts,
            and_(_d.session_key == _b.session_key, _d.branch == _b.branch, _d.id == _b.draft),
        ).outerjoin(draft_parts, _PARTS)
    )
    .where(*of_branch(_b))
    .order_by(_p.part)
)
_COUNT = Statement(
    update(drafts)
    .where(*_THIS, _d.lease_until.is_not(None), _d.parts == bindparam("behind"))
    .values(parts=bindparam("last"), lease_until=bindparam("until"))
    .returning(_d.parts)
)
_COUNTED = Statement(select(_d.parts).where(*_THIS, _d.lease_until.is_not(None)))
_INSERT_PARTS = Statement(insert(draft_parts))
_RENEW = Statement(
    update(drafts)
    .where(*_THIS, _d.lease_until.is_not(None))
    .values(lease_until=bindparam("until"))
    .returning(_d.branch)
)
_ARRIVED = Statement(
    select(_d.id, _b.next_position, _d.lease_until, _d.followed_until, _p.body)
    .select_from(
        branches.join(
            drafts,
            and_(_d.session_key == _b.session_key, _d.branch == _b.branch, _d.id == _b.draft),
        ).outerjoin(draft_parts, and_(_PARTS, _p.part > bindparam("after")))
    )
    .where(*of_branch(_b))
    .order_by(_p.part)
)
_FOLLOW = Statement(
    update(drafts).where(*_THIS).values(followed_until=bindparam("until")).returning(_d.branch)
)
_STOP = Statement(
    update(drafts)
    .where(
        *of_branch(_d),
        _d.lease_until > bindparam("now"),
        _d.lease_until <= bindparam("latest"),
    )
    .values(stop=func.coalesce(_d.stop, bindparam("reason")))
    .returning(_d.branch)
)
_SIGNALS = Statement(select(_d.stop, _d.followed_until).where(*_THIS, _d.lease_until.is_not(None)))
_TAKE_OVER = Statement(update(drafts).where(*_THIS).values(lease_until=None).returning(_d.branch))
_UNDER_KEY = Statement(
    select(_d.branch).where(
        _d.session_key == bindparam("key"), _d.idempotency_key == bindparam("idempotency_key")
    )
)
_USED = Statement(
    select(messages.c.position).where(
        messages.c.session_key == bindparam("key"),
        messages.c.idempotency_key == bindparam("idempotency_key"),
    )
)


def lease_end(now: int) -> int:
    """Return until when a lease lasts that is given now.

    Leases are times of the clock. One that ends later than two from now on was given before the
    clock was set back, and has run out; a second one is what clocks of two machines may differ.
    """
    return now + int(LEASE * 1_000_000)


def columns_of(draft: DraftRow, *, until: int | None) -> dict[str, Any]:
    """Return the columns of a draft that is kept until then; None: its recorder is gone."""
    header: dict[str, Any] = {}
    if draft.origin is not None:
        header["origin"] = codec.to_json(draft.origin)
    if draft.annotations is not None:
        annotations_json(draft.annotations, most=MOST_OF_DRAFT)
        header["annotations"] = draft.annotations
    if draft.asked is not None:
        header["asked"] = list(draft.asked)
    return {
        "session_key": draft.session_key,
        "branch": draft.branch,
        "id": draft.id,
        "header": codec.dumps(header),
        "sent": None if draft.request_facts is None else codec.dumps(draft.request_facts),
        "idempotency_key": draft.idempotency_key,
        "parts": len(draft.parts),
        "lease_until": until,
        "created_at": draft.created_at,
        "stop": draft.stop,
        "followed_until": None,
    }


def begin(connection: Connection, row: Mapping[str, Any]) -> tuple[int, int] | None:
    """Write a draft; return the position that it will have, and its time.

    That time is after each compaction made or undone before, also if the clock was set back: it
    decides which were in force at the request. The same draft is not written a second time: a
    connection may have been lost after the first. None means that the branch is not there or has
    another draft, or that its key was used.
    """
    this = {"key": row["session_key"], "of": row["branch"], "this": row["id"]}
    if _key_is_used(connection, row["session_key"], row["idempotency_key"]):
        return _begun(connection, this)
    claimed = _CLAIM.row(connection, this)
    if claimed is None:
        return _begun(connection, this)
    position, next_compaction, instead_of = claimed
    created_at: int = row["created_at"]
    if next_compaction > 1:
        ((made, undone),) = _SHORTENED.rows(
            connection, {"key": row["session_key"], "of": row["branch"]}
        )
        created_at = max(created_at, (made or 0) + 1, (undone or 0) + 1)
    _INSERT.run(connection, {**row, "created_at": created_at})
    if instead_of is not None:
        was = sessions.by_key(connection, this["key"]).current_branch
        _NOTE_CURRENT.run(connection, {**this, "was": was})
        sessions.change(connection, this["key"], "current_branch", this["of"])
    return position, created_at


def put(connection: Connection, draft: DraftRow) -> None:
    """Write a draft as one whose recorder is gone; its branch has no other."""
    _CLAIM.row(connection, _of(draft))
    _INSERT.run(connection, columns_of(draft, until=None))
    _write_texts(connection, draft, 1, draft.parts)


def _write_texts(connection: Connection, draft: DraftRow, first: int, parts: Sequence[str]) -> None:
    place = {"session_key": draft.session_key, "branch": draft.branch}
    _INSERT_PARTS.many(
        connection,
        [{**place, "part": number, "body": text} for number, text in enumerate(parts, first)],
    )


def _begun(connection: Connection, this: Mapping[str, Any]) -> tuple[int, int] | None:
    row = _BEGUN.row(connection, this)
    return None if row is None else (row[0], row[1])


def _key_is_used(connection: Connection, key: int, idempotency_key: str | None) -> bool:
    params = {"key": key, "idempotency_key": idempotency_key}
    return idempotency_key is not None and bool(
        _USED.rows(connection, params) or _UNDER_KEY.rows(connection, params)
    )


def get(connection: Connection, key: int, branch: int, *, now: int) -> DraftRow | None:
    """Return the draft of a branch with all of its parts, if there is one."""
    check_branch(branch)
    found = _GET.rows(connection, {"key": key, "of": branch})
    if not found:
        raise no_branch(branch)
    live, position, id_, header, sent, idempotency_key, created_at, lease, stop, count, _ = found[0]
    if live is None:
        return None
    parts = tuple([line[-1] for line in found if line[-1] is not None])
    if id_ is None or count != len(parts):
        raise CorruptRow(f"the draft of branch {branch} is not whole")
    try:
        fields = parsed(header)
        return DraftRow(
            session_key=key,
            branch=branch,
            id=id_,
            position=position,
            origin=codec.from_json(Origin, fields["origin"]) if "origin" in fields else None,
            annotations=fields.get("annotations"),
            request_facts=None if sent is None else parsed(sent),
            idempotency_key=idempotency_key,
            created_at=created_at,
            asked=Asked(*fields["asked"]) if "asked" in fields else None,
            parts=parts,
            expired=not _is_live(lease, now),
            stop=stop,
        )
    except UNREADABLE:
        raise CorruptRow(f"the draft of branch {branch} cannot be read back") from None


def _is_live(lease: int | None, now: int) -> bool:
    return lease is not None and now < lease <= lease_end(lease_end(now))


def arrived(
    connection: Connection, key: int, branch: int, *, after: int, now: int
) -> Arrival | None:
    """Return what has arrived of a branch's draft after so many parts."""
    found = _ARRIVED.rows(connection, {"key": key, "of": branch, "after": after})
    if not found:
        return None
    id_, position, lease, followed_until, _ = found[0]
    return Arrival(
        id=id_,
        position=position,
        parts=tuple([line[-1] for line in found if line[-1] is not None]),
        is_live=_is_live(lease, now),
        followed_until=followed_until or 0,
    )


def follow(connection: Connection, key: int, branch: int, draft: str, *, until: int) -> None:
    """Note until when a draft is followed from another process."""
    _FOLLOW.row(connection, {"key": key, "of": branch, "this": draft, "until": until})


def stop(connection: Connection, key: int, branch: int, reason: str, *, now: int) -> bool:
    """Ask the recorder of a branch's live draft to stop; False without one. The first counts."""
    given = {"key": key, "of": branch, "reason": reason}
    row = _STOP.row(connection, {**given, "now": now, "latest": lease_end(lease_end(now))})
    return row is not None


def signals(connection: Connection, draft: DraftRow) -> tuple[str | None, int] | None:
    """Return why a draft is to stop and until when it is followed; None: it is its own no more."""
    row = _SIGNALS.row(connection, _of(draft))
    return None if row is None else (row[0], row[1] or 0)


def not_counted(
    connection: Connection, key: int, branch: BranchRow, position: int
) -> NotFound | None:
    """Return the error of a draft at a position, which has no count; None without a draft there."""
    if position != branch.next_position:
        return None
    found = get(connection, key, branch.number, now=0)
    if found is None or not found.parts:
        return None
    return NotFound(
        f"the reply at position {position} is still a draft, and has no count",
        hint="it is counted when it has ended: the next append() ends it",
    )


def under_key(connection: Connection, key: int, idempotency_key: str) -> list[int]:
    """Return the branches on which a draft has this idempotency key."""
    params = {"key": key, "idempotency_key": idempotency_key}
    return [branch for (branch,) in _UNDER_KEY.rows(connection, params)]


def _of(draft: DraftRow) -> dict[str, Any]:
    return {"key": draft.session_key, "of": draft.branch, "this": draft.id}


def write_parts(connection: Connection, new: NewParts, *, until: int | None) -> bool:
    """Write what has arrived of a draft, and until when its recorder lives; None: it is gone.

    False where it is its recorder's no more. Parts that are there already were written by an
    earlier try.
    """
    draft, first, parts = new.draft, new.first, new.parts
    if not all(map(fits_text_column, parts)):
        raise InvalidCall("a part is JSON text that every engine keeps", hint="use codec.dumps")
    if not parts:
        return _RENEW.row(connection, {**_of(draft), "until": until}) is not None
    last = first - 1 + len(parts)
    count = {"behind": first - 1, "last": last, "until": until}
    if _COUNT.row(connection, {**_of(draft), **count}) is None:
        counted = _COUNTED.row(connection, _of(draft))
        if counted is None:
            return False
        if not first <= counted[0] <= last:
            raise InvalidCall(f"part {first} does not follow part {counted[0]}")
        there = counted[0] + 1 - first
        return write_parts(connection, NewParts(draft, counted[0] + 1, parts[there:]), until=until)
    _write_texts(connection, draft, first, parts)
    return True


def take_over(connection: Connection, draft: DraftRow) -> DraftRow | None:
    """Close a draft to its recorder and return it as it then is; None where it has ended."""
    if _TAKE_OVER.row(connection, _of(draft)) is None:
        return None
    found = get(connection, draft.session_key, draft.branch, now=draft.created_at)
    if found is None or found.id != draft.id:
        raise CorruptRow(f"branch {draft.branch} does not know its draft")
    used = {"key": draft.session_key, "idempotency_key": found.idempotency_key}
    if found.idempotency_key is not None and _USED.rows(connection, used):
        # Its attempt has succeeded elsewhere; what arrived here is kept without the name.
        return replace(found, idempotency_key=None)
    return found


def drop(connection: Connection, draft: DraftRow) -> bool:
    """Remove a draft and its parts; False where it has ended."""
    released = _RELEASE.row(connection, _of(draft))
    if released is None:
        return False
    _DELETE.run(connection, _of(draft))
    (was,), key = released, draft.session_key
    if was is not None and sessions.by_key(connection, key).current_branch == draft.branch:
        sessions.change(connection, key, "current_branch", was)
    return True
