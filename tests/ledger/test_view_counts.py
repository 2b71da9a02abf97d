"""Counts of a view: what a recount gives, whatever was compacted, cleared and undone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import ToolResponseBlock
from reasoning_store.conversation.errors import Conflict, NotFound, ReasoningStoreError
from reasoning_store.conversation.placeholders import PLACEHOLDER
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import SessionRow, StoredRow
from reasoning_store.ledger.view_records import Cleared, SummaryRange, SummaryRow
from tests.properties import examples

from .compacting import clear, compact, summary
from .histories import answered, entries, new_session, said, stored_messages
from .reads import watched
from .whole import check_narrow, narrow, whole


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
def test_a_view_without_blocks_counts_what_the_whole_one_does(
    ledger: Ledger, steps: list[tuple[str, int, Any]]
) -> None:
    """Whatever was appended, forked, compacted, cleared and undone, wherever it is asked for."""
    session = new_session(ledger)
    lines = [Line(1)]
    clearable: dict[str, int] = {}
    for kind, which, what in steps:
        line = lines[which % len(lines)]
        if kind == "append":
            for row, entry in zip(
                ledger.messages.append(session.key, line.number, what), what, strict=True
            ):
                clearable[row.id] = entry.counts.clearable
        elif kind == "fork":
            at = min(what, ledger.branches.get(session.key, line.number).head) + 1
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
        check_line(ledger, session, line, clearable)


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
    open_turn = ledger.branches.turn_start(session.key, line.number) or 0
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
    turn_start = ledger.branches.turn_start(session.key, line.number)
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
    ledger: Ledger, session: SessionRow, line: Line, clearable: Mapping[str, int]
) -> None:
    rows = stored_messages(ledger, session.key, line.number)
    for at in range(len(rows) + 1):
        turn_start = max((row.position for row in rows[:at] if row.message.starts_turn), default=0)
        ranges = line.in_force(turn_start)
        cleared = line.cleared(turn_start)
        snapshot, narrow_rows = narrow(ledger, session.key, line.number, at)
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
        assert [row.last for row in narrow_rows] == [
            one.last if isinstance(one, Made) else one.position for one in expected
        ]
        check_narrow(ledger, session.key, line.number, at)
        assert snapshot.in_force.ranges == tuple(
            SummaryRange(one.number, one.first, one.last, one.tokens, one.exactness)
            for one in ranges
        )
        assert snapshot.in_force.cleared == (
            None if cleared is None else Cleared(cleared.number, cleared.last)
        )
    assert ledger.views.view(session.key, line.number) == ledger.views.view(
        session.key, line.number, len(rows)
    )
    whole(ledger, session.key)


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
            narrow(ledger, session.key, 1)
            narrow(ledger, session.key, 1, 9)
            narrow(ledger, session.key, other)
        found.append([*work])
        in_force = ledger.views.compactions(session.key, 1)
        assert [(one.first, one.last) for one in in_force] == [(1, 2 * times - 2)] * 2
        before = narrow(ledger, session.key, 1, 9)[0].in_force
        assert [(one.first, one.last) for one in before.ranges] == [(1, 8)]
        assert before.cleared is not None
        assert before.cleared.last == 8

    assert found[0] == found[1]
