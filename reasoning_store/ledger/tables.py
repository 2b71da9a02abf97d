"""The schema: the columns of each table, once, for SQLite and PostgreSQL.

Every primary key, unique constraint and foreign key starts with ``session_key`` (see
``keys``), so that one session is one index range and the rows shard by that column. There
are no sequences and no identity columns. ``settings_profiles`` belongs to an owner, not to
a session: its session key is the owner's own, which no session can have.

Texts. Names (owner, id, title, encoding, profile) and prose (``bodies.text``,
``thinking_blocks.thought``) are plain text in their columns, so that people can read them and
search for them in SQL. PostgreSQL refuses NUL in a text: a name with one is refused, and prose
with one is stored in the row's JSON. JSON is never JSONB.

``messages`` is narrow, because every count is read from it; on SQLite it is stored in key
order (WITHOUT ROWID). Long texts are in tables with a rowid: a request that strips
reasoning never touches ``thinking_blocks``.

This module knows the columns. Migrations create them; nothing else does. The values of a column are
stated here and written in ``columns``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    bindparam,
    literal_column,
    text,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.types import TypeEngine, UserDefinedType

from reasoning_store.ledger.message_columns import COLUMNS, NAMES
from reasoning_store.ledger.records import Segment

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

BIG: TypeEngine[Any] = BigInteger().with_variant(sqlite.INTEGER(), "sqlite")
"""63 bits on both engines; a STRICT table of SQLite knows no other name for it."""


class _OnServer(UserDefinedType[str]):
    """A type that only PostgreSQL has; named here, its dialect is loaded where it is used."""

    cache_ok = True

    def __init__(self, name: str) -> None:
        self.name = name

    def get_col_spec(self, **_: Any) -> str:
        return self.name


WORDS: TypeEngine[str] = Text().with_variant(_OnServer("TSVECTOR"), "postgresql")
QUERY: TypeEngine[str] = _OnServer("TSQUERY")
STRICT: dict[str, Any] = {"sqlite_strict": True}
CLUSTERED: dict[str, Any] = {"sqlite_strict": True, "sqlite_with_rowid": False}


def _key(name: str = "session_key") -> Column[Any]:
    return Column(name, BIG, nullable=False, autoincrement=False)


def _need(name: str, kind: Any = BIG) -> Column[Any]:
    return Column(name, kind, nullable=False, autoincrement=False)


def _may(name: str, kind: Any = BIG) -> Column[Any]:
    return Column(name, kind, nullable=True)


def _belongs_to(table: str, *columns: str) -> ForeignKeyConstraint:
    names = ("session_key", *columns)
    return ForeignKeyConstraint(names, [f"{table}.{name}" for name in names], ondelete="CASCADE")


sessions = Table(
    "sessions",
    metadata,
    _key(),
    _need("owner_key"),  # keys.owner_key: what a list of an owner's sessions is read by
    _need("owner", Text),
    _need("id", Text),
    _may("title", Text),
    _need("metadata", Text),
    _need("settings", Text),
    _may("profile", Text),  # the name of the settings profile that it uses
    _need("encoding", Text),
    _need("current_branch", Integer),  # no foreign key: the branch refers to the session
    _need("next_branch", Integer),
    _need("archived", Integer),  # 0 or 1
    # What was thought here on all branches: values.BudgetRow
    _need("sum_reasoning"),
    _need("sum_counted"),
    _need("sum_unreported"),
    _may("crossed", Text),  # [name, ...]: the marks of a budget that were told
    _may("erased_at"),  # when something in it last was: what was read before is stale
    _need("created_at"),
    _need("updated_at"),
    PrimaryKeyConstraint("session_key"),
    Index("ix_sessions_latest", "owner_key", "archived", "updated_at", "session_key"),
    **STRICT,
)

branches = Table(
    "branches",
    metadata,
    _key(),
    _need("branch", Integer),
    _may("parent", Integer),
    _need("first"),
    _need("segments", Text),  # [[branch, first, last], ...] of what is shared, flat
    _need("next_position"),
    _may("draft", Text),  # the id of the live draft: at most one
    _may("instead_of", Integer),  # the branch that is current until something arrives here
    _need("next_compaction", Integer),
    _need("created_at"),
    PrimaryKeyConstraint("session_key", "branch"),
    _belongs_to("sessions"),
    **CLUSTERED,
)

origins = Table(
    "origins",
    metadata,
    _key(),
    _need("number"),  # keys.origin_number
    _need("origin", Text),  # JSON without the response id, which is each message's own
    PrimaryKeyConstraint("session_key", "number"),
    _belongs_to("sessions"),
    **CLUSTERED,
)

_KINDS = {"number": BIG, "small": Integer(), "text": Text(), "bytes": LargeBinary()}


def _described(names: Sequence[str]) -> Iterator[Column[Any]]:
    for name in names:
        column = COLUMNS[name]
        yield (_may if "optional" in column.facts else _need)(name, _KINDS[column.kind])


messages = Table(
    "messages",
    metadata,
    _key(),
    _need("branch", Integer),
    _need("position"),
    *_described(NAMES),
    PrimaryKeyConstraint("session_key", "branch", "position"),
    _belongs_to("branches", "branch"),
    ForeignKeyConstraint(["session_key", "origin"], ["origins.session_key", "origins.number"]),
    Index(
        "uq_messages_session_key_idempotency_key",
        "session_key",
        "idempotency_key",
        unique=True,
        # So on PostgreSQL too, by the migration; said here it would load that dialect always.
        sqlite_where=text("idempotency_key IS NOT NULL"),
    ),
    Index("ix_messages_id", "id", "session_key"),  # an application's own, in all sessions
    **CLUSTERED,
)

echoes = Table(
    "echoes",
    metadata,
    _key(),
    _need("branch", Integer),
    _need("position"),
    _need("number"),  # of a recorded reply: conversation/identity.py
    _need("client_group"),  # what its client named; 0 for nothing
    PrimaryKeyConstraint("session_key", "branch", "position", "number"),
    _belongs_to("messages", "branch", "position"),
    Index("ix_echoes_number", "number", "client_group", "session_key"),
    **CLUSTERED,
)

bodies = Table(
    "bodies",
    metadata,
    _key(),
    _need("branch", Integer),
    _need("position"),
    _may("text", Text),  # the first bare text block
    _may("data", Text),  # the other visible blocks, usage by place, metadata ...: columns
    _may("sent", Text),  # what the request of this reply was
    PrimaryKeyConstraint("session_key", "branch", "position"),
    _belongs_to("messages", "branch", "position"),
    **STRICT,
)

thinking_blocks = Table(
    "thinking_blocks",
    metadata,
    _key(),
    _need("branch", Integer),
    _need("position"),
    _need("ordinal", Integer),  # its place among all blocks of the message
    _need("tokens"),
    _may("source_field", Text),
    _may("thought", Text),
    _may("data", Text),  # the other fields, and what the two columns cannot hold
    Column("is_hidden", Integer, nullable=False, server_default=text("0")),
    PrimaryKeyConstraint("session_key", "branch", "position", "ordinal"),
    _belongs_to("messages", "branch", "position"),
    **STRICT,
)

withholdings = Table(
    "withholdings",
    metadata,
    _key(),
    _need("branch", Integer),
    _need("position"),
    _need("block", Integer),  # its place among all blocks of the message
    _need("part", Text),  # block, seal, or the index of a piece of a tool's result
    _need("digest", LargeBinary),  # of the seal, or of the bytes
    _need("tokens"),
    _need("reason", Text),
    _may("error", Text),  # the refusal, masked, its first characters
    _may("target", Text),  # JSON of the origin whose requests leave it out; NULL: every request
    _need("created_at"),
    _may("undone_at"),
    PrimaryKeyConstraint("session_key", "branch", "position", "block", "part"),
    _belongs_to("messages", "branch", "position"),
    **CLUSTERED,
)

drafts = Table(
    "drafts",
    metadata,
    _key(),
    _need("branch", Integer),
    _need("id", Text),  # of the message to be, and of its recorder: branches.draft
    _need("header", Text),  # JSON: origin, metadata: what is known before any part
    _may("sent", Text),
    _may("idempotency_key", Text),
    _need("parts", Integer),
    _may("lease_until"),  # NULL: taken from its recorder, to be made a message as it is
    _need("created_at"),
    _may("stop", Text),  # why its recorder is to stop, once anyone asked for it
    _may("followed_until"),  # until when readers in other processes follow it
    PrimaryKeyConstraint("session_key", "branch"),
    _belongs_to("branches", "branch"),
    **STRICT,
)

draft_parts = Table(
    "draft_parts",
    metadata,
    _key(),
    _need("branch", Integer),
    _need("part", Integer),
    _need("body", Text),  # JSON: what was added to the blocks since the part before
    PrimaryKeyConstraint("session_key", "branch", "part"),
    _belongs_to("drafts", "branch"),
    **STRICT,
)

compactions = Table(
    "compactions",
    metadata,
    _key(),
    _need("branch", Integer),
    _need("number", Integer),
    _need("first"),
    _need("last"),
    _may("summary", Text),  # JSON of the message, where it is a summary
    _need("tokens"),
    _need("exactness", Integer),
    _may("effective"),  # what the request counted once this was in force
    _need("supersedes", Text),  # [number, ...]: those inside, on this branch
    _may("superseded_by", Integer),
    _may("copied_from", Integer),  # the branch that a fork took it from
    _need("created_at"),
    _may("undone_at"),
    _may("along", Text),  # JSON of what was done with it: {"settings", "clearing"}
    _need("kind", Text),  # summary or clearing
    PrimaryKeyConstraint("session_key", "branch", "number"),
    _belongs_to("branches", "branch"),
    # Partial on PostgreSQL too, by the migration.
    Index(
        "ix_compactions_summaries",
        "session_key",
        "branch",
        "last",
        "number",
        sqlite_where=text("kind = 'summary' AND undone_at IS NULL"),
    ),
    Index(
        "ix_compactions_clearings",
        "session_key",
        "branch",
        "last",
        "number",
        sqlite_where=text("kind = 'clearing' AND undone_at IS NULL"),
    ),
    **STRICT,
)

settings_profiles = Table(
    "settings_profiles",
    metadata,
    _key(),  # keys.owner_key
    _need("name", Text),
    _need("owner", Text),
    _need("settings", Text),
    _need("updated_at"),
    PrimaryKeyConstraint("session_key", "name"),
    **STRICT,
)

search_entries = Table(
    "search_entries",
    metadata,
    _key(),
    _need("branch", Integer),  # 0 with position 0: the session's title
    _need("position"),
    _need("kind", Integer),  # search_lookup.KINDS
    _need("number"),  # by when it was said: search_lookup.first_number
    _need("words", WORDS),  # the different words, folded, and marks of owner and kind
    PrimaryKeyConstraint("session_key", "branch", "position", "kind"),
    _belongs_to("sessions"),
    Index("ix_search_entries_number", "number"),
    # On SQLite triggers keep search_index, an FTS5 table, by the words; on PostgreSQL there is a
    # GIN index on them.
    **STRICT,
)

search_progress = Table(
    "search_progress",
    metadata,
    _key(),
    _need("branch", Integer),  # 0: the title
    _need("next_position"),  # the first that is not in the index yet
    _may("title", Text),  # that is in the index
    PrimaryKeyConstraint("session_key", "branch"),
    _belongs_to("sessions"),
    **CLUSTERED,
)


def of_branch(columns: Any) -> tuple[ColumnElement[bool], ...]:
    """Return the condition that a row is of the branch ``of`` of the session ``key``."""
    return columns.session_key == bindparam("key"), columns.branch == bindparam("of")


def at_position(columns: Any) -> tuple[ColumnElement[bool], ...]:
    """Return the condition that a row is the branch's own at the position ``at``."""
    return *of_branch(columns), columns.position == bindparam("at")


def in_range(columns: Any) -> tuple[ColumnElement[bool], ...]:
    """Return the condition that a row is the branch's own from ``first`` to ``last``."""
    return *of_branch(columns), columns.position.between(bindparam("first"), bindparam("last"))


def range_params(key: int, part: Segment) -> dict[str, Any]:
    """Return the parameters of ``in_range``."""
    return {"key": key, "of": part.branch, "first": part.first, "last": part.last}


def has_flag(columns: Any, flags: int) -> ColumnElement[bool]:
    """Return the condition that a message has one of these flags (``message_flags``)."""
    found = columns.flags.op("&")(literal_column(str(flags))) != literal_column("0")
    return found  # type: ignore[no-any-return]


def of_same_message(columns: Any, others: Any) -> tuple[ColumnElement[bool], ...]:
    """Return the condition that the rows of two tables are of one message."""
    return (
        columns.session_key == others.session_key,
        columns.branch == others.branch,
        columns.position == others.position,
    )
