"""What is looked at after every kill, cut and refusal."""

from __future__ import annotations

from contextlib import closing

from reasoning_store.ledger.database import sqlite_connections
from reasoning_store.ledger.ledger import Ledger


def check_whole(url: str) -> None:
    """The database is sound, and all that is stored is as it was written."""
    if url.startswith("sqlite"):
        raw = sqlite_connections.library().connect(url.removeprefix("sqlite:///"))
        with closing(raw):
            assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with Ledger.open(url) as ledger:
        assert ledger.audit.verify().problems == ()
