"""The words of messages and titles, by which they are searched.

Revision ID: 0008
Revises: 0007
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql, sqlite

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sqlite.INTEGER(), "sqlite")
WORDS = sa.Text().with_variant(postgresql.TSVECTOR(), "postgresql")
INDEX = """
    CREATE VIRTUAL TABLE search_index USING fts5(
        words, content='search_entries', content_rowid='number', columnsize=0, detail=none,
        tokenize="ascii tokenchars '_'"
    )
"""
# An entry that changes is one that went and one that came: none is updated.
TRIGGERS = {
    "search_entries_came": """AFTER INSERT ON search_entries BEGIN
        INSERT INTO search_index (rowid, words) VALUES (new.number, new.words);
    END""",
    "search_entries_went": """BEFORE DELETE ON search_entries BEGIN
        INSERT INTO search_index (search_index, rowid, words)
        VALUES ('delete', old.number, old.words);
    END""",
}
# Words that are deleted leave the pages of the index at once; before 3.42 it cannot.
SECURE = "INSERT INTO search_index (search_index, rank) VALUES ('secure-delete', 1)"


def on_sqlite() -> bool:
    return op.get_context().dialect.name == "sqlite"


def need(name: str, kind: Any = BIG) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False, autoincrement=False)


def belongs(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["session_key"],
        ["sessions.session_key"],
        name=f"fk_{table}_sessions",
        ondelete="CASCADE",
    )


def upgrade() -> None:
    op.create_table(
        "search_entries",
        need("session_key"),
        need("branch", sa.Integer),
        need("position"),
        need("kind", sa.Integer),
        need("number"),
        need("words", WORDS),
        sa.PrimaryKeyConstraint(
            "session_key", "branch", "position", "kind", name="pk_search_entries"
        ),
        belongs("search_entries"),
        sqlite_strict=True,
    )
    op.create_index("ix_search_entries_number", "search_entries", ["number"])
    op.create_table(
        "search_progress",
        need("session_key"),
        need("branch", sa.Integer),
        need("next_position"),
        sa.Column("title", sa.Text, nullable=True),
        sa.PrimaryKeyConstraint("session_key", "branch", name="pk_search_progress"),
        belongs("search_progress"),
        sqlite_strict=True,
        sqlite_with_rowid=False,
    )
    if not on_sqlite():
        op.create_index(
            "ix_search_entries_words", "search_entries", ["words"], postgresql_using="gin"
        )
        return
    connection = op.get_bind()
    op.execute(INDEX)
    for name, text in TRIGGERS.items():
        op.execute(f"CREATE TRIGGER {name} {text}")
    library = connection.exec_driver_sql("SELECT sqlite_version()").scalar_one()
    if tuple(map(int, library.split("."))) >= (3, 42):
        connection.exec_driver_sql(SECURE)


def downgrade() -> None:
    if on_sqlite():
        for name in TRIGGERS:
            op.execute(f"DROP TRIGGER {name}")
        op.execute("DROP TABLE search_index")
    op.drop_table("search_progress")
    op.drop_table("search_entries")
