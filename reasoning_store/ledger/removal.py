"""The SQL of erasing: rows emptied or removed, and all that was made from them.

A message that is erased leaves its row, with role, position, id and time, and nothing else; one
whose reasoning is erased leaves its other blocks. Summaries whose range holds them go; a clearing
holds nothing of them, and stays. The new rows are computed before (``Change``); here one
transaction locks the session, finds the rows that are still as they were read, and writes.

The number of an idempotency key stays (``keys.key_digest``): it reveals nothing, and a late repeat
must not bring back erased text. Used budget stays used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import (
    Connection,
    Integer,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    literal_column,
    null,
    select,
    update,
)

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import Counts, Message, TextBlock
from reasoning_store.conversation.errors import CorruptRow
from reasoning_store.conversation.message_flags import HAS_CALL, HAS_RESPONSE, RECORDED
from reasoning_store.conversation.tool_pairs import ToolBlock, tool_blocks
from reasoning_store.ledger import branches, decode, erased_pairs, sessions
from reasoning_store.ledger import encode as columns
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.erased_pairs import ToolRow
from reasoning_store.ledger.message_columns import CHANGED_BY_ERASURE
from reasoning_store.ledger.owners import HIGHEST, OF_OWNER, owner_params
from reasoning_store.ledger.records import BranchRow, Deleted, MessagePlace, NewMessage, StoredRow
from reasoning_store.ledger.searching import search_rows
from reasoning_store.ledger.tables import (
    at_position,
    bodies,
    compactions,
    drafts,
    echoes,
    has_flag,
    in_range,
    messages,
    of_branch,
    of_same_message,
    origins,
    range_params,
    settings_profiles,
    thinking_blocks,
    withholdings,
)
from reasoning_store.ledger.tables import branches as branches_table
from reasoning_store.ledger.tables import sessions as sessions_table

_m, _b, _t, _c, _o = messages.c, bodies.c, thinking_blocks.c, compactions.c, origins.c
_s, _h = sessions_table.c, branches_table.c


_LOCK = Statement(
    select(_h.branch)
    .where(_h.session_key == bindparam("key"))
    .order_by(_h.branch)
    .with_for_update()
)
_DELETE_NUMBERS = Statement(
    delete(echoes).where(*of_branch(echoes.c), echoes.c.position >= bindparam("position"))
)
# Those of a message that only loses thoughts, too: its other blocks have other indexes then.
_DELETE_WITHHELD = Statement(delete(withholdings).where(*at_position(withholdings.c)))
_SET_ERASED_AT = Statement(
    update(sessions_table)
    .where(_s.session_key == bindparam("key"))
    .values(
        # Behind all that was said, whatever the clock says; and it never repeats.
        erased_at=case(
            (
                and_(_s.erased_at >= bindparam("now"), _s.erased_at >= _s.updated_at),
                _s.erased_at + 1,
            ),
            (_s.updated_at > bindparam("now"), _s.updated_at),
            else_=bindparam("now"),
        )
    )
)
_TOOL_BODIES = Statement(
    select(_b.position, _m.role, _b.data)
    .join_from(bodies, messages, and_(*of_same_message(_m, _b)))
    .where(*in_range(_m), has_flag(_m, HAS_CALL | HAS_RESPONSE))
    .order_by(_b.position)
)
_ROLE = Statement(select(_m.role).where(*at_position(_m)))
_CURRENT = Statement(
    select(_m.position, _m.digest, _m.status, _m.shape, _m.origin)
    .where(*in_range(_m))
    .order_by(_m.position)
)
_SET_COLUMNS = Statement(
    update(messages)
    .where(*at_position(_m))
    .values(
        {name: bindparam(name) for name in (*CHANGED_BY_ERASURE, "erased_at")}
        # Its request stays with a message that loses its reasoning only.
        | {
            "flags": bindparam("flags", Integer).op("|")(
                _m.flags.op("&")(bindparam("kept", Integer))
            )
        }
    )
)
_EMPTY_COLUMNS = Statement(
    update(messages).where(*at_position(_m)).values(clearable=0, annotations=null())
)
_EMPTY_BODY = Statement(
    update(bodies).where(*at_position(_b)).values(text=None, data=None, sent=None)
)
_SET_BODY = Statement(
    update(bodies).where(*at_position(_b)).values(text=bindparam("text"), data=bindparam("data"))
)
_DELETE_THINKING = Statement(delete(thinking_blocks).where(*at_position(_t)))
_SUMMARIES = Statement(
    select(_c.branch, _c.number, _c.first, _c.last).where(
        _c.session_key == bindparam("key"), _c.kind == literal_column("'summary'")
    )
)
_DELETE_SUMMARY = Statement(
    delete(compactions).where(*of_branch(_c), _c.number == bindparam("number"))
)
_RESTORE_SUPERSEDED = Statement(
    update(compactions)
    .where(*of_branch(_c), _c.superseded_by == bindparam("number"))
    .values(superseded_by=None)
)
_DELETE_UNUSED_ORIGIN = Statement(
    delete(origins).where(
        _o.session_key == bindparam("key"),
        _o.number == bindparam("number"),
        ~exists().where(_m.session_key == bindparam("key"), _m.origin == bindparam("number")),
    )
)
_COUNT_ERASED = Statement(
    select(func.count()).select_from(messages).where(*in_range(_m), _m.erased_at.is_not(None))
)
_COUNT_MESSAGES = Statement(
    select(func.count())
    .select_from(messages)
    .where(_m.session_key == bindparam("key"), _m.status != "erased")
)
_COUNT_THINKING = Statement(
    select(func.count()).select_from(thinking_blocks).where(_t.session_key == bindparam("key"))
)
_DELETE_SESSION = Statement(delete(sessions_table).where(_s.session_key == bindparam("key")))
_DELETE_BRANCHES = Statement(delete(branches_table).where(_h.session_key == bindparam("key")))
_DELETE_ORIGINS = Statement(delete(origins).where(_o.session_key == bindparam("key")))
_SESSIONS_OF_OWNER = Statement(
    select(_s.session_key).where(
        *OF_OWNER,
        _s.updated_at < bindparam("before"),
    )
)
_IDLE = Statement(
    select(_s.session_key).where(
        _s.session_key == bindparam("key"),
        _s.updated_at < bindparam("before"),
        ~exists().where(
            drafts.c.session_key == bindparam("key"), drafts.c.lease_until > bindparam("now")
        ),
    )
)
_DELETE_PROFILES = Statement(
    delete(settings_profiles)
    .where(
        settings_profiles.c.session_key == bindparam("owner_key"),
        settings_profiles.c.owner == bindparam("owner"),
    )
    .returning(settings_profiles.c.name)
)


@dataclass(frozen=True, slots=True)
class Change:
    """The new values of a row."""

    place: MessagePlace
    columns: Mapping[str, Any]
    was: bytes | None
    """The digest that it was read with: one that differs by now stays. None: none does."""
    body: Mapping[str, Any] | None = None
    """The rest of its body; None: nothing."""


def to_empty(connection: Connection, key: int, branch: int, position: int) -> list[Change]:
    """Return how a message is erased, with what belongs to it (``erased_pairs``)."""
    branches.check_branch(branch)
    lineages = branches.all_of(connection, key)
    lineage = next((one for one in lineages if one.number == branch), None)
    if lineage is None:
        raise branches.no_branch(branch)

    def tool_rows(of: BranchRow, first: int, last: int) -> list[ToolRow]:
        return [
            ToolRow(MessagePlace(part.branch, at), _tool_blocks(role, data))
            for part in branches.segments_between(of, first, last)
            for at, role, data in _TOOL_BODIES.rows(connection, range_params(key, part))
        ]

    start = MessagePlace(branches.segment_at(lineage, position).branch, position)
    changes = []
    for place in sorted(erased_pairs.erased_together(start, lineages, tool_rows)):
        row = _ROLE.row(connection, _params(key, place))
        role = None if row is None else decode.ROLES.get(row[0])
        if role is None:
            raise CorruptRow(f"message {place.position} cannot be read back")
        emptied = NewMessage(Message(role=role, status="erased"))
        encoded = columns.encode_message(emptied, id="", created_at=0)
        changes.append(Change(place, encoded.columns, None))
    return changes


def _tool_blocks(role: str, data: str) -> Sequence[ToolBlock]:
    found = decode.parsed(data).get("blocks", ())
    blocks = [TextBlock(text="") if one is None else codec.block_from_json(one) for one in found]
    return tool_blocks(Message(role=decode.ROLES.get(role, "user"), blocks=tuple(blocks)))


def without_reasoning(row: StoredRow, left: Message, counts: Counts) -> Change:
    """Return how a message becomes what is left of it without reasoning."""
    encoded = columns.encode_message(NewMessage(left, counts), id=row.id, created_at=row.created_at)
    place = MessagePlace(row.branch, row.position)
    return Change(place, encoded.columns, row.digest, encoded.body)


def _params(key: int, place: MessagePlace) -> dict[str, Any]:
    return {"key": key, "of": place.branch, "at": place.position}


def lock(connection: Connection, key: int) -> None:
    """Keep appends, forks and other erasures of this session waiting.

    Branches before the session, the order in which an append takes them; what was forked
    until the session was held is then locked too.
    """
    _LOCK.rows(connection, {"key": key})
    sessions.lock(connection, key)
    _LOCK.rows(connection, {"key": key})


def apply(
    connection: Connection, key: int, changes: Iterable[Change], *, now: int
) -> Deleted | None:
    """Write the changes; return which messages and thoughts went. None: no row changed."""
    lock(connection, key)
    lineages = branches.all_of(connection, key)
    by_branch: dict[int, dict[int, Change]] = {}
    for change in changes:
        by_branch.setdefault(change.place.branch, {})[change.place.position] = change
    made: list[Change] = []
    summarizable: list[Change] = []
    """Of these, what a summary can have been made from: not those that only lost a seal."""
    gone: set[int] = set()
    thoughts = 0
    for branch, wanted in by_branch.items():
        span = {"key": key, "of": branch, "first": min(wanted), "last": max(wanted)}
        for position, digest, status, shape, origin in _CURRENT.rows(connection, span):
            found = wanted.get(position)
            if found is None or status == "erased" or found.was not in (None, digest):
                continue
            made.append(found)
            if found.body is None or shape is not None:
                summarizable.append(found)
            thoughts += len(decode.parsed(shape)) if shape is not None else 0
            if origin is not None and found.columns["origin"] is None:
                gone.add(origin)
    if not made:
        return None
    _write(connection, key, made, now)
    _DELETE_WITHHELD.many(connection, [_params(key, change.place) for change in made])
    _SET_ERASED_AT.run(connection, {"key": key, "now": now})
    for change in filter(_empties, made):
        _delete_numbers(connection, key, lineages, change.place)
    _remove_summaries(connection, key, lineages, summarizable)
    _DELETE_UNUSED_ORIGIN.many(
        connection, [{"key": key, "number": number} for number in sorted(gone)]
    )
    return Deleted(messages=sum(_empties(change) for change in made), thinking_blocks=thoughts)


def _delete_numbers(
    connection: Connection, key: int, lineages: Iterable[BranchRow], place: MessagePlace
) -> None:
    """Delete the numbers of a message and of all after it: they are made of its text."""
    for branch in lineages:
        if branch.holds(place):
            params = {"key": key, "of": branch.number, "position": place.position}
            _DELETE_NUMBERS.run(connection, params)


def _empties(change: Change) -> bool:
    return bool(change.columns["status"] == "erased")


def _write(connection: Connection, key: int, made: Sequence[Change], now: int) -> None:
    _SET_COLUMNS.many(
        connection,
        [
            {
                **_params(key, change.place),
                **{name: change.columns[name] for name in CHANGED_BY_ERASURE},
                "erased_at": now,
                "kept": 0 if _empties(change) else RECORDED,
            }
            for change in made
        ],
    )
    emptied = [_params(key, change.place) for change in made if _empties(change)]
    _EMPTY_COLUMNS.many(connection, emptied)
    _EMPTY_BODY.many(connection, emptied)
    _SET_BODY.many(
        connection,
        [
            {**_params(key, change.place), "text": body["text"], "data": body["data"]}
            for change in made
            if (body := change.body) is not None
        ],
    )
    _DELETE_THINKING.many(connection, [_params(key, change.place) for change in made])
    thoughtless = [_params(key, change.place) for change in made if not _empties(change)]
    search_rows.remove_entries(connection, emptied)
    search_rows.remove_thinking(connection, thoughtless)


def _remove_summaries(
    connection: Connection, key: int, lineages: Sequence[BranchRow], made: Sequence[Change]
) -> None:
    """Remove the summaries that were made from what is gone; those inside hold again."""
    by_number = {lineage.number: lineage for lineage in lineages}
    doomed = [
        {"key": key, "of": branch, "number": number}
        for branch, number, first, last in _SUMMARIES.rows(connection, {"key": key})
        if any(
            first <= change.place.position <= last and by_number[branch].holds(change.place)
            for change in made
        )
    ]
    _DELETE_SUMMARY.many(connection, doomed)
    _RESTORE_SUPERSEDED.many(connection, doomed)


def was_erased(connection: Connection, key: int, stored: Sequence[StoredRow]) -> bool:
    """Whether any of these rows, which follow one another, was erased."""
    span = {"first": stored[0].position, "last": stored[-1].position}
    row = _COUNT_ERASED.row(connection, {"key": key, "of": stored[0].branch, **span})
    return row is not None and row[0] > 0


def remove(connection: Connection, key: int) -> Deleted:
    """Remove a session whole; return what it had."""
    gone = _locked(connection, key)
    _DELETE_SESSION.run(connection, {"key": key})
    return replace(gone, sessions=1)


def remove_messages(connection: Connection, key: int, now: int) -> Deleted:
    """Remove all branches of a session, which begins again without messages."""
    gone = _locked(connection, key)
    for statement in (_DELETE_BRANCHES, _DELETE_ORIGINS):
        statement.run(connection, {"key": key})
    search_rows.remove_messages(connection, key)
    _SET_ERASED_AT.run(connection, {"key": key, "now": now})
    sessions.begin_again(connection, key, now)
    return gone


def _locked(connection: Connection, key: int) -> Deleted:
    """Lock a session, and return the messages and thoughts that it has."""
    lock(connection, key)
    ((messages_there,),) = _COUNT_MESSAGES.rows(connection, {"key": key})
    ((thoughts,),) = _COUNT_THINKING.rows(connection, {"key": key})
    return Deleted(messages=messages_there, thinking_blocks=thoughts)


def is_idle(connection: Connection, key: int, before: int, now: int) -> bool:
    """Whether a session has no message of this time or later, and no reply that arrives."""
    lock(connection, key)
    return _IDLE.row(connection, {"key": key, "before": before, "now": now}) is not None


def sessions_of(connection: Connection, owner: str, before: int | None = None) -> list[int]:
    """Return the keys of an owner's sessions, or of those without a message since ``before``."""
    params = {**owner_params(owner), "before": HIGHEST if before is None else before}
    return [key for (key,) in _SESSIONS_OF_OWNER.rows(connection, params)]


def remove_profiles(connection: Connection, owner: str) -> Deleted | None:
    """Remove the settings profiles of an owner, if there are any."""
    found = _DELETE_PROFILES.rows(connection, owner_params(owner))
    return Deleted(profiles=len(found)) if found else None
