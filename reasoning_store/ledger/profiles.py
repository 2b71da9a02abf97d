"""The SQL of settings profiles: settings under a name, for the sessions of an owner.

Their rows lie under the owner's own key. That is a hash, so the owner beside it is compared
with every read and every write.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, bindparam, delete, select, update

from reasoning_store import codec
from reasoning_store.errors import Conflict, CorruptRow, NotFound
from reasoning_store.ledger.columns import name
from reasoning_store.ledger.keys import owner_key
from reasoning_store.ledger.rows import UNREADABLE, parsed
from reasoning_store.ledger.sql import Sql, by_dialect
from reasoning_store.ledger.tables import settings_profiles
from reasoning_store.ledger.values import ProfileRow

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


_SET = by_dialect(lambda insert: _upsert(insert, "settings", "updated_at"))
# One of its name keeps its settings, and is this transaction's from here on.
_TAKE = by_dialect(lambda insert: _upsert(insert, "updated_at"))
_TOUCH = Sql(
    update(settings_profiles)
    .where(*_THIS)
    .values(updated_at=bindparam("now"))
    .returning(_p.settings)
)
_LIST = Sql(select(_p.name, _p.settings, _p.updated_at).where(*_OWNERS).order_by(_p.name))
_DROP = Sql(delete(settings_profiles).where(*_THIS).returning(_p.name))


def columns_of(
    owner: str, profile: str, settings: Mapping[str, Any], *, now: int
) -> dict[str, Any]:
    """Return the columns of a profile."""
    return {
        "session_key": owner_key(owner),
        "name": name(profile, "the name of a settings profile"),
        "owner": codec.dumps(owner),
        "settings": codec.dumps(dict(settings)),
        "updated_at": now,
    }


def put(connection: Connection, row: Mapping[str, Any]) -> None:
    """Write a profile, in the place of one of its name."""
    if _SET(connection).row(connection, row) is None:
        raise Conflict("another owner has the same key")


def take(connection: Connection, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a profile sets, made of ``row`` where there is none; hold it till the end."""
    return _held(_TAKE(connection).row(connection, row), Conflict("another owner has the same key"))


def touch(connection: Connection, owner: str, profile: str, now: int) -> dict[str, Any]:
    """Return what a profile sets, and hold it till the end."""
    found = _TOUCH.row(connection, {**_named(owner, profile), "now": now})
    return _held(found, no_profile())


def _held(found: Any, otherwise: Exception) -> dict[str, Any]:
    if found is None:
        raise otherwise
    try:
        return dict(parsed(found[0]))
    except UNREADABLE:
        raise CorruptRow("a settings profile cannot be read back") from None


def no_profile(near: str | None = None) -> NotFound:
    """Return what is raised for a name that no profile has; ``near`` may be meant by it."""
    return NotFound(
        "this owner has no settings profile of this name",
        hint="profiles.all() lists them" if near is None else f"did you mean {near!r}?",
    )


def _named(owner: str, profile: str) -> dict[str, Any]:
    return {
        "key": owner_key(owner),
        "of": codec.dumps(owner),
        "this": name(profile, "the name of a settings profile"),
    }


def all_of(connection: Connection, owner: str) -> list[ProfileRow]:
    """Return the profiles of an owner, by name."""
    found = _LIST.rows(connection, {"key": owner_key(owner), "of": codec.dumps(owner)})
    try:
        rows = [ProfileRow(parsed(label), parsed(held), at) for label, held, at in found]
    except UNREADABLE:
        raise CorruptRow("a settings profile cannot be read back") from None
    return sorted(rows, key=lambda row: row.name)


def drop(connection: Connection, owner: str, profile: str) -> bool:
    """Remove a profile; False where there is none of the name."""
    return _DROP.row(connection, _named(owner, profile)) is not None
