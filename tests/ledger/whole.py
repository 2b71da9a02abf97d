"""What holds of a session's rows whatever was done to it."""

from __future__ import annotations

from dataclasses import replace

from reasoning_store.conversation.message_flags import RECORDED, flags_of
from reasoning_store.conversation.thinking_header import ThinkingHeader
from reasoning_store.ledger import sessions
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.view_records import NarrowRow, RequestSnapshot, SummaryRow


def narrow(
    ledger: Ledger, key: int, branch: int, at: int | None = None
) -> tuple[RequestSnapshot, list[NarrowRow]]:
    """What the next request takes, and its view without any block."""
    return ledger.views.narrow(ledger.database.read(sessions.by_key, key), branch, at)


def count(ledger: Ledger, key: int, branch: int = 1, at: int | None = None) -> tuple[int, int]:
    """What the messages of a view count together, visible and thinking."""
    rows = narrow(ledger, key, branch, at)[1]
    return sum(row.counts.visible for row in rows), sum(sum(row.counts.thinking) for row in rows)


def check_narrow(ledger: Ledger, key: int, branch: int, at: int | None = None) -> None:
    """The view without blocks is the whole one, and its facts are those of the messages."""
    there = ledger.views.view(key, branch, at)
    rows = narrow(ledger, key, branch, at)[1]
    assert [row.position for row in rows] == [row.position for row in there]
    for row, made in zip(rows, there, strict=True):
        message = made.message
        assert row.is_summary == isinstance(made, SummaryRow)
        assert row.counts == replace(made.counts, clearable=0)
        assert (row.role, row.status) == (message.role, message.status)
        flags = 0 if row.is_summary else flags_of(message, is_recorded=bool(row.flags & RECORDED))
        assert row.flags == flags
        origin = message.origin
        assert row.origin == (None if origin is None else replace(origin, response_id=None))
        thoughts = [(at, one) for at, one in enumerate(message.blocks) if one.type == "thinking"]
        assert [*row.headers] == [
            ThinkingHeader.of(place, tokens, block)
            for (place, block), tokens in zip(thoughts, made.counts.thinking, strict=True)
        ]


def whole(ledger: Ledger, key: int) -> None:
    """Every row is what its message gives, and no branch has a gap."""
    assert ledger.audit._verify_session(key, None)[1] == []
    for branch in ledger.branches.all_of(key):
        check_narrow(ledger, key, branch.number)
