"""The schema of a database of any version: read and downgraded, never upgraded."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from reasoning_store import InvalidCall
from reasoning_store.ledger.database import opening, schema_version

BASE = "base"
"""The revision before the first."""


def read_revision(url: str) -> str:
    """Return the revision of a database, as it is."""
    with closing(opening.open_any_version(url)) as database:
        return database.read(schema_version.current_revision) or BASE


def is_current(url: str) -> bool:
    """Whether the schema is this version's, and not an older one; refuse any other."""
    with closing(opening.open_any_version(url)) as database:
        return database.read(schema_version.is_current)


def check_revision(target: str) -> None:
    """Refuse a revision that there never was."""
    if target not in (BASE, *schema_version.REVISIONS):
        raise InvalidCall(
            f"there is no revision {target!r}",
            hint=f"one of: {', '.join((BASE, *schema_version.REVISIONS))}",
        )


def downgrade(url: str, target: str) -> Path | None:
    """Take a schema back to a revision; return the copy that was kept of a file."""
    if read_revision(url) == target:
        return None
    made = opening.parse_url(url)
    path = opening.file_of(made)
    copy = None
    if path is not None:
        copy = path.with_name(f"{path.name}.before-{target}")
        with closing(opening.open_any_version(url)) as database:
            database.copy_to(copy, replace=True)
    opening.run_schema_command(
        made, lambda connection: schema_version.downgrade(connection, target)
    )
    return copy
