"""The id of a message is good wherever a position is, on whatever branch the message is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import reasoning_store as rs
from tests.properties import each


@pytest.fixture
def session(store: rs.Store) -> rs.Session:
    made = store.session("s", create=True)
    made.append([rs.user("one"), rs.assistant("two"), rs.user("three"), rs.assistant("four")])
    return made


def texts(history: list[rs.results.Stored]) -> list[str]:
    return [item.message.text for item in history]


VERBS: dict[str, Callable[[Any, Any], Any]] = {
    "get": lambda session, at: session.get(at),
    "append after": lambda session, at: session.append(rs.user("V"), after=at),
    "annotate": lambda session, at: session.annotate(at, {"rating": 1}),
    "edit": lambda session, at: session.edit(at, rs.assistant("IV")),
    "erase": lambda session, at: session.erase(at),
    "fork": lambda session, at: session.fork(at=at),
    "history before": lambda session, at: session.history(before=at),
    "history after": lambda session, at: session.history(after=at),
    "regenerate": lambda session, at: session.regenerate(at),
    "usage": lambda session, at: session.usage(at=at),
    "context usage": lambda session, at: session.context().usage(at=at),
}


def test_an_id_says_what_the_position_says(session: rs.Session) -> None:
    """On the branch that has the message."""
    for item in session.history():
        assert session.get(item.id) == session.get(item.position) == item
        assert session.usage(at=item.id) == session.usage(at=item.position)
        assert session.history(before=item.id) == session.history(before=item.position)
        assert session.history(after=item.id) == session.history(after=item.position)


@each("verb", VERBS)
@pytest.mark.parametrize("id", ["", "absent", "a\0b", "half \ud800"])
def test_an_id_of_no_message_is_not_found(session: rs.Session, verb: str, id: str) -> None:
    """Nor is a text that no id can be."""
    with pytest.raises(rs.NotFound, match=r"^there is no message "):
        VERBS[verb](session, id)


def test_a_stale_page_edits_the_message_that_it_shows(store: rs.Store, session: rs.Session) -> None:
    """Another page has edited the question meanwhile: the position is another message by now."""
    question = session.get(3).id
    session.edit(3, rs.user("another page"))

    stale = store.session("s")
    edited = stale.edit(question, rs.user("drei"))

    assert texts(stale.history()) == ["one", "two", "drei"]
    assert edited.branch == stale.branch_id == store.session("s").branch_id
    assert texts(session.branch(1).history()) == ["one", "two", "three", "four"]
    assert texts(session.branch(2).history()) == ["one", "two", "another page"]


def test_a_stale_page_regenerates_the_reply_that_it_shows(
    store: rs.Store, session: rs.Session
) -> None:
    """The branch that was current has no reply at that position."""
    reply = session.get(4).id
    session.edit(3, rs.user("another page"))

    stale = store.session("s").regenerate(reply)
    stale.append(rs.assistant("vier"))

    assert texts(stale.history()) == ["one", "two", "three", "vier"]


def test_an_id_reads_the_branch_that_has_its_message(session: rs.Session) -> None:
    """The handle's own where that has it, so that what follows is what the page shows."""
    shared, left = session.get(2).id, session.get(4).id
    session.edit(3, rs.user("drei"))

    assert texts(session.history(after=shared)) == ["drei"]
    assert texts(session.history(before=left)) == ["one", "two", "three"]
    assert session.get(left).message.text == "four"
    assert texts(session.fork(at=left).history()) == ["one", "two", "three"]
    assert session.usage(at=left) == session.branch(1).usage()
    session.erase(left)
    assert session.branch(1).get(4).message.status == "erased"
    assert texts(session.history()) == ["one", "two", "drei"]


def test_a_range_is_of_one_branch(session: rs.Session) -> None:
    """Two ids of branches that went apart bound nothing."""
    first, last = session.get(3).id, session.get(4).id
    other = session.edit(3, rs.user("drei")).id

    assert session.history(after=first, before=last) == []
    assert texts(session.history(after=first)) == ["four"]
    with pytest.raises(rs.InvalidCall, match="not on one branch"):
        session.history(after=other, before=last)


def test_a_message_follows_the_one_that_is_named(session: rs.Session) -> None:
    """Or it is refused: something follows that already, or it is on another branch."""
    last = session.get(4).id
    session.append(rs.user("five"), after=last)

    with pytest.raises(rs.Conflict, match="the last message is at 5, not at 4"):
        session.append(rs.user("V"), after=last)
    session.edit(3, rs.user("drei"))
    with pytest.raises(rs.Conflict, match="is on branch 1"):
        session.append(rs.user("V"), after=last)
    assert texts(session.history()) == ["one", "two", "drei"]


@each("id", ["no such id", "", "a\0b"])
@each("verb", VERBS)
def test_an_unknown_id_is_not_found_by_its_name(session: rs.Session, verb: str, id: str) -> None:
    """Nothing is changed."""
    before = session.history()

    with pytest.raises(rs.NotFound, match="there is no message '") as caught:
        VERBS[verb](session, id)

    assert repr(id) in str(caught.value)
    assert session.history() == before
    assert len(session.branches()) == 1


def test_the_id_of_another_session_is_not_found(store: rs.Store, session: rs.Session) -> None:
    """Another owner's, were its session of the same name."""
    other = store.for_owner("other").session("s", create=True)
    other.append([rs.user("one"), rs.assistant("two")])
    before = other.history()

    for verb in VERBS.values():
        with pytest.raises(rs.NotFound, match=before[1].id):
            verb(session, before[1].id)

    assert other.history() == before
    assert len(session.branches()) == len(other.branches()) == 1


def test_a_position_that_is_neither_a_number_nor_an_id_is_refused(session: rs.Session) -> None:
    """The error says what is allowed."""
    with pytest.raises(rs.InvalidCall, match="a position or the id of a message, not float"):
        session.edit(3.0, rs.user("x"))  # type: ignore[arg-type]
    with pytest.raises(rs.InvalidCall, match="a position or the id of a message, not bool"):
        session.annotate(True, {})


def words(*texts: str) -> Iterator[dict[str, Any]]:
    for text in texts:
        yield {"choices": [{"index": 0, "delta": {"content": text}}]}


def test_a_reply_that_is_arriving_has_the_id_that_it_keeps(
    store: rs.Store, session: rs.Session
) -> None:
    """It is read by it while it arrives, and erased by it, which ends it."""
    reply = session.record(words("fi", "ve"), model="m")
    stream = iter(reply)
    next(stream)
    session._state.draft_writer.write_branch(session._row.key, 1)
    arriving = session.history()[-1]

    assert arriving.message.status == "streaming"
    assert session.get(arriving.id) == arriving
    assert texts(session.history(before=arriving.id)) == ["one", "two", "three", "four"]
    with pytest.raises(rs.Conflict, match="still arriving"):
        session.annotate(arriving.id, {"rating": 1})
    with pytest.raises(rs.Conflict, match="still arriving"):
        session.annotate(5, {"rating": 1})
    for _ in stream:
        pass

    assert reply.stored is not None
    assert reply.stored.id == arriving.id
    assert session.annotate(arriving.id, {"rating": 1})["rating"] == 1


def test_a_live_reply_is_erased_by_its_id(session: rs.Session) -> None:
    """What arrives later is the recorder's alone."""
    reply = session.record(words("fi", "ve"), model="m")
    stream = iter(reply)
    next(stream)
    session._state.draft_writer.write_branch(session._row.key, 1)

    session.erase(session.history()[-1].id)

    assert session.get(5).message.status == "erased"
    with pytest.raises(rs.Conflict):
        list(stream)


def test_ids_are_awaited_alike(url: str) -> None:
    """The asynchronous face takes an id where it takes a position."""

    async def chat() -> None:
        async with rs.AsyncStore(url) as store:
            session = await store.session("s", create=True)
            stored = await session.append([rs.user("one"), rs.assistant("two")])
            await session.edit(1, rs.user("eins"))

            assert (await session.get(stored[1].id)).message.text == "two"
            assert await session.annotate(stored[1].id, {"rating": 1}) == {"rating": 1}
            assert texts(await session.history(before=stored[1].id)) == ["one"]
            assert texts(await (await session.fork(at=stored[1].id)).history()) == ["one"]
            assert texts(await (await session.regenerate(stored[1].id)).history()) == ["one"]
            await session.edit(stored[0].id, rs.user("un"))
            assert (await session.erase(stored[1].id)).messages == 1
            with pytest.raises(rs.NotFound, match="nowhere"):
                await session.usage(at="nowhere")

    asyncio.run(chat())
