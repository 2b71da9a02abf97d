"""Replies whose end the store refused: what is reported of them, and how they are saved later."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, make_url

import reasoning_store as rs
from reasoning_store.ledger.database import opening, sqlite_connections
from reasoning_store.ledger.drafts import Drafts
from reasoning_store.recording import draft_writer
from tests.durability.disk import Disk, watched

from .interrupted import PIECES, Mine, fail, kept, recorded
from .recorder import event

LIBRARY = sqlite_connections.library()


@pytest.fixture(autouse=True)
def _only_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread writes anything meanwhile."""
    monkeypatch.setattr(draft_writer, "PART_SECONDS", 3600.0)


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Drafts, *_: Any, **__: Any) -> Any:
        raise rs.StoreFull("the disk refused the write")

    monkeypatch.setattr(Drafts, "finish", full)


@pytest.mark.usefixtures("refusing")
def test_an_error_in_the_body_of_a_recording_says_what_was_lost(url: str) -> None:
    """It goes on as it is, with a note."""
    with rs.Store(url) as store:
        session = store.session("chat", create=True)

        def read() -> None:
            with recorded(session) as reply:
                for _ in reply:
                    fail()

        with pytest.raises(Mine) as caught:
            read()

    assert caught.value.__notes__ == [
        "the interrupted reply could not be stored: the disk refused the write; "
        "once the store answers again, .save() of the recording stores this reply"
    ]


async def awaited() -> AsyncIterator[dict[str, Any]]:
    for piece in PIECES:
        await asyncio.sleep(0)
        yield event(piece)


async def left_behind_a_closed_store(url: str, how: Callable[[], Any]) -> None:
    store = await rs.AsyncStore(url).__aenter__()
    session = await store.session("chat", create=True)
    async with session.record(awaited(), model="m") as reply:
        async for _ in reply:
            await store.close()
            if how() == "break":
                break


def cancel() -> None:
    raise asyncio.CancelledError


@pytest.mark.parametrize(("how", "error"), [(fail, Mine), (cancel, asyncio.CancelledError)])
def test_an_error_after_closing_the_store_is_raised_unchanged(
    url: str, how: Callable[[], None], error: type[BaseException]
) -> None:
    """Awaited as well, and it says that the reply was not stored."""

    async def run() -> list[str]:
        with pytest.raises(error) as caught:
            await left_behind_a_closed_store(url, how)
        return list(caught.value.__notes__)

    assert asyncio.run(run()) == ["the interrupted reply could not be stored: the store is closed"]


def test_a_reply_left_after_closing_the_store_is_reported(url: str) -> None:
    """A break is not silent about it."""
    with pytest.raises(rs.InvalidCall, match="closed"):
        asyncio.run(left_behind_a_closed_store(url, lambda: "break"))


def test_a_recording_that_was_stored_tells_nothing(url: str) -> None:
    """An error after its end is none of its business."""
    with rs.Store(url) as store:
        session = store.session("chat", create=True)

        def read() -> None:
            with recorded(session) as reply:
                list(reply)
                fail()

        with pytest.raises(Mine) as caught:
            read()

    assert not hasattr(caught.value, "__notes__")
    assert kept(url) == [("complete", "one two")]


def stream_that_fails() -> Iterator[dict[str, Any]]:
    yield event("one ")
    raise Mine


@pytest.mark.usefixtures("refusing")
def test_an_error_of_the_stream_is_noted_once(url: str) -> None:
    """By the loop, and not again by the block around it."""
    with rs.Store(url) as store:
        session = store.session("chat", create=True)
        with (
            pytest.raises(Mine) as caught,
            session.record(stream_that_fails(), model="m") as reply,
        ):
            list(reply)

    assert len(caught.value.__notes__) == 1


def test_a_conflict_that_was_caught_is_not_raised_again(url: str) -> None:
    """The loop has raised it; the block around it does not raise it again."""
    with rs.Store(url) as store:
        session = store.session("chat", create=True)
        with recorded(session) as reply:
            chunks = iter(reply)
            next(chunks)
            session.append(rs.user("Stop."))
            with pytest.raises(rs.Conflict):
                list(chunks)


async def cancelled_at_its_end(url: str) -> list[tuple[str, str]]:
    """Cancel a task whose reply has ended, while its save is still in the queue."""
    async with rs.AsyncStore(url) as store:
        session = await store.session("chat", create=True)
        goes_on, ended = threading.Event(), asyncio.Event()
        before: list[asyncio.Task[Any]] = []

        async def stream() -> AsyncIterator[dict[str, Any]]:
            yield event("one two")
            before.extend(
                asyncio.create_task(session._threads.write(goes_on.wait)) for _ in range(8)
            )
            await asyncio.sleep(0)
            ended.set()

        async def read() -> None:
            async for _ in session.record(stream(), model="m"):
                pass

        reading = asyncio.create_task(read())
        await ended.wait()
        for _ in range(10):
            await asyncio.sleep(0)
        reading.cancel()
        goes_on.set()
        await asyncio.gather(reading, *before, return_exceptions=True)
        return [(one.message.status, one.message.text) for one in await session.history()]


def test_a_reply_whose_task_is_cancelled_at_its_end_is_kept(url: str) -> None:
    """Its save was asked for, and is done whether or not anyone waits for it."""
    assert asyncio.run(cancelled_at_its_end(url)) == [("complete", "one two")]


@contextmanager
def locked(url: str) -> Generator[None]:
    """Let another program hold the lock that every append needs."""
    if url.startswith("sqlite"):
        with closing(LIBRARY.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as raw:
            raw.execute("BEGIN IMMEDIATE")
            yield
    else:
        server = create_engine(url)
        with server.connect() as connection:
            connection.exec_driver_sql("LOCK TABLE messages IN ACCESS EXCLUSIVE MODE")
            yield
            connection.rollback()
        server.dispose()


@pytest.fixture(params=["sqlite", "postgres"])
def single_url(request: pytest.FixtureRequest) -> str:
    """A new store on one machine: on Citus the limit of a wait for a lock reaches no node."""
    if request.param == "sqlite":
        return f"sqlite:///{request.getfixturevalue('sqlite_path')}"
    found: str = request.getfixturevalue("plain_url")
    return found


@contextmanager
def impatient(url: str) -> Generator[rs.Store]:
    """A store that waits for a lock only briefly."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "BUSY_TIMEOUT", 0.05)
        hurried = make_url(url)
        if hurried.drivername.startswith("postgresql"):
            options = f"{hurried.query.get('options', '')} -c lock_timeout=50"
            hurried = hurried.update_query_dict({"options": options})
        store = rs.Store(hurried.render_as_string(hide_password=False))
    with store:
        yield store


def ends_behind(lock: AbstractContextManager[None], within: ExitStack) -> Iterator[Any]:
    """A stream, at whose end another program takes the lock."""
    yield from map(event, PIECES)
    within.enter_context(lock)


def test_a_reply_whose_end_found_the_store_locked_is_saved_as_itself(single_url: str) -> None:
    """Complete and under its key, as soon as the store answers; once, however often it is asked."""
    with impatient(single_url) as store:
        session = store.session("chat", create=True)
        with ExitStack() as holding:
            stream = ends_behind(locked(single_url), holding)
            reply = session.record(stream, model="m", idempotency_key="k")
            with pytest.raises(rs.StoreBusy) as busy:
                list(reply)
            assert ".save()" in str(busy.value.hint)
            with pytest.raises(rs.StoreBusy):
                reply.save()
            assert reply.stored is None

        saved = reply.save()

        assert saved is not None
        assert (saved, saved.message.status) == (reply.save(), "complete")
        assert [item.id for item in session.history()] == [saved.id]
        with pytest.raises(rs.Conflict) as again:
            list(session.record(map(event, PIECES), model="m", idempotency_key="k"))
        assert again.value.stored.id == saved.id


def test_a_reply_that_was_left_and_found_the_store_locked_is_saved_as_interrupted(
    single_url: str,
) -> None:
    """The exception of the application's goes on, and what arrived can be stored afterwards."""
    with impatient(single_url) as store:
        session = store.session("chat", create=True)
        reply = session.record(map(event, PIECES))
        with ExitStack() as holding:

            def read() -> None:
                with reply:
                    for _ in reply:
                        holding.enter_context(locked(single_url))
                        fail()

            with pytest.raises(Mine) as left_by:
                read()
            assert ".save()" in " ".join(left_by.value.__notes__)

        reply.save()

        assert [one.message.status for one in session.history()] == ["interrupted"]


def test_a_reply_that_could_not_be_stored_is_not_lost_to_an_append_that_comes_first(
    single_url: str,
) -> None:
    """All of it stands there as interrupted, and saving it says so."""
    with impatient(single_url) as store:
        session = store.session("chat", create=True)
        with ExitStack() as holding:
            reply = session.record(ends_behind(locked(single_url), holding), model="m")
            with pytest.raises(rs.StoreBusy):
                list(reply)
        session.append(rs.user("Well?"))

        with pytest.raises(rs.Conflict) as caught:
            reply.save()

        (kept, _) = session.history()
        assert (kept.message.status, kept.message.text) == ("interrupted", "one two")
        assert caught.value.stored.id == kept.id


@pytest.mark.parametrize("full", [True, False], ids=["full", "broken"])
def test_a_reply_whose_end_found_the_disk_full_is_saved_as_itself(
    tmp_path: Path, full: bool
) -> None:
    """As soon as there is room."""
    disk = Disk(full=full)
    with watched(LIBRARY, disk), rs.Store(f"sqlite:///{tmp_path}/a.db") as store:
        session = store.session("chat", create=True)

        def stream() -> Iterator[Any]:
            yield from map(event, PIECES)
            disk.break_at(1, for_good=True)

        reply = session.record(stream(), model="m")
        with pytest.raises(rs.StoreFull):
            list(reply)
        disk.mend()
        reply.save()

        assert [(m.message.status, m.message.text) for m in session.history()] == [
            ("complete", "one two")
        ]


async def saved_later(url: str) -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "BUSY_TIMEOUT", 0.05)
        store = rs.AsyncStore(url)
        await store.__aenter__()
    session = await store.session("chat", create=True)
    with ExitStack() as holding:
        reply = session.record(ends_behind(locked(url), holding), model="m")
        with pytest.raises(rs.InvalidCall, match="has not begun"):
            await reply.save()
        with pytest.raises(rs.StoreBusy):
            _ = [chunk async for chunk in reply]
    await reply.save()
    found: list[str] = [item.message.status for item in await session.history()]
    await store.__aexit__(None, None, None)
    return found


def test_an_asynchronous_recording_is_saved_too(sqlite_path: Path) -> None:
    """The same verb, awaited."""
    assert asyncio.run(saved_later(f"sqlite:///{sqlite_path}")) == ["complete"]


def test_a_reply_that_is_still_being_recorded_is_not_saved(url: str) -> None:
    """It saves itself at its end."""
    with rs.Store(url) as store, recorded(store.session("chat", create=True)) as reply:
        chunks = iter(reply)
        next(chunks)
        with pytest.raises(rs.InvalidCall, match="still being recorded"):
            reply.save()
