"""A session of an import, written in one transaction.

One that is absent is loaded; of one that is there, only new content is appended. Anything else is a
Conflict, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Connection, bindparam, func, select, update

from reasoning_store.conversation import codec
from reasoning_store.conversation.errors import Conflict, InvalidCall
from reasoning_store.ledger import (
    appends,
    audit_session,
    branches,
    profiles,
    removal,
    sessions,
    stored_compactions,
    stored_drafts,
    withholdings,
)
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.records import BranchRow, DraftRow
from reasoning_store.ledger.tables import branches as branches_table
from reasoning_store.ledger.tables import compactions as compactions_table
from reasoning_store.ledger.tables import in_range, messages, of_branch, settings_profiles
from reasoning_store.ledger.tables import sessions as sessions_table
from reasoning_store.ledger.transfer.import_ import (
    IncomingBranch,
    IncomingMessage,
    IncomingSession,
    LineError,
    at_line,
)
from reasoning_store.ledger.transfer.lines import SessionLine
from reasoning_store.ledger.view_records import CompactionRow

_AT_ONCE = 64
"""How many messages are appended at a time."""
_s, _m, _h = sessions_table.c, messages.c, branches_table.c
_p, _c = settings_profiles.c, compactions_table.c
_EXISTS = Statement(select(_s.encoding).where(_s.session_key == bindparam("key")))
_STORED = Statement(
    select(_m.position, _m.id, _m.digest, _m.erased_at).where(*in_range(_m)).order_by(_m.position)
)
_SUMS = {"sum_reasoning": "reported", "sum_counted": "counted", "sum_unreported": "unreported"}
"""The columns of a session's reasoning budget, and the fields of its line."""
_SET_FIELDS = Statement(
    update(sessions_table)
    .where(_s.session_key == bindparam("key"))
    .values(
        {name: bindparam(name) for name in ("current_branch", "erased_at", "crossed", "archived")}
        | {
            name: func.coalesce(bindparam(name, type_=BigInteger), _s[name])
            for name in ("updated_at", *_SUMS)
        }
    )
)
_NEXT = update(branches_table).where(*of_branch(_h)).values(next_compaction=bindparam("number"))
_SET_NEXT_COMPACTION = Statement(_NEXT)
_NEXT_COMPACTION = Statement(_NEXT.where(_h.next_compaction < bindparam("number")))
"""Raise the number of the next compaction to this one."""
_BRANCH_END = Statement(select(_h.next_position, _h.draft).where(*of_branch(_h)).with_for_update())
_OF_ID = Statement(
    select(_m.position).where(*of_branch(_m)).where(_m.id == bindparam("this")).limit(1)
)
_PROFILE = Statement(
    select(_p.updated_at).where(_p.session_key == bindparam("key"), _p.name == bindparam("name"))
)
_CHANGE_COMPACTION = Statement(
    update(compactions_table)
    .where(*of_branch(_c), _c.number == bindparam("this"))
    .values(superseded_by=bindparam("by"), undone_at=bindparam("undone"))
)


class Loaded(NamedTuple):
    """How many messages were written, and how many were there before."""

    new: int
    already: int


def load_profile(connection: Connection, row: Mapping[str, Any]) -> None:
    """Write a settings profile, unless one of its name is as new."""
    found = _PROFILE.row(connection, {"key": row["session_key"], "name": row["name"]})
    if found is None or found[0] < row["updated_at"]:
        profiles.put(connection, row)


def encoding_of(connection: Connection, key: int) -> str | None:
    """Return the encoding of a stored session; None without one."""
    found = _EXISTS.row(connection, {"key": key})
    return None if found is None else found[0]


def load(connection: Connection, owner: str, incoming: IncomingSession) -> Loaded:
    """Write a session, or those of its lines that are not there yet."""
    key = incoming.key
    encoding = encoding_of(connection, key)
    is_new = encoding is None
    if is_new:
        begun_at = incoming.branches[1].line.created_at
        sessions.create(connection, incoming.row, begun_at=begun_at)
    elif encoding != incoming.encoding:
        raise Conflict("a session of this id was made meanwhile", hint="import again")
    removal.lock(connection, key)
    sessions.get(connection, owner, incoming.line.id)
    new = 0
    for branch in incoming.branches.values():
        with at_line(branch.number):
            _load_branch(connection, key, branch, now=incoming.now)
        new += _load_messages(connection, key, branch)
    for branch in incoming.branches.values():
        _load_compactions(connection, key, branch)
        if branch.draft is not None:
            with at_line(branch.draft_number):
                _load_draft(connection, branch.draft)
    if is_new:
        with at_line(incoming.number):
            _set_fields(connection, key, incoming.line, incoming.recounted)
    total = sum(len(branch.messages) for branch in incoming.branches.values())
    return Loaded(new, total - new)


def _set_fields(connection: Connection, key: int, line: SessionLine, recounted: int) -> None:
    """Set the fields that appends do not set; refuse sums that the messages do not give."""
    counted = None if line.counted is None else max(line.counted + recounted, 0)
    used = (line.reported, counted, line.unreported)
    if None in used:
        used = (None, None, None)
    _SET_FIELDS.run(
        connection,
        {
            "key": key,
            "current_branch": line.current_branch,
            "updated_at": line.updated_at,
            "erased_at": line.erased_at,
            "crossed": codec.dumps(line.crossed) if line.crossed else None,
            "archived": int(line.archived),
            **dict(zip(_SUMS, used, strict=True)),
        },
    )
    for name, detail in audit_session.budget_problems(connection, key):
        raise InvalidCall(f"{_SUMS[name]}: {detail}")


def _load_branch(connection: Connection, key: int, branch: IncomingBranch, *, now: int) -> None:
    line = branch.line
    lineages = {one.number: one for one in branches.all_of(connection, key)}
    stored = lineages.get(line.number)
    this = {"key": key, "of": line.number, "number": line.next_compaction}
    if stored is None:
        made = branches.add_branch(
            connection,
            key,
            0 if line.parent is None else line.parent,
            line.first,
            created_at=now if line.created_at is None else line.created_at,
            instead_of=line.instead_of,
        )
        if made != line.number:
            raise Conflict(f"the next branch is number {made}")
        # A fork begins with the number of its parent; its line has its own.
        _SET_NEXT_COMPACTION.run(connection, this)
    elif (stored.parent, stored.first) != (line.parent, line.first):
        raise Conflict("another branch of this number is there")
    else:
        _NEXT_COMPACTION.run(connection, this)


def _load_messages(connection: Connection, key: int, branch: IncomingBranch) -> int:
    """Append the messages that are not there; return how many."""
    number, given = branch.line.number, branch.messages
    if not given:
        return 0
    span = {"key": key, "of": number, "first": given[0].position, "last": given[-1].position}
    stored = {position: row for position, *row in _STORED.rows(connection, span)}
    new: list[IncomingMessage] = []
    for message in given:
        if message.position in stored:
            _refuse_another(message, number, *stored[message.position])
        else:
            new.append(message)
    for first in range(0, len(new), _AT_ONCE):
        _append(connection, key, number, new[first : first + _AT_ONCE])
    for message in given:
        for row in message.withheld:
            withholdings.put(connection, key, row, again=False)
    return len(new)


def _refuse_another(
    message: IncomingMessage, branch: int, id: str, digest: bytes, erased_at: int | None
) -> None:
    columns = message.encoded.columns
    if digest == columns["digest"] and not (message.has_id and id != columns["id"]):
        return
    what = "another message is" if erased_at is None else "a message was erased"
    raise LineError(message.number, Conflict(f"{what} at {message.position} of branch {branch}"))


def _append(connection: Connection, key: int, branch: int, new: Sequence[IncomingMessage]) -> None:
    encoded = [message.encoded for message in new]
    after = new[0].position - 1
    branch_row = _BRANCH_END.row(connection, {"key": key, "of": branch})
    live = None if branch_row is None else branch_row[1]
    # A draft that was exported, and is the message now that it became.
    ending = live if live == encoded[0].columns["id"] else None
    made = appends.append(
        connection,
        key,
        branch,
        encoded,
        after=after,
        ending=ending,
        now=max(one.columns["created_at"] for one in encoded),
    )
    if made is None:
        way = "something else is" if live is None else "a reply is being recorded"
        error = Conflict(f"{way} after message {after} of branch {branch}")
        raise LineError(new[0].number, error)


def _load_draft(connection: Connection, row: DraftRow) -> None:
    """Write a draft as one whose recorder is gone.

    Nothing where its position is past: it is there already, has become a message, or the
    branch has gone on without it.
    """
    this = {"key": row.session_key, "of": row.branch, "this": row.id}
    branch_row = _BRANCH_END.row(connection, this)
    if branch_row is None:
        raise branches.no_branch(row.branch)
    next_position, live = branch_row
    if not row.parts or live == row.id or next_position != row.position:
        return
    if _OF_ID.row(connection, this) is not None:
        return
    if live is not None:
        raise Conflict("another reply is being recorded on this branch")
    stored_drafts.put(connection, row)


def _load_compactions(connection: Connection, key: int, branch: IncomingBranch) -> None:
    """Write the compactions of a branch that are not there; none, if others are.

    One that is there stays, but for its undoing, which is for good. The one that supersedes it
    follows from all of them.
    """
    incoming = branch.compactions
    if not incoming:
        return
    lineage = branches.get(connection, key, branch.line.number)
    rows = [one.row for one in incoming.values()]
    for number, detail in stored_compactions.placement_problems(rows, lineage.next_position):
        raise LineError(incoming[number].number, InvalidCall(f"number {number} {detail}"))
    stored = {row.number: row for row in stored_compactions.all_of(connection, key, lineage.number)}
    every = dict(stored)
    for row in rows:
        with at_line(incoming[row.number].number):
            every[row.number] = _merged(row, stored.get(row.number))
            if row.number not in stored:
                _check_turns(connection, key, lineage, row)
                if not stored.keys() <= incoming.keys():
                    raise Conflict("other compactions are there")
    by = stored_compactions.superseders(every.values())
    every = {number: replace(row, superseded_by=by.get(number)) for number, row in every.items()}
    this = {"key": key, "of": lineage.number}
    new = [row for number, row in every.items() if number not in stored]
    if new:
        _NEXT_COMPACTION.run(connection, {**this, "number": max(row.number for row in new) + 1})
    stored_compactions.add(connection, key, new)
    _CHANGE_COMPACTION.many(
        connection,
        [
            {**this, "this": number, "by": row.superseded_by, "undone": row.undone_at}
            for number, row in sorted(every.items())
            if number in stored and row != stored[number]
        ],
    )


def _merged(row: CompactionRow, stored: CompactionRow | None) -> CompactionRow:
    """Return a compaction as it is to be stored; refuse another one of its number."""
    if stored is None:
        return row
    if not _is_same(row, stored):
        raise Conflict("another compaction of this number is there")
    return stored if stored.undone_at is not None else replace(stored, undone_at=row.undone_at)


def _is_same(one: CompactionRow, other: CompactionRow) -> bool:
    """Whether two of one number have the same range and the same summary."""
    texts = [row.message if row.kind == "summary" else None for row in (one, other)]
    return (one.first, one.last, texts[0]) == (other.first, other.last, texts[1])


def _check_turns(connection: Connection, key: int, lineage: BranchRow, row: CompactionRow) -> None:
    """Refuse a summary of a part of a turn.

    The message that began the turn after it may be erased by now. A summary that a fork took
    along may end within a turn of the fork's, or where the fork has no message yet.
    """
    if row.kind == "clearing":
        return
    after = row.last + 1
    taken_along = row.copied_from is not None and after <= lineage.first
    ends = [row.first] if taken_along else [row.first, after]
    if ends[-1] < lineage.next_position:
        begins = [branches.starts_turn(connection, key, lineage, at) for at in ends]
        if begins[0] and (begins[-1] or _is_erased(connection, key, lineage, after)):
            return
    raise InvalidCall("first, last: are not the ends of whole turns")


def _is_erased(connection: Connection, key: int, lineage: BranchRow, position: int) -> bool:
    branch = branches.segment_at(lineage, position).branch
    span = {"key": key, "of": branch, "first": position, "last": position}
    return any(erased_at is not None for *_, erased_at in _STORED.rows(connection, span))
