"""How old a schema is, and how it becomes this version's.

The scripts are Alembic's: at ``migrations/`` beside the package in a checkout and in an
editable install, inside the package in a wheel. Alembic is imported only where there is
something to do; whether there is, is told by one row and a list of names kept here (a test
compares it with the scripts).

An upgrade is one transaction on either engine: killed at any statement it leaves the
schema it found, and runs again.

Knows revisions; knows no column.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, inspect

from reasoning_store.errors import SchemaError
from reasoning_store.forks import ProcessLock
from reasoning_store.ledger.sqlite import SqliteDatabase
from reasoning_store.ledger.sqlite_file import APPLICATION_ID

if TYPE_CHECKING:
    from alembic.config import Config

REVISIONS = ("0001",)
"""Every released schema, oldest first. A script more is a name more here."""
_VERSION_TABLE = "alembic_version"
_UPGRADE_LOCK = 0x52535431
_ALEMBIC = ProcessLock()
"""Alembic keeps the connection of the command that runs in a variable of the process."""


class Age(Enum):
    OLDER = "older"
    CURRENT = "current"


def scripts() -> Path:
    """Return the folder of Alembic's scripts."""
    package = Path(__file__).parents[1]
    inside = package / "_migrations"
    return inside if inside.is_dir() else package.parent / "migrations"


def current(connection: Connection) -> str | None:
    """Return the revision of this database; None where nothing was ever made in it."""
    if not inspect(connection).has_table(_VERSION_TABLE):
        return None
    found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalars().all()
    if len(found) > 1:
        raise SchemaError("this database has the schema of two versions at once")
    return found[0] if found else None


def age(connection: Connection) -> Age:
    """Return whether the schema is this version's or an older one; refuse any other."""
    revision = current(connection)
    if revision == REVISIONS[-1]:
        return Age.CURRENT
    if revision is None or revision in REVISIONS:
        return Age.OLDER
    raise SchemaError(
        "this database was written by a newer version of reasoning-store",
        hint="run: pip install --upgrade reasoning-store",
    )


def config(connection: Connection) -> Config:
    """Return Alembic's configuration for commands over one connection."""
    from alembic.config import Config

    made = Config()
    # Alembic's configuration reads % as the start of a name.
    made.set_main_option("script_location", str(scripts()).replace("%", "%%"))
    made.attributes["connection"] = connection
    return made


def claim(connection: Connection) -> None:
    """Make the database ours, and this transaction the only one that changes its schema."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(f"PRAGMA application_id={APPLICATION_ID}")
    else:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_UPGRADE_LOCK})")


def upgrade(connection: Connection) -> None:
    """Bring the schema to this version's, inside the caller's transaction."""
    from alembic import command

    claim(connection)
    if age(connection) is Age.OLDER:
        with _ALEMBIC.lock:
            command.upgrade(config(connection), "head")


def downgrade(connection: Connection, revision: str) -> None:
    """Take the schema back to a revision, or to ``base``."""
    from alembic import command

    with _ALEMBIC.lock:
        command.downgrade(config(connection), revision)


def keep_copy(path: Path, database: SqliteDatabase) -> Path:
    """Copy an embedded file before it is upgraded, and return where the copy is."""
    target = path.with_name(f"{path.name}.before-{REVISIONS[-1]}")
    # Somebody else may have copied and upgraded it meanwhile.
    database.copy_to(target, replace=True, wanted=_is_older)
    return target


def _is_older(raw: Any) -> bool:
    named = "SELECT 1 FROM sqlite_schema WHERE name = ?"
    if raw.execute(named, (_VERSION_TABLE,)).fetchone() is None:
        return True
    found = raw.execute("SELECT version_num FROM alembic_version").fetchall()
    return (REVISIONS[-1],) not in found
