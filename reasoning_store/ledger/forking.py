"""The SQL of forks: a branch, and its own of the compactions that end before it.

Knows how the two fit together; what each is stands in ``branches`` and ``compactions``.
"""

from __future__ import annotations

from sqlalchemy import Connection

from reasoning_store.ledger import branches, compacting


def fork(connection: Connection, key: int, branch: int, at: int, *, created_at: int) -> int:
    """Write a branch with all that is its own, and return its number."""
    number = branches.fork(connection, key, branch, at, created_at=created_at)
    compacting.copy(connection, key, branch, number, at)
    return number
