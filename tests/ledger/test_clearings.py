"""Clearings: old tool results give way in a view to a placeholder, and come back whole."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from reasoning_store.conversation.blocks import (
    Counts,
    ToolCallBlock,
    ToolResponseBlock,
    assistant,
    user,
)
from reasoning_store.conversation.errors import Conflict, InvalidCall, NotFound, ReasoningStoreError
from reasoning_store.conversation.placeholders import PLACEHOLDER
from reasoning_store.conversation.validation import tool
from reasoning_store.ledger.database.statement import driver
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import NewMessage, SessionRow, StoredRow
from reasoning_store.ledger.view_records import NewCompaction
from tests.properties import each

from .compacting import clear, compact
from .histories import answered, new_session, said, stored_messages
from .whole import count, narrow, whole

FOUND = "what the tool found, at length: " + "much " * 10


def looked_up(name: str, *results: Any, clearable: int = 7) -> list[NewMessage]:
    """A turn: a question, calls, their answers in one message, and a reply."""
    calls = [ToolCallBlock(id=f"{name}{n}", name="look") for n in range(len(results))]
    answers = [
        ToolResponseBlock(call_id=call.id, tool_name="look", result=result)
        for call, result in zip(calls, results, strict=True)
    ]
    return [
        said(),
        NewMessage(assistant(*calls), Counts(visible=6)),
        NewMessage(tool(*answers), Counts(visible=20, clearable=clearable)),
        answered(),
    ]


def conversation(ledger: Ledger, turns: int = 4) -> SessionRow:
    """A session of turns of four messages each, results at 3, 7, 11 ..."""
    session = new_session(ledger)
    for n in range(turns):
        ledger.messages.append(session.key, 1, looked_up(f"c{n}", f"{FOUND}{n}"))
    return session


def results(ledger: Ledger, session: SessionRow, branch: int = 1, at: int | None = None) -> str:
    """What stands in a view for each result: its number, or "-" where it is cleared."""
    out = ""
    for row in ledger.views.view(session.key, branch, at):
        for block in row.message.blocks:
            if isinstance(block, ToolResponseBlock):
                out += "-" if block.result == PLACEHOLDER else block.result[-1]
    return out


def numbers(ledger: Ledger, session: SessionRow, branch: int = 1) -> list[int]:
    return [row.number for row in ledger.views.compactions(session.key, branch)]


def damage(ledger: Ledger, statement: str) -> None:
    ledger.database.write(lambda connection: driver(connection).execute(statement))


def test_only_the_view_is_cleared(ledger: Ledger) -> None:
    """The call, its answer's id and name and the message stay; nothing stored changes."""
    session = conversation(ledger)
    history, before = stored_messages(ledger, session.key, 1), count(ledger, session.key)

    ledger.clock.now = lambda: 1 << 60
    row = clear(ledger, session.key, 1, 8, effective=40)

    assert row.kind == "clearing"
    assert (row.number, row.first, row.last, row.effective, row.created_at) == (
        1,
        1,
        8,
        40,
        1 << 60,
    )
    assert results(ledger, session) == "--23"
    assert ledger.views.compactions(session.key, 1) == [row]
    assert history == stored_messages(ledger, session.key, 1)
    assert count(ledger, session.key) == (before[0] - 14, before[1])
    whole(ledger, session.key)
    cleared = ledger.views.view(session.key, 1)[2]
    assert isinstance(cleared, StoredRow)
    assert cleared == replace(
        history[2],
        message=tool(ToolResponseBlock(call_id="c00", tool_name="look", result=PLACEHOLDER)),
        counts=Counts(visible=13),
    )


def test_an_answer_that_is_as_short_stays_as_it_is(ledger: Ledger) -> None:
    """Next to a long one, too; what failed is still said to have."""
    session = new_session(ledger)
    ledger.messages.append(
        session.key, 1, looked_up("a", "ok", {"found": FOUND}, "!" * len(PLACEHOLDER))
    )
    failed = ToolResponseBlock(
        call_id="x", result=FOUND, is_error=True, provider_metadata={"again": FOUND}
    )
    ledger.messages.append(
        session.key, 1, [NewMessage(tool(failed), Counts(visible=9, clearable=2))]
    )
    ledger.messages.append(session.key, 1, looked_up("b", FOUND, clearable=0))
    ledger.messages.append(session.key, 1, [said()])

    clear(ledger, session.key, 1, 9)

    blocks = [
        block
        for row in ledger.views.view(session.key, 1)
        if isinstance(row, StoredRow)
        for block in row.message.blocks
        if isinstance(block, ToolResponseBlock)
    ]
    short, long, as_long, error, freeing_nothing = blocks
    assert (short.result, long.result, as_long.result) == ("ok", PLACEHOLDER, "!" * 25)
    assert error == ToolResponseBlock(call_id="x", result=PLACEHOLDER, is_error=True)
    assert freeing_nothing.result == FOUND


def test_a_wider_one_supersedes_and_undo_brings_the_narrower_back(ledger: Ledger) -> None:
    """Nothing is deleted: every one that there ever was is still told."""
    session = conversation(ledger)
    clear(ledger, session.key, 1, 4)
    wider = clear(ledger, session.key, 1, 11)

    assert (wider.supersedes, results(ledger, session)) == ((1,), "---3")
    with pytest.raises(Conflict) as caught:
        ledger.compactions.undo(session.key, 1, 1)
    assert "2" in str(caught.value.hint)

    undone = ledger.compactions.undo(session.key, 1, 2)
    assert undone.undone_at is not None
    assert results(ledger, session) == "-123"
    assert ledger.compactions.undo(session.key, 1, 2) == undone
    ledger.compactions.undo(session.key, 1, 1)
    assert results(ledger, session) == "0123"
    assert [row.number for row in ledger.views.compactions(session.key, 1, every=True)] == [1, 2]


def test_a_summary_and_a_clearing_do_not_get_in_each_others_way(ledger: Ledger) -> None:
    """Neither supersedes the other; what lies in a range is counted once."""
    session = conversation(ledger)
    clear(ledger, session.key, 1, 8)
    made = compact(ledger, session.key, 1, 1, 4, NewMessage(user("S"), Counts(visible=5)))
    assert made.supersedes == ()
    both = count(ledger, session.key)[0]

    assert results(ledger, session) == "-23"
    assert numbers(ledger, session) == [2, 1]
    ledger.compactions.undo(session.key, 1, 1)
    assert count(ledger, session.key)[0] == both + 7
    clear(ledger, session.key, 1, 2)
    assert count(ledger, session.key)[0] == both + 7


def test_at_an_earlier_position_the_one_that_ends_before_its_turn_holds(ledger: Ledger) -> None:
    """A narrower one, where the wider does not apply yet."""
    session = conversation(ledger)
    clear(ledger, session.key, 1, 3)
    clear(ledger, session.key, 1, 12)

    assert [results(ledger, session, at=at) for at in (4, 5, 12, 13)] == ["0", "-", "-12", "---"]


def test_a_fork_has_its_own_of_those_that_end_before_it(ledger: Ledger) -> None:
    """Undone on one branch they stand on the other."""
    session = conversation(ledger)
    clear(ledger, session.key, 1, 4)
    clear(ledger, session.key, 1, 12)

    fork = ledger.branches.fork(session.key, 1, 9)
    at_the_end = ledger.branches.fork(session.key, 1, 13)

    assert results(ledger, session, fork) == "-1"
    assert [row.copied_from for row in ledger.views.compactions(session.key, fork)] == [1]
    ledger.compactions.undo(session.key, fork, 1)
    assert (results(ledger, session, fork), results(ledger, session)) == ("01", "---3")
    assert results(ledger, session, at_the_end) == "-12", "the turn before its own is still open"
    ledger.messages.append(session.key, at_the_end, [said("edited")])
    assert results(ledger, session, at_the_end) == "---"


def test_before_its_own_turn_has_begun_a_fork_can_be_cleared_less_far(ledger: Ledger) -> None:
    """The one that it took along holds as soon as it reaches into no open turn."""
    session = conversation(ledger)
    clear(ledger, session.key, 1, 12)
    fork = ledger.branches.fork(session.key, 1, 13)

    made = clear(ledger, session.key, fork, 5)

    assert (made.supersedes, results(ledger, session, fork)) == ((), "-12")
    ledger.messages.append(session.key, fork, [said("edited")])
    assert results(ledger, session, fork) == "---"
    ledger.compactions.undo(session.key, fork, 1)
    assert results(ledger, session, fork) == "-12"
    assert ledger.audit.verify().problems == ()


@each(
    "upto, kind",
    [
        (13, InvalidCall),  # the open turn
        (15, InvalidCall),
        (0, NotFound),
        (-1, NotFound),
        (17, NotFound),
        (10**30, NotFound),
        (True, InvalidCall),
        ("4", InvalidCall),
        (6, Conflict),  # cleared already
        (3, Conflict),
    ],
)
def test_a_place_up_to_which_nothing_can_be_cleared_is_refused(
    ledger: Ledger, upto: Any, kind: type[ReasoningStoreError]
) -> None:
    """With nothing written."""
    session = conversation(ledger)
    clear(ledger, session.key, 1, 6)
    before = ledger.views.compactions(session.key, 1, every=True)

    with pytest.raises(kind):
        clear(ledger, session.key, 1, upto)
    with pytest.raises(kind):
        ledger.views.clearing_basis(session.key, 1, upto)

    assert before == ledger.views.compactions(session.key, 1, every=True)


@pytest.mark.parametrize(
    ("message", "counts"),
    [
        (user("no result"), Counts(visible=30, clearable=1)),
        (tool(ToolResponseBlock(call_id="a", result="short")), Counts(visible=30, clearable=1)),
        (tool(ToolResponseBlock(call_id="a", result=FOUND)), Counts(visible=30, clearable=31)),
        (tool(ToolResponseBlock(call_id="a", result=FOUND)), Counts(visible=30, clearable=-1)),
    ],
    ids=["no result", "too short a result", "more than there is", "less than nothing"],
)
def test_a_count_that_clearing_cannot_free_is_refused(
    ledger: Ledger, message: Any, counts: Counts
) -> None:
    """A view would count something else than it holds."""
    session = new_session(ledger)

    with pytest.raises(InvalidCall, match="clearing"):
        ledger.messages.append(session.key, 1, [NewMessage(message, counts)])


def test_a_plan_that_others_overtook_is_a_conflict(ledger: Ledger) -> None:
    """Cleared further meanwhile, undone, or erased in; what comes after does no harm."""
    session = conversation(ledger)
    basis = ledger.views.clearing_basis(session.key, 1, 8)
    ledger.messages.append(session.key, 1, [said()])
    clear(ledger, session.key, 1, 8, expected=basis)
    wider = ledger.views.clearing_basis(session.key, 1, 12)
    ledger.compactions.undo(session.key, 1, 1)
    with pytest.raises(Conflict, match="planned"):
        clear(ledger, session.key, 1, 12, expected=wider)
    basis = ledger.views.clearing_basis(session.key, 1, 12)
    ledger.erasure.erase_message(session.key, 1, 12)

    with pytest.raises(Conflict, match="planned"):
        clear(ledger, session.key, 1, 12, expected=basis)

    assert numbers(ledger, session) == []


def test_the_same_plan_by_many_at_once_is_followed_once(ledger: Ledger) -> None:
    """The others learn."""
    session = conversation(ledger)
    basis = ledger.views.clearing_basis(session.key, 1, 8)

    def attempt(_: int) -> bool:
        try:
            clear(ledger, session.key, 1, 8, expected=basis)
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(8))) == 1

    assert len(ledger.views.compactions(session.key, 1, every=True)) == 1


def test_erasing_leaves_a_clearing(ledger: Ledger) -> None:
    """It is made from nothing that a message says; a summary of the same messages goes."""
    session = conversation(ledger)
    clear(ledger, session.key, 1, 8)
    compact(ledger, session.key, 1, 1, 4, NewMessage(user("S"), Counts(visible=5)))

    ledger.erasure.erase_message(session.key, 1, 3)

    assert numbers(ledger, session) == [1]
    assert results(ledger, session) == "-23"
    whole(ledger, session.key)
    assert ledger.audit.verify().problems == ()


def test_a_range_is_another_once_any_message_of_it_is_erased(ledger: Ledger) -> None:
    """The first and the last of it, too: a plan for it is no good any more."""
    session = conversation(ledger)
    seen = [ledger.views.clearing_basis(session.key, 1, 8).digest]
    for position in (8, 5, 4, 1):
        ledger.erasure.erase_message(session.key, 1, position)
        seen.append(ledger.views.clearing_basis(session.key, 1, 8).digest)
    ledger.erasure.erase_message(session.key, 1, 9)

    assert len({*seen}) == 5
    assert ledger.views.clearing_basis(session.key, 1, 8).digest == seen[-1]


def test_an_erased_thought_leaves_what_clearing_frees(ledger: Ledger) -> None:
    """The results next to it are still there."""
    session = conversation(ledger)
    clear(ledger, session.key, 1, 8)
    ledger.erasure.erase_session(session.key, only="reasoning")

    assert results(ledger, session) == "--23"
    assert sum(row.clearable for row in narrow(ledger, session.key, 1)[1]) == 14
    assert ledger.audit.verify().problems == ()


def test_clearings_come_along_in_an_export(ledger: Ledger, other: Ledger) -> None:
    """Undone and superseded ones too; a second time is nothing."""
    session = conversation(ledger)
    clear(ledger, session.key, 1, 4)
    clear(ledger, session.key, 1, 8, effective=33)
    ledger.compactions.undo(session.key, 1, clear(ledger, session.key, 1, 12).number)
    exported = list(ledger.transfer.export_lines())

    for _ in range(2):
        other.transfer.import_lines(exported)

    assert list(other.transfer.export_lines()) == exported
    assert narrow(other, session.key, 1)[1] == narrow(ledger, session.key, 1)[1]
    assert other.views.view(session.key, 1) == ledger.views.view(session.key, 1)
    assert other.views.compactions(session.key, 1, every=True) == (
        ledger.views.compactions(session.key, 1, every=True)
    )
    assert other.audit.verify().problems == ()


@each(
    "was, becomes",
    [
        ('"clears":true', '"clears":true,"counts":{"visible":3}'),
        ('"clears":true', '"clears":true,"message":{"role":"user"}'),
        ('"clears":true', '"clears":false'),
        (',"clears":true', ""),
        ('"first":1,"last":8', '"first":2,"last":8'),
        ('"clearable":7', '"clearable":21'),
        ('"clearable":7', '"clearable":-7'),
        ('"clearable":7', '"clearable":"7"'),
    ],
)
def test_a_line_that_no_clearing_has_is_refused(
    ledger: Ledger, other: Ledger, was: str, becomes: str
) -> None:
    """In an export that another wrote."""
    session = conversation(ledger)
    clear(ledger, session.key, 1, 8)
    lines = [line.replace(was, becomes) for line in ledger.transfer.export_lines()]
    assert lines != list(ledger.transfer.export_lines())

    with pytest.raises(InvalidCall):
        other.transfer.import_lines(lines)


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("UPDATE messages SET clearable = 1 WHERE position = 2", "columns"),
        ("UPDATE messages SET clearable = 21 WHERE position = 3", "columns"),
        ("UPDATE compactions SET first = 2 WHERE number = 1", "compaction"),
        ("UPDATE compactions SET last = 99 WHERE number = 1", "compaction"),
        ("UPDATE compactions SET superseded_by = 2 WHERE number = 1", "compaction"),
    ],
)
def test_verify_finds_what_is_not_as_it_was_written(
    ledger: Ledger, statement: str, code: str
) -> None:
    """What clearing frees follows from the messages, and a clearing has its place."""
    session = conversation(ledger)
    clear(ledger, session.key, 1, 8)
    compact(ledger, session.key, 1, 1, 8, NewMessage(user("S"), Counts(visible=5)))
    assert ledger.audit.verify().problems == ()

    damage(ledger, statement)

    assert code in {problem.code for problem in ledger.audit.verify().problems}


def test_several_are_made_together_or_not_at_all(ledger: Ledger) -> None:
    """A summary whose clearing is refused is not there, either."""
    session = conversation(ledger)
    entry = NewMessage(user("S"), Counts(visible=5))

    summary = NewCompaction(first=1, last=4, summary=entry, effective=30)
    with pytest.raises(InvalidCall):
        ledger.compactions.make(
            session.key, 1, [summary, NewCompaction(first=1, last=14, summary=None, effective=30)]
        )
    assert ledger.views.compactions(session.key, 1, every=True) == []

    made = ledger.compactions.make(
        session.key, 1, [summary, NewCompaction(first=1, last=8, summary=None, effective=30)]
    )
    assert [row.kind for row in made] == ["summary", "clearing"]
    assert [row.effective for row in made] == [30, 30]
    assert results(ledger, session) == "-23"
