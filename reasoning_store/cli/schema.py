"""The schema of a database of any version: read and downgraded, never upgraded."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection

from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.ledger.database import migrate, topology
from reasoning_store.ledger.database import (
    open as engine,
)
from reasoning_store.ledger.database.topology import Cluster, ServerSettings

BASE = "base"
"""The revision before the first."""


def read_revision(url: str) -> str:
    """Return the revision of a database, as it is."""
    database = engine.as_it_is(url)
    try:
        return database.read(migrate.current_revision) or BASE
    finally:
        database.close()


def read_topology(url: str, *, tables: bool) -> tuple[ServerSettings, Cluster | None]:
    """Return what a server has for a store and, with ``tables``, where Citus keeps them."""

    def ask(connection: Connection) -> tuple[ServerSettings, Cluster | None]:
        settings = topology.read_settings(connection)
        return settings, topology.read_cluster(connection) if tables else None

    database = engine.as_it_is(url)
    try:
        return database.read(ask)
    finally:
        database.close()


def read_nodes_away(url: str) -> tuple[str, ...]:
    """Return the nodes of a cluster that do not answer."""
    database = engine.as_it_is(url)
    try:
        return database.read(topology.nodes_away, single=True)
    finally:
        database.close()


def check_revision(target: str) -> None:
    """Refuse a revision that there never was."""
    if target not in (BASE, *migrate.REVISIONS):
        raise InvalidCall(
            f"there is no revision {target!r}",
            hint=f"one of: {', '.join((BASE, *migrate.REVISIONS))}",
        )


def downgrade(url: str, target: str) -> Path | None:
    """Take a schema back to a revision; return the copy that was kept of a file."""
    check_revision(target)
    made = engine.parse(url)
    path = engine.file_of(made)
    copy = None
    database = engine.as_it_is(url)
    try:
        now = database.read(migrate.current_revision)
        if now == target or (now is None and target == BASE):
            return None
        if path is not None:
            copy = path.with_name(f"{path.name}.before-{target}")
            database.copy_to(copy, replace=True)
    finally:
        database.close()
    engine.for_scripts(made, lambda connection: migrate.downgrade(connection, target))
    return copy
