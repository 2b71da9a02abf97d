"""Messages with ids and times of an application's own, and what is changed in the same step."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

import reasoning_store as rs
from tests.properties import each

DAY = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def session(store: rs.Store) -> rs.Session:
    return store.session("s", create=True)


def test_a_message_is_found_by_the_id_it_was_given(session: rs.Session) -> None:
    """In its session, wherever a position is."""
    stored = session.append([rs.user("one"), rs.assistant("two")], id=["m-1", "m-2"])

    assert [one.id for one in stored] == ["m-1", "m-2"]
    assert session.get("m-2").message.text == "two"
    assert [one.id for one in session.history(before="m-2")] == ["m-1"]


def test_an_id_is_stored_once(session: rs.Session) -> None:
    """Those that are there are returned, and the others are appended."""
    session.append(rs.user("one"), id="m-1")

    again = session.append([rs.user("one"), rs.assistant("two")], id=["m-1", "m-2"])

    assert [(one.position, one.is_new) for one in again] == [(1, False), (2, True)]
    assert session.head() == 2


def test_an_id_is_that_of_one_message(session: rs.Session) -> None:
    """Another message under it is refused, and none of the list is stored."""
    first = session.append(rs.user("one"), id="m-1")

    with pytest.raises(rs.Conflict) as refused:
        session.append([rs.user("zero"), rs.user("two")], id=["m-0", "m-1"])

    assert refused.value.stored.id == first.id
    assert session.head() == 1


def test_an_erased_message_does_not_come_back_under_its_id(session: rs.Session) -> None:
    """A late repeat is refused."""
    session.append(rs.user("secret"), id="m-1")
    session.erase("m-1")

    with pytest.raises(rs.Conflict, match="erased"):
        session.append(rs.user("secret"), id="m-1")


def test_the_id_that_the_store_made_is_an_id_too(session: rs.Session) -> None:
    """A message that was read is not stored a second time under its own id."""
    made = session.append(rs.user("one"))

    assert session.append(made.message, id=made.id).position == made.position
    assert session.head() == 1


def test_writers_of_one_id_store_it_once(session: rs.Session) -> None:
    """At the same time, from several threads."""
    with ThreadPoolExecutor(4) as pool:
        found = list(
            pool.map(
                lambda n: session.append([rs.user("x"), rs.user(f"{n}")], id=["same", f"m-{n}"]),
                range(8),
            )
        )

    assert session.head() == 9
    assert {one[0].position for one in found} == {session.get("same").position}


def test_a_reply_is_recorded_under_an_id_of_its_own_once(session: rs.Session) -> None:
    """It is found by that id; neither a reply nor a message is stored a second time under it."""
    events = [{"choices": [{"index": 0, "delta": {"content": "two"}}]}]
    asked = session.append(rs.user("one"))
    list(session.record(events, model="m", id="resp-1"))

    for id in ("resp-1", asked.id):
        with pytest.raises(rs.Conflict) as refused:
            list(session.record(events, model="m", id=id))
        assert refused.value.stored.id == id
    with pytest.raises(rs.InvalidCall):
        list(session.record(events, model="m", id="resp-2", idempotency_key="k"))
    assert session.get("resp-1").message.text == "two"
    assert session.head() == 2


@each(
    "wrong",
    [
        {"id": ["a"]},
        {"id": ["a", "a"]},
        {"id": "a"},
        {"id": ["a", ""]},
        {"id": ["a", "b\0"]},
        {"id": ["a", 2]},
        {"id": ["a", "b" * 1001]},
        {"id": ["a", "b"], "idempotency_key": "k"},
        {"created_at": [DAY]},
        {"created_at": [DAY, "now"]},
    ],
)
def test_a_wrong_id_or_time_stores_nothing(session: rs.Session, wrong: dict[str, object]) -> None:
    """The call is refused whole."""
    with pytest.raises(rs.InvalidCall):
        session.append([rs.user("one"), rs.user("two")], **wrong)  # type: ignore[call-overload]

    assert session.head() == 0


def test_each_message_has_a_time_of_its_own(session: rs.Session) -> None:
    """Without one it is now; the session's time is the last of them."""
    times = [DAY, DAY + timedelta(hours=1)]

    stored = session.append([rs.user("one"), rs.assistant("two")], created_at=times)

    assert [one.created_at for one in stored] == times
    assert session.append([rs.user("three")], created_at=[None])[0].created_at > times[1]
    with_own = session.append([rs.assistant("four")], id=[None])
    assert with_own[0].id == session.get(4).id


def test_a_session_is_found_by_a_message(store: rs.Store, session: rs.Session) -> None:
    """On the branch that the message was written on; another owner's is not found."""
    session.append([rs.user("one"), rs.assistant("two")], id=["m-1", "m-2"])
    fork = session.fork(at=2)
    fork.append(rs.assistant("zwei"), id="m-3")

    found = store.find_session("m-3")

    assert found is not None
    assert (found.id, found.branch_id) == ("s", fork.branch_id)
    assert [one.id for one in found.history()] == ["m-1", "m-3"]
    assert store.find_session("m-4") is None
    assert store.find_session("a\0b") is None
    assert store.for_owner("else").find_session("m-3") is None


def test_of_two_sessions_with_a_message_of_one_id_either_is_found(
    store: rs.Store, session: rs.Session
) -> None:
    """The one whose message is the oldest, or the latest."""
    other = store.session("other", create=True)
    session.append(rs.user("old"), id="m", created_at=DAY)
    other.append(rs.user("new"), id="m", created_at=DAY + timedelta(hours=1))

    found = [store.find_session("m", latest=latest) for latest in (False, True)]

    assert [one and one.id for one in found] == ["s", "other"]


def test_the_metadata_changes_with_the_append(store: rs.Store, session: rs.Session) -> None:
    """In one step: where another writer was first, neither happens."""
    session.append(rs.user("one"), update_metadata={"revision": 1}, expected={"revision": None})
    other = store.session("s")

    with pytest.raises(rs.Conflict, match="revision"):
        other.append(rs.user("two"), update_metadata={"revision": 1}, expected={"revision": None})

    other.append(rs.user("two"), update_metadata={"revision": 2}, expected={"revision": 1})
    assert [one.message.text for one in session.history()] == ["one", "two"]
    assert other.metadata == store.session("s").metadata == {"revision": 2}
    with pytest.raises(rs.Conflict):
        session.update_metadata({"revision": 3}, expected={"revision": 1})


def test_of_writers_of_one_revision_one_wins(session: rs.Session) -> None:
    """At the same time, from several threads."""

    def write(n: int) -> bool:
        try:
            session.append(rs.user(f"{n}"), update_metadata={"r": n}, expected={"r": None})
        except rs.Conflict:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        won = [n for n, one in enumerate(pool.map(write, range(8))) if one]

    assert [[one.message.text] for one in session.history()] == [[f"{n}"] for n in won]
    assert len(won) == 1


@pytest.mark.parametrize("verb", ["delete", "erase"])
def test_the_messages_go_and_the_session_stays(store: rs.Store, verb: str) -> None:
    """With its title, settings, metadata and owner; it begins again at position 1."""
    session = store.session("s", create=True, title="T", metadata={"a": 1})
    session.settings.set("reasoning.effort", "high")
    reply = rs.assistant(rs.ThinkingBlock(thought="Seven."), "No.", origin=rs.Origin(model="m"))
    session.append([rs.user("Is 91 prime?"), reply], id=["m-1", "m-2"])
    session.edit("m-1", rs.user("Is 97 prime?"))
    assert store.search("prime").items

    gone = getattr(session, verb)(only="messages")

    assert (gone.sessions, gone.messages, gone.thinking_blocks) == (0, 3, 1)
    assert (session.head(), session.history(), len(session.branches())) == (0, [], 1)
    assert store.search("prime").items == []
    opened = store.session("s")
    assert (opened.title, opened.metadata) == ("T", {"a": 1})
    assert opened.settings.resolved()["reasoning.effort"].value == "high"
    assert session.append(rs.user("Again?"), id="m-1").position == 1
    assert [hit.session for hit in store.search("again").items] == ["s"]
    assert store.verify().ok


def test_only_a_session_loses_its_messages(session: rs.Session) -> None:
    """A message is erased whole, or loses its reasoning."""
    session.append(rs.user("one"))

    with pytest.raises(rs.InvalidCall, match="only"):
        session.erase(1, only="messages")
    with pytest.raises(rs.InvalidCall, match="only"):
        session.delete(only="reasoning")  # type: ignore[arg-type]


def test_owners_are_listed(store: rs.Store) -> None:
    """Each once, page by page."""
    for owner in ("ann", "bob", "cid", ""):
        for id in ("1", "2"):
            store.for_owner(owner).session(id, create=True)

    first = store.owners(limit=3)
    rest = store.owners(after=first.next)

    assert sorted(first.items + rest.items) == ["", "ann", "bob", "cid"]
    assert rest.next is None
    with pytest.raises(rs.InvalidCall, match="after"):
        store.owners(after="first")


def test_the_async_face_has_the_same_verbs(url: str) -> None:
    """Awaited."""

    async def run() -> None:
        async with rs.AsyncStore(url) as store:
            session = await store.session("s", create=True)
            await session.append(rs.user("one"), id="m-1", update_metadata={"r": 1})
            assert session.metadata == {"r": 1}
            found = await store.find_session("m-1")
            assert found is not None
            assert await found.head() == 1
            assert (await store.owners()).items == [""]
            assert (await session.delete(only="messages")).messages == 1
            assert await store.find_session("m-1") is None

    asyncio.run(run())
