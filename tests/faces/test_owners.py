"""What is kept and how it leaves: names, profiles, lines, backups, reports, erasure, by owner."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import reasoning_store as rs
from reasoning_store.recording import draft_writer

from .answering import talk, thinking


@pytest.fixture
def embedded(sqlite_path: Path) -> Iterator[rs.Store]:
    with rs.Store(f"sqlite:///{sqlite_path}") as opened:
        yield opened


# The list of sessions


def test_a_session_is_listed_under_its_new_title(store: rs.Store) -> None:
    """The one who looks next sees it; without one it has none again."""
    session = store.session("s", create=True, title="A title")
    session.rename("Another")
    assert [item.title for item in store.sessions().items] == ["Another"]

    session.rename(None)
    assert [item.title for item in store.sessions().items] == [None]


def test_an_archived_session_is_listed_apart_until_it_is_put_back(store: rs.Store) -> None:
    """In the one list or in the other, never in both."""

    def listed(*, archived: bool) -> list[str]:
        return [item.id for item in store.sessions(archived=archived).items]

    session = store.session("s", create=True)
    store.session("other", create=True)
    session.archive()
    assert (listed(archived=False), listed(archived=True)) == (["other"], ["s"])

    session.archive(archived=False)
    assert ({*listed(archived=False)}, listed(archived=True)) == ({"s", "other"}, [])


# Whole stores


def test_a_backup_is_a_store(tmp_path: Path, embedded: rs.Store) -> None:
    """Made while the original is open; what is there already stays."""
    talk(embedded.session("chat", create=True))
    path = tmp_path / "copy.db"

    made = embedded.backup(path)

    assert (made.sessions, made.messages) == (1, 2)
    with rs.Store(f"sqlite:///{path}") as copy:
        assert copy.verify().ok
        assert list(copy.export_lines()) == list(embedded.export_lines())
    with pytest.raises(rs.ReasoningStoreError):
        embedded.backup(path)


def test_a_server_is_backed_up_by_its_own_tools(postgres_url: str, tmp_path: Path) -> None:
    """The error says so, and nothing is written."""
    with rs.Store(postgres_url) as store, pytest.raises(rs.InvalidCall) as refused:
        store.backup(tmp_path / "copy.db")

    assert "pg_dump" in f"{refused.value} {refused.value.hint}"
    assert list(tmp_path.iterdir()) == []


def test_a_report_sums_what_was_used(store: rs.Store) -> None:
    """By session, owner, model or day; an owner sees his own."""
    talk(store.for_owner("ann").session("chat", create=True))
    talk(store.for_owner("bob").session("chat", create=True))

    by_owner = {row.owner: row.reasoning for row in store.report(by="owner")}
    (mine,) = store.for_owner("ann").report(by="session")
    day = datetime.now(UTC)

    assert by_owner == {"ann": 15, "bob": 15}
    assert (mine.session, mine.input, mine.output) == ("chat", 10, 20)
    assert {row.model for row in store.report(by="model")} == {None, "deepseek-chat"}
    assert store.report(until=datetime(2001, 1, 1, tzinfo=UTC)) == []
    assert sum(row.output for row in store.report(by="day", since=day.replace(year=2001))) == 40


def test_verify_finds_nothing_in_a_sound_store(store: rs.Store) -> None:
    """And says how much it went through."""
    talk(store.session("chat", create=True))

    assert (store.verify().sessions, store.verify().messages, store.verify().ok) == (1, 2, True)


# Erasing


def test_only_the_reasoning_of_a_session_can_be_erased(
    embedded: rs.Store, sqlite_path: Path
) -> None:
    """The chat stays; no byte of the thought does."""
    session = embedded.session("chat", create=True)
    talk(session)

    done = session.erase(only="reasoning")

    assert done.thinking_blocks == 1
    assert [item.message.text for item in session.history()] == ["Is 91 prime?", "No."]
    assert session.usage().raw == session.usage().effective
    assert b"7 * 13" not in sqlite_path.read_bytes()


def test_an_erased_message_leaves_its_place(store: rs.Store) -> None:
    """Its position, its role, and the status that says so."""
    session = store.session("chat", create=True)
    talk(session)

    session.erase(2)

    item = session.get(2)
    assert (item.message.role, item.message.status, item.message.blocks) == (
        "assistant",
        "erased",
        (),
    )


def test_an_owner_is_erased_alone(store: rs.Store) -> None:
    """No other's is touched."""
    talk(store.for_owner("ann").session("chat", create=True))
    talk(store.for_owner("bob").session("chat", create=True))

    done = store.for_owner("ann").erase()

    assert (done.sessions, done.messages) == (1, 2)
    assert store.for_owner("ann").sessions().items == []
    assert len(store.for_owner("bob").sessions().items) == 1


def test_metadata_and_titles_are_replaced(store: rs.Store) -> None:
    """And are there for the next who opens the session."""
    session = store.session("chat", create=True, metadata={"a": 1})
    session.set_metadata({"b": [2]})
    session.rename("Primes")

    found = store.session("chat")
    assert (found.metadata, found.title, session.title) == ({"b": [2]}, "Primes", "Primes")


def test_a_window_by_tokens_keeps_the_latest(store: rs.Store) -> None:
    """As many whole messages as fit, counted with their thinking."""
    session = store.session("chat", create=True)
    session.append([rs.user("word " * 50), rs.assistant("Yes."), rs.user("And now?")])
    last = session.history()[1:]

    assert session.history(tokens=sum(item.tokens for item in last)) == last


def test_the_asynchronous_face_keeps_and_moves_too(tmp_path: Path) -> None:
    """The same verbs, awaited; lines in and out, from a list or from a stream."""

    async def work() -> None:
        async with (
            rs.AsyncStore(f"sqlite:///{tmp_path / 'one.db'}") as one,
            rs.AsyncStore("sqlite://") as two,
            rs.AsyncStore("sqlite://") as three,
        ):
            mine = one.for_owner("ann")
            chat = await mine.session("chat", create=True)
            await chat.append([rs.user("Is 91 prime?"), rs.assistant(thinking("7 * 13"), "No.")])
            await mine.settings.profiles.set("deep", {"reasoning.effort": "high"})
            await mine.settings.profiles.change("deep", {"reasoning.floor": "off"})
            await chat.settings.use("deep")
            lines = [line async for line in one.export_lines()]

            async def streamed() -> AsyncIterator[str]:
                for line in lines:
                    await asyncio.sleep(0)
                    yield line

            assert (await two.import_lines(lines)).messages == 2
            assert (await three.import_lines(streamed())).messages == 2
            assert [line async for line in three.export_lines()] == lines
            assert (await one.backup(tmp_path / "copy.db")).messages == 2
            assert (await one.verify()).ok
            used = (await chat.budget()).used
            assert [row.counted for row in await one.report(by="owner")] == [used]
            assert (await chat.erase(2, only="reasoning")).thinking_blocks == 1
            assert (await mine.erase()).sessions == 1

    asyncio.run(work())


def test_what_had_arrived_when_the_store_was_closed_is_kept(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """A server that stops closes its store while replies are still arriving."""
    monkeypatch.setattr(draft_writer, "PART_SECONDS", 3600.0)
    event = {"choices": [{"index": 0, "delta": {"content": "Half an "}}]}
    with rs.Store(url) as store:
        chunks = iter(store.session("chat", create=True).record([event, event], provider="openai"))
        next(chunks)

    with rs.Store(url) as store:
        assert [item.message.text for item in store.session("chat").history()] == ["Half an "]
    with pytest.raises(rs.InvalidCall, match="closed"):
        list(chunks)


def test_a_cancelled_import_waits_for_no_further_line(url: str) -> None:
    """Its source may never end; what was taken in is there when it is called again."""

    async def work() -> None:
        async with rs.AsyncStore(url) as opened:
            chat = await opened.for_owner("a").session("chat", create=True)
            await chat.append(rs.user("Is 91 prime?"))
            lines = [line async for line in opened.export_lines()]
            asked = asyncio.Event()

            async def endless() -> AsyncIterator[str]:
                for line in lines[:3]:
                    yield line
                asked.set()
                await asyncio.Event().wait()

            importing = asyncio.create_task(opened.for_owner("b").import_lines(endless()))
            await asked.wait()
            importing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(importing, 120)

            async def whole() -> AsyncIterator[str]:
                for line in lines:
                    yield line

            assert (await opened.for_owner("b").import_lines(whole())).sessions == 1

    asyncio.run(work())
