"""Messages are found by their id, and an application keeps small facts with them.

Revision ID: 0006
Revises: 0005
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

APPEND = (
    ("cache_write, echo\n", "cache_write, echo, annotations\n"),
    ("n.cache_write, n.echo\n", "n.cache_write, n.echo, n.annotations\n"),
)


def change_append(pairs: Sequence[tuple[str, str]]) -> None:
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    text = connection.exec_driver_sql(
        "SELECT pg_get_functiondef('append_messages'::regproc)"
    ).scalar_one()
    for old, new in pairs:
        if text.count(old) != 1:
            raise RuntimeError("append_messages is not the function that revision 0005 left")
        text = text.replace(old, new)
    connection.exec_driver_sql(text)


def upgrade() -> None:
    op.add_column("messages", sa.Column("annotations", sa.Text(), nullable=True))
    change_append(APPEND)
    op.create_index("ix_messages_id", "messages", ["session_key", "id"])


def downgrade() -> None:
    op.drop_index("ix_messages_id", "messages")
    change_append([(new, old) for old, new in APPEND])
    op.drop_column("messages", "annotations")
