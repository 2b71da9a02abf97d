"""The SQL of sessions: made, found, listed, renamed.

Functions over a ``Connection``; who may call them in which transaction is the caller's.
A session is only ever returned to the owner it is compared with.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, case, insert, select, tuple_, update

from reasoning_store import codec
from reasoning_store.errors import CorruptRow, NotFound, UsageError
from reasoning_store.ledger import arguments
from reasoning_store.ledger.carried import NOTHING
from reasoning_store.ledger.columns import name, state_columns
from reasoning_store.ledger.keys import owner_key, session_key
from reasoning_store.ledger.rows import UNREADABLE, name_of, parsed, twin
from reasoning_store.ledger.sql import Sql
from reasoning_store.ledger.tables import branches, sessions, settings_profiles
from reasoning_store.ledger.values import SessionPage, SessionRow

_t = sessions.c
_p = settings_profiles.c
_COLUMNS = (
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
# The settings profile in use is read with the session that uses it.
_PROFILE = (
    select(_p.settings)
    .where(_p.session_key == _t.owner_key, _p.name == _t.profile, _p.owner == _t.owner)
    .correlate(sessions)
    .scalar_subquery()
)
WHOLE = (*_COLUMNS, _PROFILE)
"""What ``owned`` takes."""
_THIS = _t.session_key == bindparam("key")
_FIRST = 1
ARCHIVED = 1
IMPORTING = 2
"""In the place of ``archived``: not whole yet, and in no list until it is."""

_INSERT = Sql(insert(sessions))
_INSERT_BRANCH = Sql(insert(branches))
_GET = Sql(select(*WHOLE).where(_THIS))
_LOCK = Sql(select(_t.session_key).where(_THIS).with_for_update())
_PAGE = (
    select(*WHOLE)
    .where(_t.owner_key == bindparam("owner_key"), _t.owner == bindparam("owner"))
    .where(
        tuple_(_t.updated_at, _t.session_key)
        < tuple_(bindparam("before_time", type_=_t.updated_at.type), bindparam("before_key"))
    )
    .order_by(_t.updated_at.desc(), _t.session_key.desc())
    .limit(bindparam("limit"))
)
_LIST = Sql(_PAGE.where(_t.archived == bindparam("archived")))
_LIST_ALL = Sql(_PAGE)
_CHANGE = {
    column.name: Sql(update(sessions).where(_THIS).values({column: bindparam("value")}))
    for column in (_t.title, _t.metadata, _t.settings, _t.archived, _t.current_branch, _t.profile)
}
_TAKE_BRANCH = Sql(
    update(sessions)
    .where(_THIS)
    .values(next_branch=_t.next_branch + 1)
    .returning(_t.next_branch - 1)
)
SAID = Sql(
    update(sessions)
    .where(_THIS)
    .values(
        updated_at=case((_t.updated_at < bindparam("now"), bindparam("now")), else_=_t.updated_at),
        sum_reasoning=_t.sum_reasoning + bindparam("reasoning"),
        sum_counted=_t.sum_counted + bindparam("counted"),
        sum_unreported=_t.sum_unreported + bindparam("unreported"),
    ),
    order=("reasoning", "counted", "unreported", "now", "now", "key"),
)
"""What an append leaves on the session: that something was said, and what was thought."""
_UPDATED = Sql(select(_t.updated_at).where(_THIS))
_LAST = (1 << 63) - 1
_CURSOR = re.compile(r"(-?[0-9]{1,20})\.([0-9]{1,20})")
"""The time and the key of a page's last session. What was kept elsewhere may be of before 1970."""
_Session = twin(SessionRow)
_KEYS = Sql(
    select(_t.session_key)
    .where(_t.session_key > bindparam("after"))
    .order_by(_t.session_key)
    .limit(500)
)


def _row(row: Sequence[Any]) -> SessionRow:
    try:
        return _session(row)
    except UNREADABLE:
        raise CorruptRow("a session cannot be read back") from None


def _session(row: Sequence[Any]) -> SessionRow:
    key, owner, id_, title, metadata, settings, encoding, branch, *times, profile, used = row
    created, updated, archived, erased = times
    it: Any = _Session()
    it.key, it.owner, it.id, it.encoding = key, name_of(owner), name_of(id_), name_of(encoding)
    it.title = None if title is None else parsed(title)
    it.metadata, it.settings, it.current_branch = parsed(metadata), parsed(settings), branch
    if type(it.metadata) is not dict or type(it.settings) is not dict:
        raise TypeError("an object was written")
    it.created_at, it.updated_at, it.archived, it.erased_at = (
        created,
        updated,
        archived == ARCHIVED,
        erased,
    )
    it.profile = None if profile is None else parsed(profile)
    it.profile_settings = None if used is None else parsed(used)
    it.__class__ = SessionRow
    made: SessionRow = it
    return made


def new(
    owner: str,
    session_id: str,
    *,
    encoding: str,
    title: str | None,
    metadata: Mapping[str, Any],
    settings: Mapping[str, Any],
    created_at: int,
) -> dict[str, Any]:
    """Return the columns of a new session."""
    return {
        "session_key": session_key(owner, session_id),
        "owner_key": owner_key(owner),
        "owner": codec.dumps(owner),
        "id": name(session_id, "a session id"),
        "title": titled(title),
        "metadata": codec.dumps(arguments.mapping(metadata, "metadata")),
        "settings": codec.dumps(dict(settings)),
        "encoding": codec.dumps(encoding),
        "current_branch": _FIRST,
        "next_branch": _FIRST + 1,
        "archived": 0,
        "profile": None,
        "sum_reasoning": 0,
        "sum_counted": 0,
        "sum_unreported": 0,
        "crossed": None,
        "erased_at": None,
        "created_at": created_at,
        "updated_at": created_at,
    }


def titled(title: str | None) -> str | None:
    """Return the column of a title."""
    return None if title is None else codec.dumps(arguments.text(title, "a title"))


def create(connection: Connection, row: Mapping[str, Any]) -> SessionRow:
    """Insert a session with its first branch; a key that is taken says that it exists."""
    _INSERT.run(connection, row)
    _INSERT_BRANCH.run(
        connection,
        {
            "session_key": row["session_key"],
            "branch": _FIRST,
            "parent": None,
            "first": 1,
            "segments": "[]",
            "next_position": 1,
            "draft": None,
            "next_compaction": 1,
            "created_at": row["created_at"],
            **state_columns(NOTHING),
        },
    )
    return _session([*(row[column.name] for column in _COLUMNS), None])


def get(connection: Connection, owner: str, session_id: str) -> SessionRow:
    """Return the owner's session of this id; another's is as absent as none."""
    row = _GET.row(connection, {"key": session_key(owner, session_id)})
    if row is None:
        raise no_session()
    return owned(row, owner, session_id)


def owned(row: Sequence[Any], owner: str, session_id: str) -> SessionRow:
    """Return the session of a row, if it is this one."""
    found = _row(row)
    # The key is a hash: what it stands for is compared on every open.
    if found.owner != owner or found.id != session_id:
        raise no_session()
    return found


def by_key(connection: Connection, key: int) -> SessionRow:
    """Return the session of a key, whoever owns it."""
    row = _GET.row(connection, {"key": key})
    if row is None:
        raise no_session()
    return _row(row)


def behind(connection: Connection, key: int, now: int) -> int:
    """Return a time that is behind all that was said in a session, whatever the clock says.

    By it is known whether a request was made before something was changed, or after.
    """
    row = _UPDATED.row(connection, {"key": key})
    return now if row is None else max(now, row[0])


def no_session() -> NotFound:
    return NotFound(
        "there is no such session for this owner", hint="session(id, create=True) makes one"
    )


def page(
    connection: Connection,
    owner: str,
    *,
    limit: int,
    after: str | None,
    archived: bool | None,
) -> SessionPage:
    """Return one page of the owner's sessions, latest first; reads no message."""
    arguments.number(limit, "limit", least=1, hint="as in sessions(limit=50)")
    before_time, before_key = _cursor(after)
    params: dict[str, Any] = {
        "owner_key": owner_key(owner),
        "owner": codec.dumps(owner),
        "before_time": before_time,
        "before_key": before_key,
        "limit": min(limit + 1, _LAST),
    }
    if archived is None:
        rows = _LIST_ALL.rows(connection, params)
    else:
        rows = _LIST.rows(connection, {**params, "archived": int(archived)})
    items = [_row(row) for row in rows[:limit]]
    more = len(rows) > limit
    return SessionPage(items, f"{items[-1].updated_at}.{items[-1].key}" if more else None)


def _cursor(after: str | None) -> tuple[int, int]:
    if after is None:
        return _LAST, _LAST
    found = _CURSOR.fullmatch(arguments.text(after, "after"))
    if found is None:
        raise UsageError(
            "after: not the .next of a page of sessions", hint="sessions(after=page.next)"
        )
    time, key = map(int, found.groups())
    return max(min(time, _LAST), -_LAST), min(key, _LAST)


def change(connection: Connection, key: int, column: str, value: Any) -> SessionRow:
    """Set one column of a session and return the session as it is now."""
    _CHANGE[column].run(connection, {"key": key, "value": value})
    return by_key(connection, key)


def lock(connection: Connection, key: int) -> None:
    """Keep whoever else would change this session waiting."""
    if _LOCK.row(connection, {"key": key}) is None:
        raise no_session()


def take_branch_number(connection: Connection, key: int) -> int:
    """Return the next branch number of the session, taken for good."""
    row = _TAKE_BRANCH.row(connection, {"key": key})
    if row is None:
        raise no_session()
    number: int = row[0]
    return number


def some_keys(connection: Connection, after: int) -> list[int]:
    """Return the keys of the next sessions behind one, in order; none, where it was the last."""
    return [key for (key,) in _KEYS.rows(connection, {"after": after})]
