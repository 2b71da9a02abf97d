"""The SQL of imports: what is there already, and the rows that no append writes.

A session that is imported is marked until it is whole (``sessions.IMPORTING``), so that
nobody lists half of it, and so that whoever goes on with it knows that what comes last is
still to be written. A row that is there already is compared, never written twice. Where its
lines turn out to be wrong, what was begun with them is taken back: the right ones would not
fit to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, func, insert, select, update

from reasoning_store import codec
from reasoning_store.errors import Conflict, ReasoningStoreError, UsageError
from reasoning_store.ledger import (
    auditing,
    branches,
    columns,
    drafts,
    erasing,
    profiles,
    sessions,
)
from reasoning_store.ledger.lines import BranchLine, SessionLine
from reasoning_store.ledger.sql import Sql
from reasoning_store.ledger.tables import branches as branches_table
from reasoning_store.ledger.tables import draft_parts, messages, settings_profiles
from reasoning_store.ledger.tables import drafts as drafts_table
from reasoning_store.ledger.tables import sessions as sessions_table
from reasoning_store.ledger.values import DraftRow, SessionRow

_s, _m, _h = sessions_table.c, messages.c, branches_table.c
_p = settings_profiles.c
_BRANCH = (_h.session_key == bindparam("key"), _h.branch == bindparam("of"))
_STATUS = Sql(select(_s.archived).where(_s.session_key == bindparam("key")))
_THERE = Sql(
    select(_m.position, _m.id, _m.digest, _m.erased_at)
    .where(_m.session_key == bindparam("key"), _m.branch == bindparam("of"))
    .where(_m.position.between(bindparam("first"), bindparam("last")))
    .order_by(_m.position)
)
_FINISH = Sql(
    update(sessions_table)
    .where(_s.session_key == bindparam("key"), _s.archived == sessions.IMPORTING)
    .values(
        {
            name: bindparam(name)
            for name in ("current_branch", "updated_at", "erased_at", "crossed", "archived")
        }
    )
    .returning(_s.session_key)
)
_SUMS = {"sum_reasoning": "reported", "sum_counted": "counted", "sum_unreported": "unreported"}
"""What a session has used of its reasoning budget, and how a line calls it."""
_USED = Sql(
    update(sessions_table)
    .where(_s.session_key == bindparam("key"))
    .values({name: bindparam(name) for name in _SUMS})
)
_NEXT = update(branches_table).where(*_BRANCH).values(next_compaction=bindparam("number"))
_SET_NEXT = Sql(_NEXT)
NEXT_COMPACTION = Sql(_NEXT.where(_h.next_compaction < bindparam("number")))
"""Its number is this at least."""
_HEAD = Sql(select(_h.next_position, _h.draft).where(*_BRANCH).with_for_update())
_CLAIM = Sql(update(branches_table).where(*_BRANCH).values(draft=bindparam("this")))
_NAMED = Sql(
    select(_m.position)
    .where(_m.session_key == bindparam("key"), _m.branch == bindparam("of"))
    .where(_m.id == bindparam("this"))
    .limit(1)
)
_DRAFTS = Sql(
    select(func.count())
    .select_from(drafts_table)
    .where(drafts_table.c.session_key == bindparam("key"))
)
_INSERT_DRAFT = Sql(insert(drafts_table))
_INSERT_PARTS = Sql(insert(draft_parts))
_PROFILE = Sql(
    select(_p.updated_at).where(_p.session_key == bindparam("key"), _p.name == bindparam("name"))
)


@dataclass(slots=True)
class Begun:
    """What an import wrote of a session that it made."""

    branches: int = 1
    messages: int = 0
    drafts: int = 0


class Misfit(Exception):
    """One of several that cannot be taken in: its number, or its position, and what is told."""

    def __init__(self, number: int, error: ReasoningStoreError) -> None:
        self.number = number
        self.error = error


def session(
    connection: Connection, owner: str, line: SessionLine, *, now: int
) -> tuple[SessionRow, Begun | None]:
    """Return the session of a line, made where there is none."""
    begun = None
    row = sessions.new(
        owner,
        line.id,
        encoding=line.encoding,
        title=line.title,
        metadata=line.metadata,
        settings=line.settings,
        created_at=now if line.created_at is None else line.created_at,
    )
    if _STATUS.row(connection, {"key": row["session_key"]}) is None:
        profile = None
        if line.profile is not None:
            profile = columns.name(line.profile, "the name of a settings profile")
        marked = {**row, "archived": sessions.IMPORTING, "profile": profile}
        sessions.create(connection, marked)
        begun = Begun()
    return sessions.get(connection, owner, line.id), begun


def take_back(connection: Connection, key: int, begun: Begun) -> None:
    """Remove a session that an import began; not one that is whole, or has more in it.

    Whoever knows its id could write to it meanwhile, and what he wrote is his.
    """
    erasing.lock(connection, key)
    lineages = branches.all_of(connection, key)
    messages = sum(lineage.next_position - lineage.first for lineage in lineages)
    ((drafts,),) = _DRAFTS.rows(connection, {"key": key})
    found = Begun(branches=len(lineages), messages=messages, drafts=drafts)
    if found == begun and is_importing(connection, key):
        erasing.remove(connection, key)


def is_importing(connection: Connection, key: int) -> bool:
    return _STATUS.row(connection, {"key": key}) == (sessions.IMPORTING,)


def finish(connection: Connection, key: int, line: SessionLine) -> None:
    """Make a session that was imported whole one like any other; a second time is nothing."""
    updated_at = line.updated_at
    if updated_at is None:
        updated_at = sessions.by_key(connection, key).updated_at
    branches.get(connection, key, line.current_branch)
    done = _FINISH.row(
        connection,
        {
            "key": key,
            "current_branch": line.current_branch,
            "updated_at": updated_at,
            "erased_at": line.erased_at,
            "crossed": codec.dumps(line.crossed) if line.crossed else None,
            "archived": int(line.archived),
        },
    )
    used = (line.reported, line.counted, line.unreported)
    if done is not None and None not in used:
        _USED.run(connection, {"key": key, **dict(zip(_SUMS, used, strict=True))})
        for name, what in auditing.misspent(connection, key):
            raise UsageError(f"{_SUMS[name]}: {what}")


def branch(connection: Connection, key: int, line: BranchLine, *, now: int) -> bool:
    """Make the branch of a line; False where it is there already."""
    this = {"key": key, "of": line.number}
    for found in branches.all_of(connection, key):
        if found.number == line.number:
            if (found.parent, found.first) != (line.parent, line.first):
                raise Conflict("another branch of this number is there")
            if is_importing(connection, key):
                NEXT_COMPACTION.run(connection, {**this, "number": line.next_compaction})
            return False
    made = branches.fork(
        connection,
        key,
        0 if line.parent is None else line.parent,
        line.first,
        created_at=now if line.created_at is None else line.created_at,
    )
    if made != line.number:
        raise Conflict(f"the next branch is number {made}")
    _SET_NEXT.run(connection, {**this, "number": line.next_compaction})
    return True


def there(
    connection: Connection, key: int, branch: int, first: int, last: int
) -> dict[int, tuple[str, bytes, int | None]]:
    """Return id, digest and time of erasure of the messages that are there already."""
    span = {"key": key, "of": branch, "first": first, "last": last}
    return {
        position: (id_, digest, at) for position, id_, digest, at in _THERE.rows(connection, span)
    }


def draft(connection: Connection, row: DraftRow) -> bool:
    """Write a draft, as one whose recorder is gone.

    False where its position is past: the draft is there already, or has become a message, or
    the branch has gone on without it. Of one that says nothing there is nothing to write.
    """
    this = {"key": row.session_key, "of": row.branch, "this": row.id}
    head = _HEAD.row(connection, this)
    if head is None:
        raise branches.no_branch()
    next_position, live = head
    if not row.parts or live == row.id or next_position != row.position:
        return False
    if _NAMED.row(connection, this) is not None:
        return False
    if live is not None:
        raise Conflict("another reply is being recorded on this branch")
    _CLAIM.run(connection, this)
    _INSERT_DRAFT.run(connection, drafts.columns_of(row, until=None))
    place = {"session_key": row.session_key, "branch": row.branch}
    _INSERT_PARTS.many(
        connection,
        [{**place, "part": part, "body": text} for part, text in enumerate(row.parts, 1)],
    )
    return True


def profile(connection: Connection, row: Mapping[str, Any]) -> bool:
    """Write a settings profile, unless one of its name is as new."""
    found = _PROFILE.row(connection, {"key": row["session_key"], "name": row["name"]})
    if found is not None and found[0] >= row["updated_at"]:
        return False
    profiles.put(connection, row)
    return True
