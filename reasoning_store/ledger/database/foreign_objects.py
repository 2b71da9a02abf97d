"""Objects of another program in a file of ours: they may keep erased text, or change a write.

Knows the names of our tables; a table that the code makes next to ``tables`` is named here.
"""

from __future__ import annotations

from sqlalchemy import Connection

from reasoning_store.conversation.validation import describe
from reasoning_store.ledger.database.statement import driver
from reasoning_store.ledger.tables import metadata

OURS = frozenset(
    {
        *metadata.tables,
        "alembic_version",
        "conversation",
        *[f"search_index{end}" for end in ("", "_data", "_idx", "_config")],
    }
)
_TRIGGERS = frozenset({"search_entries_came", "search_entries_went"})
_NAMED = (
    "SELECT type, name, tbl_name FROM sqlite_schema"
    " WHERE type IN ('table', 'trigger') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    " ORDER BY type, name"
)


def foreign_names(connection: Connection) -> list[str]:
    """Return the foreign tables and triggers of an SQLite file, by their names."""
    if connection.dialect.name != "sqlite":
        return []
    return [
        f"the table {describe(name)}"
        if kind == "table"
        else f"the trigger {describe(name)} on {table}"
        for kind, name, table in driver(connection).execute(_NAMED).fetchall()
        if name not in (_TRIGGERS if kind == "trigger" else OURS)
    ]
