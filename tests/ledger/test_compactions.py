"""Compactions: what stands in the view, what it counts, and that all of it can be undone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import (
    Counts,
    Message,
    Origin,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
    assistant,
    user,
)
from reasoning_store.conversation.errors import (
    Conflict,
    CorruptRow,
    InvalidCall,
    NotFound,
    ReasoningStoreError,
)
from reasoning_store.conversation.placeholders import PLACEHOLDER
from reasoning_store.conversation.validation import tool
from reasoning_store.ledger.database.statement import driver
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import (
    NewMessage,
    RunningTotals,
    SessionRow,
    StoredRow,
)
from reasoning_store.ledger.rows import totals
from reasoning_store.ledger.rows.keys import origin_number
from reasoning_store.ledger.view_records import (
    Cleared,
    SummaryRange,
    SummaryRow,
    ViewRow,
)
from tests.properties import each, examples

from .compacting import clear, compact
from .counting import counted
from .histories import answered, any_text, entries, new_session, said
from .reads import watched
from .recounting import recount, state_of


def summary(text: str = "They met.", tokens: int = 5, **given: Any) -> NewMessage:
    return NewMessage(user(text), Counts(visible=tokens, **given))


def conversation(ledger: Ledger, turns: int) -> SessionRow:
    """A session of turns of two messages each: 1-2, 3-4, ..."""
    session = new_session(ledger)
    for n in range(turns):
        ledger.messages.append(session.key, 1, [said(f"q{n}"), answered(f"a{n}", f"t{n}")])
    return session


def shown(view: list[ViewRow]) -> list[str | int]:
    """Positions of messages, texts of summaries."""
    return [row.message.text if isinstance(row, SummaryRow) else row.position for row in view]


def in_force(ledger: Ledger, session: SessionRow, at: int | None = None) -> list[int]:
    return [*ledger.views.view_totals(session.key, 1, at).in_force.numbers]


# What stands in the view


def test_a_summary_is_sent_where_its_range_began(ledger: Ledger) -> None:
    """History, states of rows and the head stay what they were; nothing is written there."""
    session = conversation(ledger, 5)
    history, recounted = ledger.history.read(session.key, 1), recount(ledger, session.key, 1)

    ledger.clock.now = lambda: 1 << 60
    row = compact(ledger, session.key, 1, 3, 6, summary("S", 7))

    assert (row.number, row.first, row.last, row.position) == (1, 3, 6, 3)
    assert (row.message, row.counts) == (user("S"), Counts(visible=7))
    assert (row.created_at, row.undone_at, row.superseded_by, row.copied_from) == (
        1 << 60,
        *[None] * 3,
    )
    assert shown(ledger.views.view(session.key, 1)) == [1, 2, "S", 7, 8, 9, 10]
    assert ledger.views.compactions(session.key, 1) == [row]
    assert history == ledger.history.read(session.key, 1)
    assert recounted == recount(ledger, session.key, 1)
    assert [one for one in ledger.views.view(session.key, 1) if isinstance(one, StoredRow)] == [
        one for one in history if not 3 <= one.position <= 6
    ]


def test_a_view_without_thinking_reads_none(ledger: Ledger) -> None:
    """Its messages are those of a history, and so are their counts."""
    session = conversation(ledger, 3)
    compact(ledger, session.key, 1, 1, 2, summary("S"))

    view = ledger.views.view(session.key, 1, thinking_from=100)

    assert shown(view) == ["S", 3, 4, 5, 6]
    whole = ledger.history.read(session.key, 1, after=2)
    assert any(row.message.thinking for row in whole)
    assert not any(row.message.thinking for row in view[1:] if isinstance(row, StoredRow))
    assert [row.message.text for row in view[1:]] == [row.message.text for row in whole]
    assert [row.counts for row in view[1:]] == [row.counts for row in whole]


def test_ranges_in_force_stand_side_by_side(ledger: Ledger) -> None:
    """Also where one ends right before the other, and whatever the order of making."""
    session = conversation(ledger, 6)
    compact(ledger, session.key, 1, 7, 8, summary("c"))
    compact(ledger, session.key, 1, 1, 2, summary("a"))
    compact(ledger, session.key, 1, 3, 4, summary("b"))

    assert shown(ledger.views.view(session.key, 1)) == ["a", "b", 5, 6, "c", 9, 10, 11, 12]
    assert in_force(ledger, session) == [2, 3, 1]


def test_a_wider_one_supersedes_those_inside_and_undo_brings_them_back(ledger: Ledger) -> None:
    """Nothing is deleted: every one that there ever was is still told."""
    session = conversation(ledger, 6)
    for first in (1, 3, 7):
        compact(ledger, session.key, 1, first, first + 1, summary(f"s{first}"))

    wide = compact(ledger, session.key, 1, 1, 6, summary("wide"))
    assert wide.supersedes == (2, 1) or wide.supersedes == (1, 2)
    assert shown(ledger.views.view(session.key, 1)) == ["wide", "s7", 9, 10, 11, 12]

    widest = compact(ledger, session.key, 1, 1, 10, summary("widest"))
    assert sorted(widest.supersedes) == [3, 4]
    assert shown(ledger.views.view(session.key, 1)) == ["widest", 11, 12]
    assert [row.superseded_by for row in ledger.views.compactions(session.key, 1, every=True)] == [
        4,
        4,
        5,
        5,
        None,
    ]

    undone = ledger.compactions.undo(session.key, 1, 5)
    assert undone.undone_at is not None
    assert shown(ledger.views.view(session.key, 1)) == ["wide", "s7", 9, 10, 11, 12]
    assert ledger.compactions.undo(session.key, 1, 5) == undone
    ledger.compactions.undo(session.key, 1, 4)
    assert shown(ledger.views.view(session.key, 1)) == [
        "s1",
        "s3",
        5,
        6,
        "s7",
        9,
        10,
        11,
        12,
    ]
    assert [row.number for row in ledger.views.compactions(session.key, 1, every=True)] == [
        1,
        2,
        3,
        4,
        5,
    ]
    assert compact(ledger, session.key, 1, 5, 6, summary()).number == 6


def test_the_same_range_again_supersedes_the_first(ledger: Ledger) -> None:
    """A better summary of the same."""
    session = conversation(ledger, 3)
    compact(ledger, session.key, 1, 1, 2, summary("one"))

    better = compact(ledger, session.key, 1, 1, 2, summary("two"))

    assert better.supersedes == (1,)
    assert shown(ledger.views.view(session.key, 1)) == ["two", 3, 4, 5, 6]


def test_a_compaction_under_a_wider_one_cannot_be_undone(ledger: Ledger) -> None:
    """The conflict says which has to be undone first."""
    session = conversation(ledger, 4)
    compact(ledger, session.key, 1, 1, 2, summary())
    compact(ledger, session.key, 1, 1, 4, summary())

    with pytest.raises(Conflict) as caught:
        ledger.compactions.undo(session.key, 1, 1)

    assert "2" in str(caught.value.hint)
    assert in_force(ledger, session) == [2]


def taken_back(ledger: Ledger) -> tuple[SessionRow, int]:
    """Three around one another, on a fork that begins where the widest ends.

    There the narrower two are yet to be superseded by it.
    """
    session = conversation(ledger, 6)
    compact(ledger, session.key, 1, 1, 4, summary("narrow"))
    compact(ledger, session.key, 1, 1, 8, summary("wide"))
    compact(ledger, session.key, 1, 1, 10, summary("widest"))
    return session, ledger.branches.fork(session.key, 1, 11)


def test_what_is_in_force_can_be_undone(ledger: Ledger) -> None:
    """Also where a wider one will stand in its place as soon as a turn begins."""
    session, fork = taken_back(ledger)

    assert [row.number for row in ledger.views.compactions(session.key, fork)] == [2]
    ledger.compactions.undo(session.key, fork, 2)
    assert [row.number for row in ledger.views.compactions(session.key, fork)] == [1]
    ledger.compactions.undo(session.key, fork, 1)
    assert ledger.views.compactions(session.key, fork) == []
    assert ledger.audit.verify().ok


def test_the_conflict_names_one_that_can_be_undone(ledger: Ledger) -> None:
    """Not one in between, which would be a conflict itself."""
    session, fork = taken_back(ledger)
    ledger.messages.append(session.key, fork, [said()])

    with pytest.raises(Conflict) as caught:
        ledger.compactions.undo(session.key, fork, 1)

    assert str(caught.value.hint).endswith("number 3")


def test_what_was_inside_of_an_undone_one_is_inside_of_the_one_around_it(ledger: Ledger) -> None:
    """It gives way to that when that begins to hold, and holds again when that is undone."""
    session, fork = taken_back(ledger)
    ledger.compactions.undo(session.key, fork, 2)
    ledger.messages.append(session.key, fork, [said()])

    assert shown(ledger.views.view(session.key, fork)) == ["widest", 11]
    with pytest.raises(Conflict):
        ledger.compactions.undo(session.key, fork, 1)
    ledger.compactions.undo(session.key, fork, 3)
    assert shown(ledger.views.view(session.key, fork)) == ["narrow", *range(5, 12)]


def test_a_fork_of_where_one_in_between_was_undone_is_whole(ledger: Ledger) -> None:
    """Its copies tell of one another, and not of what is not there."""
    session, fork = taken_back(ledger)
    ledger.compactions.undo(session.key, fork, 2)

    other = ledger.branches.fork(session.key, fork, 11)

    rows = ledger.views.compactions(session.key, other, every=True)
    assert [(row.number, row.supersedes, row.superseded_by) for row in rows] == [
        (1, (), 3),
        (3, (1,), None),
    ]
    assert ledger.audit.verify().ok


def test_at_an_earlier_position_those_hold_that_end_before_its_turn(ledger: Ledger) -> None:
    """A narrower one, where the wider that supersedes it does not apply yet."""
    session = conversation(ledger, 6)
    compact(ledger, session.key, 1, 1, 4, summary("narrow"))
    compact(ledger, session.key, 1, 1, 8, summary("wide"))

    views = {at: shown(ledger.views.view(session.key, 1, at)) for at in range(13)}

    assert views[12] == ["wide", 9, 10, 11, 12]
    assert views[9] == ["wide", 9]
    assert views[8] == ["narrow", 5, 6, 7, 8]
    assert views[5] == ["narrow", 5]
    assert views[4] == [1, 2, 3, 4]
    assert views[0] == []
    assert (in_force(ledger, session, at=9), in_force(ledger, session, at=5)) == ([2], [1])


# Branches


def test_a_fork_has_its_own_of_those_that_end_before_it(ledger: Ledger) -> None:
    """Undone on one branch they stand on the other."""
    session = conversation(ledger, 6)
    compact(ledger, session.key, 1, 1, 2, summary("a"))
    compact(ledger, session.key, 1, 3, 4, summary("b"))
    compact(ledger, session.key, 1, 3, 6, summary("c"))
    ledger.compactions.undo(
        session.key, 1, compact(ledger, session.key, 1, 9, 10, summary("d")).number
    )

    fork = ledger.branches.fork(session.key, 1, 6)

    assert shown(ledger.views.view(session.key, fork)) == ["a", "b", 5]
    rows = ledger.views.compactions(session.key, fork, every=True)
    assert [(row.branch, row.number, row.copied_from) for row in rows] == [
        (fork, 1, 1),
        (fork, 2, 1),
    ]
    assert [row.superseded_by for row in rows] == [None, None]
    ledger.compactions.undo(session.key, fork, 1)
    assert shown(ledger.views.view(session.key, fork)) == [1, 2, "b", 5]
    assert shown(ledger.views.view(session.key, 1))[0] == "a"
    ledger.compactions.undo(session.key, 1, 3)
    assert shown(ledger.views.view(session.key, fork)) == [1, 2, "b", 5]


def test_an_edited_message_keeps_the_summary_of_all_before_it(ledger: Ledger) -> None:
    """The fork at a turn's start is in the turn before, until its own has begun."""
    session = conversation(ledger, 4)
    compact(ledger, session.key, 1, 1, 6, summary("S"))

    fork = ledger.branches.fork(session.key, 1, 7)
    assert shown(ledger.views.view(session.key, fork)) == [1, 2, 3, 4, 5, 6]
    ledger.messages.append(session.key, fork, [said("edited")])

    assert shown(ledger.views.view(session.key, fork)) == ["S", 7]


def test_summaries_of_one_branch_are_not_the_others(ledger: Ledger) -> None:
    """Ranges over what two branches share are each one's own."""
    session = conversation(ledger, 4)
    fork = ledger.branches.fork(session.key, 1, 7)
    ledger.messages.append(session.key, fork, [said(), answered()])

    compact(ledger, session.key, fork, 1, 6, summary("F"))

    assert shown(ledger.views.view(session.key, fork)) == ["F", 7, 8]
    assert shown(ledger.views.view(session.key, 1)) == list(range(1, 9))
    with pytest.raises(NotFound):
        ledger.compactions.undo(session.key, 1, 1)


# What is refused


@each(
    "first, last, kind",
    [
        (3, 3, InvalidCall),  # half a turn
        (2, 4, InvalidCall),  # not from a turn's start
        (4, 5, InvalidCall),
        (4, 3, InvalidCall),  # nothing
        (9, 10, InvalidCall),  # the open turn
        (1, 10, InvalidCall),
        (1, 9, InvalidCall),
        (0, 2, NotFound),
        (-1, 2, NotFound),
        (1, 11, NotFound),
        (10**30, 10**30, NotFound),
        (5, 8, Conflict),  # over an end of one in force
        (1, 4, Conflict),
        (3, 4, Conflict),  # inside it
        (5, 6, Conflict),
    ],
)
def test_a_range_that_no_summary_can_stand_for_is_refused(
    ledger: Ledger, first: int, last: int, kind: type[ReasoningStoreError]
) -> None:
    """By name, and nothing is written."""
    session = conversation(ledger, 5)
    compact(ledger, session.key, 1, 3, 6, summary("S"))
    before = ledger.views.compactions(session.key, 1, every=True)

    for verb in (
        lambda: compact(ledger, session.key, 1, first, last, summary()),
        lambda: ledger.views.basis(session.key, 1, first, last),
    ):
        with pytest.raises(kind) as caught:
            verb()
        assert type(caught.value) is kind

    assert before == ledger.views.compactions(session.key, 1, every=True)


def test_messages_before_the_first_turn_belong_to_no_turn(ledger: Ledger) -> None:
    """A system message stays; without a real user message nothing can be summarized."""
    session = new_session(ledger)
    system = NewMessage(Message(role="system"), Counts(visible=4))
    ledger.messages.append(session.key, 1, [system, answered()])
    with pytest.raises(InvalidCall):
        compact(ledger, session.key, 1, 1, 2, summary())
    ledger.messages.append(session.key, 1, [said(), answered(), said()])

    for first in (1, 2):
        with pytest.raises(InvalidCall):
            compact(ledger, session.key, 1, first, 4, summary())
    compact(ledger, session.key, 1, 3, 4, summary("S"))

    assert shown(ledger.views.view(session.key, 1)) == [1, 2, "S", 5]


def test_tool_responses_in_a_users_message_start_no_turn(ledger: Ledger) -> None:
    """A range goes up to the next real one."""
    session = new_session(ledger)
    call = NewMessage(assistant(ToolCallBlock(id="1", name="f")), Counts(visible=5))
    response = ToolResponseBlock(call_id="1", result="x")
    answer = NewMessage(user(response), Counts(visible=5))
    ledger.messages.append(session.key, 1, [said(), call, answer, answered(), said()])

    with pytest.raises(InvalidCall):
        compact(ledger, session.key, 1, 1, 2, summary())
    compact(ledger, session.key, 1, 1, 4, summary("S"))

    assert shown(ledger.views.view(session.key, 1)) == ["S", 5]


@pytest.mark.parametrize(
    "wrong",
    [
        NewMessage(assistant("x"), Counts(visible=1)),
        NewMessage(tool(ToolResponseBlock(call_id="1")), Counts(visible=1)),
        NewMessage(user(ThinkingBlock(thought="x"), "y"), Counts(visible=1, thinking=(1,))),
        NewMessage(Message(role="user"), Counts(visible=1)),
        NewMessage(replace(user("x"), status="interrupted"), Counts(visible=1)),
        NewMessage(user("x"), Counts(visible=-1)),
        NewMessage(user("x"), Counts(visible=1 << 50)),
    ],
)
def test_a_summary_is_one_user_message(ledger: Ledger, wrong: NewMessage) -> None:
    """Anything else is refused."""
    session = conversation(ledger, 3)

    with pytest.raises(InvalidCall):
        compact(ledger, session.key, 1, 1, 2, wrong)

    assert ledger.views.compactions(session.key, 1, every=True) == []


def test_a_branch_that_is_not_there_has_none(ledger: Ledger) -> None:
    """All verbs say so."""
    session = conversation(ledger, 3)

    for branch in (0, 2, 10**30):
        for verb in (
            lambda: compact(ledger, session.key, branch, 1, 2, summary()),  # noqa: B023
            lambda: ledger.views.compactions(session.key, branch),  # noqa: B023
            lambda: ledger.compactions.undo(session.key, branch, 1),  # noqa: B023
            lambda: ledger.views.view(session.key, branch),  # noqa: B023
            lambda: ledger.views.basis(session.key, branch, 1, 2),  # noqa: B023
            lambda: ledger.views.totals_at(session.key, branch, [1]),  # noqa: B023
        ):
            with pytest.raises(NotFound):
                verb()
    for number in (0, 1, -1, 10**30):
        with pytest.raises(NotFound):
            ledger.compactions.undo(session.key, 1, number)


@examples(20)
@given(text=any_text.filter(bool))
def test_any_summary_comes_back_exactly(ledger: Ledger, text: str) -> None:
    """NUL too."""
    session = conversation(ledger, 2)

    made = compact(ledger, session.key, 1, 1, 2, summary(text, exactness="estimated"))

    assert made.message == user(text)
    assert ledger.views.view(session.key, 1)[0] == made


# A plan holds while its range is untouched


def test_a_plan_holds_whatever_happens_around_its_range(ledger: Ledger) -> None:
    """More messages, other summaries, erasures before it and after it."""
    session = conversation(ledger, 6)
    basis = ledger.views.basis(session.key, 1, 5, 8)

    ledger.messages.append(session.key, 1, [said(), answered()])
    compact(ledger, session.key, 1, 9, 10, summary())
    ledger.erasure.erase_message(session.key, 1, 2)
    compact(ledger, session.key, 1, 5, 8, summary("S"), expected=basis)

    assert "S" in shown(ledger.views.view(session.key, 1))


def test_a_summary_of_what_was_erased_meanwhile_is_refused(ledger: Ledger) -> None:
    """A message of the range, or only its reasoning."""
    for only in (None, "reasoning"):
        session = conversation(ledger, 4)
        basis = ledger.views.basis(session.key, 1, 1, 4)

        ledger.erasure.erase_message(session.key, 1, 2, only=only)

        with pytest.raises(Conflict) as caught:
            compact(ledger, session.key, 1, 1, 4, summary(), expected=basis)
        assert caught.value.hint
        assert ledger.views.compactions(session.key, 1, every=True) == []


def test_a_summary_made_from_others_that_are_no_more_is_refused(ledger: Ledger) -> None:
    """One that was added inside, or undone inside."""
    session = conversation(ledger, 4)
    plain = ledger.views.basis(session.key, 1, 1, 6)
    compact(ledger, session.key, 1, 1, 2, summary())
    with_one = ledger.views.basis(session.key, 1, 1, 6)
    assert with_one.supersedes == (1,)

    with pytest.raises(Conflict):
        compact(ledger, session.key, 1, 1, 6, summary(), expected=plain)
    ledger.compactions.undo(session.key, 1, 1)
    with pytest.raises(Conflict):
        compact(ledger, session.key, 1, 1, 6, summary(), expected=with_one)
    compact(ledger, session.key, 1, 1, 6, summary(), expected=plain)


def test_the_same_range_by_many_at_once_is_made_by_one(ledger: Ledger) -> None:
    """All had the same plan; the others learn."""
    session = conversation(ledger, 4)
    basis = ledger.views.basis(session.key, 1, 1, 6)

    def attempt(n: int) -> bool:
        try:
            compact(ledger, session.key, 1, 1, 6, summary(str(n)), expected=basis)
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(8))) == 1

    assert len(ledger.views.compactions(session.key, 1, every=True)) == 1


# What it counts


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
            at = min(what, ledger.branches.head(session.key, line.number).position) + 1
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
    rows = ledger.history.read(session.key, line.number)
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
    open_turn = ledger.branches.head(session.key, line.number).turn_start or 0
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
    turn_start = ledger.branches.head(session.key, line.number).turn_start
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
    rows = ledger.history.read(session.key, line.number)
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


def test_a_summary_that_cannot_be_read_is_raised_and_never_skipped(ledger: Ledger) -> None:
    """By the view, by a list, by usage."""
    for damage in ("summary = '{'", "summary = '[]'", "exactness = 9"):
        session = conversation(ledger, 3)
        compact(ledger, session.key, 1, 1, 2, summary())
        ledger.database.write(
            lambda connection, damage=damage: driver(connection).execute(  # type: ignore[misc]
                f"UPDATE compactions SET {damage}"  # noqa: S608
            )
        )

        with pytest.raises(CorruptRow):
            ledger.views.view(session.key, 1)
        with pytest.raises(CorruptRow):
            ledger.views.compactions(session.key, 1, every=True)
        if "exactness" in damage:
            with pytest.raises(CorruptRow):
                ledger.views.view_totals(session.key, 1)


@pytest.mark.parametrize("number", [-1, 3])
def test_a_summary_whose_count_is_of_no_known_kind_is_raised(ledger: Ledger, number: int) -> None:
    """It would be counted as if no one had changed it."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said(), answered(), said()])
    compact(ledger, session.key, 1, 1, 2, said("summary"))
    ledger.database.write(
        lambda connection: driver(connection).execute(
            f"UPDATE compactions SET exactness = {number}"  # noqa: S608
        )
    )

    with pytest.raises(CorruptRow):
        ledger.views.view_totals(session.key, 1)
    with pytest.raises(CorruptRow):
        ledger.views.compactions(session.key, 1)


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
