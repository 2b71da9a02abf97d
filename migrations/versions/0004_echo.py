"""Each message has its echo: a number for all that a client sends back of it.

Revision ID: 0004
Revises: 0003
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import sqlite

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import Message, TextBlock
from reasoning_store.conversation.echoes import message_echo

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

PAGE = 500
APPEND = (
    ("erased_at, cache_write\n", "erased_at, cache_write, echo\n"),
    ("n.erased_at, n.cache_write\n", "n.erased_at, n.cache_write, n.echo\n"),
)
MESSAGES = """
    SELECT m.session_key, m.branch, m.position, m.role, m.status, b.text, b.data
    FROM messages m
    JOIN bodies b ON b.session_key = m.session_key AND b.branch = m.branch
        AND b.position = m.position
    WHERE (m.session_key, m.branch, m.position) > (:key, :branch, :position)
    ORDER BY m.session_key, m.branch, m.position LIMIT :page
"""
SET_ECHO = """
    UPDATE messages SET echo = :echo
    WHERE session_key = :key AND branch = :branch AND position = :position
"""


def change_append(pairs: Sequence[tuple[str, str]]) -> None:
    connection = op.get_bind()
    if connection.dialect.name != "postgresql":
        return
    text = connection.exec_driver_sql(
        "SELECT pg_get_functiondef('append_messages'::regproc)"
    ).scalar_one()
    for old, new in pairs:
        if text.count(old) != 1:
            raise RuntimeError("append_messages is not the function that revision 0003 made")
        text = text.replace(old, new)
    connection.exec_driver_sql(text)


def all_messages(connection: sa.Connection) -> Iterator[Sequence[Any]]:
    place = {"key": -1, "branch": 0, "position": 0}
    while rows := connection.execute(sa.text(MESSAGES), {**place, "page": PAGE}).fetchall():
        yield from rows
        place = dict(zip(place, rows[-1], strict=False))


def visible_blocks(text: str | None, data: str | None) -> tuple[Any, ...]:
    """Return the visible blocks; a null among them is the text of its own column."""
    found = None if data is None else codec.loads(data).get("blocks")
    if found is None:
        found = [] if text is None else [None]
    return tuple(
        TextBlock(text=text or "") if block is None else codec.block_from_json(block)
        for block in found
    )


def upgrade() -> None:
    big = sa.BigInteger().with_variant(sqlite.INTEGER(), "sqlite")
    op.add_column("messages", sa.Column("echo", big, nullable=True))
    op.create_index("ix_messages_echo", "messages", ["echo"])
    change_append(APPEND)
    connection = op.get_bind()
    for key, branch, position, role, status, text, data in all_messages(connection):
        message = Message(role=role, blocks=visible_blocks(text, data), status=status)
        echo = message_echo(message)
        place = {"key": key, "branch": branch, "position": position}
        connection.execute(sa.text(SET_ECHO), {**place, "echo": echo})


def downgrade() -> None:
    change_append([(new, old) for old, new in APPEND])
    op.drop_index("ix_messages_echo", "messages")
    op.drop_column("messages", "echo")
