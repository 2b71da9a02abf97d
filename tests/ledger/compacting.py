"""One compaction alone, as the tests make them; the store makes those of a plan together."""

from __future__ import annotations

from typing import Any

from reasoning_store.conversation.blocks import Counts, user
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import NewMessage, SessionRow
from reasoning_store.ledger.view_records import (
    CompactionRow,
    NewCompaction,
    RangeSnapshot,
    SummaryRow,
)

from .histories import answered, new_session, said


def summary(text: str = "They met.", tokens: int = 5, **given: Any) -> NewMessage:
    return NewMessage(user(text), Counts(visible=tokens, **given))


def conversation(ledger: Ledger, turns: int) -> SessionRow:
    """A session of turns of two messages each: 1-2, 3-4, ..."""
    session = new_session(ledger)
    for n in range(turns):
        ledger.messages.append(session.key, 1, [said(f"q{n}"), answered(f"a{n}", f"t{n}")])
    return session


def compact(
    ledger: Ledger,
    key: int,
    branch: int,
    first: int,
    last: int,
    summary: NewMessage,
    *,
    expected: RangeSnapshot | None = None,
    effective: int | None = None,
) -> SummaryRow:
    """Let a summary stand for the messages ``first..last`` of a branch."""
    wanted = NewCompaction(
        first=first, last=last, summary=summary, expected=expected, effective=effective
    )
    (made,) = ledger.compactions.make(key, branch, [wanted])
    assert isinstance(made, SummaryRow)
    return made


def clear(
    ledger: Ledger,
    key: int,
    branch: int,
    upto: int,
    *,
    expected: RangeSnapshot | None = None,
    effective: int | None = None,
    settings: dict[str, Any] | None = None,
) -> CompactionRow:
    """Clear the tool results up to and with a position, and change settings with it."""
    wanted = NewCompaction(first=1, last=upto, summary=None, expected=expected, effective=effective)
    return ledger.compactions.make(key, branch, [wanted], settings=settings)[0]
