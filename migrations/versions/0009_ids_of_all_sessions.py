"""A message is found by its id in all sessions.

Revision ID: 0009
Revises: 0008
"""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_index("ix_messages_id", "messages")
    op.create_index("ix_messages_id", "messages", ["id", "session_key"])


def downgrade() -> None:
    op.drop_index("ix_messages_id", "messages")
    op.create_index("ix_messages_id", "messages", ["session_key", "id"])
