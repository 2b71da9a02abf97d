"""Deleting: the rows go at once, at a cost that is the conversation's own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

import reasoning_store as rs
from reasoning_store.ledger.database import opening
from reasoning_store.ledger.tables import metadata

from .reads import watched

OLD = datetime(2026, 1, 1, tzinfo=UTC)
BETWEEN = datetime(2026, 2, 1, tzinfo=UTC)
NEW = datetime(2026, 3, 1, tzinfo=UTC)
SECRET = "the thought that is to go"
THOUGHT = rs.assistant(rs.ThinkingBlock(thought=SECRET), "No.", origin=rs.Origin(model="m"))


@pytest.fixture
def store(url: str) -> Iterator[rs.Store]:
    with rs.Store(url) as store:
        yield store


def talk(owner: Any, id: str, at: datetime = NEW) -> rs.Session:
    session: rs.Session = owner.session(id, create=True)
    session.append([rs.user("Is 91 prime?"), THOUGHT], created_at=at)
    return session


def rows_by_table(url: str) -> dict[str, int]:
    found: dict[str, int] = {}

    def look(connection: Connection) -> None:
        for name in metadata.tables:
            text = f"SELECT count(*) FROM {name}"  # noqa: S608
            found[name] = connection.exec_driver_sql(text).scalar_one()

    opening.run_schema_command(url, look)
    return found


def test_a_deleted_session_leaves_no_row(store: rs.Store, url: str) -> None:
    """In no table, on none of its branches; another session is as it was."""
    other = talk(store, "other")
    before = rows_by_table(url)
    session = talk(store, "s")
    session.edit(1, rs.user("Is 97 prime?"))
    session.fork(at=1)

    done = session.delete()

    assert (done.sessions, done.messages, done.thinking_blocks, done.profiles) == (1, 3, 1, 0)
    assert rows_by_table(url) == before
    assert [row.message.role for row in other.history()] == ["user", "assistant"]
    assert store.verify().ok
    verbs: list[Any] = [
        session.delete,
        session.history,
        lambda: session.append(rs.user("x")),
        lambda: store.session("s"),
    ]
    for verb in verbs:
        with pytest.raises(rs.NotFound):
            verb()
    assert store.session("s", create=True).history() == []


def test_a_deletion_runs_as_many_statements_in_a_large_database(store: rs.Store) -> None:
    """One conversation costs the same, however many others there are."""

    def cost() -> list[int]:
        session = talk(store, "one")
        with watched() as work:
            session.delete()
        return work

    alone = cost()
    for number in range(40):
        talk(store, f"other {number}")

    assert cost() == alone


def test_what_is_deleted_leaves_the_file_and_its_log(tmp_path: Path) -> None:
    """On SQLite, where no other connection needs the log at that moment."""
    with rs.Store(f"sqlite:///{tmp_path}/chat.db") as store:
        talk(store, "other").erase(only="reasoning")
        session = talk(store, "s")
        assert any(SECRET.encode() in path.read_bytes() for path in tmp_path.iterdir())

        session.delete()

        assert not any(SECRET.encode() in path.read_bytes() for path in tmp_path.iterdir())


@pytest.mark.parametrize("verb", ["delete", "erase"])
def test_sessions_go_by_age(store: rs.Store, verb: str) -> None:
    """Those without a message since then; profiles stay, and so do another owner's sessions."""
    mine, other = store.for_owner("user-7"), store.for_owner("user-8")
    mine.settings.profiles.set("deep", {"reasoning.effort": "high"})
    for owner in (mine, other):
        talk(owner, "old", OLD)
        talk(owner, "new", NEW)
    talk(mine, "archived", OLD).archive()

    done = getattr(mine, verb)(before=BETWEEN)

    assert (done.sessions, done.profiles) == (2, 0)
    assert [one.id for one in mine.sessions(archived=None).items] == ["new"]
    assert len(other.sessions().items) == 2
    assert [one.name for one in mine.settings.profiles.all()] == ["deep"]
    again = getattr(mine, verb)(before=BETWEEN)
    assert again.sessions == 0


def thoughts(session: Any) -> list[int]:
    return [row.position for row in session.history() if row.message.thinking]


def test_reasoning_goes_by_the_age_of_each_thought(store: rs.Store) -> None:
    """Of sessions in use too, on all branches; the chat and another owner's thoughts stay."""
    mine, other = store.for_owner("user-7"), store.for_owner("user-8")
    talk(other, "in use", OLD)
    session = talk(mine, "in use", OLD)
    fork = session.fork(at=2)
    for branch, at in ((session, OLD), (fork, OLD), (session, BETWEEN), (fork, NEW)):
        branch.append(THOUGHT, created_at=at)
    first = [row.message.text for row in session.history()]

    done = mine.erase(only="reasoning", before=BETWEEN)

    assert (done.sessions, done.messages, done.thinking_blocks) == (0, 0, 3)
    assert [thoughts(one) for one in (session, fork)] == [[4], [3]]
    assert [row.message.text for row in session.history()] == first
    assert mine.thoughts(until=BETWEEN).items == []
    assert thoughts(other.session("in use")) == [2]
    assert mine.erase(only="reasoning", before=BETWEEN).thinking_blocks == 0
    assert store.verify().ok


def test_reasoning_of_a_reply_that_arrives_goes_by_its_begin(store: rs.Store) -> None:
    """One that began since goes on."""
    session = talk(store, "s", OLD)
    stream = [{"choices": [{"index": 0, "delta": {"reasoning_content": SECRET}}]}] * 2

    with session.record(iter(stream), provider="deepseek", model="m") as reply:
        chunks = iter(reply)
        next(chunks)
        assert store.erase(only="reasoning", before=BETWEEN).thinking_blocks == 1
        list(chunks)

    assert thoughts(session) == [3]
    later = datetime.now(UTC) + timedelta(days=1)
    assert store.erase(only="reasoning", before=later).thinking_blocks == 1


def test_reasoning_goes_by_age_asynchronously(url: str) -> None:
    """As it does otherwise."""

    async def erase() -> int:
        async with rs.AsyncStore(url) as store:
            session = await store.session("s", create=True)
            await session.append([rs.user("Is 91 prime?"), THOUGHT], created_at=OLD)
            await session.append(THOUGHT, created_at=NEW)
            return (await store.erase(only="reasoning", before=BETWEEN)).thinking_blocks

    assert asyncio.run(erase()) == 1


def test_an_old_session_with_a_reply_that_arrives_is_kept(store: rs.Store) -> None:
    """Its last message is old, and the conversation goes on at this moment."""
    session = talk(store, "s", OLD)
    stream = [{"choices": [{"index": 0, "delta": {"content": "again"}}]}]

    with session.record(iter(stream), provider="deepseek", model="m") as reply:
        next(iter(reply))
        assert store.delete(before=BETWEEN).sessions == 0

    assert [row.message.text for row in session.history()][-1] == "again"


def test_all_of_an_owner_is_deleted(store: rs.Store) -> None:
    """Sessions and profiles; the others' stay."""
    mine, other = store.for_owner("user-7"), store.for_owner("user-8")
    for owner in (mine, other):
        owner.settings.profiles.set("deep", {"reasoning.effort": "high"})
        talk(owner, "a")
        talk(owner, "b").archive()

    done = mine.delete()

    assert (done.sessions, done.messages, done.profiles) == (2, 4, 1)
    assert mine.sessions(archived=None).items == []
    assert mine.settings.profiles.all() == []
    assert len(other.sessions(archived=None).items) == 2
    assert [one.name for one in other.settings.profiles.all()] == ["deep"]


def test_a_recording_into_a_deleted_session_says_so_at_its_end(url: str) -> None:
    """Deleted by another store, as from another process; nothing comes back."""
    stream = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in "abc"]
    with rs.Store(url) as store, rs.Store(url) as other:
        session = talk(store, "s")

        def record() -> None:
            with session.record(iter(stream), provider="deepseek", model="m") as reply:
                for number, _ in enumerate(reply):
                    if number == 0:
                        other.session("s").delete()

        with pytest.raises(rs.NotFound):
            record()

        assert store.sessions().items == []
        assert store.verify().ok


@pytest.mark.parametrize("bad", ["2026-01-01", 5])
def test_an_invalid_time_deletes_nothing(store: rs.Store, bad: Any) -> None:
    """A named error."""
    talk(store, "s", OLD)

    for verb in (store.delete, store.erase):
        with pytest.raises(rs.InvalidCall, match="before"):
            verb(before=bad)
    assert len(store.sessions().items) == 1
