"""Branches: what is shared is read from where it lies, and nothing is copied."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reasoning_store.conversation.errors import NotFound
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import Segment

from .histories import new_session, said, stored_messages


def texts(ledger: Ledger, key: int, branch: int) -> list[str]:
    return [row.message.text for row in stored_messages(ledger, key, branch)]


def test_a_fork_shares_the_messages_before_it(ledger: Ledger) -> None:
    """Positions continue; what is appended to one branch is not in the other."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said("a"), said("b"), said("c")])

    branch = ledger.branches.fork(session.key, 1, 3)
    stored = ledger.messages.append(session.key, branch, [said("d")])
    ledger.messages.append(session.key, 1, [said("e")])

    assert (branch, stored[0].position) == (2, 3)
    assert texts(ledger, session.key, branch) == ["a", "b", "d"]
    assert texts(ledger, session.key, 1) == ["a", "b", "c", "e"]
    assert [row.branch for row in stored_messages(ledger, session.key, branch)] == [1, 1, 2]


def test_a_fork_of_a_fork_is_one_range_a_segment(ledger: Ledger) -> None:
    """Also where it forks before the place where its parent did."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said("a"), said("b"), said("c")])
    two = ledger.branches.fork(session.key, 1, 3)
    ledger.messages.append(session.key, two, [said("d"), said("e")])

    three = ledger.branches.fork(session.key, two, 5)
    ledger.messages.append(session.key, three, [said("f")])
    four = ledger.branches.fork(session.key, three, 2)
    ledger.messages.append(session.key, four, [said("g")])
    empty = ledger.branches.fork(session.key, three, 1)
    at_end = ledger.branches.fork(session.key, 1, 4)

    assert texts(ledger, session.key, three) == ["a", "b", "d", "e", "f"]
    assert texts(ledger, session.key, four) == ["a", "g"]
    assert texts(ledger, session.key, empty) == []
    assert texts(ledger, session.key, at_end) == ["a", "b", "c"]
    found = {row.number: row for row in ledger.branches.all_of(session.key)}
    assert (
        Segment(1, 1, 2),
        Segment(2, 3, 4),
        Segment(3, 5, 5),
    ) == found[three].segments
    assert (three, 2, 3) == (found[four].parent, found[four].first, found[four].next_position)
    assert (found[empty].segments, found[1].parent) == ((), None)
    # The time of the last message is read for all branches together.
    assert replace(found[two], last_at=0) == ledger.branches.get(session.key, two)


def test_forking_does_not_move_the_current_branch(ledger: Ledger) -> None:
    """Activating does, and only to a branch that is there."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said()])
    branch = ledger.branches.fork(session.key, 1, 2)

    assert ledger.sessions.get("u", session.id).current_branch == 1
    assert branch == ledger.branches.activate(session.key, branch).current_branch
    assert branch == ledger.sessions.get("u", session.id).current_branch
    with pytest.raises(NotFound):
        ledger.branches.activate(session.key, 9)


@pytest.mark.parametrize("at", [0, -1, 3, 10**30])
def test_a_place_that_is_not_there_cannot_be_forked_at(ledger: Ledger, at: int) -> None:
    """And the attempt takes no branch number."""
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said()])

    with pytest.raises(NotFound):
        ledger.branches.fork(session.key, 1, at)
    with pytest.raises(NotFound):
        ledger.branches.fork(session.key, 7, 1)

    assert ledger.branches.fork(session.key, 1, 1) == 2


def test_the_branches_of_an_absent_session_are_not_found(ledger: Ledger) -> None:
    """An empty list would say that it is there."""
    with pytest.raises(NotFound):
        ledger.branches.all_of(5)
