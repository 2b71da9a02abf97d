"""Recordings in real use: left, killed, overtaken, followed from elsewhere. Nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.ledger import stored_drafts
from reasoning_store.ledger.drafts import Drafts
from reasoning_store.ledger.records import (
    DraftRow,
    NewMessage,
    NewParts,
)
from reasoning_store.recording import draft_writer

from .recorder import event, keep, states, until

AS_SHIPPED = (draft_writer.PART_SECONDS, draft_writer.PART_CHARACTERS, stored_drafts.LEASE)
"""Before any test hurries them."""


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts are written soon, so that a test can wait for them; no lease runs out meanwhile."""
    monkeypatch.setattr(draft_writer, "PART_SECONDS", 0.02)
    monkeypatch.setattr(stored_drafts, "LEASE", 3600.0)


def test_no_more_than_a_second_or_64_kb_of_a_reply_is_in_memory_only(store: rs.Store) -> None:
    """As the page on durability says; who is silent for 30 seconds has died."""
    assert AS_SHIPPED == (1.0, 64 * 1024, 30.0)
    assert store._state.draft_writer._every == draft_writer.PART_SECONDS


def test_a_reader_elsewhere_follows_a_reply_that_grows_only_at_its_end(
    store: rs.Store, url: str
) -> None:
    """Another connection sees what has arrived, and the finished message at the same place."""
    session = store.session("s", create=True)
    session.append(rs.user("Say the alphabet."))
    seen: list[str] = []
    with rs.Store(url) as elsewhere:
        other = elsewhere.session("s")

        def stream() -> Iterator[dict[str, Any]]:
            yield event("<think>slow")
            for letters in ("ly</think>abc", "def", "ghi"):
                yield event(letters)
                seen.append(until(lambda: growing(other, longer_than=seen)))

        with session.record(stream(), model="m") as reply:
            list(reply)
        final = other.get(2)

    assert all(later.startswith(earlier) for earlier, later in pairwise(seen))
    assert seen[-1] == final.message.text == "abcdefghi"
    assert final.message.status == "complete"
    assert final.id == reply.stored.id  # type: ignore[union-attr]


def growing(session: rs.Session, longer_than: list[str]) -> str | None:
    try:
        message = session.get(2).message
    except rs.NotFound:
        return None
    assert message.status == "streaming"
    assert "think" not in message.text
    return message.text if len(message.text) > len(longer_than[-1] if longer_than else "") else None


def test_history_shows_a_reply_that_is_still_arriving_last(store: rs.Store) -> None:
    """With its status, so that no one takes it for the whole."""
    session = store.session("s", create=True)
    session.append(rs.user("Hi"))

    def stream() -> Iterator[dict[str, Any]]:
        yield event("Hel")
        found = until(lambda: [s for s in session.history() if s.message.status == "streaming"])
        assert (found[0].position, found[0].message.text, found[0].tokens) == (2, "Hel", 0)
        yield event("lo")

    with session.record(stream(), model="m") as reply:
        list(reply)

    assert [(s.message.text, s.message.status) for s in session.history()] == [
        ("Hi", "complete"),
        ("Hello", "complete"),
    ]


def test_a_live_draft_is_neither_sent_nor_counted(store: rs.Store) -> None:
    """What is still arriving belongs to no request."""
    session = store.session("s", create=True)
    session.append(rs.user("Hi"))
    before = session.usage()

    def stream() -> Iterator[dict[str, Any]]:
        yield event("Hel")
        until(lambda: len(session.history()) == 2)
        assert session.usage() == before
        assert [m["role"] for m in session.build_request().body["messages"]] == ["user"]
        yield event("lo")

    with session.record(stream(), model="m") as reply:
        list(reply)


def test_a_second_writer_ends_the_draft_and_the_recorder_learns_it_at_its_end(
    store: rs.Store,
) -> None:
    """What had arrived is an interrupted message; the rest is still shown to its reader."""
    session = store.session("s", create=True)
    shown: list[str] = []

    def stream() -> Iterator[dict[str, Any]]:
        yield event("Hel")
        until(lambda: session.history())
        store.session("s").append(rs.user("Never mind."))
        yield event("lo")

    def read(reply: rs.Recording) -> None:
        shown.extend(chunk.text for chunk in reply if isinstance(chunk, rs.TextChunk))

    with pytest.raises(rs.Conflict) as caught, session.record(stream(), model="m") as reply:
        read(reply)

    assert shown == ["Hel", "lo"]
    assert caught.value.stored.message.text == "Hel"
    assert [(s.message.text, s.message.status) for s in session.history()] == [
        ("Hel", "interrupted"),
        ("Never mind.", "complete"),
    ]


def test_the_further_choices_of_an_ended_reply_become_forks(store: rs.Store) -> None:
    """Only its recorder knows of these: they are stored when it comes to its end."""
    session = store.session("s", create=True)
    session.append(rs.user("A name?"))

    def other(choice: int, text: str) -> dict[str, Any]:
        return {"choices": [{"index": choice, "delta": {"content": text}}]}

    def stream() -> Iterator[dict[str, Any]]:
        yield event("Ada")
        yield other(1, "Bo")
        store.session("s").append(rs.user("Never mind."))
        yield other(2, "Cy")
        yield other(1, "b")

    with pytest.raises(rs.Conflict), session.record(stream(), model="m") as reply:
        list(reply)

    assert [s.message.text for s in session.history()] == ["A name?", "Ada", "Never mind."]
    assert session.history()[1].siblings == (2, 3)
    beside = [session.branch(number).history() for number in (2, 3)]
    assert [[s.message.text for s in one] for one in beside] == [
        ["A name?", "Bob"],
        ["A name?", "Cy"],
    ]
    assert store.verify().ok


def test_a_second_recording_on_the_branch_ends_the_first(store: rs.Store) -> None:
    """A branch has one live draft."""
    session = store.session("s", create=True)

    def first() -> Iterator[dict[str, Any]]:
        yield event("one")
        until(lambda: session.history())
        with session.record(iter([event("two")]), model="m") as second:
            list(second)
        yield event(" more")

    with pytest.raises(rs.Conflict), session.record(first(), model="m") as reply:
        list(reply)

    assert [s.message.text for s in session.history()] == ["one", "two"]


def test_parts_after_the_finish_are_kept_if_another_writer_ends_the_reply(store: rs.Store) -> None:
    """A call that a host sends after it is shown to no one, and stored all the same."""
    session = store.session("s", create=True)
    call = {"index": 0, "id": "c1", "function": {"name": "f", "arguments": "{}"}}

    def stream() -> Iterator[dict[str, Any]]:
        yield event("Let me look.")
        yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
        yield {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}
        store.session("s").append(rs.user("Never mind."))

    with pytest.raises(rs.Conflict), session.record(stream(), model="m") as reply:
        list(reply)

    first, second = session.history()
    assert [call.id for call in first.message.tool_calls] == ["c1"]
    assert second.message.text == "Never mind."


KILLED = """
import sys, time
import reasoning_store as rs
from reasoning_store.ledger import stored_drafts
from reasoning_store.recording import draft_writer
draft_writer.PART_SECONDS, stored_drafts.LEASE = 0.02, 0.5

def stream():
    for text in ("<think>half a th", "ought</think>half an ", "answer"):
        yield {"choices": [{"index": 0, "delta": {"content": text}}]}
    print("spoken", flush=True)
    time.sleep(3600)

with rs.Store(sys.argv[1]) as store:
    with store.session("s", create=True).record(stream(), model="m") as reply:
        for chunk in reply:
            pass
"""


def test_a_recorder_that_is_killed_leaves_what_had_arrived(store: rs.Store, url: str) -> None:
    """kill -9: the draft reads as interrupted when its lease is over; an append makes it so."""
    session = store.session("s", create=True)
    child = subprocess.Popen([sys.executable, "-c", KILLED, url], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "spoken\n"
    until(lambda: session.history() and session.history()[-1].message.text == "half an answer")
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()

    until(lambda: session.history()[-1].message.status == "interrupted")
    session.append(rs.user("Go on."))

    first, second = session.history()
    assert (first.message.text, first.message.status) == ("half an answer", "interrupted")
    assert [block.thought for block in first.message.thinking] == ["half a thought"]
    assert first.tokens > 0
    assert (second.position, second.message.text) == (2, "Go on.")


def test_a_reply_that_is_being_recorded_ends_where_it_is_erased(store: rs.Store) -> None:
    """Nothing of it is stored; its reader goes on, and learns at the end."""
    session = store.session("s", create=True)
    shown: list[str] = []

    def stream() -> Iterator[dict[str, Any]]:
        yield event("Hel")
        until(lambda: session.history())
        assert store.session("s").erase(1).messages == 1
        yield event("lo")

    def read(reply: rs.Recording) -> None:
        shown.extend(chunk.text for chunk in reply if isinstance(chunk, rs.TextChunk))

    with pytest.raises(rs.Conflict) as caught, session.record(stream(), model="m") as reply:
        read(reply)

    assert shown == ["Hel", "lo"]
    assert caught.value.stored.message.status == "erased"
    assert states(session) == [("", "erased")]


def test_a_fork_does_not_end_a_reply_that_is_being_recorded(store: rs.Store) -> None:
    """It is a conflict, which says from where on there is something to share."""
    session = store.session("s", create=True)

    def stream() -> Iterator[dict[str, Any]]:
        yield event("Hel")
        until(lambda: session.history())
        with pytest.raises(rs.Conflict, match="at position 1 is still being recorded") as caught:
            session.fork(at=2)
        assert "fork(at=1)" in str(caught.value.hint)
        yield event("lo")

    list(session.record(stream(), model="m"))

    assert states(session) == [("Hello", "complete")]


def test_what_is_no_position_ends_no_reply(store: rs.Store) -> None:
    """True is not 1, whatever arrives there."""
    session = store.session("s", create=True)

    def stream() -> Iterator[dict[str, Any]]:
        yield event("Hel")
        until(lambda: session.history())
        with pytest.raises(rs.InvalidCall):
            session.erase(True)
        yield event("lo")

    list(session.record(stream(), model="m"))

    assert states(session) == [("Hello", "complete")]


@pytest.mark.parametrize("verb", ["erase", "fork"])
def test_where_history_shows_nothing_no_reply_is_ended(store: rs.Store, verb: str) -> None:
    """A position beyond the reply that is arriving is a mistake, and changes nothing."""
    session = store.session("s", create=True)

    def stream() -> Iterator[dict[str, Any]]:
        yield event("Hel")
        until(lambda: session.history())
        with pytest.raises(rs.NotFound, match=r"no message at position [23]"):
            session.erase(2) if verb == "erase" else session.fork(at=3)
        yield event("lo")

    list(session.record(stream(), model="m"))

    assert states(session) == [("Hello", "complete")]


def test_a_repeat_under_the_key_of_a_reply_that_is_arriving_is_refused(store: rs.Store) -> None:
    """Two workers that take the same attempt: one records, the other learns."""
    session = store.session("s", create=True)

    def stream() -> Iterator[dict[str, Any]]:
        yield event("one")
        second: list[Any] = []
        with (
            pytest.raises(rs.Conflict),
            session.record(iter([event("two")]), model="m", idempotency_key="k") as again,
        ):
            second += list(again)
        assert second == []

    with session.record(stream(), model="m", idempotency_key="k") as reply:
        list(reply)

    assert [s.message.text for s in session.history()] == ["one"]


def test_the_keeper_ends_with_the_last_recording(store: rs.Store) -> None:
    """No thread is left behind."""
    with store.session("s", create=True).record(iter([event("a")]), model="m") as reply:
        list(reply)

    until(lambda: not [t for t in threading.enumerate() if "keeper" in t.name])


def test_much_text_at_once_is_written_before_its_second_is_over(
    store: rs.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part each second or 64 K, whichever comes first."""
    monkeypatch.setattr(draft_writer, "PART_SECONDS", 3600.0)
    with rs.Store("sqlite://") as patient:
        session = patient.session("s", create=True)

        def stream() -> Iterator[dict[str, Any]]:
            yield event("x" * draft_writer.PART_CHARACTERS)
            until(lambda: session.history())

        with session.record(stream(), model="m") as reply:
            list(reply)


# Nothing that was shown is lost


def test_a_second_writer_in_this_process_loses_nothing_that_was_shown(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """What was not written yet is part of the interrupted reply, what a masker held too."""
    monkeypatch.setattr(draft_writer, "PART_SECONDS", 3600.0)
    with rs.Store(url, masker=rs.SecretMasker(values=["correct-horse"])) as store:
        session = store.session("s", create=True)
        session.append(rs.user("Count."))
        chunks = iter(session.record([event("one "), event("two "), event("3")], provider="openai"))
        shown = [next(chunks), next(chunks)]
        session.append(rs.user("Stop."))

        assert [m.message.text for m in session.history()] == ["Count.", "one two ", "Stop."]
        assert [chunk.text for chunk in shown if isinstance(chunk, rs.TextChunk)] == [
            "one ",
            "two ",
        ]
        with pytest.raises(rs.Conflict):
            list(chunks)


def test_unwritten_parts_are_kept_if_another_writer_ends_the_reply(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """The thread that keeps it comes between taking the draft and making a message of it."""
    monkeypatch.setattr(draft_writer, "PART_SECONDS", 3600.0)
    with rs.Store(url) as store:
        session = store.session("s", create=True)
        recording = session.record([event("one "), event("two "), event("3")], provider="openai")
        chunks = iter(recording)
        next(chunks)
        keep(recording)
        next(chunks)
        ledger, state = store._state.ledger, store._state

        def draft_message(draft: DraftRow) -> NewMessage | None:
            keep(recording)
            return state.draft_message(draft)

        said = state.prepare(rs.user("Stop."), "o200k_base")
        ledger.messages.append(session._row.key, 1, [said], draft_message=draft_message)

        assert [m.message.text for m in session.history()] == ["one two ", "Stop."]
        with pytest.raises(rs.Conflict):
            list(chunks)


def test_a_second_recording_in_this_process_loses_nothing_that_was_shown(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """The reply that it ends is kept as far as it was shown."""
    monkeypatch.setattr(draft_writer, "PART_SECONDS", 3600.0)
    with rs.Store(url) as store:
        session = store.session("s", create=True)
        chunks = iter(session.record([event("one "), event("two")], provider="openai"))
        next(chunks)
        list(session.record([event("three")], provider="openai"))

        assert [m.message.text for m in session.history()] == ["one ", "three"]
        with pytest.raises(rs.Conflict):
            list(chunks)


def test_a_part_that_could_not_be_written_is_written_before_the_next(
    monkeypatch: pytest.MonkeyPatch, store: rs.Store
) -> None:
    """A store that was busy for a moment leaves no hole in what others read."""
    session = store.session("s", create=True)
    write = Drafts.write_parts
    refused: list[Sequence[NewParts]] = []

    def busy_once(self: Drafts, growths: Sequence[NewParts], *, last: bool) -> list[bool]:
        if not refused:
            refused.append(growths)
            raise rs.StoreBusy
        return write(self, growths, last=last)

    monkeypatch.setattr(Drafts, "write_parts", busy_once)
    chunks = iter(session.record([event("one "), event("two ")], provider="openai"))
    next(chunks)
    until(lambda: refused)
    next(chunks)

    assert until(
        lambda: [m.message.text for m in session.history() if "two" in m.message.text]
    ) == ["one two "]
    list(chunks)


def test_a_reply_is_shown_while_a_part_of_it_is_being_written(
    monkeypatch: pytest.MonkeyPatch, store: rs.Store
) -> None:
    """A disk that is slow, or locked by another process, holds up no event loop."""
    session = store.session("s", create=True)
    write = Drafts.write_parts
    writing, shown = threading.Event(), threading.Event()
    held_up: list[bool] = []

    def slow(self: Drafts, growths: Sequence[NewParts], *, last: bool) -> list[bool]:
        writing.set()
        held_up.append(not shown.wait(120))
        return write(self, growths, last=last)

    def stream() -> Iterator[dict[str, Any]]:
        yield event("one ")
        assert writing.wait(120)
        yield event("two")
        shown.set()

    monkeypatch.setattr(Drafts, "write_parts", slow)
    with session.record(stream(), provider="openai") as reply:
        list(reply)

    assert not any(held_up)
    assert [item.message.text for item in session.history()] == ["one two"]


def test_a_left_reply_that_cannot_be_stored_is_reported_at_the_end_of_with(store: rs.Store) -> None:
    """A break is not silent about it."""
    session = store.session("s", create=True)

    def leave() -> None:
        with session.record([event("one "), event("two")], provider="openai") as reply:
            for _ in reply:
                session.erase()
                break

    with pytest.raises(rs.NotFound):
        leave()
