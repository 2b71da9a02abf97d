"""Compactions: what stands in the view, what it counts, and that all of it can be undone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import given

from reasoning_store.conversation.blocks import (
    Counts,
    Message,
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
from reasoning_store.conversation.validation import tool
from reasoning_store.ledger.database.statement import driver
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import NewMessage, SessionRow, StoredRow
from reasoning_store.ledger.view_records import SummaryRow, ViewRow
from tests.properties import each, examples

from .compacting import compact, conversation, summary
from .histories import answered, any_text, new_session, said, stored_messages
from .whole import narrow, whole


def shown(view: list[ViewRow]) -> list[str | int]:
    """Positions of messages, texts of summaries."""
    return [row.message.text if isinstance(row, SummaryRow) else row.position for row in view]


def in_force(ledger: Ledger, session: SessionRow, at: int | None = None) -> list[int]:
    return [*narrow(ledger, session.key, 1, at)[0].in_force.numbers]


# What stands in the view


def test_a_summary_is_sent_where_its_range_began(ledger: Ledger) -> None:
    """History and rows stay what they were; nothing is written there."""
    session = conversation(ledger, 5)
    history = stored_messages(ledger, session.key, 1)

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
    assert history == stored_messages(ledger, session.key, 1)
    whole(ledger, session.key)
    assert [one for one in ledger.views.view(session.key, 1) if isinstance(one, StoredRow)] == [
        one for one in history if not 3 <= one.position <= 6
    ]


def test_a_view_without_thinking_reads_none(ledger: Ledger) -> None:
    """Its messages are those of a history, and so are their counts."""
    session = conversation(ledger, 3)
    compact(ledger, session.key, 1, 1, 2, summary("S"))

    view = ledger.views.view(session.key, 1, thinking_from=100)

    assert shown(view) == ["S", 3, 4, 5, 6]
    whole = stored_messages(ledger, session.key, 1, after=2)
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
            lambda: narrow(ledger, session.key, branch),  # noqa: B023
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


def test_a_summary_that_cannot_be_read_is_raised_and_never_skipped(ledger: Ledger) -> None:
    """By the view, by a list, by usage."""
    for damage in ("summary = '{'", "summary = '[]'", "exactness = 9", "exactness = -1"):
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
                narrow(ledger, session.key, 1)
