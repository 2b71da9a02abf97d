"""Settings profiles: settings under a name, for the sessions of an owner; and its default.

Their rows have the owner's own key, which is a hash: the owner is compared at every read and write.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Connection, bindparam, delete, or_, select

from reasoning_store.conversation import codec
from reasoning_store.conversation.errors import Conflict, CorruptRow, InvalidCall, NotFound
from reasoning_store.conversation.validation import describe
from reasoning_store.ledger.database.database import Database
from reasoning_store.ledger.database.statement import Statement, by_dialect
from reasoning_store.ledger.decode import UNREADABLE, parsed
from reasoning_store.ledger.encode import check_indexed_name
from reasoning_store.ledger.keys import Clock, owner_key
from reasoning_store.ledger.records import KeptSettings, ProfileRow, SessionRow
from reasoning_store.ledger.tables import settings_profiles

_p = settings_profiles.c
_OWNERS = (_p.session_key == bindparam("key"), _p.owner == bindparam("of"))
_THIS = (*_OWNERS, _p.name == bindparam("this"))


def _upsert(insert: Any, *replaced: str) -> Any:
    statement = insert(settings_profiles)
    new = statement.excluded
    return statement.on_conflict_do_update(
        index_elements=[_p.session_key, _p.name],
        set_={name: new[name] for name in replaced},
        where=_p.owner == new.owner,
    ).returning(_p.settings)


_USED = Statement(
    select(_p.name, _p.settings).where(
        *_OWNERS, or_(_p.name == bindparam("this"), _p.name == bindparam("default"))
    )
)
_SET = by_dialect(lambda insert: _upsert(insert, "settings", "updated_at"))
# One of its name keeps its settings, and is this transaction's from here on.
_TAKE = by_dialect(lambda insert: _upsert(insert, "updated_at"))
_LIST = Statement(select(_p.name, _p.settings, _p.updated_at).where(*_OWNERS).order_by(_p.name))
_DROP = Statement(delete(settings_profiles).where(*_THIS).returning(_p.name))


DEFAULT = ""
"""The name of the owner's default, which no profile can have."""


def column_of(profile: str) -> str:
    """Return the column of a profile's name."""
    if profile == DEFAULT:
        raise InvalidCall(
            "the name of a settings profile is empty",
            hint="owner.settings.set(key, value) sets what all sessions of the owner take",
        )
    return check_indexed_name(profile, "the name of a settings profile")


def columns_of(
    owner: str, profile: str, settings: Mapping[str, Any], *, now: int
) -> dict[str, Any]:
    """Return the columns of a profile."""
    return {
        "session_key": owner_key(owner),
        "name": profile and column_of(profile),
        "owner": owner,
        "settings": codec.dumps(dict(settings)),
        "updated_at": now,
    }


def put(connection: Connection, row: Mapping[str, Any]) -> None:
    """Write a profile, or replace the one of its name."""
    if _SET(connection).row(connection, row) is None:
        raise Conflict("another owner has the same key")


def take(connection: Connection, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a profile, and lock it; a missing one is made of ``row``."""
    found = _TAKE(connection).row(connection, row)
    if found is None:
        raise Conflict("another owner has the same key")
    return _settings_of(found[0])


def _settings_of(text: str) -> dict[str, Any]:
    try:
        return dict(parsed(text))
    except UNREADABLE:
        raise CorruptRow("a settings profile cannot be read back") from None


def no_profile(profile: str, near: str | None = None) -> NotFound:
    """Return what is raised for a name that no profile has; ``near`` may be meant by it."""
    return NotFound(
        f"this owner has no settings profile {describe(profile)}",
        hint=f"profiles.all() lists them, and profiles.change({describe(profile)}, {{}}) makes it"
        if near is None
        else f"did you mean {near!r}?",
    )


def _named(owner: str, profile: str) -> dict[str, Any]:
    return {
        "key": owner_key(owner),
        "of": owner,
        "this": profile and column_of(profile),
    }


def all_of(connection: Connection, owner: str) -> list[ProfileRow]:
    """Return the profiles of an owner, by name; its default has an empty one."""
    found = _LIST.rows(connection, {"key": owner_key(owner), "of": owner})
    rows = [ProfileRow(name, _settings_of(text), at) for name, text, at in found]
    return sorted(rows, key=lambda row: row.name)


def kept_settings(connection: Connection, session: SessionRow) -> KeptSettings:
    """Return the settings that are stored for a session: its own, its profile's, its owner's."""
    params = {**_named(session.owner, session.profile or DEFAULT), "default": DEFAULT}
    found = {name: _settings_of(text) for name, text in _USED.rows(connection, params)}
    profile = None if session.profile is None else found.get(session.profile)
    return KeptSettings(session.settings, profile, found.get(DEFAULT, {}))


def check_used(connection: Connection, found: SessionRow) -> None:
    """Refuse a session that uses a profile which its owner does not have."""
    if found.profile is not None and kept_settings(connection, found).profile is None:
        raise no_profile(found.profile)


class Profiles:
    """Settings profiles of owners."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def set(self, owner: str, name: str, settings: Mapping[str, Any]) -> ProfileRow:
        """Store settings under a name; they replace the earlier ones of that name."""
        now = self._clock.now()
        row = columns_of(owner, column_of(name), settings, now=now)
        self._database.write(
            lambda connection: put(connection, row), single=True, again_when_lost=True
        )
        return ProfileRow(name, dict(settings), now)

    def change(
        self,
        owner: str,
        name: str,
        changes: Mapping[str, Any],
        *,
        unset: Collection[str] = (),
    ) -> ProfileRow:
        """Change some settings of a profile, or of the ``DEFAULT``, and leave the others.

        A profile that is absent is made, also by no changes, unless something is to be
        taken out alone.
        """
        now = self._clock.now()
        new = columns_of(owner, name, {}, now=now)

        def work(connection: Connection) -> ProfileRow:
            only_unsets = bool(unset) and not changes and name != DEFAULT
            if only_unsets and name not in {row.name for row in all_of(connection, owner)}:
                raise no_profile(name)
            held = take(connection, new)
            kept = {key: value for key, value in held.items() if key not in unset}
            merged = {**kept, **changes}
            put(connection, columns_of(owner, name, merged, now=now))
            return ProfileRow(name, merged, now)

        return self._database.write(work, again_when_lost=True)

    def all_of(self, owner: str) -> list[ProfileRow]:
        """Return the profiles of an owner, by name."""
        rows = self._database.read_one(all_of, owner)
        return [row for row in rows if row.name != DEFAULT]

    def default_of(self, owner: str) -> dict[str, Any]:
        """Return what the sessions of an owner take where neither they nor a profile set it."""
        rows = self._database.read_one(all_of, owner)
        return next((row.settings for row in rows if row.name == DEFAULT), {})

    def drop(self, owner: str, name: str) -> None:
        """Remove a profile. Sessions that name it use none, until there is one again."""
        this = _named(owner, column_of(name))
        found = self._database.write(lambda connection: _DROP.row(connection, this), single=True)
        if found is None:
            raise no_profile(name)
