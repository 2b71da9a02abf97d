"""The version of a schema, and the upgrade to this one.

The scripts are Alembic's: at ``migrations/`` next to the package in a checkout and in an
editable install, inside the package in a wheel. Alembic is imported only where there is
something to do. An upgrade is one transaction on either engine: killed at any statement it
leaves the schema it found, and runs again.
"""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, inspect

from reasoning_store.conversation.errors import SchemaError
from reasoning_store.ledger.database.sqlite import SqliteDatabase
from reasoning_store.ledger.database.sqlite_file import APPLICATION_ID
from reasoning_store.ledger.database.statement import quoted, schema_of

if TYPE_CHECKING:
    from alembic.config import Config

BASE = "base"
"""The revision before the first."""
REVISIONS = ("1905",)
"""The schemas of the scripts, oldest first. A script more is a name more here."""
VERSION_TABLE = "alembic_version"
_UPGRADE_LOCK = 0x52535431
_OWN_TABLE = "thinking_blocks"
"""With a version table it shows that the version is ours."""
_APPEND = "append_messages"
SCHEMA_NAME = "reasoning_store"
"""The schema of a new store on a server."""
_FIND = """
    SELECT n.nspname FROM pg_namespace n
    JOIN pg_class v ON v.relnamespace = n.oid AND v.relname = %s
    JOIN pg_class t ON t.relnamespace = n.oid AND t.relname = %s
    WHERE n.nspname = %s OR pg_table_is_visible(t.oid)
    ORDER BY pg_table_is_visible(t.oid) LIMIT 1
"""


class _Alembic:
    """Alembic keeps the connection of its command in a variable of the process: one at a time."""

    lock = Lock()

    @classmethod
    def renew(cls) -> None:
        cls.lock = Lock()


if hasattr(os, "register_at_fork"):  # a thread that holds it does not come along into the child
    os.register_at_fork(after_in_child=_Alembic.renew)


def scripts_folder() -> Path:
    """Return the folder of Alembic's scripts."""
    package = Path(__file__).parents[2]
    inside = package / "_migrations"
    return inside if inside.is_dir() else package.parent / "migrations"


def current_revision(connection: Connection) -> str | None:
    """Return the revision of this database; None where nothing was ever made in it."""
    schema = schema_of(connection)
    table = VERSION_TABLE if schema is None else f"{quoted(schema)}.{VERSION_TABLE}"
    if not _has_version(connection, schema):
        return None
    found = connection.exec_driver_sql(f"SELECT version_num FROM {table}").scalars().all()  # noqa: S608
    if len(found) > 1:
        raise SchemaError("this database has the schema of two versions at once")
    return found[0] if found else None


def _has_version(connection: Connection, schema: str | None) -> bool:
    """Whether a version was written here; refuse one that another program wrote."""
    if schema is None:
        return inspect(connection).has_table(VERSION_TABLE)
    version, ours = [
        connection.exec_driver_sql(
            "SELECT to_regclass(%s) IS NOT NULL", (f"{quoted(schema)}.{table}",)
        ).scalar_one()
        for table in (VERSION_TABLE, _OWN_TABLE)
    ]
    if version and not ours:
        raise SchemaError(
            f"the table {VERSION_TABLE} in the schema {schema} is another program's",
            hint="give the store a schema of its own: ?schema=NAME at the end of the URL",
        )
    return bool(version)


def schema_on(connection: Connection) -> str:
    """Return the schema on a server where a store is, or where a new one is to be.

    One that is found by the search path is taken too.
    """
    found = connection.exec_driver_sql(_FIND, (VERSION_TABLE, _OWN_TABLE, SCHEMA_NAME)).scalar()
    return SCHEMA_NAME if found is None else str(found)


def is_current(connection: Connection) -> bool:
    """Whether the schema is this version's, and not an older one; refuse any other."""
    revision = current_revision(connection)
    if revision is None or revision in REVISIONS:
        return revision == REVISIONS[-1]
    if revision < REVISIONS[0]:
        raise SchemaError(
            f"this database was made by a development version (its schema is {revision})",
            hint="export it with that version and import the file with this one:"
            " docs/howto/schema.md",
        )
    raise SchemaError(
        "this database was written by a newer version of reasoning-store",
        hint="run: pip install --upgrade reasoning-store",
    )


def alembic_config(connection: Connection) -> Config:
    """Return Alembic's configuration for commands over one connection."""
    from alembic.config import Config

    made = Config()
    # Alembic's configuration reads % as the start of a name.
    made.set_main_option("script_location", str(scripts_folder()).replace("%", "%%"))
    made.attributes["connection"] = connection
    return made


def claim_database(connection: Connection) -> None:
    """Make the database ours, and this transaction the only one that changes its schema."""
    if connection.dialect.name == "sqlite":
        is_current(connection)
        connection.exec_driver_sql(f"PRAGMA application_id={APPLICATION_ID}")
    else:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_UPGRADE_LOCK})")
        # Citus changes tables and functions in one transaction only so; no other server reads it.
        connection.exec_driver_sql("SET LOCAL citus.multi_shard_modify_mode TO 'sequential'")
        schema = schema_of(connection) or SCHEMA_NAME
        name = quoted(schema)
        there = connection.exec_driver_sql("SELECT to_regnamespace(%s) IS NOT NULL", (name,))
        if not there.scalar_one():
            connection.exec_driver_sql(f"CREATE SCHEMA {name}")
        is_current(connection)
        # The scripts name no schema, and neither does what Alembic looks for.
        connection.exec_driver_sql(f"SET LOCAL search_path TO {name}")
        connection.dialect.default_schema_name = schema


def finish_schema(connection: Connection) -> None:
    """Leave a schema of our own as it is used: from anywhere, and with nothing empty in it."""
    schema = schema_of(connection)
    if schema is None or schema == "public":
        return
    name = quoted(schema)
    if connection.exec_driver_sql("SELECT to_regclass(%s) IS NULL", (_OWN_TABLE,)).scalar_one():
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS {name}.{VERSION_TABLE}")
    else:
        connection.exec_driver_sql(f"ALTER FUNCTION {_APPEND} SET search_path TO {name}, pg_temp")


def upgrade(connection: Connection) -> None:
    """Bring the schema to this version's, inside the caller's transaction."""
    from alembic import command

    claim_database(connection)
    if not is_current(connection):
        with _Alembic.lock:
            command.upgrade(alembic_config(connection), "head")


def downgrade(connection: Connection, revision: str) -> None:
    """Take the schema back to a revision, or to ``base``."""
    from alembic import command

    with _Alembic.lock:
        command.downgrade(alembic_config(connection), revision)


def keep_copy(path: Path, database: SqliteDatabase) -> Path:
    """Copy an embedded file before it is upgraded, and return where the copy is."""
    target = path.with_name(f"{path.name}.before-{REVISIONS[-1]}")
    # Another may have copied and upgraded it meanwhile.
    database.copy_to(target, replace=True, wanted=_is_older)
    return target


def _is_older(raw: Any) -> bool:
    named = "SELECT 1 FROM sqlite_schema WHERE name = ?"
    if raw.execute(named, (VERSION_TABLE,)).fetchone() is None:
        return True
    found = raw.execute("SELECT version_num FROM alembic_version").fetchall()
    return (REVISIONS[-1],) not in found
