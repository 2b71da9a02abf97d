"""What holds of a session's rows whatever was done to it."""

from __future__ import annotations

from reasoning_store.ledger import columns
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.values import Entry

from .recounting import recount


def whole(ledger: Ledger, key: int) -> None:
    """The carried state of every row is what its lineage gives, the rows are their digests."""
    for branch in ledger.branches(key):
        assert all(one.stored == one.actual for one in recount(ledger, key, branch.number))
        for row in ledger.history(key, branch.number):
            entry = Entry(row.message, row.counts)
            again = columns.prepare(entry, id=row.id, created_at=row.created_at)
            assert row.digest == again.columns["digest"]
