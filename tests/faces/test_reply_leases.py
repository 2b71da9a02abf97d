"""The lease of a reply: how long it is held, and what can be done once it has run out."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.ledger import stored_drafts
from reasoning_store.recording import draft_writer, reply_draft, reply_recorder
from tests.clock import SECOND, Clock

from .recorder import event, keep, states


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch, url: str, clock: Clock) -> Iterator[rs.Store]:
    """A store that lives by ``clock``, and keeps a reply when it is asked to."""
    monkeypatch.setattr(draft_writer, "PART_SECONDS", 3600.0)
    for room in (reply_recorder, reply_draft):
        monkeypatch.setattr(room, "time", SimpleNamespace(monotonic=lambda: clock() / SECOND))
    with rs.Store(url) as opened:
        opened._state.ledger.clock.now = clock
        yield opened


def test_a_reply_that_waits_long_for_its_model_stays_alive(timed: rs.Store, clock: Clock) -> None:
    """A lease is renewed while the model thinks without a word."""
    session = timed.session("s", create=True)

    def stream() -> Iterator[dict[str, Any]]:
        yield event("Let me think. ")
        for _ in range(6):
            clock.pass_(stored_drafts.LEASE / 2)
            keep(recording)
        assert states(session) == [("Let me think. ", "streaming")]
        yield event("Done.")

    recording = session.record(stream(), model="m")
    list(recording)

    assert states(session) == [("Let me think. Done.", "complete")]


def test_a_reply_whose_reader_stopped_asking_is_not_kept_alive(
    timed: rs.Store, clock: Clock
) -> None:
    """An abandoned generator in a living process: all that arrived reads as interrupted."""
    session = timed.session("s", create=True)
    recording = session.record(iter([event("a"), event("b"), event("c")]), model="m")
    chunks = iter(recording)
    next(chunks)
    next(chunks)
    for _ in range(6):
        keep(recording)
        clock.pass_(stored_drafts.LEASE / 2)

    assert states(session) == [("ab", "interrupted")]
    session.append(rs.user("Next."))
    del chunks
    assert [s.message.text for s in session.history()] == ["ab", "Next."]


def test_a_late_recorder_continues_if_no_other_has_written(timed: rs.Store, clock: Clock) -> None:
    """A lease that has run out is renewed by the next word, if nothing else was said."""
    session = timed.session("s", create=True)
    recording = session.record(iter([event("a"), event("b")]), model="m")
    chunks = iter(recording)
    next(chunks)
    keep(recording)
    clock.pass_(2 * stored_drafts.LEASE)
    assert states(session) == [("a", "interrupted")]
    next(chunks)
    keep(recording)
    assert states(session) == [("ab", "streaming")]
    list(chunks)

    assert states(session) == [("ab", "complete")]


@pytest.fixture
def left(timed: rs.Store, clock: Clock) -> Iterator[rs.Session]:
    """A session whose last reply was left alone by its reader, until its lease ran out."""
    session = timed.session("s", create=True)
    session.append(rs.user("Hi"))
    recording = session.record(iter([event("<think>Hm.</think>Hel"), event("lo")]), model="m")
    chunks = iter(recording)
    while not isinstance(next(chunks), rs.TextChunk):
        pass
    keep(recording)
    clock.pass_(2 * stored_drafts.LEASE)
    assert states(session) == [("Hi", "complete"), ("Hel", "interrupted")]
    yield session
    chunks.close()  # type: ignore[attr-defined]


def test_a_reply_that_was_left_can_be_erased(left: rs.Session) -> None:
    """It stands in the history, so it has a position like any other."""
    assert left.erase(2).messages == 1

    assert states(left) == [("Hi", "complete"), ("", "erased")]


def test_the_reasoning_of_a_reply_that_was_left_can_be_erased(left: rs.Session) -> None:
    """What it said stays, as an interrupted message."""
    assert left.get(2).message.thinking

    assert left.erase(2, only="reasoning").thinking_blocks == 1

    assert states(left) == [("Hi", "complete"), ("Hel", "interrupted")]
    assert left.get(2).message.thinking == ()


def test_a_fork_shares_a_reply_that_was_left(left: rs.Session) -> None:
    """It ends for this, and is the same message on both branches."""
    fork = left.fork(at=3)
    fork.append(rs.user("Go on."))

    assert [s.message.text for s in fork.history()] == ["Hi", "Hel", "Go on."]
    assert left.history() == fork.history()[:2]


def test_a_reply_that_was_left_has_no_count_of_its_own_yet(left: rs.Session) -> None:
    """It is stated to be a draft, and not to be missing; asking changes nothing."""
    with pytest.raises(rs.NotFound, match="at position 2 is still a draft"):
        left.usage(at=2)

    assert [branch.head for branch in left.branches()] == [1]
