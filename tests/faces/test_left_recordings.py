"""A recording that is left: its stream is closed, and what goes on is what was under way."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import reasoning_store as rs

from .recorder import event


class Mine(Exception):
    """The application's own, or its client's."""


def kept(history: list[rs.results.Stored]) -> list[tuple[str, str]]:
    return [(one.message.status, one.message.text) for one in history]


class Unclosable:
    """A stream that breaks after a piece, and cannot be closed then; asynchronous as well."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        yield event("one ")
        raise Mine

    async def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        yield event("one ")
        raise Mine

    def close(self) -> None:
        raise OSError("the password of the connection")


_NOTES = ["the stream could not be closed: OSError"]


def test_a_stream_that_cannot_be_closed_hides_no_other_error(url: str) -> None:
    """The stream's own error goes on, under ``with`` and bare."""
    with rs.Store(url) as store:
        session = store.session("chat", create=True)
        with (
            pytest.raises(Mine) as under_with,
            session.record(Unclosable(), model="m") as reply,
        ):
            list(reply)
        with pytest.raises(Mine) as bare:
            list(session.record(Unclosable(), model="m"))

        assert under_with.value.__notes__ == bare.value.__notes__ == _NOTES
        assert kept(session.history()) == [("interrupted", "one ")] * 2


def test_a_stream_that_cannot_be_closed_hides_no_refusal(url: str) -> None:
    """An attempt that was made before is reported with the reply that was stored."""
    with rs.Store(url) as store:
        session = store.session("chat", create=True)
        list(session.record([event("one ")], model="m", idempotency_key="k"))
        with pytest.raises(rs.Conflict) as caught:
            list(session.record(Unclosable(), model="m", idempotency_key="k"))

    assert caught.value.stored.message.text == "one "
    assert caught.value.__notes__[1:] == _NOTES


def test_a_stream_that_cannot_be_closed_is_reported_if_there_is_no_other_error(url: str) -> None:
    """Who leaves without reading it hears of it."""
    with rs.Store(url) as store:
        session = store.session("chat", create=True)
        with pytest.raises(OSError, match="connection"), session.record(Unclosable(), model="m"):
            pass


def cancel() -> None:
    raise asyncio.CancelledError


def fail() -> None:
    raise ZeroDivisionError


def go_on() -> None:
    pass


@pytest.mark.parametrize(
    ("how", "error"),
    [(cancel, asyncio.CancelledError), (fail, ZeroDivisionError), (go_on, Mine)],
)
def test_a_stream_that_cannot_be_closed_hides_no_cancellation(
    url: str, how: Callable[[], None], error: type[BaseException]
) -> None:
    """Awaited as well: a task that was cancelled ends as cancelled."""

    async def read(session: rs.AsyncSession) -> None:
        async with session.record(Unclosable(), model="m") as reply:
            async for _ in reply:
                how()

    async def run() -> list[tuple[str, str]]:
        async with rs.AsyncStore(url) as store:
            session = await store.session("chat", create=True)
            with pytest.raises(error):
                await read(session)
            return kept(await session.history())

    assert asyncio.run(run()) == [("interrupted", "one ")]


class Closable:
    """A connection that says nothing, and tells whether it was closed."""

    def __init__(self) -> None:
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        for piece in list[str]():
            yield event(piece)

    async def aclose(self) -> None:
        self.closed = True


@pytest.mark.parametrize("how", ["cancelled", "refused"])
def test_a_stream_is_closed_that_was_never_begun_to_be_read(url: str, how: str) -> None:
    """From the first await on the connection is the recording's."""
    stream = Closable()

    async def read(session: rs.AsyncSession) -> None:
        inside: Any = True if how == "cancelled" else "no"
        async with session.record(stream, model="m", starts_inside=inside):
            pass

    async def run() -> None:
        async with rs.AsyncStore(url) as store:
            reading = asyncio.create_task(read(await store.session("chat", create=True)))
            await asyncio.sleep(0)
            if how == "cancelled":
                reading.cancel()
            with pytest.raises(asyncio.CancelledError if how == "cancelled" else rs.InvalidCall):
                await reading

    asyncio.run(run())
    assert stream.closed


BEGUN = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}


def test_a_reply_that_had_only_begun_leaves_nothing_and_its_attempt_begins_again(url: str) -> None:
    """As where its process is killed: what says that a message begins says nothing else."""

    def silent() -> Iterator[dict[str, Any]]:
        yield BEGUN
        raise Mine

    with rs.Store(url) as store:
        session = store.session("chat", create=True)
        left = session.record(silent(), model="m", idempotency_key="k")
        with pytest.raises(Mine):
            list(left)
        assert (left.stored, left.message, session.history()) == (None, None, [])

        again = session.record([BEGUN, event("one ")], model="m", idempotency_key="k")
        list(again)
        assert kept(session.history()) == [("complete", "one ")]


@pytest.mark.parametrize(
    "said",
    [
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 0}},
        {"error": {"message": "overloaded", "code": 529}},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "content_filter"}]},
    ],
    ids=["what it costs", "why it fails", "why it ends"],
)
def test_a_reply_without_text_is_kept_for_its_other_blocks(url: str, said: dict[str, Any]) -> None:
    """It is what the application looks for when an answer did not come."""

    def silent() -> Iterator[dict[str, Any]]:
        yield from (BEGUN, said)
        raise Mine

    with rs.Store(url) as store:
        session = store.session("chat", create=True)
        with pytest.raises(Mine):
            list(session.record(silent(), model="m"))
        assert kept(session.history()) == [("interrupted", "")]


# Left while its stream is read


class Silent:
    """A connection that says one thing, and then nothing until it is closed."""

    def __init__(self) -> None:
        self.said = iter([event("one ")])
        self.closed = asyncio.Event()

    def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        return self

    async def __anext__(self) -> dict[str, Any]:
        for one in self.said:
            return one
        await self.closed.wait()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self.closed.set()


async def with_signs_of_life(reply: rs.AsyncRecording, waiting: asyncio.Event) -> None:
    """Ask for the next chunk in a task of its own, as who writes a line to a silent client does."""
    async with reply:
        chunks = aiter(reply)
        while True:
            following = asyncio.ensure_future(anext(chunks))
            while not (await asyncio.wait([following], timeout=0.01))[0]:
                waiting.set()


@pytest.mark.parametrize("how", ["closed from outside", "not to be closed"])
def test_a_reply_is_kept_that_is_left_while_its_next_chunk_is_waited_for(
    url: str, how: str
) -> None:
    """The task that read it with a timeout is cancelled: the next chunk is still asked for."""

    async def silent() -> AsyncIterator[dict[str, Any]]:
        yield event("one ")
        await asyncio.Event().wait()

    async def run() -> list[tuple[str, str]]:
        async with rs.AsyncStore(url) as store:
            session = await store.session("chat", create=True)
            stream = Silent() if how == "closed from outside" else silent()
            waiting = asyncio.Event()
            reading = asyncio.create_task(
                with_signs_of_life(session.record(stream, model="m"), waiting)
            )
            await waiting.wait()
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            assert not isinstance(stream, Silent) or stream.closed.is_set()
            return kept(await session.history())

    assert asyncio.run(run()) == [("interrupted", "one ")]


def test_a_reply_is_kept_that_is_left_while_another_thread_reads_it(url: str) -> None:
    """What goes on is what was under way; who reads on learns that it is over."""
    asked, left = threading.Event(), threading.Event()
    errors: list[BaseException] = []

    def stream() -> Iterator[dict[str, Any]]:
        yield event("one ")
        asked.set()
        assert left.wait(120)
        yield event("two")

    def read(reply: rs.Recording) -> None:
        try:
            list(reply)
        except rs.InvalidCall as error:
            errors.append(error)

    def leave(reply: rs.Recording, reading: threading.Thread) -> None:
        with reply:
            reading.start()
            assert asked.wait(120)
            raise Mine

    with rs.Store(url) as store:
        session = store.session("chat", create=True)
        reply = session.record(stream(), model="m")
        reading = threading.Thread(target=read, args=(reply,))
        with pytest.raises(Mine):
            leave(reply, reading)
        assert kept(session.history()) == [("interrupted", "one ")]
        left.set()
        reading.join(120)

        assert [str(error) for error in errors] == [
            "this recording is over: it was left while its stream was read"
        ]
        assert kept(session.history()) == [("interrupted", "one ")]


# A loop that outlives the main thread

_BEHIND_THE_END = """
import asyncio, sys, threading
import reasoning_store as rs
from tests.faces.recorder import event

main, begun = threading.current_thread(), threading.Event()

async def stream():
    yield event("one ")
    begun.set()
    while main.is_alive():
        await asyncio.sleep(0.01)
    if sys.argv[2] == "left":
        raise SystemExit
    yield event("two")

async def record():
    async with rs.AsyncStore(sys.argv[1]) as store:
        session = await store.session("chat", create=True)
        async for _ in session.record(stream(), model="m"):
            pass
        assert len(await session.history()) == 1

threading.Thread(target=lambda: asyncio.run(record())).start()
begun.wait()
"""


@pytest.mark.parametrize(
    ("how", "then"), [("read", ("complete", "one two")), ("left", ("interrupted", "one "))]
)
def test_a_reply_that_ends_after_the_main_thread_is_kept(
    url: str, how: str, then: tuple[str, str]
) -> None:
    """Python's pools of threads take nothing there."""
    done = subprocess.run(
        [sys.executable, "-c", _BEHIND_THE_END, url, how],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=Path(__file__).parents[2],
    )

    with rs.Store(url) as store:
        assert kept(store.session("chat").history()) == [then], done.stderr


@pytest.mark.parametrize("face", ["with", "bare"])
def test_a_recording_that_is_interrupted_as_it_begins_leaves_no_draft(
    url: str, monkeypatch: pytest.MonkeyPatch, face: str
) -> None:
    """Else it would be kept as under way until the lease of a recorder that is gone ends."""

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("reasoning_store.recording.draft_writer.DraftWriter.add", interrupted)
    with rs.Store(url) as store:
        session = store.session("chat", create=True)
        reply = session.record([event("one ")], model="m")
        with pytest.raises(KeyboardInterrupt):
            reply.__enter__() if face == "with" else list(reply)

        assert store._state.ledger.drafts.get(session._row.key, 1) is None


def test_whatever_closing_a_stream_gives_is_awaited(url: str) -> None:
    """Not a coroutine alone: a future, too."""
    closed: list[bool] = []

    class Stream:
        async def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
            yield event("one ")

        def close(self) -> asyncio.Future[None]:
            async def close() -> None:
                await asyncio.sleep(0)
                closed.append(True)

            return asyncio.ensure_future(close())

    async def run() -> list[bool]:
        async with rs.AsyncStore(url) as store:
            session = await store.session("chat", create=True)
            async with session.record(Stream(), model="m") as reply:
                async for _ in reply:
                    break
            return list(closed)

    assert asyncio.run(run())
