"""The schema of a database of any version: read and downgraded, never upgraded."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection

from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.ledger.database import (
    opening,
    schema_version,
    topology,
)
from reasoning_store.ledger.database.topology import Cluster, ServerSettings

BASE = "base"
"""The revision before the first."""


def read_revision(url: str) -> str:
    """Return the revision of a database, as it is."""
    database = opening.open_any_version(url)
    try:
        return database.read(schema_version.current_revision) or BASE
    finally:
        database.close()


def read_topology(url: str, *, tables: bool) -> tuple[ServerSettings, Cluster | None]:
    """Return what a server has for a store and, with ``tables``, where Citus keeps them."""

    def ask(connection: Connection) -> tuple[ServerSettings, Cluster | None]:
        settings = topology.read_settings(connection)
        return settings, topology.read_cluster(connection) if tables else None

    database = opening.open_any_version(url)
    try:
        return database.read(ask)
    finally:
        database.close()


def read_nodes_away(url: str) -> tuple[str, ...]:
    """Return the nodes of a cluster that do not answer."""
    database = opening.open_any_version(url)
    try:
        return database.read(topology.nodes_away, single=True)
    finally:
        database.close()


def check_revision(target: str) -> None:
    """Refuse a revision that there never was."""
    if target not in (BASE, *schema_version.REVISIONS):
        raise InvalidCall(
            f"there is no revision {target!r}",
            hint=f"one of: {', '.join((BASE, *schema_version.REVISIONS))}",
        )


def downgrade(url: str, target: str) -> Path | None:
    """Take a schema back to a revision; return the copy that was kept of a file."""
    check_revision(target)
    made = opening.parse_url(url)
    path = opening.file_of(made)
    copy = None
    database = opening.open_any_version(url)
    try:
        now = database.read(schema_version.current_revision)
        if now == target or (now is None and target == BASE):
            return None
        if path is not None:
            copy = path.with_name(f"{path.name}.before-{target}")
            database.copy_to(copy, replace=True)
    finally:
        database.close()
    opening.run_schema_command(
        made, lambda connection: schema_version.downgrade(connection, target)
    )
    return copy
