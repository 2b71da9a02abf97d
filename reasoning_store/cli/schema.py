"""A database of any age: which schema it has, and taking that back.

A store opens only what is of this version, or makes it so. Here nothing is upgraded by
being looked at. Glue over the ledger's own parts, with no rule of its own.
"""

from __future__ import annotations

from pathlib import Path

from reasoning_store.errors import UsageError
from reasoning_store.ledger import engine, faults, migrate

BASE = "base"
"""The revision before the first."""


def revision(url: str) -> str:
    """Return the revision of a database, as it is."""
    return faults.guarded(lambda: _revision(url))


def _revision(url: str) -> str:
    database = engine.as_it_is(url)
    try:
        return database.read(migrate.current) or BASE
    finally:
        database.close()


def check(target: str) -> None:
    """Refuse a revision that there never was."""
    if target not in (BASE, *migrate.REVISIONS):
        raise UsageError(
            f"there is no revision {target!r}",
            hint=f"one of: {', '.join((BASE, *migrate.REVISIONS))}",
        )


def downgrade(url: str, target: str) -> Path | None:
    """Take a schema back to a revision; return the copy that was kept of a file."""
    check(target)
    return faults.guarded(lambda: _downgrade(url, target))


def _downgrade(url: str, target: str) -> Path | None:
    made = engine.parse(url)
    path = engine.file_of(made)
    copy = None
    database = engine.as_it_is(url)
    try:
        now = database.read(migrate.current)
        if now == target or (now is None and target == BASE):
            return None
        if path is not None:
            copy = path.with_name(f"{path.name}.before-{target}")
            database.copy_to(copy, replace=True)
    finally:
        database.close()
    engine.for_scripts(made, lambda connection: migrate.downgrade(connection, target))
    return copy
