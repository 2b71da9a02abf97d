"""A ledger that lives by a clock of the test's, waits for less long, or has another library."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from sqlalchemy import URL

from reasoning_store.ledger.database import opening, sqlite_connections
from reasoning_store.ledger.ledger import Ledger


def open_ledger(
    url: str | URL,
    *,
    clock: Callable[[], int] | None = None,
    new_id: Callable[[], str] | None = None,
    busy_timeout: float = opening.BUSY_TIMEOUT,
    driver: ModuleType | None = None,
    connections: int = 8,
) -> Ledger:
    """Open a ledger; ``driver`` is the DB-API module of SQLite."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "BUSY_TIMEOUT", busy_timeout)
        if driver is not None:
            patch.setattr(sqlite_connections, "library", lambda: driver)
        ledger = Ledger.open(url, connections=connections)
    if clock is not None:
        ledger.clock.now = clock
    if new_id is not None:
        ledger.clock.new_id = new_id
    return ledger


def never_rewritten(ledger: Ledger) -> None:
    """Let erasing leave the file as it is: that takes long, and changes no row."""
    database: Any = ledger.database
    database.require_scrub = lambda connection: None
