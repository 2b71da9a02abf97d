"""Input with what a cache held, what was written to one in a column of its own, and what was
done with a compaction.

Revision ID: 0002
Revises: 0001
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import sqlite

from reasoning_store.conversation import codec
from reasoning_store.ledger.rows.digests import digest, in_order
from reasoning_store.ledger.transfer import first_usage

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

PAGE = 500
MOST = (1 << 40) - 1
"""More would overflow the sums, and stands in the JSON alone."""

# What append_messages says of a message's own columns, and of when something was last said:
# the first message of a session says that, were it of long ago.
APPEND = (
    ("reasoning, cached, erased_at\n", "reasoning, cached, erased_at, cache_write\n"),
    ("n.cached, n.erased_at\n", "n.cached, n.erased_at, n.cache_write\n"),
    (
        "updated_at = greatest(s.updated_at, now),",
        "updated_at = CASE WHEN for_branch = 1 AND last = 0 THEN now"
        " ELSE greatest(s.updated_at, now) END,",
    ),
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
            raise RuntimeError("append_messages is not the function that revision 0001 made")
        text = text.replace(old, new)
    connection.exec_driver_sql(text)


MESSAGES = """
    SELECT m.session_key, m.branch, m.position, m.role, m.status, o.origin, b.text, b.data
    FROM messages m
    JOIN bodies b ON b.session_key = m.session_key AND b.branch = m.branch
        AND b.position = m.position
    LEFT JOIN origins o ON o.session_key = m.session_key AND o.number = m.origin
    WHERE (m.session_key, m.branch, m.position) > (:key, :branch, :position)
      AND b.data LIKE '%"usage":[%' AND b.data LIKE '%ache%'
    ORDER BY m.session_key, m.branch, m.position LIMIT :page
"""
THINKING = """
    SELECT ordinal, source_field, thought, data FROM thinking_blocks
    WHERE session_key = :key AND branch = :branch AND position = :position ORDER BY ordinal
"""
SET_MESSAGE = """
    UPDATE messages SET input = :input, cache_write = :written, digest = :digest
    WHERE session_key = :key AND branch = :branch AND position = :position
"""
SET_BODY = """
    UPDATE bodies SET data = :data
    WHERE session_key = :key AND branch = :branch AND position = :position
"""


def some_usage(connection: sa.Connection) -> Iterator[Sequence[Any]]:
    """Yield the messages of which a provider reported something of a cache."""
    place = {"key": -1, "branch": 0, "position": 0}
    while rows := connection.execute(sa.text(MESSAGES), {**place, "page": PAGE}).fetchall():
        yield from rows
        place = dict(zip(place, rows[-1], strict=False))


def summed(count: Any = None) -> int | None:
    return count if isinstance(count, int) and 0 <= count <= MOST else None


def rewrite(connection: sa.Connection, change: Callable[[list[Any]], list[Any]]) -> None:
    """Write each usage as ``change`` gives it, and what is made from it."""
    for key, branch, position, role, status, origin, text, data in some_usage(connection):
        place = {"key": key, "branch": branch, "position": position}
        body = codec.loads(data)
        usage = body.get("usage")
        if not isinstance(usage, list) or len(usage) not in (5, 6):
            continue
        body["usage"] = changed = change(usage)
        if changed == usage:
            continue
        renewed = codec.dumps(body)
        told = [role, status, origin, text, in_order(renewed)]
        for ordinal, *fields, more in connection.execute(sa.text(THINKING), place):
            told += [str(ordinal), *fields, more and in_order(more)]
        numbers = {"input": summed(changed[0]), "written": summed(*changed[5:])}
        connection.execute(sa.text(SET_BODY), {**place, "data": renewed})
        connection.execute(sa.text(SET_MESSAGE), {**place, **numbers, "digest": digest(told)})


def renewed(usage: list[Any]) -> list[Any]:
    given, *others, raw = usage
    total, written = first_usage.read(given, raw)
    return [total, *others, raw, *([] if written is None else [written])]


def upgrade() -> None:
    big = sa.BigInteger().with_variant(sqlite.INTEGER(), "sqlite")
    op.add_column("messages", sa.Column("cache_write", big, nullable=True))
    op.add_column("compactions", sa.Column("along", sa.Text(), nullable=True))
    change_append(APPEND)
    rewrite(op.get_bind(), renewed)


def downgrade() -> None:
    # The input keeps what a cache held: read again, it is what its raw object does not say.
    rewrite(op.get_bind(), lambda usage: usage[:5])
    change_append([(new, old) for old, new in APPEND])
    op.drop_column("messages", "cache_write")
    op.drop_column("compactions", "along")
