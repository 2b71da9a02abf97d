"""The carried state of a conversation, made again from its rows: what every state is held to.

It reads the rows as they are and adds them up in Python, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from reasoning_store.conversation.blocks import (
    Block,
    Counts,
    ThinkingBlock,
    ToolCallBlock,
)
from reasoning_store.conversation.thinking_header import ThinkingHeader
from reasoning_store.ledger import branches, history
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import RunningTotals
from reasoning_store.ledger.rows import totals
from reasoning_store.ledger.rows.decode import decode_totals
from reasoning_store.ledger.tables import (
    TOTALS,
    bodies,
    messages,
)

_m, _b = messages.c, bodies.c
_STATES = Statement(
    select(
        _m.position,
        _m.origin,
        _m.clearable,
        _b.sent.is_not(None),
        *(_m[column] for column in TOTALS),
    )
    .where(*history.in_range(_m))
    .where(_b.session_key == _m.session_key, _b.branch == _m.branch, _b.position == _m.position)
    .order_by(_m.position)
)


class Recounted(NamedTuple):
    """The state that a row carries, and the one that its lineage's rows give."""

    stored: RunningTotals
    actual: RunningTotals


def state_of(
    blocks: Iterable[Block],
    counts: Counts,
    *,
    starts_turn: bool,
    origin: int | None,
    has_request: bool,
) -> RunningTotals:
    """Return the state of a conversation that is this one message."""
    all_blocks = list(blocks)
    thinking = [block for block in all_blocks if isinstance(block, ThinkingBlock)]
    return totals.message_totals(
        [
            ThinkingHeader.of(place, tokens, block)
            for place, (block, tokens) in enumerate(zip(thinking, counts.thinking, strict=True))
        ],
        visible=counts.visible,
        clearable=counts.clearable,
        exactness=counts.exactness,
        has_call=any(isinstance(block, ToolCallBlock) for block in all_blocks),
        starts_turn=starts_turn,
        origin=origin,
        has_request=has_request,
    )


def recount(ledger: Ledger, key: int, branch: int) -> list[Recounted]:
    """Return the state of each row next to the one that the rows give; the branch's own is last."""

    def work(connection: Connection) -> list[Recounted]:
        found = branches.get(connection, key, branch)
        rows = history.of_segments(connection, key, list(found.segments), thinking=True)
        stored: list[tuple[Any, ...]] = []
        for segment in found.segments:
            stored += _STATES.rows(connection, history.params(key, segment))
        steps = [
            state_of(
                row.message.blocks,
                Counts(
                    visible=row.counts.visible,
                    thinking=row.counts.thinking,
                    exactness=row.counts.exactness,
                    clearable=clearable,
                ),
                starts_turn=row.message.starts_turn,
                origin=origin,
                has_request=bool(sent),
            )
            for row, (_, origin, clearable, sent, *_rest) in zip(rows, stored, strict=True)
        ]
        pairs = [
            Recounted(stored=decode_totals(position, columns), actual=actual)
            for (position, _, _, _, *columns), actual in zip(
                stored, totals.running_totals(steps), strict=True
            )
        ]
        head = pairs[-1].actual if pairs else totals.NOTHING
        return [*pairs, Recounted(stored=found.totals, actual=head)]

    return ledger.database.read(work)
