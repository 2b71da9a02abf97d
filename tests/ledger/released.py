"""The stored databases of each released schema, and what writes them.

    python -m tests.ledger.released

``schemas/<revision>.<engine>.sql`` is a small database as that release made it: its tables
and, in every one of them, rows of every kind. ``schemas/<revision>.jsonl`` is what the same
release exported of it. They are written once, when a revision is made, and whenever it
changes before it is released; after that they never change.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event, make_url

from reasoning_store.conversation.blocks import (
    Counts,
    MediaBlock,
    Message,
    Origin,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
    Usage,
    assistant,
    system,
    user,
)
from reasoning_store.conversation.validation import tool
from reasoning_store.ledger.database import (
    opening,
    schema_version,
    sqlite_connections,
)
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import NewMessage
from reasoning_store.ledger.tables import metadata

from .compacting import clear, compact
from .histories import add_part, part, said
from .opening import open_ledger

FOLDER = Path(__file__).parent / "schemas"
_START = int(datetime(2026, 1, 2, tzinfo=UTC).timestamp()) * 1_000_000


def opened(url: str | URL) -> Ledger:
    """A ledger whose times and ids are the same at every run."""
    times, ids = count(_START, 1_000_000), count(1)
    return open_ledger(url, clock=lambda: next(times), new_id=lambda: f"id-{next(ids):04}")


def conversation() -> list[NewMessage]:
    """Messages with every kind of block, opaque and portable thinking, calls and their answers."""
    native = Origin(provider="anthropic", api="anthropic.messages", model="m-1", response_id="r-1")
    field = Origin(provider="deepseek", api="openai.chat", model="m-2", base_url="https://x.test")

    def entry(
        message: Message, *thinking: int, clearable: int = 0, sent: dict[str, Any] | None = None
    ) -> NewMessage:
        return NewMessage(message, Counts(visible=5, thinking=thinking, clearable=clearable), sent)

    return [
        entry(system("Be brief.")),
        entry(user("Is 91 prime? \u00e9 \U0001f600", metadata={"from": "test\0"})),
        entry(
            assistant(
                ThinkingBlock(thought="7 * 13\nis 91", source_field="thinking", signature="sig"),
                ThinkingBlock(encrypted="c2VjcmV0", redacted=True),
                TextBlock(text="No."),
                ToolCallBlock(id="c", name="f", parameters={"x": [1, None]}, arguments='{"x":1}'),
                origin=native,
                usage=Usage(
                    input=10, output=20, reasoning=8, cached=1, cache_write=2, raw={"x": 1}
                ),
                finish_reason="tool_use",
            ),
            7,
            3,
            sent={"provider": "anthropic", "model": "m-1"},
        ),
        entry(
            tool(ToolResponseBlock(call_id="c", tool_name="f", result={"ok": "\0" + "!" * 30})),
            clearable=2,
        ),
        entry(
            assistant(
                ThinkingBlock(thought="a\0b", source_field="reasoning_content", is_hidden=True),
                TextBlock(text="It is 'not'.", provider_metadata={"id": "x"}),
                origin=field,
                status="interrupted",
            ),
            2,
        ),
        entry(
            user(
                MediaBlock(kind="image", mime_type="image/png", data=b"\0\xff"),
                MediaBlock(kind="file", mime_type="text/plain", url="https://x.test/a"),
                RawBlock(data={"new": [True]}),
            )
        ),
        entry(assistant(ThinkingBlock(thought="only this"), origin=field), 4),
    ]


def fill(ledger: Ledger) -> None:
    """Write rows of every kind: each is there for a column or a table that has it."""
    key = ledger.sessions.create(
        "owner",
        "first",
        encoding="o200k_base",
        title="A 'title' \\ \u00e9",
        metadata={"k": [1, "\0"]},
    ).key
    ledger.sessions.change_settings(key, {"reasoning.effort": "high"})
    ledger.profiles.set("owner", "careful", {"reasoning.enabled": True})
    ledger.sessions.use_profile(key, "careful")
    ledger.messages.append(key, 1, conversation(), idempotency_key="first")
    ledger.messages.append(key, 1, [said(), *conversation()[1:], said("again")])
    ledger.annotations.merge(key, 1, 3, {"rating": 1, "why": ["\0", None]})
    compact(ledger, key, 1, 2, 5, NewMessage(user("What came before."), Counts(visible=6)))
    compact(ledger, key, 1, 2, 7, NewMessage(user("All of it."), Counts(visible=3)))
    undone = compact(ledger, key, 1, 9, 14, NewMessage(user("More."), Counts(visible=2)))
    ledger.compactions.undo(key, 1, undone.number)
    clear(ledger, key, 1, 5)
    clear(ledger, key, 1, 11, effective=40, settings={"reasoning.stripFromContext": "all"})
    fork = ledger.branches.fork(key, 1, 13)
    ledger.messages.append(key, fork, [said("otherwise")], idempotency_key="other")
    ledger.branches.activate(key, fork)
    ledger.budgets.remember(key, "warn")
    draft = ledger.drafts.begin(
        key, fork, origin=Origin(model="m"), request_facts={"a": 1}, idempotency_key="third"
    )
    add_part(ledger, draft, 1, part("so f"))
    add_part(ledger, draft, 2, part("ar"))
    arrival = ledger.drafts.arrived(key, fork)
    assert arrival is not None
    ledger.drafts.follow(key, fork, arrival)
    ledger.drafts.stop(key, fork, "user")
    ledger.search.catch_up("owner")
    erased = ledger.sessions.create("owner", "second", encoding="o200k_base").key
    ledger.messages.append(erased, 1, conversation())
    ledger.erasure.erase_message(erased, 1, 2)
    ledger.erasure.erase_message(erased, 1, 5, only="reasoning")
    ledger.sessions.archive(ledger.sessions.create("", "old chat", encoding="cl100k_base").key)


_SCHEMA = ("CREATE", "ALTER", "DROP", "INSERT", "UPDATE alembic_version", "PRAGMA application_id")


def written(url: URL) -> str:
    """Make the database and return it as SQL: what the migrations say, and every row."""
    made: list[str] = []

    def note(_: Any, __: Any, statement: str, *___: Any) -> None:
        text = statement.strip()
        if text.startswith(_SCHEMA):
            # The driver's own escape, which a statement without parameters does not have.
            made.append(f"{text.replace('%%', '%')};")

    event.listen(Engine, "before_cursor_execute", note)
    try:
        opening.upgrade(url)
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    with opened(url) as ledger:
        fill(ledger)
    return "\n".join([*made, *_rows(url), ""])


def _rows(url: URL) -> Iterator[str]:
    as_bytes = "X'{}'" if url.get_backend_name() == "sqlite" else "'\\x{}'"
    made = create_engine(url.difference_update_query(["schema"]))
    with made.connect() as connection:
        for table in metadata.sorted_tables:
            for row in connection.execute(table.select().order_by(*table.primary_key)):
                values = ", ".join([_literal(value, as_bytes) for value in row])
                yield f"INSERT INTO {table.name} VALUES ({values});"  # noqa: S608
    made.dispose()


def _literal(value: Any, as_bytes: str) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return as_bytes.format(value.hex())
    return str(value) if isinstance(value, int) else "'{}'".format(value.replace("'", "''"))


def load(name: str, revision: str, url: str | URL) -> None:
    """Make an empty database the one that a release wrote."""
    text = (FOLDER / f"{revision}.{name}.sql").read_text("utf-8")
    made = make_url(url)
    if name == "sqlite":
        assert made.database is not None
        with closing(sqlite_connections.library().connect(made.database)) as raw:
            raw.executescript(text)
        return
    server = create_engine(made)
    with server.begin() as connection:
        raw = connection.connection.driver_connection
        assert raw is not None
        raw.execute(text)
    server.dispose()


def main() -> None:
    from tests.servers import server

    revision = schema_version.REVISIONS[-1]
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, server() as postgres:
        for name, url in (
            ("sqlite", make_url(f"sqlite:///{folder}/chat.db")),
            ("postgres", make_url(opening.with_schema(postgres, "public"))),
        ):
            (FOLDER / f"{revision}.{name}.sql").write_text(written(url), "utf-8")
            with Ledger.open(url) as ledger:
                lines = list(ledger.transfer.export_lines())
        (FOLDER / f"{revision}.jsonl").write_text("".join(lines), "utf-8")
    print(f"wrote {revision}", file=sys.stderr)


if __name__ == "__main__":
    main()
