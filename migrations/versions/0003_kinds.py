"""Compactions name their kind, appends write origins, and no session is half imported.

Revision ID: 0003
Revises: 0002
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import sqlite

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sqlite.INTEGER(), "sqlite")
OLD = ("summary IS NOT NULL", "summary IS NULL")
NEW = ("kind = 'summary'", "kind = 'clearing'")
COLUMNS = (
    "session_key, branch, number, first, last, summary, tokens, exactness, effective,"
    " supersedes, superseded_by, copied_from, created_at, undone_at, along"
)
KIND = "CASE WHEN summary IS NULL THEN 'clearing' ELSE 'summary' END"
MESSAGES = "INSERT INTO messages ("
ORIGINS = """INSERT INTO origins (session_key, number, origin)
        SELECT DISTINCT for_key, (h.value ->> 'origin')::bigint, h.value ->> 'made_by'
        FROM json_array_elements(heads) h WHERE h.value ->> 'made_by' IS NOT NULL
        ON CONFLICT DO NOTHING;
    """


def on_postgres() -> bool:
    return op.get_context().dialect.name == "postgresql"


def change_append(old: str, new: str) -> None:
    connection = op.get_bind()
    text = connection.exec_driver_sql(
        "SELECT pg_get_functiondef('append_messages'::regproc)"
    ).scalar_one()
    if text.count(old) != 1:
        raise RuntimeError("append_messages is not the function that revision 0002 made")
    connection.exec_driver_sql(text.replace(old, new))


def index(of: tuple[str, str]) -> None:
    for name, which in zip(("summaries", "clearings"), of, strict=True):
        where = sa.text(f"{which} AND undone_at IS NULL")
        op.create_index(
            f"ix_compactions_{name}",
            "compactions",
            ["session_key", "branch", "last", "number"],
            sqlite_where=where,
            postgresql_where=where,
        )


def drop_indexes() -> None:
    for name in ("summaries", "clearings"):
        op.drop_index(f"ix_compactions_{name}", "compactions")


def rebuilt() -> None:
    """SQLite adds no column that is NOT NULL without a default: the table is made anew."""

    def need(name: str, kind: Any = BIG) -> sa.Column[Any]:
        return sa.Column(name, kind, nullable=False, autoincrement=False)

    def may(name: str, kind: Any = BIG) -> sa.Column[Any]:
        return sa.Column(name, kind, nullable=True)

    op.rename_table("compactions", "compactions_before")
    op.create_table(
        "compactions",
        need("session_key"),
        need("branch", sa.Integer),
        need("number", sa.Integer),
        need("first"),
        need("last"),
        may("summary", sa.Text),
        need("tokens"),
        need("exactness", sa.Integer),
        may("effective"),
        need("supersedes", sa.Text),
        may("superseded_by", sa.Integer),
        may("copied_from", sa.Integer),
        need("created_at"),
        may("undone_at"),
        may("along", sa.Text),
        need("kind", sa.Text),
        sa.PrimaryKeyConstraint("session_key", "branch", "number", name="pk_compactions"),
        sa.ForeignKeyConstraint(
            ["session_key", "branch"],
            ["branches.session_key", "branches.branch"],
            name="fk_compactions_branches",
            ondelete="CASCADE",
        ),
        sqlite_strict=True,
    )
    op.execute(
        f"INSERT INTO compactions ({COLUMNS}, kind)"  # noqa: S608
        f" SELECT {COLUMNS}, {KIND} FROM compactions_before"
    )
    op.drop_table("compactions_before")


def upgrade() -> None:
    drop_indexes()
    if on_postgres():
        op.add_column("compactions", sa.Column("kind", sa.Text(), nullable=True))
        op.execute(f"UPDATE compactions SET kind = {KIND}")  # noqa: S608
        op.alter_column("compactions", "kind", nullable=False)
        change_append(MESSAGES, ORIGINS + MESSAGES)
    else:
        rebuilt()
    index(NEW)
    # The half of a session that a killed import of before left: it is in a list now.
    op.execute("UPDATE sessions SET archived = 0 WHERE archived = 2")


def downgrade() -> None:
    drop_indexes()
    op.drop_column("compactions", "kind")
    index(OLD)
    if on_postgres():
        change_append(ORIGINS + MESSAGES, MESSAGES)
