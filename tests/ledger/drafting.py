"""Drafts of tests, and what is stored of them."""

from __future__ import annotations

from typing import Any

from reasoning_store.ledger.database.statement import driver
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import DraftRow, SessionRow

from .histories import add_part, part, stored_messages


def rows_of(ledger: Ledger, table: str) -> int:
    count: int = ledger.database.read(
        lambda connection: (
            driver(connection)
            .execute(f"SELECT count(*) FROM {table}")  # noqa: S608
            .fetchone()[0]
        )
    )
    return count


def texts(ledger: Ledger, session: SessionRow, branch: int = 1) -> list[str]:
    return [row.message.text for row in stored_messages(ledger, session.key, branch)]


def recording(ledger: Ledger, session: SessionRow, parts: int = 0, **given: Any) -> DraftRow:
    """A draft with so many parts."""
    draft = ledger.drafts.begin(session.key, 1, **given)
    for n in range(1, parts + 1):
        assert add_part(ledger, draft, n, part(f"{n} "))
    return draft
