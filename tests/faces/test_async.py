"""The asynchronous face: the same names, awaited, and nothing lost when a task is cancelled."""

from __future__ import annotations

import asyncio
import gc
import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store import owner, store
from reasoning_store.aio import session as aio_session
from reasoning_store.aio import store as aio_store
from reasoning_store.sessions import context as session_context
from reasoning_store.sessions import session
from reasoning_store.sessions import settings as session_settings
from tests.ledger.writing import Held as WriterHeld
from tests.ledger.writing import commits, waiting, writer_of
from tests.properties import each

PAIRS = [
    (owner.Owner, aio_store.AsyncOwner),
    (store.Store, aio_store.AsyncStore),
    (session.Session, aio_session.AsyncSession),
    (session_context.Context, aio_session.AsyncContext),
    (session_settings.SessionSettings, aio_session.AsyncSessionSettings),
    (session_settings.OwnerSettings, aio_store.AsyncOwnerSettings),
    (session_settings.Profiles, aio_store.AsyncProfiles),
    (rs.Recording, rs.AsyncRecording),
]


def names(kind: type) -> dict[str, Any]:
    return {name: value for name, value in inspect.getmembers(kind) if not name.startswith("_")}


def parameters(function: Any) -> dict[str, tuple[Any, ...]]:
    return {
        name: (parameter.kind, parameter.default)
        for name, parameter in inspect.signature(function).parameters.items()
    }


@each("sync, awaited", PAIRS)
def test_both_faces_have_the_same_names(sync: type, awaited: type) -> None:
    """What one can do, the other can."""
    assert set(names(awaited)) == set(names(sync))


@each("sync, awaited", PAIRS)
def test_both_faces_take_the_same_arguments(sync: type, awaited: type) -> None:
    """By the same names, kinds and defaults: a call changes by ``await`` and by nothing else."""
    for name, method in names(sync).items():
        if callable(method):
            assert parameters(names(awaited)[name]) == parameters(method), name


@each("sync, awaited", PAIRS)
def test_both_faces_have_the_same_words(sync: type, awaited: type) -> None:
    """A verb that is made from the other face's has its docstring; one that is written has one."""
    for name, method in names(sync).items():
        other = names(awaited)[name]
        made = getattr(other, "__wrapped__", None)
        assert made in (None, method), name
        assert bool(other.__doc__) == bool(method.__doc__), name
        assert made is None or name == "record" or inspect.iscoroutinefunction(other), name


def run(work: Callable[[rs.AsyncStore], Awaitable[Any]], url: str) -> Any:
    async def main() -> Any:
        async with rs.AsyncStore(url) as opened:
            return await work(opened)

    return asyncio.run(main())


async def events(*texts: str) -> AsyncIterator[dict[str, Any]]:
    for text in texts:
        await asyncio.sleep(0)
        yield {"choices": [{"index": 0, "delta": {"content": text}}]}


def test_a_thought_that_the_prompt_opened_is_recorded_as_one_awaited(url: str) -> None:
    """The asynchronous face says so in the same words."""

    async def work(opened: rs.AsyncStore) -> None:
        session = await opened.session("s", create=True)
        async with session.record(events("So.</thi", "nk>No."), starts_inside=True) as reply:
            async for _ in reply:
                pass
        assert reply.message is not None
        assert reply.message.text == "No."
        assert [block.thought for block in reply.message.thinking] == ["So."]

    run(work, url)


def test_tagged_text_after_native_thinking_is_kept_awaited(url: str) -> None:
    """Where it is asked for, as by the synchronous face."""

    async def work(opened: rs.AsyncStore) -> None:
        session = await opened.session("s", create=True)
        thought = {"choices": [{"index": 0, "delta": {"reasoning_content": "One."}}]}
        said = {"choices": [{"index": 0, "delta": {"content": "<think>Two.</think>No."}}]}
        async with session.record([thought, said], provider="deepseek", merge=True) as reply:
            async for _ in reply:
                pass
        assert reply.message is not None
        assert [block.thought for block in reply.message.thinking] == ["One.", "Two."]

    run(work, url)


def test_the_true_path_awaited(url: str) -> None:
    """In, stored, and out as the next request."""

    async def work(opened: rs.AsyncStore) -> None:
        chat = await opened.session("chat", create=True)
        await chat.append(rs.user("Is 91 prime?"))
        await chat.settings.set("reasoning.includeInContext", True)
        async with chat.record(events("<think>7 * 13</th", "ink>No."), model="m") as reply:
            shown = [chunk.text async for chunk in reply if isinstance(chunk, rs.TextChunk)]
        assert shown == ["No."]
        assert reply.stored is not None
        assert reply.stored.position == 2
        request = await chat.build_request()
        assert request.body["messages"][1]["reasoning_content"] == "7 * 13"
        assert (await chat.usage()).effective == request.tokens.effective
        assert [item.position for item in await chat.history()] == [1, 2]
        assert [item.id for item in (await opened.sessions()).items] == ["chat"]

    run(work, url)


def test_a_cancelled_task_keeps_what_arrived(url: str) -> None:
    """The save is shielded; the cancellation goes on unchanged."""

    async def work(opened: rs.AsyncStore) -> None:
        chat = await opened.session("chat", create=True)
        arrived = asyncio.Event()

        async def endless() -> AsyncIterator[dict[str, Any]]:
            yield {"choices": [{"index": 0, "delta": {"content": "Half"}}]}
            arrived.set()
            await asyncio.sleep(3600)

        async def reading() -> None:
            async for _ in chat.record(endless(), model="m"):
                pass

        task = asyncio.create_task(reading())
        await arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        (item,) = await chat.history()
        assert (item.message.text, item.message.status) == ("Half", "interrupted")

    run(work, url)


@pytest.mark.parametrize("how", ["break", "exception"])
def test_a_reply_that_is_left_early_is_kept(url: str, how: str) -> None:
    """Under ``async with`` what arrived is stored before the block is left."""

    async def work(opened: rs.AsyncStore) -> None:
        chat = await opened.session("chat", create=True)
        try:
            async with chat.record(events("one ", "two ", "three"), model="m") as reply:
                async for _ in reply:
                    if how == "break":
                        break
                    raise ZeroDivisionError
        except ZeroDivisionError:
            assert how == "exception"
        (item,) = await chat.history()
        assert (item.message.text, item.message.status) == ("one ", "interrupted")

    run(work, url)


def test_a_reply_that_is_left_without_async_with_is_interrupted_once_its_store_is_closed(
    url: str,
) -> None:
    """The break is the last thing that is done with it, and nothing goes wrong after it."""
    wrong: list[Any] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: wrong.append(context))
        async with rs.AsyncStore(url) as opened:
            chat = await opened.session("chat", create=True)
            reply = chat.record(events("one ", "two ", "three"), model="m")
            async for _ in reply:
                break

    asyncio.run(main())

    with rs.Store(url) as opened:
        (item,) = opened.session("chat").history()
    assert (item.message.status, item.message.text) == ("interrupted", "one ")
    gc.collect()
    assert not wrong


def test_a_store_is_closed_by_a_task_that_was_cancelled_before_it_could_begin(
    sqlite_path: Path,
) -> None:
    """Also where a reply was left a moment before."""

    async def main() -> None:
        opened = await rs.AsyncStore(f"sqlite:///{sqlite_path}").__aenter__()
        chat = await opened.session("chat", create=True)
        async for _ in chat.record(events("one ", "two"), model="m"):
            break
        closing = asyncio.create_task(opened.close())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait([closing])
        assert closing.cancelled()
        with pytest.raises(rs.InvalidCall, match="closed"):
            await chat.history()

    asyncio.run(main())

    # SQLite removes it with the last connection that closes.
    assert not Path(f"{sqlite_path}-wal").exists()


@dataclass
class Held:
    """A masker that lets nothing through until it may go on."""

    lookback: int = 1
    begun: threading.Event = field(default_factory=threading.Event)
    goes_on: threading.Event = field(default_factory=threading.Event)

    def mask(self, text: str) -> str:
        self.begun.set()
        assert self.goes_on.wait(120)
        return text


async def turns_of_the_loop() -> None:
    """Let everything happen that waits for nothing but its turn."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize("times", [1, 3])
def test_a_verb_that_has_begun_is_waited_for(url: str, times: int) -> None:
    """The one who cancels it learns so when it is done, however often it is cancelled."""
    held = Held()

    async def main() -> None:
        async with rs.AsyncStore(url, masker=held) as opened:
            chat = await opened.session("chat", create=True)
            asked = asyncio.create_task(chat.append(rs.user("asked")))
            await asyncio.to_thread(held.begun.wait)
            for _ in range(times):
                asked.cancel()
                await turns_of_the_loop()
            waits = not asked.done()
            held.goes_on.set()
            with pytest.raises(asyncio.CancelledError):
                await asked
            assert waits
            assert [item.message.text for item in await chat.history()] == ["asked"]

    asyncio.run(main())


def test_a_verb_that_is_cancelled_before_its_turn_never_begins(sqlite_path: Path) -> None:
    """Its task ends at once, and nothing is stored of it."""
    held = Held()

    async def main() -> None:
        async with rs.AsyncStore(f"sqlite:///{sqlite_path}", masker=held) as opened:
            chat = await opened.session("chat", create=True)
            first = asyncio.create_task(chat.append(rs.user("first")))
            await asyncio.to_thread(held.begun.wait)
            second = asyncio.create_task(chat.append(rs.user("second")))
            await turns_of_the_loop()
            second.cancel()
            await turns_of_the_loop()
            ended = second.cancelled()
            held.goes_on.set()
            await first
            assert ended
            assert [item.message.text for item in await chat.history()] == ["first"]

    asyncio.run(main())


def test_in_a_file_one_session_is_written_in_the_order_of_asking(sqlite_path: Path) -> None:
    """Also where nothing is awaited before the next is asked for."""

    async def work(opened: rs.AsyncStore) -> None:
        chats = [await opened.session(f"{n}", create=True) for n in range(20)]
        await asyncio.gather(
            *(chat.append(rs.user(f"{n}" * 5000 * (n % 3 + 1))) for n in range(9) for chat in chats)
        )
        for chat in chats:
            texts = [item.message.text[0] for item in await chat.history()]
            assert texts == [f"{n}" for n in range(9)]

    run(work, f"sqlite:///{sqlite_path}")


def test_what_was_asked_for_before_closing_is_written(sqlite_path: Path) -> None:
    """In every lane, though no one waited for it."""

    async def main() -> None:
        async with rs.AsyncStore(f"sqlite:///{sqlite_path}") as opened:
            chats = [await opened.session(f"{n}", create=True) for n in range(30)]
            asked = [asyncio.create_task(chat.append(rs.user("now"))) for chat in chats]
            await asyncio.sleep(0)
        await asyncio.gather(*asked)

    asyncio.run(main())

    with rs.Store(f"sqlite:///{sqlite_path}") as opened:
        assert all(opened.session(f"{n}").history() for n in range(30))


def test_what_was_begun_before_closing_is_written(url: str) -> None:
    """Though it takes its time, and there are threads left that could close meanwhile."""
    held = Held()

    async def main() -> None:
        opened = await rs.AsyncStore(url, masker=held).__aenter__()
        chats = [await opened.session(f"{n}", create=True) for n in range(3)]
        asked = [asyncio.create_task(chat.append(rs.user("now"))) for chat in chats]
        await asyncio.sleep(0)
        closing = asyncio.create_task(opened.close())
        await asyncio.wait([closing], timeout=0.2)
        assert not closing.done()
        held.goes_on.set()
        await asyncio.gather(closing, *asked)
        async with rs.AsyncStore(url) as again:
            for chat in chats:
                assert await (await again.session(chat.id)).history()

    asyncio.run(main())


def test_in_a_file_tasks_that_write_at_once_share_commits(sqlite_path: Path) -> None:
    """Sixteen sessions wait for the disk fewer times than that."""

    async def work(opened: rs.AsyncStore) -> None:
        chats = [await opened.session(f"{n}", create=True) for n in range(16)]
        writer = writer_of(opened._sync._state.ledger)
        lanes = len({chat._threads._lane % aio_store._LANES for chat in chats})

        def until_all_wait() -> None:
            while waiting(writer) < lanes:
                pass

        with WriterHeld(writer):
            before = commits(sqlite_path)
            asked = [asyncio.create_task(chat.append(rs.user("now"))) for chat in chats]
            await asyncio.to_thread(until_all_wait)
        await asyncio.gather(*asked)
        assert commits(sqlite_path) - before <= 16 - lanes + 1

    run(work, f"sqlite:///{sqlite_path}")


def test_a_closed_store_says_so(url: str) -> None:
    """Outside ``async with`` there is no store."""
    with pytest.raises(rs.InvalidCall, match="not open"):
        rs.AsyncStore(url).for_owner("a")


def test_a_store_that_is_left_by_a_cancelled_task_is_closed(sqlite_path: Path) -> None:
    """Also where its turn to close had not come yet when the task was cancelled."""

    async def main() -> None:
        opened = rs.AsyncStore(f"sqlite:///{sqlite_path}")
        await opened.__aenter__()
        threads, goes_on = opened._threads, threading.Event()
        writing = asyncio.create_task(threads.write(goes_on.wait))
        await asyncio.sleep(0)
        closing = asyncio.create_task(opened.close())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.sleep(0)
        goes_on.set()
        await asyncio.wait([writing, closing])
        assert closing.cancelled()
        with pytest.raises(rs.InvalidCall, match="closed"):
            await threads.read(dict)

    asyncio.run(main())

    # SQLite removes it with the last connection that closes.
    assert not sqlite_path.with_name(f"{sqlite_path.name}-wal").exists()


def test_a_store_that_a_cancelled_task_was_opening_is_closed(
    sqlite_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening has begun and is waited for; no one has what was opened."""
    began, goes_on = threading.Event(), threading.Event()
    made: list[store.Store] = []

    class Slow(store.Store):
        def __init__(self, *given: Any, **named: Any) -> None:
            began.set()
            goes_on.wait()
            super().__init__(*given, **named)
            made.append(self)

    async def main() -> None:
        opening = asyncio.create_task(rs.AsyncStore(f"sqlite:///{sqlite_path}").__aenter__())
        await asyncio.to_thread(began.wait)
        opening.cancel()
        await asyncio.sleep(0)
        goes_on.set()
        await asyncio.wait([opening])
        assert opening.cancelled()

    monkeypatch.setattr(aio_store, "Store", Slow)
    asyncio.run(main())

    with pytest.raises(rs.InvalidCall, match="closed"):
        made[0].sessions()


ASKED: dict[str, Callable[[rs.AsyncStore], Any]] = {
    "session": lambda store: store.session("chat", create=True),
    "sessions": lambda store: store.sessions(),
    "report": lambda store: store.report(),
    "erase": lambda store: store.erase(),
    "verify": lambda store: store.verify(),
    "import": lambda store: store.import_lines([]),
    "export": lambda store: anext(aiter(store.export_lines())),
    "owner": lambda store: store.for_owner("you").sessions(),
    "profiles": lambda store: store.settings.profiles.all(),
}


@pytest.mark.parametrize("verb", ASKED)
def test_an_asynchronous_store_that_is_not_open_says_how(url: str, verb: str) -> None:
    """Before it is entered and after it is closed."""

    async def run() -> None:
        store = rs.AsyncStore(url)
        with pytest.raises(rs.InvalidCall, match="not open") as caught:
            await ASKED[verb](store)
        assert caught.value.hint == "async with rs.AsyncStore(url) as store"
        async with store:
            pass
        with pytest.raises(rs.InvalidCall, match="not open"):
            await ASKED[verb](store)

    asyncio.run(run())


def test_an_asynchronous_handle_outlives_its_store_as_an_error(url: str) -> None:
    """It says that the store is closed, whatever it is asked for."""

    async def run() -> None:
        async with rs.AsyncStore(url) as store:
            chat = await store.session("chat", create=True)
        for verb in (chat.history(), chat.append(rs.user("More.")), chat.usage(), chat.erase()):
            with pytest.raises(rs.InvalidCall, match="closed"):
                await verb

    asyncio.run(run())
