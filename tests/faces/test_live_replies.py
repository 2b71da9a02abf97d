"""Following a reply and stopping it: from the process that records it, and from another."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.recording import reply_recorder
from tests import programs
from tests.faces.recorder import Provider, Recorder, event, until
from tests.properties import each


def texts(chunks: Any) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, rs.TextChunk))


def thoughts(chunks: Any) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, rs.ReasoningChunk))


@pytest.fixture(params=["here", "elsewhere"])
def reader(request: pytest.FixtureRequest, url: str, store: rs.Store) -> Iterator[rs.Store]:
    """A store to follow with: the one that records, or another one of the same database."""
    if request.param == "here":
        yield store
    else:
        with rs.Store(url) as opened:
            yield opened


def test_a_follower_gets_each_chunk_while_the_reply_arrives(
    store: rs.Store, reader: rs.Store
) -> None:
    """The provider sends the next piece only after the follower has the last one."""
    session = store.session("chat", create=True)
    recorder = Recorder(session)
    recorder.send("<think>slow</think>one")
    found = []
    follower = reader.session("chat").follow()
    for chunk in follower:
        found.append(chunk)
        if texts(found) == "one":
            recorder.send(" two")
        elif texts(found) == "one two":
            recorder.end()

    assert (thoughts(found), texts(found)) == ("slow", "one two")
    assert reader.session("chat").history()[-1].message.text == "one two"
    assert recorder.error is None


def test_a_follower_goes_on_at_its_cursor_anywhere(store: rs.Store, url: str) -> None:
    """Begun where the reply is recorded, gone on elsewhere, ended where it is recorded."""
    session = store.session("chat", create=True)
    recorder = Recorder(session)
    recorder.send("<think>slow</think>one", " two", " three")
    with rs.Store(url) as elsewhere:
        found = []
        readers = [session, elsewhere.session("chat"), session]
        follower = session.follow()
        for count, chat in enumerate(readers * 2):
            follower = chat.follow(after=follower.cursor)
            found += [next(follower) for _ in range(1 + count % 2)]
            if texts(found) == "one two three":
                break
    recorder.end()

    assert (thoughts(found), texts(found)) == ("slow", "one two three")


def test_a_follower_that_has_read_nothing_goes_on_where_it_was_to_begin(url: str) -> None:
    """On both faces: a page that leaves before the next chunk repeats nothing later."""

    async def cursor_of_asynchronous(after: str | None) -> str | None:
        async with rs.AsyncStore(url) as store:
            return (await store.session("chat")).follow(after).cursor

    with rs.Store(url) as store:
        session = store.session("chat", create=True)
        recorder = Recorder(session)
        recorder.send("one")
        follower = session.follow()
        next(follower)
        for after in (None, follower.cursor):
            assert session.follow(after).cursor == after
            assert asyncio.run(cursor_of_asynchronous(after)) == after
        recorder.end()


def test_following_without_a_live_reply_ends_at_once(store: rs.Store) -> None:
    """With nothing: before the first reply, and after one has ended."""
    session = store.session("chat", create=True)

    assert list(session.follow()) == []
    list(session.record([event("one")], model="m"))
    assert list(session.follow()) == []


def test_a_cursor_of_another_reply_or_session_is_refused(store: rs.Store) -> None:
    """By name, and nothing is given."""
    recorders, cursors = [], []
    for name in ("one", "two"):
        recorders.append(Recorder(store.session(name, create=True)))
        recorders[-1].send(name)
        follower = store.session(name).follow()
        next(follower)
        cursors.append(follower.cursor)
    recorders[0].end()
    again = Recorder(store.session("one"))
    again.send("again")

    for after in (cursors[0], cursors[1], "x", 7):
        with pytest.raises(rs.InvalidCall, match="after"):
            list(store.session("one").follow(after=after))  # type: ignore[arg-type]
    again.end()
    recorders[1].end()


def test_a_follower_gets_what_only_the_message_has(store: rs.Store, reader: rs.Store) -> None:
    """A tag that was never ended, and all that came after the last part was written."""
    session = store.session("chat", create=True)
    recorder = Recorder(session)
    recorder.send("one")
    follower = reader.session("chat").follow()
    found = [next(follower)]
    recorder.provider.send(" two", "<thi")
    recorder.end()
    found += follower

    assert texts(found) == "one two<thi"


def test_a_follower_does_not_see_a_secret(url: str) -> None:
    """It gets what is stored, also from memory."""
    with rs.Store(url, masker=rs.SecretMasker(["hunter2-hunter2"])) as store:
        recorder = Recorder(store.session("chat", create=True))
        recorder.send("a " * 5000 + "my password is hunter2-hun")
        follower = store.session("chat").follow()
        found = [next(follower)]
        recorder.provider.send("ter2, yes")
        recorder.end()
        found += follower

        assert "hunter2-hunter2" not in texts(found)
        assert texts(found) == store.session("chat").history()[-1].message.text


def test_the_reason_of_a_stop_has_no_secret(url: str) -> None:
    """It is masked before it is written."""
    with rs.Store(url, masker=rs.SecretMasker(["hunter2-hunter2"])) as store:
        session = store.session("chat", create=True)
        recorder = Recorder(session)
        recorder.send("one")
        assert session.stop("typed hunter2-hunter2")
        list(session.follow())  # ends with the reply
        reason = session.history()[-1].annotations["stopReason"]
        recorder.provider.send(" two")
        recorder.join(60)

    assert reason.startswith("typed ")
    assert "hunter2" not in reason


def test_a_reply_is_stopped_and_stored_as_far_as_it_came(store: rs.Store, reader: rs.Store) -> None:
    """With its reason, without a Conflict, and the stream is closed."""
    session = store.session("chat", create=True)
    recorder = Recorder(session)
    recorder.send("<think>slow</think>one")
    follower = reader.session("chat").follow()
    found = [next(follower)]

    assert reader.session("chat").stop("too long")
    found += follower  # ends with the reply
    (stored,) = reader.session("chat").history()
    recorder.provider.send(" two")  # the next event ends the loop that waits for it
    recorder.join(120)

    assert (stored.message.status, stored.message.finish_reason) == ("interrupted", "stopped")
    assert (stored.message.text, stored.annotations["stopReason"]) == ("one", "too long")
    assert texts(found) == "one"
    assert found[-1] == rs.FinishChunk(reason="stopped")
    assert recorder.error is None
    assert recorder.reply.stored.id == stored.id  # type: ignore[union-attr]
    assert recorder.provider.is_closed.is_set()


def test_an_event_that_comes_while_a_stop_is_stored_is_left_out(
    store: rs.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop that reads the stream ends without an error."""
    session = store.session("chat", create=True)
    recorder = Recorder(session)
    recorder.send("one")
    drafts, reply = store._state.ledger.drafts, recorder.reply._reply
    finish, shown = drafts.finish, []

    def finish_later(*given: Any, **options: Any) -> Any:
        shown.append(reply.feed(event(" two")))
        return finish(*given, **options)

    monkeypatch.setattr(drafts, "finish", finish_later)
    session.stop()
    list(session.follow())
    recorder.end()

    assert (shown, recorder.error) == ([[]], None)
    assert session.history()[-1].message.text == "one"


def test_stopping_and_appending_at_once_is_no_conflict(store: rs.Store, url: str) -> None:
    """As a page does that interrupts an answer with the next question."""
    recorder = Recorder(store.session("chat", create=True))
    recorder.send("one")
    with rs.Store(url) as elsewhere:
        follower = elsewhere.session("chat").follow()
        next(follower)
        assert elsewhere.session("chat").stop()
        elsewhere.session("chat").append(rs.user("Something else."))
    recorder.end()

    assert recorder.error is None
    assert [
        (s.message.status, s.message.finish_reason) for s in store.session("chat").history()
    ] == [
        ("interrupted", "stopped"),
        ("complete", None),
    ]


def test_stopping_without_a_live_reply_is_nothing(store: rs.Store) -> None:
    """It says so, and stores nothing."""
    session = store.session("chat", create=True)
    list(session.record([event("one")], model="m"))

    assert not session.stop()
    assert session.history()[-1].message.finish_reason is None


def test_the_seconds_between_two_parts_can_be_set(url: str) -> None:
    """A reader in another process makes them fewer."""
    with (
        rs.Store(url, draft_seconds=10, followed_seconds=0.05) as store,
        rs.Store(url) as elsewhere,
    ):
        recorder = Recorder(store.session("chat", create=True))
        recorder.send("one")
        assert texts([next(elsewhere.session("chat").follow())]) == "one"
        assert recorder.reply._reply.draft.is_followed
        recorder.end()


@pytest.mark.parametrize("seconds", [0.04, 11, float("nan"), "1"])
@pytest.mark.parametrize("name", ["draft_seconds", "followed_seconds"])
def test_seconds_between_two_parts_that_make_no_sense_are_refused(name: str, seconds: Any) -> None:
    """Before a database is opened, on both faces."""

    async def open_store() -> None:
        async with rs.AsyncStore("sqlite:////absent/chat.db", **{name: seconds}):
            pass

    with pytest.raises(rs.InvalidCall, match=name):
        rs.Store("sqlite:////absent/chat.db", **{name: seconds})
    with pytest.raises(rs.InvalidCall, match=name):
        asyncio.run(open_store())


@pytest.mark.parametrize("reason", ["", "x" * 201, 7])
def test_a_reason_is_a_short_text(store: rs.Store, reason: Any) -> None:
    """Anything else is refused."""
    with pytest.raises(rs.InvalidCall, match="reason"):
        store.session("chat", create=True).stop(reason)


def test_the_asynchronous_recorder_does_not_wait_for_the_next_event(url: str) -> None:
    """The provider says nothing more; the stop ends the loop, and closes the stream."""
    closed: list[str] = []

    async def stream() -> AsyncIterator[Any]:
        try:
            yield event("one")
            await asyncio.Event().wait()
        finally:
            closed.append("closed")

    async def work(store: rs.AsyncStore, elsewhere: rs.AsyncStore) -> None:
        session = await store.session("chat", create=True)
        reply = session.record(stream(), model="m")
        found, arrived = [], asyncio.Event()

        async def read() -> str:
            async for chunk in reply:
                found.append(chunk)
                arrived.set()
            await asyncio.sleep(0)  # the task goes on: it was not cancelled
            return "went on"

        reading = asyncio.create_task(read())
        await arrived.wait()
        other = await elsewhere.session("chat")
        follower = other.follow()
        seen = [await anext(follower)]
        assert await other.stop()
        seen += [chunk async for chunk in follower]

        assert await reading == "went on"
        assert reading.cancelling() == 0
        assert closed == ["closed"]
        assert found[-1] == seen[-1] == rs.FinishChunk(reason="stopped")
        assert texts(seen) == reply.stored.message.text == "one"  # type: ignore[union-attr]

    async def both() -> None:
        async with rs.AsyncStore(url) as store, rs.AsyncStore(url) as elsewhere:
            await work(store, elsewhere)

    asyncio.run(both())


def test_the_metadata_of_a_recording_is_with_its_draft_and_its_message(store: rs.Store) -> None:
    """From the begin, so that a reader elsewhere knows whose reply it is."""
    session = store.session("chat", create=True)
    recorder = Recorder(session, metadata={"agent": "poet"})
    recorder.send("one")
    next(iter(session.follow()))
    store._state.draft_writer.write_all()
    (arriving,) = session.history()
    recorder.end()
    (stored,) = session.history()

    assert arriving.annotations == {"agent": "poet"}
    assert stored.annotations["agent"] == "poet"
    assert "agent" not in (stored.message.metadata or {})


@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_reply_that_another_process_ends_has_its_annotations(
    store: rs.Store, url: str, is_stopped: bool
) -> None:
    """They come from its draft, with the reason of a stop, however much they are."""
    given, reason = {"agent": "poet", "more": "y" * 14_000}, "\1" * 200
    recorder = Recorder(store.session("chat", create=True), metadata={**given, "none": None})
    recorder.send("one")
    with rs.Store(url) as elsewhere:
        session = elsewhere.session("chat")
        next(session.follow())
        if is_stopped:
            assert session.stop(reason)
        session.append(rs.user("Something else."))
        reply = session.history()[0]
    recorder.end()

    stopped = {"stopReason": reason} if is_stopped else {}
    assert reply.annotations.items() >= {**given, **stopped}.items()
    assert "none" not in reply.annotations
    assert store.verify().ok


@pytest.mark.parametrize("given", [{"x": "y" * 16_384}, {"x": object()}, "poet"])
def test_metadata_that_is_large_or_no_json_is_refused(store: rs.Store, given: Any) -> None:
    """Before the stream is read, and nothing is stored."""
    session = store.session("chat", create=True)

    with pytest.raises(rs.InvalidCall, match="metadata"):
        session.record([event("one")], model="m", metadata=given)
    assert session.history() == []


def test_the_seconds_of_a_reply_are_stored_with_it(
    store: rs.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To its first token, and in thought, by a clock that only goes forward."""
    now = [100.0]
    monkeypatch.setattr(reply_recorder, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def stream() -> Iterator[Any]:
        for seconds, text in (
            (2.0, "<think>slow"),
            (3.5, "ly"),
            (0.25, "</think>one"),
            (9, " two"),
        ):
            now[0] += seconds
            yield event(text)

    session = store.session("chat", create=True)
    list(session.record(stream(), model="m"))
    annotations = session.history()[-1].annotations

    assert (annotations["secondsToFirstToken"], annotations["secondsThought"]) == (2.0, 3.75)


def test_a_regeneration_that_fails_leaves_the_old_answer_current(store: rs.Store, url: str) -> None:
    """Before the recording begins, and before anything arrives in it."""

    def failing() -> Iterator[Any]:
        with rs.Store(url) as elsewhere:
            assert elsewhere.session("chat").branch_id == 2  # where its followers look
        raise ConnectionError
        yield

    session = store.session("chat", create=True)
    session.append([rs.user("one?"), rs.assistant("one")])
    session.regenerate(2)
    assert (session.branch_id, store.session("chat").branch_id) == (2, 1)
    with pytest.raises(ConnectionError):
        list(session.record(failing(), model="m"))
    assert (session.branch_id, store.session("chat").branch_id) == (2, 1)

    list(session.record([event("eins")], model="m"))
    assert [one.message.text for one in store.session("chat").history()] == ["one?", "eins"]


def append_there(branch: rs.Session) -> None:
    branch.append(rs.assistant("eins"))


def record_there(branch: rs.Session) -> None:
    list(branch.record([event("eins")], model="m"))


def append_to_a_recording(branch: rs.Session) -> None:
    with suppress(rs.Conflict), branch.record(model="m"):
        branch.append(rs.assistant("eins"))


def leave_and_end(branch: rs.Session) -> None:
    """By another writer, from the parts of a recorder that is gone."""
    recording = branch.record([event("eins"), event("zwei")], model="m")
    next(iter(recording))
    branch._state.draft_writer.write_branch(branch._row.key, branch.branch_id)
    branch.append(rs.user("goes on"))


@each("arrive", [append_there, record_there, append_to_a_recording, leave_and_end])
def test_a_regeneration_becomes_current_through_whatever_handle(
    store: rs.Store, url: str, arrive: Callable[[rs.Session], None]
) -> None:
    """A web handler asks for it, a worker in another process stores what arrives."""
    session = store.session(arrive.__name__, create=True)
    session.append([rs.user("one?"), rs.assistant("one")])
    branch = session.regenerate(2).branch_id
    assert store.session(session.id).branch_id == 1
    with rs.Store(url) as worker:
        arrive(worker.session(session.id).branch(branch))

    assert store.session(session.id).branch_id == branch
    assert store.session(session.id).history()[1].message.text == "eins"
    assert store.verify().ok


def test_a_branch_that_was_activated_meanwhile_stays_current(store: rs.Store) -> None:
    """Until the next reply arrives on the one that was made for it; once it has, for good."""
    session = store.session("chat", create=True)
    session.append([rs.user("one?"), rs.assistant("one")])
    other = session.fork(at=2).branch_id
    session.regenerate(2)
    session.activate(other)
    with pytest.raises(ConnectionError):
        list(session.record(broken(), model="m"))
    assert store.session("chat").branch_id == other

    reply = iter(session.record([event("eins")], model="m"))
    next(reply)
    session.activate(other)
    list(reply)
    assert store.session("chat").branch_id == other
    session.append(rs.user("two?"))
    assert store.session("chat").branch_id == other


def broken() -> Iterator[Any]:
    raise ConnectionError
    yield


def test_a_regeneration_is_exported_as_it_waits(store: rs.Store, tmp_path: Path) -> None:
    """The reply that arrives in the imported store becomes current there."""
    session = store.session("chat", create=True)
    session.append([rs.user("one?"), rs.assistant("one")])
    branch = session.regenerate(2).branch_id
    lines = list(store.export_lines())
    with rs.Store(f"sqlite:///{tmp_path}/other.db") as other:
        other.import_lines(lines)
        assert list(other.export_lines()) == lines
        other.session("chat").branch(branch).append(rs.assistant("eins"))

        assert other.session("chat").branch_id == branch


@each("is_iterated", [True, False])
def test_a_stop_before_the_first_event_ends_the_loop_as_empty(
    store: rs.Store, is_iterated: bool
) -> None:
    """Its stream is closed and nothing is stored."""
    session, stream = store.session(f"{is_iterated}", create=True), Provider()
    with session.record(stream, model="m") as reply:
        assert session.stop()
        until(lambda: reply.is_stopped)
        found = list(reply) if is_iterated else []

    assert [*found, *session.history()] == []
    assert stream.is_closed.is_set()


@each("is_iterated", [True, False])
def test_a_stop_before_the_first_event_ends_the_asynchronous_loop(
    url: str, is_iterated: bool
) -> None:
    """As it does the other one."""
    stream = Provider()

    async def record() -> list[Any]:
        async with rs.AsyncStore(url) as store:
            session = await store.session(f"{is_iterated}", create=True)
            async with session.record(stream, model="m") as reply:
                assert await session.stop()
                await asyncio.to_thread(until, lambda: reply.is_stopped)
                found = [chunk async for chunk in reply] if is_iterated else []
            return [*found, *await session.history()]

    assert asyncio.run(record()) == []
    assert stream.is_closed.is_set()


WORKER = """
import sys
import reasoning_store as rs
with rs.Store(sys.argv[1]) as store:
    chat = store.session(sys.argv[2])
    follower = chat.follow()
    found = [next(follower)]
    print(chat.stop("page"))
    found += follower
    print(*[chunk.text for chunk in found if isinstance(chunk, rs.TextChunk)])
    print(chat.history()[-1].message.finish_reason)
"""


def test_any_of_several_processes_follows_and_stops_a_reply(
    store: rs.Store, url: str, tmp_path: Path
) -> None:
    """Each follows one of the replies that are recorded here, and stops it."""
    recorders = [Recorder(store.session(f"{n}", create=True)) for n in range(4)]
    for recorder in recorders:
        recorder.send("one")
    for n in range(4):
        words = [sys.executable, "-c", WORKER, url, f"{n}"]
        ran = programs.run(words, cwd=tmp_path, env=dict(os.environ))
        assert (ran.stdout, ran.stderr) == ("True\none\nstopped\n", "")
    for recorder in recorders:
        recorder.end()

    assert [recorder.error for recorder in recorders] == [None] * 4
    assert store.verify().ok
