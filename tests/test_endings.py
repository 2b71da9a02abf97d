"""The end of a recording: interrupted, overtaken, refused. What was shown is kept, or told."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store import draft_keeper, recorder, replies
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.values import Growth
from reasoning_store.replies import Reply
from tests.ledger.interrupts import everywhere
from tests.ledger.lanes import commits

PIECES = ("<think>Hm.</think>", "one ", "two")


def event(text: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}}]}


def recording(session: rs.Session) -> rs.Recording:
    return session.record(map(event, PIECES), model="m")


@pytest.fixture(autouse=True)
def _only_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread writes anything meanwhile."""
    monkeypatch.setattr(replies, "PART_SECONDS", 3600.0)


def kept(url: str) -> list[tuple[str, str]]:
    """Return what another store reads, once the recorder is gone."""
    with rs.Store(url) as store:
        session = store.session("chat")
        session.append(rs.user("Well?"))
        return [(one.message.status, one.message.text) for one in session.history()[:-1]]


class Held:
    """A masker that hides nothing, and may do something else when it is asked to."""

    lookback = 0

    def __init__(self) -> None:
        self.now: Callable[[], object] | None = None

    def mask(self, text: str) -> str:
        if self.now is not None:
            now, self.now = self.now, None
            now()
        return text


def interrupt() -> None:
    raise KeyboardInterrupt


def left(chunks: Iterator[rs.Chunk]) -> None:
    """Leave a loop whose store is closed, which says so."""
    assert isinstance(chunks, Generator)
    with pytest.raises(rs.UsageError):
        chunks.close()


@pytest.mark.parametrize("under_with", [True, False], ids=["under with", "bare"])
def test_a_reply_is_kept_whose_end_is_interrupted(url: str, under_with: bool) -> None:
    """Control-C between the last piece and the disk."""
    masker = Held()
    store = rs.Store(url, masker=masker)
    reply = recording(store.session("chat", create=True))

    def read() -> None:
        for chunk in reply:
            if isinstance(chunk, rs.TextChunk) and chunk.text == "two":
                masker.now = interrupt

    def read_under_with() -> None:
        with reply:
            read()

    with pytest.raises(KeyboardInterrupt):
        (read_under_with if under_with else read)()
    store.close()

    assert [text for _, text in kept(url)] == ["one two"]


@pytest.mark.parametrize("room", [recorder, replies, draft_keeper], ids=lambda room: room.__name__)
def test_a_reply_whose_end_is_interrupted_anywhere_is_kept_once_and_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch, room: ModuleType
) -> None:
    """At each place of the recorder, and of the keeper, where Python hears of an interrupt."""
    monkeypatch.setattr(replies, "PART_SECONDS", 0.01)  # what was not woken looks by itself
    store: rs.Store | None = None

    def prepare() -> Callable[[], Any]:
        nonlocal store
        store = rs.Store("sqlite://")
        reply = recording(store.session("chat", create=True)).__enter__()
        chunks = iter(reply)
        while getattr(next(chunks), "text", None) != "two":
            pass

        def end() -> None:
            try:
                list(chunks)
            except BaseException as error:
                reply.__exit__(type(error), error, error.__traceback__)
                raise
            reply.__exit__(None, None, None)

        return end

    def check() -> None:
        assert store is not None
        session = store.session("chat")
        list(recording(session))
        assert [one.message.text for one in session.history()] == ["one two"] * 2
        store.close()

    assert everywhere(str(room.__file__), prepare, check) > 2


@pytest.mark.parametrize("room", [recorder, replies], ids=lambda room: room.__name__)
def test_a_reply_is_kept_where_leaving_it_is_interrupted(room: ModuleType) -> None:
    """A second Control-C comes while what the first one ended is stored: nothing is lost."""
    store: rs.Store | None = None
    found: list[list[tuple[str, str]]] = []

    def prepare() -> Callable[[], Any]:
        nonlocal store
        store = rs.Store("sqlite://")
        reply = recording(store.session("chat", create=True)).__enter__()
        chunks = iter(reply)
        while getattr(next(chunks), "text", None) != "two":
            pass

        def leave() -> None:
            reply.__exit__(None, None, None)
            assert next(chunks, None) is None  # it is held until here

        return leave

    def check() -> None:
        assert store is not None
        gc.collect()  # one that was not left at all is let go of now, and not when it is closed
        history = store.session("chat").history()
        found.append([(one.message.status, one.message.text) for one in history])
        store.close()

    assert everywhere(str(room.__file__), prepare, check) > 5
    assert found == [[("interrupted", "one two")]] * len(found)


def test_a_store_that_is_closed_waits_for_a_reply_that_is_ending(url: str) -> None:
    """It is stored before the store is closed, and not told that it was."""
    masker, ending, goes_on = Held(), threading.Event(), threading.Event()

    def hold() -> None:
        ending.set()
        assert goes_on.wait(60)

    store = rs.Store(url, masker=masker)
    reply = recording(store.session("chat", create=True))

    def read() -> None:
        for chunk in reply:
            if isinstance(chunk, rs.TextChunk) and chunk.text == "two":
                masker.now = hold

    reading = threading.Thread(target=read)
    closing = threading.Thread(target=store.close)
    reading.start()
    assert ending.wait(60)
    closing.start()
    goes_on.set()
    reading.join(60)
    closing.join(60)

    assert reply.stored is not None
    assert kept(url) == [("complete", "one two")]


@pytest.mark.parametrize("what", ["kept", "ended"])
def test_a_reply_that_is_long_in_ending_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch, url: str, what: str
) -> None:
    """It may be much that is masked and counted: the others are kept, and can be ended."""
    monkeypatch.setattr(replies, "PART_SECONDS", 0.01 if what == "kept" else 3600.0)
    masker, ending, goes_on = Held(), threading.Event(), threading.Event()
    waited: list[bool] = []

    def hold() -> None:
        ending.set()
        waited.append(goes_on.wait(30))

    with rs.Store(url, masker=masker) as store:
        reply = recording(store.session("long", create=True))

        def read() -> None:
            for chunk in reply:
                if isinstance(chunk, rs.TextChunk) and chunk.text == "two":
                    masker.now = hold

        other = store.session("chat", create=True)
        chunks = iter(recording(other))
        reading = threading.Thread(target=read)
        reading.start()
        assert ending.wait(60)
        while not isinstance(next(chunks), rs.TextChunk):
            pass
        if what == "ended":
            other.append(rs.user("Well?"))
        while not waited and [one.message.text for one in other.history()][:1] != ["one "]:
            pass
        in_time = not waited
        goes_on.set()
        reading.join(60)
        with pytest.raises(rs.Conflict) if what == "ended" else nullcontext():
            list(chunks)

    assert in_time


def test_a_reply_whose_store_is_closed_is_interrupted_at_once(url: str) -> None:
    """Nobody waits for its lease: neither who reads it, nor who asks again under its key."""
    store = rs.Store(url)
    session = store.session("chat", create=True)
    chunks = iter(session.record(map(event, PIECES), model="m", idempotency_key="k"))
    while not isinstance(next(chunks), rs.TextChunk):
        pass
    silent = store.session("silent", create=True).record(iter(()), model="m", idempotency_key="k")
    silent.__enter__()
    store.close()

    with rs.Store(url) as again:
        session = again.session("chat")
        assert [(one.message.status, one.message.text) for one in session.history()] == [
            ("interrupted", "one ")
        ]
        with pytest.raises(rs.Conflict) as told:
            list(session.record(map(event, PIECES), model="m", idempotency_key="k"))
        assert told.value.stored.message.text == "one "
        silent_again = again.session("silent").record(
            map(event, PIECES), model="m", idempotency_key="k"
        )
        assert len(list(silent_again)) > 0
    left(chunks)
    with pytest.raises(rs.UsageError, match="closed"):
        silent.__exit__(None, None, None)


def test_what_a_masker_holds_back_is_kept_as_the_store_is_closed(url: str) -> None:
    """Nothing more can come that a secret might end in."""

    class Cautious(Held):
        lookback = 500

    with rs.Store(url, masker=Cautious()) as store:
        chunks = iter(recording(store.session("chat", create=True)))
        while not isinstance(next(chunks), rs.TextChunk):
            pass

    assert kept(url) == [("interrupted", "one ")]
    left(chunks)


def test_a_store_that_takes_nothing_is_closed_after_one_reply(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """Each other reply would wait for as long again."""
    asked: list[int] = []

    def busy(self: Ledger, *_: Any, **__: Any) -> bool:
        asked.append(1)
        raise rs.StoreBusy

    monkeypatch.setattr(Ledger, "keep_drafts", busy)
    with rs.Store(url) as store:
        open_ones = [iter(recording(store.session(name, create=True))) for name in ("a", "b", "c")]
        for chunks in open_ones:
            next(chunks)

    assert len(asked) == 1
    for chunks in open_ones:
        left(chunks)


def test_a_store_is_closed_whose_masker_fails(url: str) -> None:
    """What it holds back stays out; the other replies are kept, and nothing stays open for it."""
    masker = Held()
    masker.lookback = 500
    store = rs.Store(url, masker=masker)
    sessions = [store.session(name, create=True) for name in ("a", "b", "c")]
    open_ones = [iter(recording(session)) for session in sessions]
    for chunks in open_ones:
        while not isinstance(next(chunks), rs.TextChunk):
            pass
    masker.now = fail
    store.close()

    with pytest.raises(rs.UsageError, match="closed"):
        sessions[0].history()
    for chunks in open_ones:
        left(chunks)
    with rs.Store(url) as again:
        found = [one.message.text for name in "abc" for one in again.session(name).history()]
    assert found == ["one ", "one "]


def test_a_reply_that_cannot_be_kept_for_whatever_reason_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """The thread that keeps them together goes on with each by itself, and tries it again."""
    monkeypatch.setattr(replies, "PART_SECONDS", 0.01)
    write = Ledger.keep_drafts
    too_much: set[int] = set()

    def out_of_memory(self: Ledger, growths: Sequence[Growth], *, last: bool) -> list[bool]:
        if too_much & {one.draft.session_key for one in growths}:
            raise MemoryError
        return write(self, growths, last=last)

    monkeypatch.setattr(Ledger, "keep_drafts", out_of_memory)
    with rs.Store(url) as store:
        sessions = [store.session(name, create=True) for name in ("a", "b", "c")]
        too_much.add(sessions[1]._row.key)
        open_ones = [iter(recording(session)) for session in sessions]
        for chunks in open_ones:
            while not isinstance(next(chunks), rs.TextChunk):
                pass

        def shown(*wanted: str) -> bool:
            end, texts = time.monotonic() + 30, list[str]()
            while texts != [*wanted] and time.monotonic() < end:
                texts = [one.message.text for session in sessions for one in session.history()]
            return texts == [*wanted]

        without = shown("one ", "one ")
        too_much.clear()
        assert without
        assert shown("one ", "one ", "one ")
        for chunks in open_ones:
            list(chunks)


def test_what_is_due_of_many_replies_waits_for_the_disk_together(
    monkeypatch: pytest.MonkeyPatch, sqlite_path: Path
) -> None:
    """All of it is written, in fewer transactions than there are replies."""
    monkeypatch.setattr(draft_keeper, "_TOGETHER", 4)
    with rs.Store(f"sqlite:///{sqlite_path}") as store:
        sessions = [store.session(str(number), create=True) for number in range(10)]
        open_ones = [iter(recording(session)) for session in sessions]
        for chunks in open_ones:
            while not isinstance(next(chunks), rs.TextChunk):
                pass
        before = commits(sqlite_path)
        store._workings.draft_keeper.keep_all()

        assert commits(sqlite_path) - before == 3
        assert {session.history()[-1].message.text for session in sessions} == {"one "}
        for chunks in open_ones:
            list(chunks)


def test_a_reply_is_recorded_without_its_thread_and_the_next_one_has_it_again(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """A system that is out of threads for a moment costs no reply."""
    monkeypatch.setattr(replies, "PART_SECONDS", 0.01)
    start = threading.Thread.start

    def none_left(thread: threading.Thread) -> None:
        if thread.name == "reasoning-store-keeper":
            raise RuntimeError("can't start new thread")
        start(thread)

    with rs.Store(url) as store, rs.Store(url) as elsewhere:
        session = store.session("chat", create=True)
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", none_left)
            assert [chunk for chunk in recording(session) if isinstance(chunk, rs.TextChunk)]
        chunks = iter(recording(session))
        while not isinstance(next(chunks), rs.TextChunk):
            pass
        shown: list[str] = []
        while not shown or not shown[-1]:
            shown = [one.message.text for one in elsewhere.session("chat").history()][1:]
        list(chunks)

    assert shown == ["one "]


@pytest.mark.parametrize("what", ["close", "append", "leave", "read on"])
def test_a_forked_child_waits_for_nobody_who_keeps_a_reply(url: str, what: str) -> None:
    """What another thread of the parent holds, nobody in the child will ever let go of."""
    with rs.Store(url) as store:
        session = store.session("chat", create=True)
        chunks = iter(recording(session))
        assert isinstance(chunks, Generator)
        next(chunks)
        keeping = store._workings.draft_keeper
        (reply,) = keeping._all()
        assert isinstance(reply, Reply)
        with reply._ending, reply._adding, keeping._lock, keeping._writing:
            child = os.fork()
            if child == 0:
                signal.alarm(30)
                try:
                    if what == "close":
                        store.close()
                    elif what == "append":
                        session.append(rs.user("From the child."))
                    elif what == "leave":
                        chunks.close()
                    else:
                        list(chunks)
                except rs.UsageError:
                    os._exit(7)
                os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == (0 if what == "close" else 7)
        list(chunks)


class Mine(Exception):
    """The application's own."""


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Ledger, *_: Any, **__: Any) -> Any:
        raise rs.StoreFull("the disk refused the write")

    monkeypatch.setattr(Ledger, "finish_draft", full)


@pytest.mark.usefixtures("refusing")
def test_an_error_in_the_body_of_a_recording_says_what_was_lost(url: str) -> None:
    """It goes on as it is, with a note."""
    with rs.Store(url) as store:
        session = store.session("chat", create=True)

        def read() -> None:
            with recording(session) as reply:
                for _ in reply:
                    fail()

        with pytest.raises(Mine) as caught:
            read()

    assert caught.value.__notes__ == [
        "the interrupted reply could not be stored: the disk refused the write"
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


def fail() -> None:
    raise Mine


def cancel() -> None:
    raise asyncio.CancelledError


@pytest.mark.parametrize(("how", "error"), [(fail, Mine), (cancel, asyncio.CancelledError)])
def test_an_error_behind_a_closed_store_goes_on_unchanged(
    url: str, how: Callable[[], None], error: type[BaseException]
) -> None:
    """Awaited as well, and it says that the reply was not stored."""

    async def run() -> list[str]:
        with pytest.raises(error) as caught:
            await left_behind_a_closed_store(url, how)
        return list(caught.value.__notes__)

    assert asyncio.run(run()) == ["the interrupted reply could not be stored: the store is closed"]


def test_a_reply_that_is_left_behind_a_closed_store_is_told(url: str) -> None:
    """A break is not silent about it."""
    with pytest.raises(rs.UsageError, match="closed"):
        asyncio.run(left_behind_a_closed_store(url, lambda: "break"))


def test_a_recording_that_was_stored_tells_nothing(url: str) -> None:
    """An error behind its end is none of its business."""
    with rs.Store(url) as store:
        session = store.session("chat", create=True)

        def read() -> None:
            with recording(session) as reply:
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
    """The loop has told of it; the block around it does not tell it twice."""
    with rs.Store(url) as store:
        session = store.session("chat", create=True)
        with recording(session) as reply:
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
    """Its save was asked for, and is done whether or not anybody waits for it."""
    assert asyncio.run(cancelled_at_its_end(url)) == [("complete", "one two")]
