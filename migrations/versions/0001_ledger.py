"""The ledger: sessions, branches, messages and what belongs to them.

Revision ID: 0001
Revises: nothing
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import sqlite

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sqlite.INTEGER(), "sqlite")
ROWID: dict[str, Any] = {"sqlite_strict": True}
CLUSTERED: dict[str, Any] = {"sqlite_strict": True, "sqlite_with_rowid": False}


def need(name: str, kind: Any = BIG) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False, autoincrement=False)


def may(name: str, kind: Any = BIG) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=True)


def state() -> list[sa.Column[Any]]:
    return [
        need("sum_visible"),
        need("sum_portable"),
        need("sum_portable_calls"),
        may("opaque", sa.Text),
        may("turn_start"),
        need("turn_has_call", sa.Integer),
        may("last_thinking"),
        may("last_sent"),
        need("sum_reported"),
        need("sum_estimated"),
        need("sum_clearable"),
    ]


def primary(table: str, *columns: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint("session_key", *columns, name=f"pk_{table}")


def belongs(table: str, to: str, *columns: str) -> sa.ForeignKeyConstraint:
    names = ("session_key", *columns)
    return sa.ForeignKeyConstraint(
        names, [f"{to}.{name}" for name in names], name=f"fk_{table}_{to}", ondelete="CASCADE"
    )


# old: what the branch has come to, locked. Each table's rows come as JSON under the names of
# its columns, with positions from 1 and sums of the batch alone; what stood before is added
# here (carried.then). "kinds" are the sums of each message that need merging, an object each;
# NULL where there are none, as "thoughts" is. Simple statements one after the other: each has
# a plan that is kept, and one large statement would be set up anew at each call. NULL: the
# branch is not there, does not end at "ends_at", or its live draft is not the one that this ends.
APPEND = """
CREATE FUNCTION append_messages(
    for_key bigint, for_branch int, ends_at bigint, ends_draft text, count bigint, now bigint,
    add_reasoning bigint, add_counted bigint, add_unreported bigint,
    heads json, texts json, thoughts json, kinds json
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    old branches;
    last bigint;
    merged text[];
BEGIN
    SELECT * INTO old FROM branches b
    WHERE b.session_key = for_key AND b.branch = for_branch
      AND (ends_at IS NULL OR b.next_position = ends_at + 1)
      AND b.draft IS NOT DISTINCT FROM ends_draft
    FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    last := old.next_position - 1;
    IF kinds IS NOT NULL THEN
        merged := ARRAY(
            SELECT (
                SELECT '{' || string_agg(
                    to_json(s.name)::text || ':[' || s.own || ',' || s.calls || ']', ','
                    ORDER BY s.name COLLATE "C") || '}'
                FROM (
                    SELECT u.key AS name, sum((u.value ->> 0)::bigint) AS own,
                        sum((u.value ->> 1)::bigint) AS calls
                    FROM (
                        SELECT * FROM json_each(coalesce(old.opaque, '{}')::json)
                        UNION ALL SELECT * FROM json_each(k.sums)
                    ) u GROUP BY u.key
                ) s
            ) FROM json_array_elements(kinds) WITH ORDINALITY k(sums, place) ORDER BY k.place
        );
    END IF;
    INSERT INTO messages (
        session_key, branch, position, id, role, status, created_at, origin, visible, thinking,
        clearable, exactness, has_call, shape, digest, sum_visible, sum_portable,
        sum_portable_calls, opaque, turn_start, turn_has_call, last_thinking, last_sent,
        sum_reported, sum_estimated, sum_clearable, idempotency_key, batch, input, output,
        reasoning, cached, erased_at
    ) SELECT
        for_key, for_branch, last + n.position, n.id, n.role, n.status, n.created_at, n.origin,
        n.visible, n.thinking, n.clearable, n.exactness, n.has_call, n.shape, n.digest,
        old.sum_visible + n.sum_visible, old.sum_portable + n.sum_portable,
        old.sum_portable_calls + n.sum_portable_calls,
        CASE WHEN merged IS NULL THEN old.opaque ELSE merged[n.position] END,
        coalesce(last + n.turn_start, old.turn_start),
        CASE WHEN n.turn_start IS NULL THEN greatest(old.turn_has_call, n.turn_has_call)
            ELSE n.turn_has_call END,
        coalesce(last + n.last_thinking, old.last_thinking),
        coalesce(last + n.last_sent, old.last_sent),
        old.sum_reported + n.sum_reported, old.sum_estimated + n.sum_estimated,
        old.sum_clearable + n.sum_clearable,
        n.idempotency_key, n.batch, n.input, n.output, n.reasoning, n.cached, n.erased_at
    FROM json_populate_recordset(NULL::messages, heads) n;
    INSERT INTO bodies (session_key, branch, position, text, data, sent)
        SELECT for_key, for_branch, last + n.position, n.text, n.data, n.sent
        FROM json_populate_recordset(NULL::bodies, texts) n;
    IF thoughts IS NOT NULL THEN
        INSERT INTO thinking_blocks (
            session_key, branch, position, ordinal, tokens, source_field, thought, data
        ) SELECT
            for_key, for_branch, last + n.position, n.ordinal, n.tokens, n.source_field,
            n.thought, n.data
        FROM json_populate_recordset(NULL::thinking_blocks, thoughts) n;
    END IF;
    UPDATE branches b SET
        next_position = m.position + 1, sum_visible = m.sum_visible,
        sum_portable = m.sum_portable, sum_portable_calls = m.sum_portable_calls,
        opaque = m.opaque, turn_start = m.turn_start, turn_has_call = m.turn_has_call,
        last_thinking = m.last_thinking, last_sent = m.last_sent,
        sum_reported = m.sum_reported, sum_estimated = m.sum_estimated,
        sum_clearable = m.sum_clearable, draft = NULL
    FROM messages m
    WHERE b.session_key = for_key AND b.branch = for_branch
      AND m.session_key = for_key AND m.branch = for_branch AND m.position = last + count;
    UPDATE sessions s SET
        updated_at = greatest(s.updated_at, now),
        sum_reasoning = s.sum_reasoning + add_reasoning,
        sum_counted = s.sum_counted + add_counted,
        sum_unreported = s.sum_unreported + add_unreported
    WHERE s.session_key = for_key;
    IF ends_draft IS NOT NULL THEN
        DELETE FROM drafts d WHERE d.session_key = for_key AND d.branch = for_branch;
    END IF;
    RETURN last + 1;
END $$
"""
DROP_APPEND = "DROP FUNCTION append_messages"


def on_postgres() -> bool:
    return op.get_context().dialect.name == "postgresql"


def upgrade() -> None:
    op.create_table(
        "sessions",
        need("session_key"),
        need("owner_key"),
        need("owner", sa.Text),
        need("id", sa.Text),
        may("title", sa.Text),
        need("metadata", sa.Text),
        need("settings", sa.Text),
        may("profile", sa.Text),
        need("encoding", sa.Text),
        need("current_branch", sa.Integer),
        need("next_branch", sa.Integer),
        need("archived", sa.Integer),
        need("sum_reasoning"),
        need("sum_counted"),
        need("sum_unreported"),
        may("crossed", sa.Text),
        may("erased_at"),
        need("created_at"),
        need("updated_at"),
        primary("sessions"),
        **ROWID,
    )
    op.create_index(
        "ix_sessions_latest", "sessions", ["owner_key", "archived", "updated_at", "session_key"]
    )
    op.create_table(
        "branches",
        need("session_key"),
        need("branch", sa.Integer),
        may("parent", sa.Integer),
        need("first"),
        need("segments", sa.Text),
        need("next_position"),
        *state(),
        may("draft", sa.Text),
        need("next_compaction", sa.Integer),
        need("created_at"),
        primary("branches", "branch"),
        belongs("branches", "sessions"),
        **CLUSTERED,
    )
    op.create_table(
        "origins",
        need("session_key"),
        need("number"),
        need("origin", sa.Text),
        primary("origins", "number"),
        belongs("origins", "sessions"),
        **CLUSTERED,
    )
    op.create_table(
        "messages",
        need("session_key"),
        need("branch", sa.Integer),
        need("position"),
        need("id", sa.Text),
        need("role", sa.Text),
        need("status", sa.Text),
        need("created_at"),
        may("origin"),
        need("visible"),
        need("thinking"),
        need("clearable"),
        need("exactness", sa.Integer),
        need("has_call", sa.Integer),
        may("shape", sa.Text),
        need("digest", sa.LargeBinary),
        *state(),
        may("idempotency_key", sa.Text),
        may("batch", sa.Integer),
        may("input"),
        may("output"),
        may("reasoning"),
        may("cached"),
        may("erased_at"),
        primary("messages", "branch", "position"),
        belongs("messages", "branches", "branch"),
        sa.ForeignKeyConstraint(
            ["session_key", "origin"],
            ["origins.session_key", "origins.number"],
            name="fk_messages_origins",
        ),
        **CLUSTERED,
    )
    op.create_index(
        "uq_messages_session_key_idempotency_key",
        "messages",
        ["session_key", "idempotency_key"],
        unique=True,
        sqlite_where=sa.text("idempotency_key IS NOT NULL"),
        postgresql_where=sa.text("idempotency_key IS NOT NULL"),
    )
    op.create_table(
        "bodies",
        need("session_key"),
        need("branch", sa.Integer),
        need("position"),
        may("text", sa.Text),
        may("data", sa.Text),
        may("sent", sa.Text),
        primary("bodies", "branch", "position"),
        belongs("bodies", "messages", "branch", "position"),
        **ROWID,
    )
    op.create_table(
        "thinking_blocks",
        need("session_key"),
        need("branch", sa.Integer),
        need("position"),
        need("ordinal", sa.Integer),
        need("tokens"),
        may("source_field", sa.Text),
        may("thought", sa.Text),
        may("data", sa.Text),
        primary("thinking_blocks", "branch", "position", "ordinal"),
        belongs("thinking_blocks", "messages", "branch", "position"),
        **ROWID,
    )
    op.create_table(
        "drafts",
        need("session_key"),
        need("branch", sa.Integer),
        need("id", sa.Text),
        need("header", sa.Text),
        may("sent", sa.Text),
        may("idempotency_key", sa.Text),
        need("parts", sa.Integer),
        may("lease_until"),
        need("created_at"),
        primary("drafts", "branch"),
        belongs("drafts", "branches", "branch"),
        **ROWID,
    )
    op.create_table(
        "draft_parts",
        need("session_key"),
        need("branch", sa.Integer),
        need("part", sa.Integer),
        need("body", sa.Text),
        primary("draft_parts", "branch", "part"),
        belongs("draft_parts", "drafts", "branch"),
        **ROWID,
    )
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
        primary("compactions", "branch", "number"),
        belongs("compactions", "branches", "branch"),
        **ROWID,
    )
    for kind, summary in (("summaries", "IS NOT NULL"), ("clearings", "IS NULL")):
        there = sa.text(f"summary {summary} AND undone_at IS NULL")
        op.create_index(
            f"ix_compactions_{kind}",
            "compactions",
            ["session_key", "branch", "last", "number"],
            sqlite_where=there,
            postgresql_where=there,
        )
    op.create_table(
        "settings_profiles",
        need("session_key"),
        need("name", sa.Text),
        need("owner", sa.Text),
        need("settings", sa.Text),
        need("updated_at"),
        primary("settings_profiles", "name"),
        **ROWID,
    )
    if on_postgres():
        op.execute(APPEND)


def downgrade() -> None:
    if on_postgres():
        op.execute(DROP_APPEND)
    for table in (
        "settings_profiles",
        "compactions",
        "draft_parts",
        "drafts",
        "thinking_blocks",
        "bodies",
        "messages",
        "origins",
        "branches",
        "sessions",
    ):
        op.drop_table(table)
