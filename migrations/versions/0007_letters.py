"""A draft carries what others ask of its recorder: to stop, and to write for those who follow.

Revision ID: 0007
Revises: 0006
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import sqlite

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sqlite.INTEGER(), "sqlite")


def upgrade() -> None:
    op.add_column("drafts", sa.Column("stop", sa.Text(), nullable=True))
    op.add_column("drafts", sa.Column("followed_until", BIG, nullable=True))


def downgrade() -> None:
    op.drop_column("drafts", "followed_until")
    op.drop_column("drafts", "stop")
