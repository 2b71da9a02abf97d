"""Counts of a view: what a recount gives, whatever was compacted, cleared and undone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import Origin, ToolResponseBlock
from reasoning_store.conversation.errors import Conflict, NotFound, ReasoningStoreError
from reasoning_store.conversation.placeholders import PLACEHOLDER
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import NewMessage, RunningTotals, SessionRow, StoredRow
from reasoning_store.ledger.rows import totals
from reasoning_store.ledger.rows.keys import origin_number
from reasoning_store.ledger.view_records import Cleared, SummaryRange, SummaryRow
from tests.properties import examples

from .compacting import clear, compact, conversation, summary
from .counting import counted
from .histories import answered, entries, new_session, said, stored_messages
from .reads import watched
from .recounting import recount, state_of


@dataclass
class Made:
    """A compaction as the test remembers it."""

    number: int
    first: int
    last: int
    tokens: int
    exactness: Any
    clears: bool = False
    undone: bool = False


@dataclass
class Line:
    """A branch as the test remembers it."""

    number: int
    made: list[Made] = field(default_factory=list)

    def cleared(self, turn_start: int | None) -> Made | None:
        """How far tool results are cleared."""
        there = self.in_force(turn_start, clears=True)
        return max(there, key=lambda one: one.last, default=None)

    def in_force(self, turn_start: int | None, *, clears: bool = False) -> list[Made]:
        """Those that end before the turn and lie in no later one that does."""
        there = [
            one
            for one in self.made
            if one.clears == clears and not one.undone and one.last < (turn_start or 0)
        ]
        return sorted(
            (
                one
                for one in there
                if not any(
                    other.number > one.number
                    and other.first <= one.first
                    and one.last <= other.last
                    for other in there
                )
            ),
            key=lambda one: one.first,
        )


def recounted(
    rows: Sequence[StoredRow],
    ranges: Sequence[Made],
    cleared: Made | None,
    sent: set[str],
    numbers: dict[Origin, int],
    clearable: Mapping[str, int],
) -> RunningTotals:
    """Count a view from its messages, the long way."""
    outside = [
        row for row in rows if not any(one.first <= row.position <= one.last for one in ranges)
    ]
    state = counted(outside, sent, numbers, clearable)
    gone = sum(
        clearable[row.id] for row in outside if cleared is not None and row.position <= cleared.last
    )
    labels = [one.exactness for one in ranges]
    return state._replace(
        position=len(rows),
        visible=state.visible + sum(one.tokens for one in ranges) - gone,
        clearable=state.clearable - gone,
        reported=state.reported + labels.count("reported"),
        estimated=state.estimated + labels.count("estimated"),
        last_sent=counted(rows, sent, numbers).last_sent,
    )


def as_cleared(row: StoredRow, cleared: Made | None, clearable: Mapping[str, int]) -> StoredRow:
    """A message as a view has it: with a placeholder for each result, where that frees any."""
    own = clearable[row.id]
    if not own or cleared is None or row.position > cleared.last:
        return row
    blocks = [
        replace(block, result=PLACEHOLDER, provider_metadata=None)
        if isinstance(block, ToolResponseBlock) and codec.result_text(block)[len(PLACEHOLDER) :]
        else block
        for block in row.message.blocks
    ]
    counts = replace(row.counts, visible=row.counts.visible - own)
    return replace(row, message=replace(row.message, blocks=tuple(blocks)), counts=counts)


def comparable(state: RunningTotals) -> RunningTotals:
    """Kinds of thinking that count nothing may be there or not."""
    return state._replace(opaque={key: sums for key, sums in state.opaque.items() if any(sums)})


def sums_of(state: RunningTotals) -> RunningTotals:
    return comparable(state)._replace(turn_start=None, turn_has_call=False, last_thinking=None)


turns = st.lists(st.lists(entries(), min_size=1, max_size=3), min_size=1, max_size=4).map(
    lambda groups: [entry for group in groups for entry in (said(), *group)]
)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 3), turns),
        st.tuples(st.just("append"), st.integers(0, 3), turns),
        st.tuples(st.just("fork"), st.integers(0, 3), st.integers(0, 20)),
        *[
            st.tuples(
                st.just("compact"),
                st.integers(0, 3),
                st.tuples(
                    st.integers(0, 6),
                    st.integers(0, 6),
                    st.sampled_from(["exact", "reported", "estimated"]),
                ),
            )
        ]
        * 3,
        st.tuples(st.just("clear"), st.integers(0, 3), st.integers(0, 30)),
        st.tuples(st.just("undo"), st.integers(0, 3), st.integers(1, 5)),
    ),
    min_size=2,
    max_size=12,
)


@examples(60)
@given(steps=steps)
def test_usage_of_a_view_equals_a_recount_of_it(
    ledger: Ledger, steps: list[tuple[str, int, Any]]
) -> None:
    """Whatever was appended, forked, compacted, cleared and undone, wherever it is asked for."""
    session = new_session(ledger)
    lines = [Line(1)]
    sent: set[str] = set()
    clearable: dict[str, int] = {}
    for kind, which, what in steps:
        line = lines[which % len(lines)]
        if kind == "append":
            for row, entry in zip(
                ledger.messages.append(session.key, line.number, what), what, strict=True
            ):
                sent |= {row.id} if entry.request_facts is not None else set()
                clearable[row.id] = entry.counts.clearable
        elif kind == "fork":
            at = min(what, ledger.branches.totals(session.key, line.number).position) + 1
            number = ledger.branches.fork(session.key, line.number, at)
            kept = [replace(one) for one in line.made if one.last < at and not one.undone]
            lines.append(Line(number, kept))
        elif kind == "compact":
            try_to_compact(ledger, session, line, *what)
        elif kind == "clear":
            try_to_clear(ledger, session, line, what)
        else:
            undo(ledger, session, line, what)

    for line in lines:
        check_line(ledger, session, line, sent, clearable)


def try_to_compact(
    ledger: Ledger, session: SessionRow, line: Line, start: int, length: int, label: Any
) -> None:
    rows = stored_messages(ledger, session.key, line.number)
    starts = [row.position for row in rows if row.message.starts_turn]
    if len(starts) < 2:
        return
    begin = min(start, len(starts) - 2)
    end = min(begin + 1 + length, len(starts) - 1)
    first, last = starts[begin], starts[end] - 1
    tokens = 100 + len(line.made)
    top = line.in_force(1 << 62)
    crossed = [
        one
        for one in top
        if one.first <= last and first <= one.last and not (first <= one.first and one.last <= last)
    ]
    if crossed:
        with pytest.raises(Conflict):
            compact(ledger, session.key, line.number, first, last, summary())
        return
    row = compact(
        ledger, session.key, line.number, first, last, summary("S", tokens, exactness=label)
    )
    inside = {one.number for one in top if first <= one.first and one.last <= last}
    assert set(row.supersedes) == inside
    line.made.append(Made(row.number, first, last, tokens, label))


def try_to_clear(ledger: Ledger, session: SessionRow, line: Line, upto: int) -> None:
    open_turn = ledger.branches.totals(session.key, line.number).turn_start or 0
    now = line.cleared(open_turn)
    inside = {one.number for one in line.in_force(1 << 62, clears=True) if one.last <= upto}
    try:
        row = clear(ledger, session.key, line.number, upto)
    except ReasoningStoreError:
        assert not (now.last if now is not None else 0) < upto < open_turn
        return
    assert set(row.supersedes) == inside
    line.made.append(Made(row.number, 1, upto, 0, "exact", clears=True))


def undo(ledger: Ledger, session: SessionRow, line: Line, number: int) -> None:
    found = next((one for one in line.made if one.number == number), None)
    if found is None:
        with pytest.raises(NotFound):
            ledger.compactions.undo(session.key, line.number, number)
        return
    turn_start = ledger.branches.totals(session.key, line.number).turn_start
    wider = [
        one
        for one in line.in_force(turn_start, clears=found.clears)
        if one is not found and one.first <= found.first and found.last <= one.last
    ]
    if found.undone or not wider:
        assert ledger.compactions.undo(session.key, line.number, number).undone_at is not None
        found.undone = True
    else:
        with pytest.raises(Conflict):
            ledger.compactions.undo(session.key, line.number, number)


def check_line(
    ledger: Ledger,
    session: SessionRow,
    line: Line,
    sent: set[str],
    clearable: Mapping[str, int],
) -> None:
    rows = stored_messages(ledger, session.key, line.number)
    numbers = {
        origin: origin_number(codec.dumps(codec.origin_to_json(origin)))
        for row in rows
        if row.message.origin
        for origin in [replace(row.message.origin, response_id=None)]
    }
    for at in range(len(rows) + 1):
        plain = counted(rows[:at], sent, numbers, clearable)
        ranges = line.in_force(plain.turn_start)
        cleared = line.cleared(plain.turn_start)
        found = ledger.views.view_totals(session.key, line.number, at=at)
        view = ledger.views.view(session.key, line.number, at)
        by_first = {one.first: one for one in ranges}
        expected: list[Any] = [
            by_first.get(row.position) or as_cleared(row, cleared, clearable)
            for row in rows[:at]
            if row.position in by_first
            or not any(one.first <= row.position <= one.last for one in ranges)
        ]
        assert [one.number if isinstance(one, (SummaryRow, Made)) else one for one in view] == [
            one.number if isinstance(one, Made) else one for one in expected
        ]
        assert found.in_force.ranges == tuple(
            SummaryRange(one.number, one.first, one.last, one.tokens, one.exactness)
            for one in ranges
        )
        assert found.in_force.cleared == (
            None if cleared is None else Cleared(cleared.number, cleared.last)
        )
        assert comparable(found.uncompacted) == comparable(plain)
        given = (ranges, cleared, sent, numbers, clearable)
        assert comparable(found.head) == comparable(recounted(rows[:at], *given))
        turn = (plain.turn_start or 1) - 1
        before = recounted(rows[:turn], *given)
        assert sums_of(before) == sums_of(found.before_turn)
        last = found.head.last_thinking
        if last is None:
            assert found.last_thinkers == ()
        else:
            own = found.last_thinkers[0]
            alone = counted([rows[last - 1]], set(), numbers)
            assert (own.position, own.portable) == (last, alone.portable)
            assert own.has_call == bool(rows[last - 1].message.tool_calls)
            assert {key: value for key, value in own.opaque.items() if value} == {
                key: value for key, (value, _) in alone.opaque.items() if value
            }
        kinds = {totals.origin_of(key) for key in found.head.opaque} - {0}
        assert kinds == set(found.origins)
    assert ledger.views.view_totals(session.key, line.number) == ledger.views.view_totals(
        session.key, line.number, at=len(rows)
    )
    assert ledger.views.view(session.key, line.number) == ledger.views.view(
        session.key, line.number, len(rows)
    )
    assert all(one.stored == one.actual for one in recount(ledger, session.key, line.number))
    states = ledger.views.totals_at(session.key, line.number, range(len(rows) + 1))
    assert all(
        comparable(states[at]) == comparable(counted(rows[:at], sent, numbers, clearable))
        for at in range(len(rows) + 1)
    )


@given(entries(), entries(), entries())
def test_what_is_between_two_states_is_what_was_put_there(
    one: NewMessage, two: NewMessage, three: NewMessage
) -> None:
    """Taking it away again leaves what was there, and the summary in its place."""
    a, b, c = (
        state_of(
            entry.message.blocks,
            entry.counts,
            starts_turn=entry.message.starts_turn,
            origin=7,
            has_request=False,
        )
        for entry in (one, two, three)
    )
    ab = totals.add_totals(a, b)
    whole, rest = totals.add_totals(ab, c), totals.add_totals(a, c)

    sums = totals.totals_between(a, ab)
    left = totals.view_of(whole, [(sums, SummaryRange(1, 2, 2, 9, "estimated"))])

    for name in ("visible", "portable", "portable_calls", "reported", "estimated"):
        assert getattr(sums, name) == getattr(b, name)
        more = {"visible": 9, "estimated": 1}.get(name, 0)
        assert getattr(left, name) == getattr(rest, name) + more
    assert comparable(left).opaque == comparable(rest).opaque


def test_usage_of_a_view_reads_as_much_at_5000_messages_as_at_100(
    ledger: Ledger,
) -> None:
    """The same statements, and the same number of rows; a view reads its gaps only."""
    session = conversation(ledger, 50)
    for first in (1, 11, 31):
        compact(ledger, session.key, 1, first, first + 5, summary())

    def reads(verb: Any, *given: Any) -> list[int]:
        with watched() as work:
            verb(session.key, 1, *given)
        return work

    few = [reads(ledger.views.view_totals), reads(ledger.views.view_totals, 60)]
    ledger.messages.append(session.key, 1, [said(), answered()] * 2450)
    many = [reads(ledger.views.view_totals), reads(ledger.views.view_totals, 60)]

    assert few == many
    assert max(sum(rows) for rows in few) < 20
    compact(ledger, session.key, 1, 1, 4900, summary())
    assert sum(reads(ledger.views.view)) < 100 * 3 + 20


def test_a_session_that_was_compacted_often_is_counted_as_one_that_was_not(
    ledger: Ledger,
) -> None:
    """What is superseded, undone or yet to hold is not read, but for a few rows."""
    found: list[list[int]] = []
    for times in (9, 40):
        session = new_session(ledger)
        for last in range(2, 2 * times + 1, 2):
            ledger.messages.append(session.key, 1, [said(), answered()])
            if last > 2:
                compact(ledger, session.key, 1, 1, last - 2, said(f"up to {last}"))
                clear(ledger, session.key, 1, last - 2)
        other = ledger.branches.fork(session.key, 1, 2 * times)
        ledger.messages.append(session.key, 1, [said()])
        made = compact(ledger, session.key, 1, 1, 2 * times, said("undone"))
        ledger.compactions.undo(session.key, 1, made.number)
        with watched() as work:
            ledger.views.view_totals(session.key, 1)
            ledger.views.view_totals(session.key, 1, 9)
            ledger.views.view_totals(session.key, other)
        found.append([*work])
        in_force = ledger.views.compactions(session.key, 1)
        assert [(one.first, one.last) for one in in_force] == [(1, 2 * times - 2)] * 2
        before = ledger.views.view_totals(session.key, 1, 9).in_force
        assert [(one.first, one.last) for one in before.ranges] == [(1, 8)]
        assert before.cleared is not None
        assert before.cleared.last == 8

    assert found[0] == found[1]
