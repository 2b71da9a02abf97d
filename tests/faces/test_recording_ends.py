"""The end of a recording: interrupted, overtaken, refused. What was shown is stored or reported."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.ledger.drafts import Drafts
from reasoning_store.ledger.records import NewParts
from reasoning_store.recording import draft_writer, recording, reply_draft, reply_recorder
from tests.ledger.interrupts import everywhere
from tests.ledger.writing import commits

from .interrupted import PIECES, fail, kept, recorded
from .recorder import event


@pytest.fixture(autouse=True)
def _only_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """No thread writes anything meanwhile."""
    monkeypatch.setattr(draft_writer, "PART_SECONDS", 3600.0)


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


@pytest.mark.parametrize("under_with", [True, False], ids=["under with", "bare"])
def test_a_reply_is_kept_whose_end_is_interrupted(url: str, under_with: bool) -> None:
    """Control-C between the last piece and the disk."""
    masker = Held()
    store = rs.Store(url, masker=masker)
    reply = recorded(store.session("chat", create=True))

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


@pytest.mark.parametrize(
    "room",
    [recording, reply_recorder, reply_draft, draft_writer],
    ids=lambda room: room.__name__,
)
def test_a_reply_whose_end_is_interrupted_anywhere_is_kept_once_and_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch, room: ModuleType
) -> None:
    """At each place of the recorder, and of the writer, where Python hears of an interrupt."""
    monkeypatch.setattr(draft_writer, "PART_SECONDS", 0.01)  # what was not woken looks by itself
    store: rs.Store | None = None

    def prepare() -> Callable[[], Any]:
        nonlocal store
        store = rs.Store("sqlite://")
        reply = recorded(store.session("chat", create=True)).__enter__()
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
        list(recorded(session))
        assert [one.message.text for one in session.history()] == ["one two"] * 2
        store.close()

    assert everywhere(str(room.__file__), prepare, check) > 2


@pytest.mark.usefixtures("own_garbage")
@pytest.mark.parametrize(
    "room", [recording, reply_recorder, reply_draft], ids=lambda room: room.__name__
)
def test_a_reply_is_kept_where_leaving_it_is_interrupted(room: ModuleType) -> None:
    """A second Control-C comes while what the first one ended is stored: nothing is lost."""
    store: rs.Store | None = None
    found: list[list[tuple[str, str]]] = []

    def prepare() -> Callable[[], Any]:
        nonlocal store
        store = rs.Store("sqlite://")
        reply = recorded(store.session("chat", create=True)).__enter__()
        chunks = iter(reply)
        while getattr(next(chunks), "text", None) != "two":
            pass

        def leave() -> None:
            reply.__exit__(None, None, None)
            chunks.close()  # type: ignore[attr-defined]  # it is held until here

        return leave

    def check() -> None:
        assert store is not None
        gc.collect()  # one that was not left at all is let go of now, and not when it is closed
        session = store.session("chat")
        session.append(rs.user("Well?"))
        found.append([(one.message.status, one.message.text) for one in session.history()[:-1]])
        store.close()

    assert everywhere(str(room.__file__), prepare, check) > 5
    assert found == [[("interrupted", "one two")]] * len(found)


def test_a_store_that_is_closed_waits_for_a_reply_that_is_ending(url: str) -> None:
    """It is stored before the store is closed."""
    masker, ending, goes_on = Held(), threading.Event(), threading.Event()

    def hold() -> None:
        ending.set()
        assert goes_on.wait(120)

    store = rs.Store(url, masker=masker)
    reply = recorded(store.session("chat", create=True))

    def read() -> None:
        for chunk in reply:
            if isinstance(chunk, rs.TextChunk) and chunk.text == "two":
                masker.now = hold

    reading = threading.Thread(target=read)
    closing = threading.Thread(target=store.close)
    reading.start()
    assert ending.wait(120)
    closing.start()
    goes_on.set()
    reading.join(120)
    closing.join(120)

    assert reply.stored is not None
    assert kept(url) == [("complete", "one two")]


@pytest.mark.parametrize("what", ["kept", "ended"])
def test_a_reply_that_is_long_in_ending_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch, url: str, what: str
) -> None:
    """It may be much that is masked and counted: the others are kept, and can be ended."""
    monkeypatch.setattr(draft_writer, "PART_SECONDS", 0.01 if what == "kept" else 3600.0)
    masker, ending, goes_on = Held(), threading.Event(), threading.Event()
    waited: list[bool] = []

    def hold() -> None:
        ending.set()
        waited.append(goes_on.wait(120))

    with rs.Store(url, masker=masker) as store:
        reply = recorded(store.session("long", create=True))

        def read() -> None:
            for chunk in reply:
                if isinstance(chunk, rs.TextChunk) and chunk.text == "two":
                    masker.now = hold

        other = store.session("chat", create=True)
        chunks = iter(recorded(other))
        reading = threading.Thread(target=read)
        reading.start()
        assert ending.wait(120)
        while not isinstance(next(chunks), rs.TextChunk):
            pass
        if what == "ended":
            other.append(rs.user("Well?"))
        while not waited and [one.message.text for one in other.history()][:1] != ["one "]:
            pass
        in_time = not waited
        goes_on.set()
        reading.join(120)
        with pytest.raises(rs.Conflict) if what == "ended" else nullcontext():
            list(chunks)

    assert in_time


def test_a_reply_whose_store_is_closed_is_interrupted_at_once(url: str) -> None:
    """No one waits for its lease: neither who reads it, nor who asks again under its key."""
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
        with pytest.raises(rs.Conflict) as caught:
            list(session.record(map(event, PIECES), model="m", idempotency_key="k"))
        assert caught.value.stored.message.text == "one "
        silent_again = again.session("silent").record(
            map(event, PIECES), model="m", idempotency_key="k"
        )
        assert len(list(silent_again)) > 0
    with pytest.raises(rs.InvalidCall, match="closed"):
        silent.__exit__(None, None, None)


def test_what_a_masker_holds_back_is_kept_as_the_store_is_closed(url: str) -> None:
    """Nothing more can come that a secret might end in."""

    class Cautious(Held):
        lookback = 500

    with rs.Store(url, masker=Cautious()) as store:
        chunks = iter(recorded(store.session("chat", create=True)))
        while not isinstance(next(chunks), rs.TextChunk):
            pass

    assert kept(url) == [("interrupted", "one ")]


def test_a_store_that_takes_nothing_is_closed_after_one_reply(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """Each other reply would wait for as long again."""
    asked: list[int] = []

    def busy(*_: Any, **__: Any) -> bool:
        asked.append(1)
        raise rs.StoreBusy

    with rs.Store(url) as store:
        writer = store._state.draft_writer
        # Of this store alone: one of an earlier test may still be writing.
        monkeypatch.setattr(writer._ledger.drafts, "write_parts", busy)
        writer._every = 3600  # nothing is written before the end
        open_ones = [iter(recorded(store.session(name, create=True))) for name in ("a", "b", "c")]
        for chunks in open_ones:
            next(chunks)

    assert len(asked) == 1


def test_a_store_is_closed_whose_masker_fails(url: str) -> None:
    """What it holds back stays out; the other replies are kept, and nothing stays open for it."""
    masker = Held()
    masker.lookback = 500
    store = rs.Store(url, masker=masker)
    sessions = [store.session(name, create=True) for name in ("a", "b", "c")]
    open_ones = [iter(recorded(session)) for session in sessions]
    for chunks in open_ones:
        while not isinstance(next(chunks), rs.TextChunk):
            pass
    masker.now = fail
    store.close()

    with pytest.raises(rs.InvalidCall, match="closed"):
        sessions[0].history()
    with rs.Store(url) as again:
        found = [one.message.text for name in "abc" for one in again.session(name).history()]
    assert found == ["one ", "one "]


def test_a_reply_that_cannot_be_kept_for_whatever_reason_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """The thread that keeps them together goes on with each by itself, and tries it again."""
    monkeypatch.setattr(draft_writer, "PART_SECONDS", 0.01)
    write = Drafts.write_parts
    too_much: set[int] = set()

    def out_of_memory(self: Drafts, growths: Sequence[NewParts], *, last: bool) -> list[bool]:
        if too_much & {one.draft.session_key for one in growths}:
            raise MemoryError
        return write(self, growths, last=last)

    monkeypatch.setattr(Drafts, "write_parts", out_of_memory)
    with rs.Store(url) as store:
        sessions = [store.session(name, create=True) for name in ("a", "b", "c")]
        too_much.add(sessions[1]._row.key)
        open_ones = [iter(recorded(session)) for session in sessions]
        for chunks in open_ones:
            while not isinstance(next(chunks), rs.TextChunk):
                pass

        def shown(*wanted: str) -> bool:
            end, texts = time.monotonic() + 120, list[str]()
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
    monkeypatch.setattr(draft_writer, "_TOGETHER", 4)
    with rs.Store(f"sqlite:///{sqlite_path}") as store:
        sessions = [store.session(str(number), create=True) for number in range(10)]
        open_ones = [iter(recorded(session)) for session in sessions]
        for chunks in open_ones:
            while not isinstance(next(chunks), rs.TextChunk):
                pass
        before = commits(sqlite_path)
        store._state.draft_writer.write_all()

        assert commits(sqlite_path) - before == 3
        assert {session.history()[-1].message.text for session in sessions} == {"one "}
        for chunks in open_ones:
            list(chunks)


def test_a_reply_is_recorded_without_its_thread_and_the_next_one_has_it_again(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """A system that is out of threads for a moment costs no reply."""
    monkeypatch.setattr(draft_writer, "PART_SECONDS", 0.01)
    start = threading.Thread.start

    def none_left(thread: threading.Thread) -> None:
        if thread.name == "reasoning-store-drafts":
            raise RuntimeError("can't start new thread")
        start(thread)

    with rs.Store(url) as store, rs.Store(url) as elsewhere:
        session = store.session("chat", create=True)
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", none_left)
            assert [chunk for chunk in recorded(session) if isinstance(chunk, rs.TextChunk)]
        chunks = iter(recorded(session))
        while not isinstance(next(chunks), rs.TextChunk):
            pass
        shown: list[str] = []
        while not shown or not shown[-1]:
            shown = [one.message.text for one in elsewhere.session("chat").history()][1:]
        list(chunks)

    assert shown == ["one "]


@pytest.mark.parametrize("what", ["close", "append", "leave", "read on"])
def test_a_forked_child_does_not_wait_for_a_recording(url: str, what: str) -> None:
    """What another thread of the parent holds, no one in the child will ever let go of."""
    with rs.Store(url) as store:
        session = store.session("chat", create=True)
        chunks = iter(recorded(session))
        assert isinstance(chunks, Generator)
        next(chunks)
        keeping = store._state.draft_writer
        (draft,) = keeping._drafts()
        with draft.ending, keeping._lock, keeping._writing:
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
                except rs.InvalidCall:
                    os._exit(7)
                os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == (
            0 if what in ("close", "leave") else 7
        )
        list(chunks)
