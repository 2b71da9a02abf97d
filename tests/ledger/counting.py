"""The carried state of a history, counted the long way, to compare the short one with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from reasoning_store.conversation.blocks import Origin
from reasoning_store.ledger.records import RunningTotals, StoredRow
from reasoning_store.ledger.rows import totals

NO_RESULTS: Mapping[str, int] = {}


def counted(
    rows: Sequence[StoredRow],
    sent: set[str],
    numbers: dict[Origin, int],
    clearable: Mapping[str, int] = NO_RESULTS,
) -> RunningTotals:
    """Count a history from its messages, the long way: no sums, no states.

    ``clearable`` is of each id what clearing that message's results frees.
    """
    visible = portable = portable_calls = 0
    opaque: dict[str, list[int]] = {}
    turn_start = last_thinking = last_sent = None
    turn_has_call = False
    labels = Counter(row.counts.exactness for row in rows)
    for row in rows:
        message = row.message
        has_call = bool(message.tool_calls)
        if message.starts_turn:
            turn_start, turn_has_call = row.position, False
        turn_has_call |= has_call
        visible += row.counts.visible
        number = 0
        if message.origin is not None:
            number = numbers[replace(message.origin, response_id=None)]
        for block, tokens in zip(message.thinking, row.counts.thinking, strict=True):
            if block.opaque:
                sums = opaque.setdefault(totals.opaque_key(number, block.source_field), [0, 0])
                sums[0] += tokens
                sums[1] += tokens * has_call
            else:
                portable += tokens
                portable_calls += tokens * has_call
        if message.thinking:
            last_thinking = row.position
        if row.id in sent:
            last_sent = row.position
    return RunningTotals(
        position=len(rows),
        visible=visible,
        portable=portable,
        portable_calls=portable_calls,
        opaque={key: (own, calls) for key, (own, calls) in opaque.items()},
        turn_start=turn_start,
        turn_has_call=turn_has_call,
        last_thinking=last_thinking,
        reported=labels["reported"],
        estimated=labels["estimated"],
        last_sent=last_sent,
        clearable=sum(clearable.get(row.id, 0) for row in rows),
    )
