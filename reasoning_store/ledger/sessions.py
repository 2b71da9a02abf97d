"""Sessions: made, found, listed, renamed, set. A session is returned to its own owner only."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    Connection,
    bindparam,
    case,
    insert,
    literal_column,
    null,
    or_,
    select,
    update,
)

from reasoning_store.conversation import codec
from reasoning_store.conversation.errors import Conflict, NotFound
from reasoning_store.conversation.validation import check_mapping, check_truth, describe
from reasoning_store.ledger import profiles
from reasoning_store.ledger.database import driver_errors
from reasoning_store.ledger.database.database import Database
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.encode import check_indexed_name
from reasoning_store.ledger.keys import Clock, check_name, owner_key, session_key
from reasoning_store.ledger.records import KeptSettings, MetadataChange, Page, SessionRow
from reasoning_store.ledger.session_pages import (
    COLUMNS,
    SessionFilter,
    decode_session,
    decode_sessions,
    read_owners,
    read_page,
    same_value,
)
from reasoning_store.ledger.tables import branches, sessions

_t = sessions.c
_THIS = _t.session_key == bindparam("key")
_FIRST = 1

_INSERT = Statement(insert(sessions))
_INSERT_BRANCH = Statement(insert(branches))
_GET = Statement(select(*COLUMNS).where(_THIS))
_LOCK = Statement(select(_t.session_key).where(_THIS).with_for_update())
_CHANGE = {
    column.name: Statement(update(sessions).where(_THIS).values({column: bindparam("value")}))
    for column in (_t.title, _t.metadata, _t.settings, _t.archived, _t.current_branch, _t.profile)
}
_TAKE_BRANCH = Statement(
    update(sessions)
    .where(_THIS)
    .values(next_branch=_t.next_branch + 1)
    .returning(_t.next_branch - 1)
)
TOUCH_SESSION = Statement(
    update(sessions)
    .where(_THIS)
    .values(
        updated_at=case(
            (
                or_(bindparam("begins") == literal_column("1"), _t.updated_at < bindparam("now")),
                bindparam("now"),
            ),
            else_=_t.updated_at,
        ),
        sum_reasoning=_t.sum_reasoning + bindparam("reasoning"),
        sum_counted=_t.sum_counted + bindparam("counted"),
        sum_unreported=_t.sum_unreported + bindparam("unreported"),
    ),
    order=("reasoning", "counted", "unreported", "begins", "now", "now", "key"),
)
"""The change of the session by an append: the time of the last message, and the sums of reasoning.

Before the first message ``updated_at`` is the time when the session was made; the first message
``begins`` it, also with an older time.
"""
_BEGIN_AGAIN = Statement(
    update(sessions)
    .where(_THIS)
    .values(
        current_branch=_FIRST,
        next_branch=_FIRST + 1,
        sum_reasoning=0,
        sum_counted=0,
        sum_unreported=0,
        crossed=null(),
        updated_at=_t.created_at,
    )
)
_UPDATED = Statement(select(_t.updated_at).where(_THIS))
_KEYS = Statement(
    select(_t.session_key)
    .where(_t.session_key > bindparam("after"))
    .order_by(_t.session_key)
    .limit(500)
)


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
        "owner": owner,
        "id": check_indexed_name(session_id, "a session id"),
        "title": title_column(title),
        "metadata": codec.dumps(check_mapping("metadata", metadata)),
        "settings": codec.dumps(dict(settings)),
        "encoding": encoding,
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


def title_column(title: str | None) -> str | None:
    """Return the column of a title."""
    return None if title is None else check_name("a title", title)


def create(
    connection: Connection, row: Mapping[str, Any], *, begun_at: int | None = None
) -> SessionRow:
    """Insert a session with its first branch, which may have begun later."""
    _INSERT.run(connection, row)
    at = row["created_at"] if begun_at is None else begun_at
    insert_first_branch(connection, row["session_key"], at)
    return decode_session([row[column.name] for column in COLUMNS])


def insert_first_branch(connection: Connection, key: int, created_at: int) -> None:
    """Insert the branch without messages that a session begins with."""
    _INSERT_BRANCH.run(
        connection,
        {
            "session_key": key,
            "branch": _FIRST,
            "parent": None,
            "first": 1,
            "segments": "[]",
            "next_position": 1,
            "draft": None,
            "instead_of": None,
            "next_compaction": 1,
            "created_at": created_at,
        },
    )


def begin_again(connection: Connection, key: int, now: int) -> None:
    """Let a session whose branches were removed be as one without messages."""
    insert_first_branch(connection, key, now)
    _BEGIN_AGAIN.run(connection, {"key": key})


def get(connection: Connection, owner: str, session_id: str) -> SessionRow:
    """Return the owner's session of this id; one of another owner is not found."""
    row = _GET.row(connection, {"key": session_key(owner, session_id)})
    if row is None:
        raise no_session(session_id)
    return check_owner(row, owner, session_id)


def check_owner(row: Sequence[Any], owner: str, session_id: str) -> SessionRow:
    """Return the session of a row; refuse one of another owner or id."""
    (found,) = decode_sessions([row])
    # The key is a hash: what it stands for is compared on every open.
    if found.owner != owner or found.id != session_id:
        raise no_session(session_id)
    return found


def by_key(connection: Connection, key: int) -> SessionRow:
    """Return the session of a key, of any owner."""
    row = _GET.row(connection, {"key": key})
    if row is None:
        raise no_session()
    return decode_sessions([row])[0]


def time_after_all(connection: Connection, key: int, now: int) -> int:
    """Return now, or the time of the last message where the clock is earlier than that.

    By it is known whether a request was made before something was changed, or after.
    """
    row = _UPDATED.row(connection, {"key": key})
    return now if row is None else max(now, row[0])


def no_session(session_id: str | None = None) -> NotFound:
    """Return what is raised for an absent session; without its id, one that was erased."""
    return NotFound(
        "this session is not in the database any more"
        if session_id is None
        else f"there is no session {describe(session_id)} for this owner",
        hint="session(id, create=True) makes one",
    )


def change(connection: Connection, key: int, column: str, value: Any) -> SessionRow:
    """Set one column of a session and return the session as it is now."""
    _CHANGE[column].run(connection, {"key": key, "value": value})
    return by_key(connection, key)


def change_settings(
    connection: Connection,
    key: int,
    changes: Mapping[str, Any],
    *,
    unset: Collection[str] = (),
) -> SessionRow:
    """Change some of a session's own settings, and return the session as it is now."""
    lock(connection, key)
    settings = by_key(connection, key).settings
    kept = {name: value for name, value in settings.items() if name not in unset}
    return change(connection, key, "settings", codec.dumps({**kept, **changes}))


def change_metadata(connection: Connection, key: int, wanted: MetadataChange) -> SessionRow:
    """Merge a session's metadata key by key; None removes a key, and expects that it is absent."""
    lock(connection, key)
    metadata = by_key(connection, key).metadata
    for field, value in wanted.expected.items():
        if not same_value(metadata.get(field), value):
            raise Conflict(
                f"the session's metadata has another value under {describe(field)}",
                hint="open the session again and read its metadata, then decide anew",
            )
    merged = {**metadata, **wanted.changes}
    kept = {name: value for name, value in merged.items() if value is not None}
    return change(connection, key, "metadata", codec.dumps(kept))


def lock(connection: Connection, key: int) -> None:
    """Let other changes of this session wait until the transaction ends."""
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
    """Return the keys of the next sessions after one, in order; none, where it was the last."""
    return [key for (key,) in _KEYS.rows(connection, {"after": after})]


class Sessions:
    """Sessions of owners."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def create(
        self,
        owner: str,
        id: str | None = None,
        *,
        encoding: str,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        profile: str | None = None,
    ) -> SessionRow:
        """Create a session; Conflict where the owner has one of this id.

        NotFound where the owner has no such profile.
        """
        row = new(
            owner,
            self._clock.new_id() if id is None else id,
            encoding=encoding,
            title=title,
            metadata={} if metadata is None else metadata,
            settings={} if settings is None else settings,
            created_at=self._clock.now(),
        )
        if profile is not None:
            row["profile"] = profiles.column_of(profile)

        def work(connection: Connection) -> SessionRow:
            made = create(connection, row)
            profiles.check_used(connection, made)
            return made

        try:
            return self._database.write(work)
        except driver_errors.UniqueViolation:
            raise Conflict("this owner has a session of this id already") from None

    def get(self, owner: str, id: str) -> SessionRow:
        """Return a session; another owner's is not found."""
        return self._database.read_one(get, owner, id)

    def kept_settings(self, owner: str, id: str) -> KeptSettings:
        """Return the settings that are stored for a session, layer by layer."""
        return self._database.read(
            lambda connection: profiles.kept_settings(connection, get(connection, owner, id))
        )

    def page(
        self,
        owner: str,
        *,
        limit: int = 50,
        after: str | None = None,
        archived: bool | None = False,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        since: int | None = None,
        before: int | None = None,
    ) -> Page[SessionRow]:
        """Return a page of an owner's sessions, latest first: see ``SessionFilter``."""
        if archived is not None:
            check_truth("archived", archived)
        which = SessionFilter(
            archived=archived, title=title, metadata=metadata or {}, since=since, before=before
        )
        return self._database.read(read_page, owner, which, limit=limit, after=after)

    def owners(self, *, limit: int, after: str | None) -> Page[str]:
        """Return a page of the owners who have sessions."""
        return self._database.read_one(read_owners, limit=limit, after=after)

    def rename(self, session_key: int, title: str | None) -> SessionRow:
        return self._change(session_key, "title", title_column(title))

    def set_metadata(self, session_key: int, metadata: Mapping[str, Any]) -> SessionRow:
        held = codec.dumps(check_mapping("metadata", metadata))
        return self._change(session_key, "metadata", held)

    def update_metadata(self, session_key: int, change: MetadataChange) -> SessionRow:
        """Merge metadata key by key, so that two writers lose nothing; None removes a key."""
        return self._database.write(
            lambda connection: change_metadata(connection, session_key, change)
        )

    def change_settings(
        self, session_key: int, changes: Mapping[str, Any], *, unset: Collection[str] = ()
    ) -> SessionRow:
        """Change some of the session's own settings, and leave the others as they are."""
        return self._database.write(
            lambda connection: change_settings(connection, session_key, changes, unset=unset)
        )

    def archive(self, session_key: int, *, archived: bool = True) -> SessionRow:
        kept = int(check_truth("archived", archived))
        return self._change(session_key, "archived", kept)

    def _change(self, session_key: int, column: str, value: Any) -> SessionRow:
        return self._database.write(
            lambda connection: change(connection, session_key, column, value)
        )

    def use_profile(self, session_key: int, name: str | None) -> SessionRow:
        """Let a session use a profile of its owner's; None is no profile."""
        value = None if name is None else profiles.column_of(name)

        def work(connection: Connection) -> SessionRow:
            found = change(connection, session_key, "profile", value)
            profiles.check_used(connection, found)
            return found

        return self._database.write(work)
