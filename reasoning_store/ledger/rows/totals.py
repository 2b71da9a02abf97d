"""How the state of a conversation grows: arithmetic on ``RunningTotals``, nothing else.

A message on its own has a state with position 1. ``add_totals`` puts one state after another and is
associative, so a batch can be summed before its position is known; the PostgreSQL append does the
same sum in SQL. A recount is the same fold over stored rows.

Knows what a message counts, by kind of thinking; knows no SQL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TypeAlias

from reasoning_store.conversation.blocks import Exactness
from reasoning_store.conversation.thinking_header import OPAQUE, ThinkingHeader
from reasoning_store.ledger.records import OwnThinking, RunningTotals
from reasoning_store.ledger.view_records import SummaryRange

NOTHING = RunningTotals()
Opaque: TypeAlias = Mapping[str, tuple[int, int]]


def opaque_key(origin: int | None, source_field: str | None) -> str:
    """Return the name under which opaque thinking of this origin and field is counted.

    Always printable ASCII: PostgreSQL reads these names as JSON keys, where it cannot
    hold every string. A field name that needs it is escaped, the backslash with it.
    """
    name = source_field or ""
    if not (name.isascii() and name.isprintable()) or "\\" in name:
        name = name.encode("unicode_escape").decode("ascii")
    return f"{origin or 0}:{name}"


def origin_of(key: str) -> int:
    """Return the origin number in an opaque key."""
    return int(key.partition(":")[0])


def field_of(key: str) -> str | None:
    """Return the source field in an opaque key."""
    return key.partition(":")[2].encode("ascii").decode("unicode_escape") or None


def message_totals(
    thinking: Sequence[ThinkingHeader],
    *,
    visible: int,
    clearable: int,
    exactness: Exactness,
    has_call: bool,
    starts_turn: bool,
    origin: int | None,
    has_request: bool,
) -> RunningTotals:
    """Return the state of one message, of which only this is known."""
    portable = 0
    opaque: dict[str, int] = {}
    for _, tokens, flags, source_field in thinking:
        if flags & OPAQUE:
            key = opaque_key(origin, source_field)
            opaque[key] = opaque.get(key, 0) + tokens
        else:
            portable += tokens
    return RunningTotals(
        1,
        visible,
        portable,
        portable if has_call else 0,
        {key: (own, own if has_call else 0) for key, own in opaque.items()},
        1 if starts_turn else None,
        has_call,
        1 if thinking else None,
        1 if has_request else None,
        int(exactness == "reported"),
        int(exactness == "estimated"),
        clearable,
    )


def add_totals(before: RunningTotals, after: RunningTotals) -> RunningTotals:
    """Return the totals of two parts of a conversation, one after the other."""
    base = before.position
    new_turn = after.turn_start is not None
    return RunningTotals(
        base + after.position,
        before.visible + after.visible,
        before.portable + after.portable,
        before.portable_calls + after.portable_calls,
        _together(before.opaque, after.opaque) if after.opaque else before.opaque,
        _moved(after.turn_start, base, before.turn_start),
        after.turn_has_call or (before.turn_has_call and not new_turn),
        _moved(after.last_thinking, base, before.last_thinking),
        _moved(after.last_sent, base, before.last_sent),
        before.reported + after.reported,
        before.estimated + after.estimated,
        before.clearable + after.clearable,
    )


def _together(before: Opaque, after: Opaque) -> Opaque:
    opaque = dict(before)
    for key, (own, calls) in after.items():
        sum_own, sum_calls = opaque.get(key, (0, 0))
        opaque[key] = (sum_own + own, sum_calls + calls)
    return opaque


def totals_between(before: RunningTotals, last: RunningTotals) -> RunningTotals:
    """Return the totals of the messages after ``before`` up to ``last``, which is included."""
    return RunningTotals(
        position=last.position - before.position,
        visible=last.visible - before.visible,
        portable=last.portable - before.portable,
        portable_calls=last.portable_calls - before.portable_calls,
        opaque=_opaque_between(before, last),
        reported=last.reported - before.reported,
        estimated=last.estimated - before.estimated,
        clearable=last.clearable - before.clearable,
    )


def _opaque_between(before: RunningTotals, last: RunningTotals) -> dict[str, tuple[int, int]]:
    return {
        key: (own - before.opaque.get(key, (0, 0))[0], calls - before.opaque.get(key, (0, 0))[1])
        for key, (own, calls) in last.opaque.items()
        if before.opaque.get(key) != (own, calls)
    }


def view_of(
    whole: RunningTotals, parts: Iterable[tuple[RunningTotals, SummaryRange]], cleared: int = 0
) -> RunningTotals:
    """Return a state with summaries in the place of ranges, of which the sums are given.

    ``cleared`` is what clearing frees outside of them. The positions of turns and of the last
    thinking are no sums, and stay as they are.
    """
    state = whole
    if cleared:
        state = whole._replace(visible=whole.visible - cleared, clearable=whole.clearable - cleared)
    for gone, summary in parts:
        opaque = dict(state.opaque)
        for key, (own, calls) in gone.opaque.items():
            all_own, all_calls = opaque.get(key, (0, 0))
            opaque[key] = (all_own - own, all_calls - calls)
        state = state._replace(
            visible=state.visible - gone.visible + summary.tokens,
            portable=state.portable - gone.portable,
            portable_calls=state.portable_calls - gone.portable_calls,
            opaque={key: sums for key, sums in opaque.items() if any(sums)},
            reported=state.reported - gone.reported + (summary.exactness == "reported"),
            estimated=state.estimated - gone.estimated + (summary.exactness == "estimated"),
            clearable=state.clearable - gone.clearable,
        )
    return state


def _moved(position: int | None, base: int, otherwise: int | None) -> int | None:
    return otherwise if position is None else base + position


def running_totals(steps: Iterable[RunningTotals]) -> Iterator[RunningTotals]:
    """Yield the totals after each of ``steps``."""
    return accumulate(steps, add_totals)


def own_thinking(before: RunningTotals, after: RunningTotals, *, has_call: bool) -> OwnThinking:
    """Return what one message thought itself, from the totals before and after it."""
    return OwnThinking(
        position=after.position,
        portable=after.portable - before.portable,
        opaque={key: own for key, (own, _) in _opaque_between(before, after).items()},
        has_call=has_call,
    )
