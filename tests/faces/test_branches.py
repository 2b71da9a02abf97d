"""Branches as an application uses them: fork, edit, regenerate, take back, compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.testing import stream
from tests.properties import each


@pytest.fixture
def session(url: str) -> Iterator[Any]:
    with rs.Store(url) as store:
        made = store.session("s", create=True)
        made.append([rs.user("one"), rs.assistant("two"), rs.user("three"), rs.assistant("four")])
        yield made


def texts(session: Any) -> list[str]:
    return texts_of(session.history())


def texts_of(items: list[Any]) -> list[str]:
    return [item.message.text for item in items]


def test_a_fork_shares_what_came_before_and_moves_nothing(session: Any) -> None:
    """fork returns a handle; the session opens where it did."""
    fork = session.fork(at=3)
    fork.append(rs.user("drei"))

    assert texts(fork) == ["one", "two", "drei"]
    assert texts(session) == ["one", "two", "three", "four"]
    assert [branch.is_current for branch in session.branches()] == [True, False]


def test_an_edit_becomes_the_current_branch_and_keeps_the_old_one(session: Any) -> None:
    """What was said before stays where it was."""
    stored = session.edit(3, rs.user("drei"))

    assert stored.position == 3
    assert texts(session) == ["one", "two", "drei"]
    assert texts(session.branch(1)) == ["one", "two", "three", "four"]
    assert [branch.is_current for branch in session.branches()] == [False, True]


@each(
    "message",
    [
        "drei",
        [rs.user("drei"), rs.assistant("vier")],
        rs.assistant("drei", status="streaming"),
        rs.assistant(status="erased"),
        rs.user(rs.ThinkingBlock(thought="three?")),
    ],
)
def test_an_edit_that_is_refused_leaves_no_branch(session: Any, message: Any) -> None:
    """The session stays where it is, and so does the handle."""
    with pytest.raises(rs.InvalidCall):
        session.edit(3, message)

    assert [branch.id for branch in session.branches()] == [1]
    assert session.branch_id == 1


@pytest.mark.parametrize("position", [3, 4])
def test_an_edit_keeps_the_role_of_the_message(session: Any, position: int) -> None:
    """A question takes the place of a question, a reply that of a reply."""
    right, wrong = (rs.user("x"), rs.assistant("x"))[:: 1 if position == 3 else -1]

    with pytest.raises(
        rs.InvalidCall, match=f"at {position} is of the role {right.role}"
    ) as caught:
        session.edit(position, wrong)
    assert ("regenerate(4)" in str(caught.value.hint)) == (position == 4)
    assert len(session.branches()) == 1

    assert session.edit(position, right).position == position


def test_regenerating_makes_room_for_another_reply(session: Any) -> None:
    """The handle stands just before the reply, ready to record a new one."""
    session.regenerate(4).append(rs.assistant("vier"))

    assert texts(session) == ["one", "two", "three", "vier"]


def test_a_turn_is_taken_back_from_its_user_message_on(session: Any) -> None:
    """Twice takes two turns back; then there is none."""
    assert texts(session.pop_turn()) == ["one", "two"]
    assert texts(session.pop_turn()) == []
    with pytest.raises(rs.InvalidCall, match="no turn"):
        session.pop_turn()


def test_a_tail_is_dropped_in_one_step_and_returned(session: Any) -> None:
    """It stays on its branch; the session opens without it."""
    dropped = session.drop_tail(at=session.get(2).id)

    assert texts_of(dropped) == ["two", "three", "four"]
    assert texts(session) == ["one"]
    assert [branch.is_current for branch in session.branches()] == [False, True]
    assert session.branch(1).history()[1:] == dropped
    session.append(rs.assistant("zwei"))
    assert texts(session) == ["one", "zwei"]


def test_all_messages_are_dropped_and_the_session_stays(session: Any) -> None:
    """With its title and its settings."""
    session.rename("Numbers")
    session.settings.set("reasoning.effort", "high")

    assert len(session.drop_tail(at=1)) == 4

    assert texts(session) == []
    assert session.title == "Numbers"
    assert session.settings.resolved()["reasoning.effort"].value == "high"


def test_a_tail_of_nothing_makes_no_branch(session: Any) -> None:
    """After the last message there is nothing; beyond that there is no position."""
    assert session.drop_tail(at=5) == []
    for at, error in (
        (6, rs.NotFound),
        (0, rs.NotFound),
        ("x", rs.NotFound),
        (1.0, rs.InvalidCall),
    ):
        with pytest.raises(error):
            session.drop_tail(at=at)

    assert len(session.branches()) == 1


def test_history_names_the_branches_that_differ(session: Any) -> None:
    """At the first message that is another one, and only there; what two share counts once, by
    the branch whose last message is the newest."""
    fork = session.fork(at=3)
    fork.append([rs.user("drei"), rs.assistant("vier")])
    other = fork.fork(at=4)
    other.append(rs.assistant("IV"))

    assert [item.siblings for item in session.history()] == [(), (), (3,), ()]
    assert [item.siblings for item in fork.history()] == [(), (), (1,), (3,)]
    assert [item.siblings for item in other.history()] == [(), (), (1,), (2,)]


def test_a_message_alone_names_the_branches_that_differ(session: Any) -> None:
    """As the same message does in the history."""
    session.fork(at=3).append(rs.user("drei"))

    for item in session.history():
        assert session.get(item.position) == item


def test_the_versions_of_a_message_are_in_order_and_the_shown_one_is_marked(session: Any) -> None:
    """1/3, 2/3, 3/3: the order is the same from each of them."""
    session.edit(3, rs.user("drei"))
    session.branch(1).edit(3, rs.user("trois"))

    for shown in (1, 2, 3):
        versions = session.branch(shown).get(3).versions
        assert [one.branch for one in versions] == [1, 2, 3]
        assert [one.branch for one in versions if one.is_shown] == [shown]
    assert session.get(1).versions == ()


def test_an_arrow_leads_to_what_was_seen_last_under_a_sibling(session: Any) -> None:
    """Not to the branch on which the sibling was written, nor to one where nothing came after."""
    edited = session.edit(3, rs.user("drei")).branch
    session.append(rs.assistant("vier"))
    session.regenerate(4).append(rs.assistant("IV"))
    newest = session.branch_id
    session.regenerate(4)  # fails before anything arrives
    first = session.branch(1)

    assert first.get(3).siblings == (newest,)
    assert texts(session.branch(newest)) == ["one", "two", "drei", "IV"]
    session.branch(edited).append(rs.user("goes on"))
    assert first.get(3).siblings == (edited,)
    assert session.branch(edited).get(3).siblings == (1,)


def test_a_reply_that_is_arriving_is_a_version(session: Any) -> None:
    """It has its place among the others, and is the newest under what precedes it."""
    session.edit(3, rs.user("drei"))
    session.append(rs.assistant("vier"))
    session.regenerate(4)
    reply = session.record([{"choices": [{"delta": {"content": "IV"}}]}], model="m")
    next(iter(reply))
    session._state.draft_writer.write_branch(session._row.key, 3)

    assert [item.siblings for item in session.history()] == [(), (), (1,), (2,)]
    assert session.get(4).versions == session.history()[3].versions
    assert session.branch(1).get(3).siblings == (3,)


def test_a_branch_without_a_message_there_is_no_sibling(session: Any) -> None:
    """An empty fork says nothing yet."""
    session.fork(at=3)

    assert [item.siblings for item in session.history()] == [(), (), (), ()]


def test_a_session_opens_on_its_current_branch(session: Any, url: str) -> None:
    """The one who opens it later goes on where it was left."""
    session.pop_turn()
    with rs.Store(url) as store:
        assert texts(store.session("s")) == ["one", "two"]


READS: dict[str, tuple[Callable[[rs.Session], Any], str]] = {
    "history": (lambda chat: texts(chat), "history.moment"),
    "get": (lambda chat: chat.get(1).message.text, "history.moment_at"),
    "build_request": (
        lambda chat: chat.build_request().body["messages"],
        "views.at_one_moment",
    ),
    "what_if": (lambda chat: str(chat.what_if()), "views.at_one_moment"),
    "compression": (
        lambda chat: chat.compression(limit=1000),
        "views.at_one_moment",
    ),
}


@pytest.mark.parametrize("verb", READS)
def test_a_verb_reads_of_one_branch_wherever_its_handle_is_moved_meanwhile(
    monkeypatch: pytest.MonkeyPatch, session: rs.Session, verb: str
) -> None:
    """Another thread edits, and the handle that both have goes on with the new branch."""
    read, step = READS[verb]
    expected = read(session.branch(1))
    subject, _, step = step.partition(".")
    held = getattr(session._state.ledger, subject)
    asked = getattr(held, step)

    def moved(*args: Any, **kwargs: Any) -> Any:
        found = asked(*args, **kwargs)
        monkeypatch.setattr(held, step, asked)
        session.edit(1, rs.user("Another conversation, which is longer than this one was."))
        return found

    monkeypatch.setattr(held, step, moved)

    assert read(session) == expected
    assert session.branch_id == 2


@pytest.mark.parametrize("verb", ["build_request", "usage", "what_if", "compression"])
def test_what_a_request_is_made_of_is_read_in_one_transaction(
    monkeypatch: pytest.MonkeyPatch, session: rs.Session, verb: str
) -> None:
    """With the request that the last recorded reply answered, which it is compared with."""
    chunk = {"choices": [{"delta": {"content": "No."}}]}
    with session.record([chunk], request=session.build_request(provider="openai")) as reply:
        list(reply)
    database = session._state.ledger.database
    plain, reads = database.read, []

    def counted(*args: Any, **kwargs: Any) -> Any:
        reads.append(args)
        return plain(*args, **kwargs)

    monkeypatch.setattr(database, "read", counted)
    getattr(session, verb)(**({"limit": 20} if verb == "compression" else {}))

    assert len(reads) == 1


@pytest.mark.parametrize("read", [texts, lambda chat: [chat.get(1).message.text]])
def test_a_session_that_is_made_anew_while_it_is_read_is_read_at_one_moment(
    monkeypatch: pytest.MonkeyPatch, session: rs.Session, read: Callable[[rs.Session], list[str]]
) -> None:
    """After it a branch that the new one has not is not found."""
    fork = session.fork(at=3)
    expected = read(fork)
    database = session._state.ledger.database
    asked = database.read

    def made_anew(*args: Any, **kwargs: Any) -> Any:
        found = asked(*args, **kwargs)
        monkeypatch.setattr(database, "read", asked)
        session.erase()
        session._state.ledger.sessions.create("", "s", encoding="o200k_base")
        return found

    monkeypatch.setattr(database, "read", made_anew)

    assert read(fork) == expected
    with pytest.raises(rs.NotFound):
        read(fork)


def test_a_reply_recorded_by_a_context_makes_its_branch_current() -> None:
    """After a regeneration, as by the session itself."""
    with rs.Store("sqlite://") as store:
        session = store.session("chat", create=True)
        session.append([rs.user("91?"), rs.assistant("No.")])

        session.regenerate(2)
        chat = session.context(provider="deepseek", model="deepseek-chat")
        with chat.record(stream(rs.assistant("7 x 13."), api="openai.chat")) as reply:
            list(reply)

        texts = [one.message.text for one in store.session("chat").history()]

    assert texts == ["91?", "7 x 13."]


def test_an_older_message_on_a_fork_at_the_beginning_does_not_move_the_session_back(
    store: rs.Store,
) -> None:
    """Only the first message of all gives a session its time."""
    session = store.session(create=True)
    session.append(rs.user("q"))
    before = store.session(session.id).updated_at
    old = datetime(2020, 1, 1, tzinfo=UTC)
    session.fork(at=1).append(rs.user("asked long ago"), created_at=old)

    assert store.session(session.id).updated_at == before
