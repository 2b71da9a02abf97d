"""Windows: the latest messages, or the next ones, that fit; and no pair parted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasoning_store.conversation.blocks import (
    Block,
    Counts,
    Message,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
    assistant,
    user,
)
from reasoning_store.conversation.errors import InvalidCall, NotFound
from reasoning_store.ledger import history as history_module
from reasoning_store.ledger import windows
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import NewMessage, StoredRow
from tests.properties import examples

from .histories import answered, answers, asks, new_session, said, stored_messages
from .reads import watched


def thinks() -> NewMessage:
    return NewMessage(assistant(ThinkingBlock(thought="t")), Counts(thinking=(10,)))


def positions(ledger: Ledger, key: int, **window: Any) -> list[int]:
    return [row.position for row in stored_messages(ledger, key, 1, **window)]


# By count


def test_a_window_by_count_grows_to_keep_a_response_with_its_call(ledger: Ledger) -> None:
    """Parallel calls too; a window that begins before them is as long as was asked."""
    session = new_session(ledger)
    ledger.messages.append(
        session.key, 1, [said(), asks("a", "b"), answers("a"), answers("b"), answered(), said()]
    )

    read = {n: positions(ledger, session.key, limit=n) for n in range(7)}

    assert read == {
        0: [],
        1: [6],
        2: [5, 6],
        3: [2, 3, 4, 5, 6],
        4: [2, 3, 4, 5, 6],
        5: [2, 3, 4, 5, 6],
        6: [1, 2, 3, 4, 5, 6],
    }
    assert positions(ledger, session.key, limit=1, before=5) == [2, 3, 4]


def test_a_window_from_a_place_on_grows_at_its_end(ledger: Ledger) -> None:
    """The place itself stays: pages stand side by side."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said(), asks("a"), said("hurry"), answers("a"), said()])

    assert positions(ledger, session.key, after=0, limit=1) == [1]
    assert positions(ledger, session.key, after=0, limit=2) == [1, 2, 3, 4]
    assert positions(ledger, session.key, after=2, limit=2) == [3, 4]
    assert positions(ledger, session.key, after=3, limit=9) == [4, 5]


def test_reasoning_that_is_a_message_of_its_own_stays_with_its_call(ledger: Ledger) -> None:
    """Where nothing stands between them."""
    session = new_session(ledger)
    ledger.messages.append(
        session.key, 1, [said(), thinks(), asks("a"), answers("a"), thinks(), said()]
    )

    assert positions(ledger, session.key, limit=2, before=5) == [2, 3, 4]
    assert positions(ledger, session.key, after=0, limit=2) == [1, 2, 3, 4]
    assert positions(ledger, session.key, limit=1) == [6]
    assert positions(ledger, session.key, limit=2) == [5, 6]


def test_reasoning_that_comes_with_a_call_of_its_own_is_not_tied_to_the_next(
    ledger: Ledger,
) -> None:
    """It led to its own call: a window that begins after it is as long as was asked."""
    session = new_session(ledger)
    call = ToolCallBlock(id="a", name="look", parameters={})
    both = NewMessage(assistant(ThinkingBlock(thought="t"), call), Counts(thinking=(10,)))
    ledger.messages.append(session.key, 1, [said(), both, asks("b"), answers("b")])

    assert positions(ledger, session.key, limit=2) == [3, 4]


def test_a_response_without_a_call_moves_nothing(ledger: Ledger) -> None:
    """Nor does a call that no one answered."""
    session = new_session(ledger)
    ledger.messages.append(
        session.key, 1, [said(), answered()] * 3 + [answers("x"), asks("y"), said()]
    )

    for limit in range(9):
        assert positions(ledger, session.key, limit=limit) == list(range(10 - limit, 10))
        assert positions(ledger, session.key, after=0, limit=limit) == list(range(1, limit + 1))


@pytest.mark.parametrize("between", [0, 1, 30])
def test_a_call_that_is_answered_twice_stays_with_the_first_response(
    ledger: Ledger, between: int
) -> None:
    """As in a request, however far away the other one is."""
    session = new_session(ledger)
    loop = [asks("b"), answers("b")] * between
    ledger.messages.append(
        session.key, 1, [said(), asks("a"), answers("a"), *loop, answers("a"), said()]
    )
    again = 4 + 2 * between

    assert positions(ledger, session.key, after=0, limit=2) == [1, 2, 3]
    assert positions(ledger, session.key, limit=2) == [again, again + 1]


def test_calls_of_one_id_stay_each_with_a_response(ledger: Ledger) -> None:
    """As in a request: the first is answered first, and what is answered once more is not."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said(), asks("a", "a"), *[answers("a")] * 3, said()])

    assert positions(ledger, session.key, after=0, limit=2) == [1, 2, 3, 4]
    assert positions(ledger, session.key, limit=3) == [2, 3, 4, 5, 6]
    assert positions(ledger, session.key, limit=2) == [5, 6]


# By tokens


def test_a_window_by_tokens_holds_the_latest_that_fit(ledger: Ledger) -> None:
    """All thinking counted; both limits together are the narrower."""
    session = new_session(ledger)
    for n in range(20):
        ledger.messages.append(
            session.key, 1, [NewMessage(user(str(n)), Counts(visible=10)), thinks()]
        )

    assert positions(ledger, session.key, tokens=0) == []
    assert positions(ledger, session.key, tokens=9) == []
    assert positions(ledger, session.key, tokens=10) == [40]
    assert positions(ledger, session.key, tokens=35) == [38, 39, 40]
    assert positions(ledger, session.key, tokens=399) == list(range(2, 41))
    assert positions(ledger, session.key, tokens=400) == list(range(1, 41))
    assert positions(ledger, session.key, tokens=10**12) == list(range(1, 41))
    assert positions(ledger, session.key, tokens=35, before=10) == [7, 8, 9]
    assert positions(ledger, session.key, tokens=35, after=10) == [11, 12, 13]
    assert positions(ledger, session.key, tokens=35, limit=2) == [39, 40]
    assert positions(ledger, session.key, tokens=35, limit=9) == [38, 39, 40]
    assert positions(ledger, session.key, tokens=35, after=39) == [40]
    assert positions(ledger, session.key, tokens=35, after=10**30) == []
    with pytest.raises(InvalidCall):
        positions(ledger, session.key, tokens=-1)
    with pytest.raises(NotFound):
        stored_messages(ledger, session.key, 2, tokens=5)


def test_a_window_by_tokens_shrinks_to_keep_pairs_together(ledger: Ledger) -> None:
    """It never holds more than was asked for."""
    session = new_session(ledger)
    ledger.messages.append(
        session.key, 1, [said("0123456789"), asks("a"), answers("a"), thinks(), asks("b")]
    )

    read = {n: positions(ledger, session.key, tokens=n) for n in (10, 20, 30, 40, 50)}

    assert read == {10: [], 20: [4, 5], 30: [4, 5], 40: [2, 3, 4, 5], 50: [1, 2, 3, 4, 5]}
    assert positions(ledger, session.key, after=0, tokens=20) == [1]
    assert positions(ledger, session.key, after=0, tokens=40) == [1, 2, 3]


ids = st.sampled_from(["a", "b", "c"])
visible: st.SearchStrategy[Block] = st.one_of(
    st.builds(TextBlock, text=st.just("x")),
    st.builds(ToolCallBlock, id=ids, name=st.just("f")),
    st.builds(ToolResponseBlock, call_id=ids),
)
blocks: st.SearchStrategy[Block] = st.one_of(
    visible,
    st.builds(ThinkingBlock, thought=st.just("t")),
    st.builds(ThinkingBlock, thought=st.just("t"), signature=st.just("s")),
)


@st.composite
def tied(draw: st.DrawFn) -> NewMessage:
    """A message that may call and answer in any role, and think in a model's."""
    role: Role = draw(st.sampled_from(["user", "assistant", "assistant", "tool"]))
    message = Message(
        role=role,
        blocks=tuple(draw(st.lists(blocks if role == "assistant" else visible, max_size=3))),
    )
    tokens = st.integers(0, 20)
    return NewMessage(
        message,
        Counts(visible=draw(tokens), thinking=tuple(draw(tokens) for _ in message.thinking)),
    )


def tokens_of(rows: Sequence[StoredRow]) -> int:
    return sum(row.counts.visible + sum(row.counts.thinking) for row in rows)


@examples(80)
@given(
    history=st.lists(tied(), min_size=1, max_size=24),
    fork=st.integers(0, 24),
    after=st.none() | st.integers(0, 26),
    before=st.none() | st.integers(0, 26),
    limit=st.none() | st.integers(0, 26),
    tokens=st.none() | st.integers(0, 300),
    context=st.integers(1, 8),
)
def test_a_window_is_what_slicing_and_mending_give(
    ledger: Ledger,
    history: list[NewMessage],
    fork: int,
    after: int | None,
    before: int | None,
    limit: int | None,
    tokens: int | None,
    context: int,
) -> None:
    """Against a list of all messages, across a fork, however much is looked at first."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, history)
    branch = ledger.branches.fork(session.key, 1, min(fork, len(history)) + 1)
    if fork < len(history):
        ledger.messages.append(session.key, branch, history[fork:])
    rows = stored_messages(ledger, session.key, branch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history_module, "_FIRST_LOOK", context)
        found = stored_messages(
            ledger, session.key, branch, limit=limit, tokens=tokens, after=after, before=before
        )

    expected = sliced(rows, after, before, limit, tokens)
    assert [row.position for row in found] == [row.position for row in expected]
    assert found == expected
    assert tokens is None or tokens_of(found) <= tokens
    assert limit is None or tokens is None or len(found) <= limit


def sliced(
    rows: list[StoredRow],
    after: int | None,
    before: int | None,
    limit: int | None,
    tokens: int | None,
) -> list[StoredRow]:
    """The same window, the long way."""
    inside = [
        row
        for row in rows
        if (after or 0) < row.position < (len(rows) + 1 if before is None else before)
    ]
    forward = after is not None and before is None
    kept: list[StoredRow] = []
    for row in inside if forward else reversed(inside):
        if len(kept) == limit or (tokens is not None and tokens_of([*kept, row]) > tokens):
            break
        kept.append(row)
    if not kept or len(kept) == len(inside):
        return kept if forward else kept[::-1]
    starts = [1, *(row.position for row in rows if row.message.starts_turn)]
    if forward:
        cut = kept[-1].position
        behind = [start for start in starts if start > cut]
        reach = behind[1] if len(behind) > 1 else len(rows) + 1
        near = [row for row in inside if row.position < reach]
    else:
        cut = kept[-1].position - 1
        turn = max([start for start in starts if start <= max(cut, 1)])
        turn = max([start for start in starts if start < turn] or [1])
        near = [row for row in inside if row.position >= turn]
    pairs = windows.tied_pairs([windows.link_of(row) for row in near])
    moves_later = forward == (tokens is None)
    while parted := [pair for pair in pairs if pair[0] <= cut < pair[1]]:
        cut = max(late for _, late in parted) if moves_later else min(parted)[0] - 1
    return [row for row in inside if (row.position <= cut) == forward]


@given(st.lists(st.integers(0, 9), max_size=60), st.integers(0, 300))
def test_the_widest_that_fits_is_found(costs: list[int], budget: int) -> None:
    """Whatever each costs, nothing too."""
    sums = [sum(costs[:n]) for n in range(len(costs) + 1)]

    found = windows.widest(costs, budget)

    assert found == max(n for n in range(len(sums)) if sums[n] <= budget)


def test_windows_read_as_much_at_5000_messages_as_at_100(
    ledger: Ledger,
) -> None:
    """The same statements and the same number of rows, by count and by tokens."""
    session = new_session(ledger)
    turn = [said("0123456789"), asks("a"), answers("a"), answered("x" * 5, "t" * 5)]

    def reads(**window: Any) -> list[int]:
        with watched() as work:
            stored_messages(ledger, session.key, 1, **window)
        return work

    windows_: list[dict[str, int]] = [
        {"limit": 10},
        {"tokens": 335},
        {"tokens": 335, "before": 90},
        {"limit": 11, "after": 7},
        {"tokens": 335, "after": 7},
    ]
    ledger.messages.append(session.key, 1, turn * 25)
    few = [reads(**window) for window in windows_]
    ledger.messages.append(session.key, 1, turn * 1225)
    many = [reads(**window) for window in windows_]

    assert few == many
    assert max(len(statements) for statements in few) < 25
    assert max(sum(statements) for statements in few) < 160


def test_a_cut_knows_whether_it_separates_a_pair(ledger: Ledger) -> None:
    """At the end of a turn: a call that is answered in the next one."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said(), asks("a"), answers("a"), answered()])
    ledger.messages.append(session.key, 1, [said(), asks("b"), said("hurry"), answers("b")])
    ledger.messages.append(session.key, 1, [said(), asks("c"), said()])

    assert [ledger.views.splits(session.key, 1, at) for at in (4, 6, 8, 10, 11)] == [
        False,
        True,
        False,
        False,
        False,
    ]
    for absent in (0, 12, -1):
        with pytest.raises(NotFound):
            ledger.views.splits(session.key, 1, absent)
