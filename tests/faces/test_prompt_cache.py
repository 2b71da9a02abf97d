"""How far a request repeats the one that was sent before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import reasoning_store as rs
from tests.ledger.compacting import compact

from .answering import DEEPSEEK, KEEP_ALL, answered, talked, turn


@pytest.fixture
def session(store: rs.Store) -> rs.Session:
    return store.session("chat", create=True)


# The prompt cache


def test_a_request_says_how_far_the_last_sent_one_reaches(session: rs.Session) -> None:
    """With the same settings the next request extends it."""
    session.append(rs.user("One?"))
    first = answered(session, settings=KEEP_ALL, **DEEPSEEK)
    session.append(rs.user("Two?"))

    request = session.build_request(settings=KEEP_ALL)

    assert request.cache_break == len(first.body["messages"]) == 1
    assert request.body["messages"][:1] == first.body["messages"]


def test_the_last_request_is_built_again(session: rs.Session) -> None:
    """Whatever the settings and the messages of now; its system prompt has to be named."""
    session.append(rs.user("One?"))
    answered(session, settings=KEEP_ALL, **DEEPSEEK)
    session.append(rs.user("Two?"))
    sent = answered(session, settings=KEEP_ALL, system="Be short.", **DEEPSEEK)
    session.append(rs.user("Three?"))

    again = session.context(system="Be short.").last_request()

    assert again is not None
    assert again.body == sent.body
    assert [one.kept for one in again.verdicts] == [True]


def test_a_request_says_which_message_the_last_one_did_not_send_like_this(
    session: rs.Session,
) -> None:
    """A thought that is left out now, else the first new message; not the system prompt."""
    for text in ("One?", "Two?", "Three?"):
        session.append(rs.user(text))
        answered(session, settings=KEEP_ALL, system="Be short.", **DEEPSEEK)
    session.append(rs.user("Four?"))
    last = session.context().last_request()
    assert last is not None

    kept, without = session.build_request(settings=KEEP_ALL), session.build_request()

    assert kept.first_difference(last) == 6
    assert without.first_difference(last) == 2
    assert last.first_difference(last) is None
    assert '+      "content": "Four?"' in kept.diff(last)
    assert last.diff(last) == []


def test_without_a_recorded_request_there_is_no_last_one(session: rs.Session) -> None:
    """Nor where its messages were compacted since."""
    turn(session, 1)
    assert session.context().last_request() is None

    talked(session)
    assert session.context().last_request() is not None
    session.erase(1)
    assert session.context().last_request() is None


CHANGES: dict[str, Callable[[rs.Session], Any]] = {
    "a summary": lambda session: session.compact(
        session.compression(
            limit=60, threshold=0.1, settings={"reasoning.stripFromContext": "all"}
        ),
        summary="They talked.",
    ),
    "an erasure": lambda session: session.erase(1),
    "an erased thought": lambda session: session.erase(2, only="reasoning"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_before_the_cache_break_all_is_as_it_was_sent(session: rs.Session, change: str) -> None:
    """Whatever was done to the conversation since."""
    for number in range(3):
        session.append(rs.user(f"Question {number}?"))
        last = answered(session, settings=KEEP_ALL, **DEEPSEEK)
    CHANGES[change](session)
    session.append(rs.user("And now?"))

    request = session.build_request(settings=KEEP_ALL)

    assert request.cache_break is not None
    kept = request.body["messages"][: request.cache_break]
    assert kept == last.body["messages"][: request.cache_break]


def undone_on_a_fork_behind_it(session: rs.Session) -> rs.Request:
    """A fork does not take along what was undone."""
    sent = talked(session)
    session.undo(session.compactions()[0].id)
    session.append(rs.user("Well?"))
    session.edit(9, rs.user("Really?"))
    return sent


def undone_before_it(session: rs.Session) -> rs.Request:
    """What was undone by then had been in force no more."""
    talked(session)
    session.undo(session.compactions()[0].id)
    session.append(rs.user("Again?"))
    return answered(session, **DEEPSEEK)


def in_force_since(session: rs.Session) -> rs.Request:
    """A summary that a fork took along holds from the fork's second turn on."""
    for number in range(3):
        session.append(rs.user(f"Question {number}?"))
        answered(session, **DEEPSEEK)
    entry = session._state.prepare(rs.user("They talked."), session._row.encoding)
    compact(session._state.ledger, session._row.key, 1, 1, 4, entry)
    session.pop_turn()
    return answered(session, **DEEPSEEK)


def in_force_all_along(session: rs.Session) -> rs.Request:
    """Nothing was changed."""
    sent = talked(session)
    session.append(rs.user("Well?"))
    session.edit(9, rs.user("Really?"))
    return sent


def made_for_what_came_behind_it(session: rs.Session) -> rs.Request:
    """A summary of later turns changes nothing before them."""
    sent = talked(session)
    session.append([rs.user("Well?"), rs.assistant("Well."), rs.user("So?")])
    ledger, key = session._state.ledger, session._row.key
    first = session.history()[-3].position
    entry = session._state.prepare(rs.user("They went on."), session._row.encoding)
    compact(ledger, key, session._branch, first, first + 1, entry)
    return sent


@pytest.mark.parametrize(
    ("history", "holds"),
    [
        (undone_on_a_fork_behind_it, False),
        (undone_before_it, True),
        (in_force_since, False),
        (in_force_all_along, True),
        (made_for_what_came_behind_it, True),
    ],
)
def test_the_cache_breaks_where_another_summary_was_sent(
    session: rs.Session, history: Callable[[rs.Session], rs.Request], holds: bool
) -> None:
    """What was in force when the reply was asked for, on the reply's own branch, decides."""
    sent = history(session)
    session.append(rs.user("What next?"))

    request = session.build_request()

    before: list[Any] = sent.body["messages"]
    assert request.cache_break == (len(before) if holds else 0)
    assert (request.body["messages"][: len(before)] == before) is holds


def test_other_tools_break_the_cache_at_once(session: rs.Session) -> None:
    """They stand before the first message."""
    session.append(rs.user("One?"))
    answered(session, **DEEPSEEK)
    tools = [{"name": "look_up", "parameters": {"type": "object", "properties": {}}}]

    assert session.build_request(tools=tools).cache_break == 0
