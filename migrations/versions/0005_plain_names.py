"""Names are plain text, a hidden thought has a column, and ``conversation`` is a view for people.

Revision ID: 0005
Revises: 0004
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

from reasoning_store.conversation import codec
from reasoning_store.conversation.errors import SchemaError

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

PAGE = 500
APPEND = (
    ("source_field, thought, data\n", "source_field, thought, data, is_hidden\n"),
    ("n.thought, n.data\n", "n.thought, n.data, n.is_hidden\n"),
)
REFUSED = "a session id, an owner or a settings profile has a name with NUL or half a character"
HINT = "export it with the version that wrote it, change the name in the lines, and import them"

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


def on_postgres() -> bool:
    return op.get_context().dialect.name == "postgresql"


def change_append(pairs: Sequence[tuple[str, str]]) -> None:
    if not on_postgres():
        return
    connection = op.get_bind()
    text = connection.exec_driver_sql(
        "SELECT pg_get_functiondef('append_messages'::regproc)"
    ).scalar_one()
    for old, new in pairs:
        if text.count(old) != 1:
            raise RuntimeError("append_messages is not the function that revision 0004 made")
        text = text.replace(old, new)
    connection.exec_driver_sql(text)


def pages(select: str, keys: Sequence[str], first: dict[str, Any]) -> Iterator[Sequence[Any]]:
    """Yield rows by key; a statement's rows are read before any of them is changed."""
    at = first
    while rows := op.get_bind().execute(sa.text(select), {**at, "page": PAGE}).fetchall():
        yield from rows
        at = dict(zip(keys, rows[-1], strict=False))


def plain(text: str | None) -> str | None:
    """Return a name; refuse one that no column can hold, before anything is lost."""
    name = None if text is None else codec.loads(text)
    if name is not None and ("\0" in name or not_utf8(name)):
        raise SchemaError(REFUSED, hint=HINT)
    return name


def not_utf8(name: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in name)


def plain_title(text: str | None) -> str | None:
    if text is None:
        return None
    return "".join("\ufffd" if c == "\0" or not_utf8(c) else c for c in codec.loads(text))


def quoted(name: str | None) -> str | None:
    return None if name is None else codec.dumps(name)


def rename(
    name: Callable[[str | None], str | None], title: Callable[[str | None], str | None]
) -> None:
    connection = op.get_bind()
    for key, owner, id_, label, encoding, profile in pages(
        "SELECT session_key, owner, id, title, encoding, profile FROM sessions"
        " WHERE session_key > :key ORDER BY session_key LIMIT :page",
        ("key",),
        {"key": -1},
    ):
        connection.execute(
            sa.text(
                "UPDATE sessions SET owner = :owner, id = :id, title = :title,"
                " encoding = :encoding, profile = :profile WHERE session_key = :key"
            ),
            {
                "key": key,
                "owner": name(owner),
                "id": name(id_),
                "title": title(label),
                "encoding": name(encoding),
                "profile": name(profile),
            },
        )
    # Each is renamed once: what is read is whole before the first is written.
    for key, label, owner in connection.execute(
        sa.text("SELECT session_key, name, owner FROM settings_profiles")
    ).fetchall():
        connection.execute(
            sa.text(
                "UPDATE settings_profiles SET name = :name, owner = :owner"
                " WHERE session_key = :key AND name = :was"
            ),
            {"key": key, "was": label, "name": name(label), "owner": name(owner)},
        )


_PLACE = ("key", "branch", "position", "ordinal")
_AT = (
    "WHERE session_key = :key AND branch = :branch AND position = :position AND ordinal = :ordinal"
)


def hidden(where: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield where thinking blocks are that may be hidden, and their JSON."""
    for *place, data in pages(
        "SELECT session_key, branch, position, ordinal, data FROM thinking_blocks"  # noqa: S608
        " WHERE (session_key, branch, position, ordinal) > (:key, :branch, :position, :ordinal)"
        f" AND {where} ORDER BY session_key, branch, position, ordinal LIMIT :page",
        _PLACE,
        {"key": -1, "branch": 0, "position": 0, "ordinal": 0},
    ):
        fields = {} if data is None else codec.loads(data)
        yield dict(zip(_PLACE, place, strict=True)), fields


def write(place: dict[str, Any], fields: dict[str, Any], setting: str) -> None:
    op.get_bind().execute(
        sa.text(f"UPDATE thinking_blocks SET data = :data{setting} {_AT}"),  # noqa: S608
        {**place, "data": codec.dumps(fields) if fields else None},
    )


def upgrade() -> None:
    rename(plain, plain_title)
    op.add_column(
        "thinking_blocks",
        sa.Column("is_hidden", sa.Integer(), nullable=False, server_default=sa.text("0")),
    )
    for place, fields in hidden(r"""data LIKE '%"isHidden"\:true%'"""):
        if fields.pop("isHidden", False) is True:
            write(place, fields, ", is_hidden = 1")
    change_append(APPEND)
    view = VIEW.format(**(POSTGRES if on_postgres() else SQLITE))
    op.get_bind().exec_driver_sql(view)


def downgrade() -> None:
    op.execute("DROP VIEW conversation")
    change_append([(new, old) for old, new in APPEND])
    for place, fields in hidden("is_hidden = 1"):
        write(place, {**fields, "isHidden": True}, "")
    op.drop_column("thinking_blocks", "is_hidden")
    rename(quoted, quoted)
