"""One compaction alone, as the tests make them; the store makes those of a plan together."""

from __future__ import annotations

from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.summaries import Basis, ClearingRow, CompactionRow, Wanted
from reasoning_store.ledger.values import Entry


def compact(
    ledger: Ledger,
    key: int,
    branch: int,
    first: int,
    last: int,
    summary: Entry,
    *,
    expected: Basis | None = None,
    effective: int | None = None,
) -> CompactionRow:
    """Let a summary stand for the messages ``first..last`` of a branch."""
    wanted = Wanted(first=first, last=last, summary=summary, expected=expected, effective=effective)
    (made,) = ledger.shorten(key, branch, [wanted])
    assert isinstance(made, CompactionRow)
    return made


def clear(
    ledger: Ledger,
    key: int,
    branch: int,
    upto: int,
    *,
    expected: Basis | None = None,
    effective: int | None = None,
) -> ClearingRow:
    """Clear the tool results up to and with a position."""
    wanted = Wanted(first=1, last=upto, summary=None, expected=expected, effective=effective)
    return ledger.shorten(key, branch, [wanted])[0]
