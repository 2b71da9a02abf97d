"""The schema of the first release: its tables, indexes, triggers, function and view.

It imports nothing of the package, so that it stays the same as the package changes. Until the
release, a change of the schema changes this revision and gives it the next number.

Revision ID: 1905
Revises: nothing
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql, sqlite

revision = "1905"
down_revision = None
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sqlite.INTEGER(), "sqlite")
SMALL = sa.Integer()
WORDS = sa.Text().with_variant(postgresql.TSVECTOR(), "postgresql")
ROWID: dict[str, Any] = {"sqlite_strict": True}
CLUSTERED: dict[str, Any] = {"sqlite_strict": True, "sqlite_with_rowid": False}


def need(name: str, kind: Any = BIG) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False, autoincrement=False)


def may(name: str, kind: Any = BIG) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=True)


def primary(table: str, *columns: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint("session_key", *columns, name=f"pk_{table}")


def belongs(table: str, to: str, *columns: str) -> sa.ForeignKeyConstraint:
    names = ("session_key", *columns)
    return sa.ForeignKeyConstraint(
        names, [f"{to}.{name}" for name in names], name=f"fk_{table}_{to}", ondelete="CASCADE"
    )


# old: the branch, locked. Each table's rows come as JSON under the names of its columns, with
# positions from 1; "thoughts" and "numbers" are NULL where there are none. Simple statements one
# after the other: each has a plan that is kept, and one large statement would be set up anew at
# each call. NULL: the branch is not there, does not end at "ends_at", or its live draft is not the
# one that this ends.
APPEND = """
CREATE FUNCTION append_messages(
    for_key bigint, for_branch int, ends_at bigint, ends_draft text, count bigint, now bigint,
    add_reasoning bigint, add_counted bigint, add_unreported bigint,
    heads json, texts json, thoughts json, numbers json
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    old branches;
    last bigint;
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
    INSERT INTO origins (session_key, number, origin)
        SELECT DISTINCT for_key, (h.value ->> 'origin')::bigint, h.value ->> 'made_by'
        FROM json_array_elements(heads) h WHERE h.value ->> 'made_by' IS NOT NULL
        ON CONFLICT DO NOTHING;
    INSERT INTO messages (
        session_key, branch, position, id, role, status, created_at, origin, visible, thinking,
        clearable, exactness, flags, shape, digest, idempotency_key, batch, input, output,
        reasoning, cached, erased_at, cache_write, annotations
    ) SELECT
        for_key, for_branch, last + n.position, n.id, n.role, n.status, n.created_at, n.origin,
        n.visible, n.thinking, n.clearable, n.exactness, n.flags, n.shape, n.digest,
        n.idempotency_key, n.batch, n.input, n.output, n.reasoning, n.cached, n.erased_at,
        n.cache_write, n.annotations
    FROM json_populate_recordset(NULL::messages, heads) n;
    INSERT INTO bodies (session_key, branch, position, text, data, sent)
        SELECT for_key, for_branch, last + n.position, n.text, n.data, n.sent
        FROM json_populate_recordset(NULL::bodies, texts) n;
    IF thoughts IS NOT NULL THEN
        INSERT INTO thinking_blocks (
            session_key, branch, position, ordinal, tokens, source_field, thought, data, is_hidden
        ) SELECT
            for_key, for_branch, last + n.position, n.ordinal, n.tokens, n.source_field,
            n.thought, n.data, n.is_hidden
        FROM json_populate_recordset(NULL::thinking_blocks, thoughts) n;
    END IF;
    IF numbers IS NOT NULL THEN
        INSERT INTO echoes (session_key, branch, position, number, client_group)
            SELECT for_key, for_branch, last + n.position, n.number, n.client_group
            FROM json_populate_recordset(NULL::echoes, numbers) n;
    END IF;
    UPDATE branches b SET next_position = last + count + 1, draft = NULL, instead_of = NULL
    WHERE b.session_key = for_key AND b.branch = for_branch;
    UPDATE sessions s SET
        updated_at = CASE WHEN for_branch = 1 AND last = 0 THEN now
            ELSE greatest(s.updated_at, now) END,
        sum_reasoning = s.sum_reasoning + add_reasoning,
        sum_counted = s.sum_counted + add_counted,
        sum_unreported = s.sum_unreported + add_unreported,
        current_branch = CASE WHEN old.instead_of IS NULL OR ends_draft IS NOT NULL
            THEN s.current_branch ELSE for_branch END
    WHERE s.session_key = for_key;
    IF ends_draft IS NOT NULL THEN
        DELETE FROM drafts d WHERE d.session_key = for_key AND d.branch = for_branch;
    END IF;
    RETURN last + 1;
END $$
"""

# What the current branch of each session shows: the segments that it shares, and its own rows.
VIEW = """
    CREATE VIEW conversation AS
    SELECT
        s.owner AS owner, s.id AS session, s.title AS title, m.position AS position,
        m.role AS role, {time} AS time, {model} AS model,
        (
            SELECT {joined} FROM (
                SELECT t.ordinal, {thought} AS thought FROM thinking_blocks t
                WHERE t.session_key = m.session_key AND t.branch = m.branch
                  AND t.position = m.position
                ORDER BY t.ordinal
            ) thoughts
        ) AS thinking,
        (
            SELECT max(t.is_hidden) FROM thinking_blocks t
            WHERE t.session_key = m.session_key AND t.branch = m.branch
              AND t.position = m.position
        ) AS is_hidden,
        {text} AS text
    FROM sessions s
    JOIN (
        SELECT b.session_key, b.branch, b.branch AS of_branch, b.first AS first,
            b.next_position - 1 AS last
        FROM branches b
        UNION ALL
        SELECT b.session_key, b.branch, {segment}
    ) part ON part.session_key = s.session_key AND part.branch = s.current_branch
    JOIN messages m ON m.session_key = s.session_key AND m.branch = part.of_branch
        AND m.position BETWEEN part.first AND part.last
    LEFT JOIN bodies w ON w.session_key = m.session_key AND w.branch = m.branch
        AND w.position = m.position
    LEFT JOIN origins o ON o.session_key = m.session_key AND o.number = m.origin
"""
SQLITE = {
    "time": "strftime('%Y-%m-%dT%H:%M:%SZ', m.created_at / 1000000, 'unixepoch')",
    "model": "json_extract(o.origin, '$.model')",
    "thought": "coalesce(t.thought, json_extract(t.data, '$.thought'))",
    "joined": "group_concat(thought, char(10) || char(10))",
    "text": """CASE WHEN json_extract(w.data, '$.blocks') IS NULL THEN w.text ELSE (
            SELECT group_concat(
                CASE WHEN e.type = 'null' THEN w.text ELSE json_extract(e.value, '$.text') END, ''
            )
            FROM json_each(w.data, '$.blocks') e
            WHERE e.type = 'null' OR json_extract(e.value, '$.type') = 'text'
        ) END""",
    "segment": """json_extract(e.value, '$[0]'), json_extract(e.value, '$[1]'),
            json_extract(e.value, '$[2]')
        FROM branches b, json_each(b.segments) e""",
}
# JSON has NUL, and half a character, only in these forms, and the server reads neither.
READABLE = r"regexp_replace({}, '\\u(0000|d[89a-f][0-9a-f]{{2}})', '\\ufffd', 'gi')::json"
DATA = READABLE.format("w.data")
POSTGRES = {
    "time": (
        "to_char(to_timestamp(m.created_at / 1000000) AT TIME ZONE 'UTC',"
        ' \'YYYY-MM-DD"T"HH24:MI:SS"Z"\')'
    ),
    "model": f"{READABLE.format('o.origin')} ->> 'model'",
    "thought": f"coalesce(t.thought, {READABLE.format('t.data')} ->> 'thought')",
    "joined": "string_agg(thought, E'\\n\\n' ORDER BY ordinal)",
    "text": f"""CASE WHEN {DATA} -> 'blocks' IS NULL THEN w.text ELSE (
            SELECT string_agg(
                CASE WHEN json_typeof(e.value) = 'null' THEN w.text ELSE e.value ->> 'text' END,
                '' ORDER BY e.number
            )
            FROM json_array_elements({DATA} -> 'blocks') WITH ORDINALITY AS e (value, number)
            WHERE json_typeof(e.value) = 'null' OR e.value ->> 'type' = 'text'
        ) END""",  # noqa: S608
    "segment": """(e.value ->> 0)::integer, (e.value ->> 1)::bigint, (e.value ->> 2)::bigint
        FROM branches b, json_array_elements(b.segments::json) e""",
}

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
        need("current_branch", SMALL),
        need("next_branch", SMALL),
        need("archived", SMALL),
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
        need("branch", SMALL),
        may("parent", SMALL),
        need("first"),
        need("segments", sa.Text),
        need("next_position"),
        may("draft", sa.Text),
        may("instead_of", SMALL),
        need("next_compaction", SMALL),
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
        need("branch", SMALL),
        need("position"),
        need("id", sa.Text),
        need("role", sa.Text),
        need("status", sa.Text),
        need("created_at"),
        may("origin"),
        need("visible"),
        need("thinking"),
        need("clearable"),
        need("exactness", SMALL),
        need("flags", SMALL),
        may("shape", sa.Text),
        need("digest", sa.LargeBinary),
        may("idempotency_key", sa.Text),
        may("batch", SMALL),
        may("input"),
        may("output"),
        may("reasoning"),
        may("cached"),
        may("erased_at"),
        may("cache_write"),
        may("annotations", sa.Text),
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
    op.create_index("ix_messages_id", "messages", ["id", "session_key"])
    op.create_table(
        "echoes",
        need("session_key"),
        need("branch", SMALL),
        need("position"),
        need("number"),
        need("client_group"),
        primary("echoes", "branch", "position", "number"),
        belongs("echoes", "messages", "branch", "position"),
        **CLUSTERED,
    )
    op.create_index("ix_echoes_number", "echoes", ["number", "client_group", "session_key"])
    op.create_table(
        "bodies",
        need("session_key"),
        need("branch", SMALL),
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
        need("branch", SMALL),
        need("position"),
        need("ordinal", SMALL),
        need("tokens"),
        may("source_field", sa.Text),
        may("thought", sa.Text),
        may("data", sa.Text),
        sa.Column("is_hidden", SMALL, nullable=False, server_default=sa.text("0")),
        primary("thinking_blocks", "branch", "position", "ordinal"),
        belongs("thinking_blocks", "messages", "branch", "position"),
        **ROWID,
    )
    op.create_table(
        "withholdings",
        need("session_key"),
        need("branch", SMALL),
        need("position"),
        need("block", SMALL),
        need("part", sa.Text),
        need("digest", sa.LargeBinary),
        need("tokens"),
        need("reason", sa.Text),
        may("error", sa.Text),
        may("target", sa.Text),
        need("created_at"),
        may("undone_at"),
        primary("withholdings", "branch", "position", "block", "part"),
        belongs("withholdings", "messages", "branch", "position"),
        **CLUSTERED,
    )
    op.create_table(
        "drafts",
        need("session_key"),
        need("branch", SMALL),
        need("id", sa.Text),
        need("header", sa.Text),
        may("sent", sa.Text),
        may("idempotency_key", sa.Text),
        need("parts", SMALL),
        may("lease_until"),
        need("created_at"),
        may("stop", sa.Text),
        may("followed_until"),
        primary("drafts", "branch"),
        belongs("drafts", "branches", "branch"),
        **ROWID,
    )
    op.create_table(
        "draft_parts",
        need("session_key"),
        need("branch", SMALL),
        need("part", SMALL),
        need("body", sa.Text),
        primary("draft_parts", "branch", "part"),
        belongs("draft_parts", "drafts", "branch"),
        **ROWID,
    )
    op.create_table(
        "compactions",
        need("session_key"),
        need("branch", SMALL),
        need("number", SMALL),
        need("first"),
        need("last"),
        may("summary", sa.Text),
        need("tokens"),
        need("exactness", SMALL),
        may("effective"),
        need("supersedes", sa.Text),
        may("superseded_by", SMALL),
        may("copied_from", SMALL),
        need("created_at"),
        may("undone_at"),
        may("along", sa.Text),
        need("kind", sa.Text),
        primary("compactions", "branch", "number"),
        belongs("compactions", "branches", "branch"),
        **ROWID,
    )
    for name, kind in (("summaries", "summary"), ("clearings", "clearing")):
        there = sa.text(f"kind = '{kind}' AND undone_at IS NULL")
        op.create_index(
            f"ix_compactions_{name}",
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
    op.create_table(
        "search_entries",
        need("session_key"),
        need("branch", SMALL),
        need("position"),
        need("kind", SMALL),
        need("number"),
        need("words", WORDS),
        primary("search_entries", "branch", "position", "kind"),
        belongs("search_entries", "sessions"),
        **ROWID,
    )
    op.create_index("ix_search_entries_number", "search_entries", ["number"])
    op.create_table(
        "search_progress",
        need("session_key"),
        need("branch", SMALL),
        need("next_position"),
        may("title", sa.Text),
        primary("search_progress", "branch"),
        belongs("search_progress", "sessions"),
        **CLUSTERED,
    )
    connection = op.get_bind()
    if connection.dialect.name == "postgresql":
        op.create_index(
            "ix_search_entries_words", "search_entries", ["words"], postgresql_using="gin"
        )
        connection.exec_driver_sql(APPEND)
        connection.exec_driver_sql(VIEW.format(**POSTGRES))
        return
    connection.exec_driver_sql(INDEX)
    for name, text in TRIGGERS.items():
        connection.exec_driver_sql(f"CREATE TRIGGER {name} {text}")
    library = connection.exec_driver_sql("SELECT sqlite_version()").scalar_one()
    if tuple(map(int, library.split("."))) >= (3, 42):
        connection.exec_driver_sql(SECURE)
    connection.exec_driver_sql(VIEW.format(**SQLITE))


def downgrade() -> None:
    op.execute("DROP VIEW conversation")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION append_messages")
    else:
        for name in TRIGGERS:
            op.execute(f"DROP TRIGGER {name}")
        op.execute("DROP TABLE search_index")
    for table in (
        "search_progress",
        "search_entries",
        "settings_profiles",
        "compactions",
        "draft_parts",
        "drafts",
        "withholdings",
        "thinking_blocks",
        "bodies",
        "echoes",
        "messages",
        "origins",
        "branches",
        "sessions",
    ):
        op.drop_table(table)
