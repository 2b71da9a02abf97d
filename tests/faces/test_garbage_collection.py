"""A reply that is let go of in a cycle: the collector ends it, wherever a thread just was."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.ledger import appends, stored_drafts
from reasoning_store.ledger.drafts import Drafts
from reasoning_store.recording import draft_writer

from .recorder import event

pytestmark = pytest.mark.usefixtures("own_garbage")


PIECES = ("<think>slow", "ly</think>one ", "two ", "three")


def shown(session: rs.Session) -> Iterator[rs.Chunk]:
    with session.record(map(event, PIECES), model="m") as reply:
        yield from reply


def alone(url: str) -> Iterator[rs.Chunk]:
    """The same with a store of its own, as an endpoint of a server may have it."""
    with rs.Store(url) as store:
        yield from shown(store.session("chat"))


def let_go_in_a_cycle(loop: Iterator[rs.Chunk]) -> None:
    """Look at a reply until some of its answer is there, and let go of it."""
    for chunk in loop:
        if isinstance(chunk, rs.TextChunk):
            break
    cycle: list[Any] = [loop]
    cycle.append(cycle)


def collecting_in(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> threading.Event:
    """Collect at the beginning of each call of a function, when the returned event is set."""
    function, now = getattr(owner, name), threading.Event()

    def after_collecting(*args: Any, **kwargs: Any) -> Any:
        if now.is_set():
            now.clear()
            gc.collect()
        return function(*args, **kwargs)

    monkeypatch.setattr(owner, name, after_collecting)
    return now


def eventually(true: Callable[[], bool]) -> bool:
    end = time.monotonic() + 120
    while not true() and time.monotonic() < end:
        time.sleep(0.01)
    return true()


def is_kept(session: rs.Session) -> bool:
    found = [one.message for one in session.history() if one.message.role == "assistant"]
    return [(one.status, one.text) for one in found] == [("interrupted", "one ")]


@pytest.fixture(autouse=True)
def _only_when_asked() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def store(url: str) -> Iterator[rs.Store]:
    with rs.Store(url) as opened:
        opened.session("chat", create=True)
        yield opened


@pytest.mark.parametrize("whose", ["a shared store", "a store of its own"])
def test_a_reply_is_kept_that_is_collected_while_it_is_written(
    monkeypatch: pytest.MonkeyPatch, store: rs.Store, url: str, whose: str
) -> None:
    """The thread that writes its draft holds what the end of the reply waits for."""
    monkeypatch.setattr(draft_writer, "PART_SECONDS", 0.01)
    with rs.Store(url) as shared:
        now = collecting_in(monkeypatch, Drafts, "write_parts")
        now.set()
        let_go_in_a_cycle(
            shown(shared.session("chat")) if whose == "a shared store" else alone(url)
        )

        assert eventually(lambda: is_kept(store.session("chat")))


@pytest.mark.parametrize("whose", ["a shared store", "a store of its own"])
def test_a_reply_is_kept_that_is_collected_in_a_transaction(
    monkeypatch: pytest.MonkeyPatch, store: rs.Store, url: str, whose: str
) -> None:
    """The one who was writing goes on writing, and what arrived of the reply is written then."""
    now = collecting_in(monkeypatch, appends, "append")
    let_go_in_a_cycle(shown(store.session("chat")) if whose == "a shared store" else alone(url))
    now.set()

    other = store.session("other", create=True)
    assert other.append(rs.user("Meanwhile.")).position == 1

    assert eventually(lambda: is_kept(store.session("chat")))


def test_a_reply_is_kept_that_is_collected_between_two_verbs(store: rs.Store) -> None:
    """As it is where no one was doing anything."""
    let_go_in_a_cycle(shown(store.session("chat")))
    gc.collect()

    assert eventually(lambda: is_kept(store.session("chat")))


@pytest.mark.parametrize("then", ["the store is closed", "somebody else says something"])
def test_a_write_after_a_collected_reply_waits_for_it(url: str, then: str) -> None:
    """It is written before."""
    with rs.Store(url) as store:
        session = store.session("chat", create=True)
        let_go_in_a_cycle(shown(session))
        gc.collect()
        if then != "the store is closed":
            session.append(rs.user("Well?"))

    with rs.Store(url) as again:
        assert is_kept(again.session("chat"))


@pytest.mark.parametrize("then", ["nothing follows", "a message follows", "the store is closed"])
def test_a_loop_that_is_left_without_with_loses_nothing_that_arrived(
    monkeypatch: pytest.MonkeyPatch, url: str, then: str
) -> None:
    """The part that no thread had written yet, too."""
    monkeypatch.setattr(draft_writer, "PART_SECONDS", 3600.0)
    with rs.Store(url) as store:
        session = store.session("chat", create=True)
        for chunk in session.record(map(event, PIECES), model="m"):
            if isinstance(chunk, rs.TextChunk):
                break
        if then == "a message follows":
            session.append(rs.user("Well?"))
        assert then == "the store is closed" or eventually(lambda: is_kept(session))

    with rs.Store(url) as again:
        assert is_kept(again.session("chat"))


def test_a_recording_that_is_held_after_its_loop_was_left_is_ended_by_its_lease(
    monkeypatch: pytest.MonkeyPatch, store: rs.Store
) -> None:
    """It reads as a reply that is arriving until then, and is given whole."""
    monkeypatch.setattr(stored_drafts, "LEASE", 1.0)
    session = store.session("chat")
    reply = session.record(map(event, PIECES), model="m")
    for chunk in reply:
        if isinstance(chunk, rs.TextChunk):
            break

    assert eventually(lambda: is_kept(session))
    assert reply.stored is None


_AT_THE_END = """
import gc, sys
import reasoning_store as rs
from tests.faces.test_garbage_collection import alone, let_go_in_a_cycle

with rs.Store(sys.argv[1]) as store:
    store.session("chat", create=True)
gc.disable()
let_go_in_a_cycle(alone(sys.argv[1]))
if sys.argv[2] == "collected":
    gc.collect()
"""


@pytest.mark.parametrize("when", ["collected", "never collected"])
def test_a_reply_is_kept_that_is_let_go_of_as_the_program_ends(tmp_path: Path, when: str) -> None:
    """The end of the program waits for what was left to do, and writes what no one did."""
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    subprocess.run(
        [sys.executable, "-c", _AT_THE_END, url, when],
        check=True,
        timeout=120,
        cwd=Path(__file__).parents[2],
    )

    with rs.Store(url) as store:
        (kept,) = store.session("chat").history()
    assert kept.message.text == "one "
