"""What holds of a session's rows whatever was done to it."""

from __future__ import annotations

from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import NewMessage
from reasoning_store.ledger.rows import encode

from .histories import stored_messages
from .recounting import recount


def whole(ledger: Ledger, key: int) -> None:
    """The carried state of every row is what its lineage gives, the rows are their digests."""
    for branch in ledger.branches.all_of(key):
        assert all(one.stored == one.actual for one in recount(ledger, key, branch.number))
        for row in stored_messages(ledger, key, branch.number):
            entry = NewMessage(row.message, row.counts)
            again = encode.encode_message(entry, id=row.id, created_at=row.created_at)
            assert row.digest == again.columns["digest"]
