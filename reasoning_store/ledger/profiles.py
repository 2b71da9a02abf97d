"""The SQL of settings profiles: settings under a name, for the sessions of an owner.

Their rows lie under the owner's own key. That is a hash, so the owner beside it is compared
with every read and every write.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, bindparam, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from reasoning_store import codec
from reasoning_store.errors import Conflict, CorruptRow
from reasoning_store.ledger.columns import name
from reasoning_store.ledger.keys import owner_key
from reasoning_store.ledger.rows import UNREADABLE, parsed
from reasoning_store.ledger.sql import Sql
from reasoning_store.ledger.tables import settings_profiles
from reasoning_store.ledger.values import ProfileRow

_p = settings_profiles.c
_OWNERS = (_p.session_key == bindparam("key"), _p.owner == bindparam("of"))


def _upsert(insert: Any) -> Sql:
    new = insert.excluded
    return Sql(
        insert.on_conflict_do_update(
            index_elements=[_p.session_key, _p.name],
            set_={"settings": new.settings, "updated_at": new.updated_at},
            where=_p.owner == new.owner,
        ).returning(_p.name)
    )


_SET = {
    "sqlite": _upsert(sqlite.insert(settings_profiles)),
    "postgresql": _upsert(postgresql.insert(settings_profiles)),
}
_LIST = Sql(select(_p.name, _p.settings, _p.updated_at).where(*_OWNERS).order_by(_p.name))
_DROP = Sql(
    delete(settings_profiles).where(*_OWNERS, _p.name == bindparam("this")).returning(_p.name)
)


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
    if _SET[connection.dialect.name].row(connection, row) is None:
        raise Conflict("another owner has the same key")


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
    params = {
        "key": owner_key(owner),
        "of": codec.dumps(owner),
        "this": name(profile, "the name of a settings profile"),
    }
    return _DROP.row(connection, params) is not None
