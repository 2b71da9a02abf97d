"""Recorders of drafts: in other processes, many at once, and with a lease that runs out."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from reasoning_store.conversation.blocks import Counts, assistant
from reasoning_store.conversation.errors import Conflict
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import DraftRow, NewMessage, SessionRow
from tests.clock import Clock

from .drafting import recording, rows_of, texts
from .histories import add_part, complete, new_session, part, renew, resolved, said, stored_messages
from .opening import open_ledger
from .whole import whole

ROOT = Path(__file__).parents[2]


class Recorder:
    """A process that records."""

    def __init__(self, url: str, session: SessionRow, *, lease: float, parts: int, pause: float):
        words = (url, session.owner, session.id, str(lease), str(parts), str(pause))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.ledger.recorder", *words],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )

    def told(self) -> list[str]:
        assert self.process.stdout is not None
        return self.process.stdout.readline().split()

    def rest(self) -> list[str]:
        assert self.process.stdout is not None
        return self.process.stdout.read().splitlines()

    def told_until(self, word: str, number: int) -> None:
        while self.told() != [word, str(number)]:
            assert self.process.poll() is None


@contextmanager
def recorder(url: str, session: SessionRow, **given: Any) -> Iterator[Recorder]:
    started = Recorder(url, session, **given)
    try:
        yield started
    finally:
        started.process.kill()
        started.process.wait()
        if started.process.stdout is not None:
            started.process.stdout.close()


def until(reached: Callable[[], bool]) -> None:
    """Wait for what has to come; that of every test is the only other end."""
    while not reached():
        time.sleep(0.01)


def test_a_killed_recorder_loses_no_acknowledged_part(url: str) -> None:
    """While its lease lasts it reads as arriving, then as interrupted; then it is a message."""
    with Ledger.open(url) as ledger:
        session = new_session(ledger)
        ledger.messages.append(session.key, 1, [said("q")])
        with recorder(url, session, lease=1.0, parts=10_000, pause=0.0) as other:
            _, draft_id = other.told()
            other.told_until("kept", 20)
            other.process.kill()
            kept = max([20, *(int(line.split()[1]) for line in other.rest())])

        def found() -> DraftRow:
            draft = ledger.drafts.get(session.key, 1)
            assert draft is not None
            return draft

        assert found().id == draft_id
        until(lambda: found().expired)
        (row,) = ledger.messages.append(session.key, 1, [said("x")], draft_message=resolved)
        ended = ledger.history.get(session.key, 1, 2)

        assert (row.position, ended.id, ended.message.status) == (3, draft_id, "interrupted")
        arrived = ended.message.text.split()
        assert arrived == [str(n) for n in range(1, len(arrived) + 1)]
        # One part more may have been written than it could say.
        assert kept <= len(arrived) <= kept + 1
        whole(ledger, session.key)


def test_a_recorder_in_another_process_continues_and_learns_it_at_its_end(url: str) -> None:
    """A second writer barges in; a reader follows; nothing is twice and nothing is lost."""
    with Ledger.open(url) as ledger:
        session = new_session(ledger)
        with recorder(url, session, lease=30.0, parts=1_000_000, pause=0.01) as other:
            assert other.told()[0] == "began"
            draft = ledger.drafts.get(session.key, 1)
            assert draft is not None
            seen: list[str] = []

            def follow() -> bool:
                found = ledger.drafts.get(session.key, 1)
                assert found is not None
                assert list(found.parts[: len(seen)]) == seen
                seen[:] = found.parts
                return len(seen) >= 5

            until(follow)
            ledger.messages.append(session.key, 1, [said("me!")], draft_message=resolved)
            said_by_it = other.rest()

        assert said_by_it[-1] == "conflict 1"
        kept = [line for line in said_by_it if line.startswith("kept")]
        lost = [line for line in said_by_it if line.startswith("lost")]
        assert len(lost) == 6
        arrived, message = texts(ledger, session)
        assert message == "me!"
        assert arrived == "".join(f"{n} " for n in range(1, len(kept) + 1))
        assert arrived.startswith("".join(resolved_text(one) for one in seen))


def resolved_text(one: str) -> str:
    from reasoning_store.conversation import codec

    text: str = codec.loads(one)["text"]
    return text


def test_an_undisturbed_recorder_in_another_process_stores_its_message(url: str) -> None:
    """With a lease shorter than its stream, which its parts renew."""
    with Ledger.open(url) as ledger:
        session = new_session(ledger)
        with recorder(url, session, lease=0.5, parts=30, pause=0.02) as other:
            told = other.rest()

        assert told[-1] == "stored 1"
        assert texts(ledger, session) == [complete(30).message.text]


def test_recorders_and_writers_at_once_lose_and_repeat_nothing(ledger: Ledger) -> None:
    """On one branch: every stored reply is a prefix of what its recorder sent, in gapless order."""
    session = new_session(ledger)
    ends: list[tuple[str, int, list[int]]] = []
    begun = threading.Barrier(6)

    def record(n: int) -> None:
        begun.wait()
        for attempt in range(6):
            draft = ledger.drafts.begin(
                session.key, 1, draft_message=resolved, idempotency_key=f"{n} {attempt}"
            )
            kept = 0
            while kept < 8 and add_part(ledger, draft, kept + 1, part(f"{kept + 1} ")):
                kept += 1
            try:
                rows = ledger.drafts.finish(draft, [complete(9)])
            except Conflict as conflict:
                rows = conflict.stored or []
                assert [row.message.text for row in rows] == [
                    complete(kept).message.text for _ in range(bool(kept))
                ]
            ends.append((draft.id, draft.position, [row.position for row in rows]))

    def write(n: int) -> None:
        begun.wait()
        for turn in range(12):
            key = f"w{n} {turn}"
            ledger.messages.append(
                session.key, 1, [said(key)], draft_message=resolved, idempotency_key=key
            )

    with ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(record, n) for n in range(3)] + [
            pool.submit(write, n) for n in range(3)
        ]:
            done.result()

    rows = stored_messages(ledger, session.key, 1)
    assert [row.position for row in rows] == list(range(1, len(rows) + 1))
    by_id = {row.id: row for row in rows}
    assert len(by_id) == len(rows)
    for draft_id, position, stored in ends:
        assert stored == ([by_id[draft_id].position] if draft_id in by_id else [])
        assert stored in ([], [position])
    mine = [row.message.text for row in rows if row.message.role == "user"]
    for n in range(3):
        assert [text for text in mine if text.startswith(f"w{n}")] == [
            f"w{n} {turn}" for turn in range(12)
        ]
    assert len(rows) == 36 + sum(len(stored) for _, _, stored in ends)
    assert rows_of(ledger, "drafts") == rows_of(ledger, "draft_parts") == 0
    whole(ledger, session.key)


def test_two_recorders_at_once_on_one_branch(ledger: Ledger) -> None:
    """The one who begins second ends the other; one is whole, and the other learns."""
    session = new_session(ledger)
    begun = threading.Barrier(2)

    def record(name: str) -> str:
        begun.wait()
        draft = ledger.drafts.begin(session.key, 1, draft_message=resolved)
        begun.wait()
        add_part(ledger, draft, 1, part(name))
        try:
            ledger.drafts.finish(draft, [NewMessage(assistant(f"{name} whole"), Counts(visible=1))])
        except Conflict:
            return "told"
        return "stored"

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(record, ("a", "b")))

    assert sorted(answers) == ["stored", "told"]
    assert texts(ledger, session) == ["ab"[answers.index("stored")] + " whole"]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def timed(url: str, clock: Clock) -> Iterator[Ledger]:
    """An open ledger on each engine that lives by ``clock``."""
    with open_ledger(url, clock=clock) as opened:
        yield opened


def test_a_draft_whose_lease_has_run_out_reads_as_what_has_arrived(
    timed: Ledger, clock: Clock
) -> None:
    """Parts and renewals lengthen it; the next append makes it a message."""
    session = new_session(timed)
    draft = recording(timed, session, 1)

    def expired() -> bool:
        found = timed.drafts.get(session.key, 1)
        assert found is not None
        return found.expired

    clock.pass_(29)
    assert not expired()
    assert renew(timed, draft)
    clock.pass_(29)
    assert not expired()
    assert add_part(timed, draft, 2, part("2 "))
    clock.pass_(29)
    assert not expired()
    clock.pass_(1)
    assert expired()
    timed.messages.append(session.key, 1, [said("x")], draft_message=resolved)
    assert texts(timed, session) == ["1 2 ", "x"]
    assert timed.history.get(session.key, 1, 1).created_at == draft.created_at


def test_a_lease_from_before_the_clock_was_set_back_has_run_out(
    timed: Ledger, clock: Clock
) -> None:
    """A dead recorder's draft streams no longer than ever, and refuses its key no longer."""
    session = new_session(timed)
    timed.drafts.begin(session.key, 1, idempotency_key="k")
    seen: list[bool] = []
    for seconds in (-29, -86_400, 86_400 + 29):  # another machine's clock, a day, and on again
        clock.pass_(seconds)
        found = timed.drafts.get(session.key, 1)
        assert found is not None
        seen.append(found.expired)
    clock.pass_(-86_400)

    assert seen == [False, True, False]
    assert timed.drafts.begin(session.key, 1, idempotency_key="k", draft_message=resolved)


def test_a_recorder_that_was_only_slow_goes_on(timed: Ledger, clock: Clock) -> None:
    """Its lease ran out, and no one had an interest in it."""
    session = new_session(timed)
    draft = recording(timed, session, 1)
    clock.pass_(3600)

    assert add_part(timed, draft, 2, part("2 "))
    assert timed.drafts.finish(draft, [complete(2)])[0].position == 1


def test_an_attempt_whose_recorder_died_is_kept_and_returned(timed: Ledger, clock: Clock) -> None:
    """Begun again under its key it is a conflict that carries what had arrived of it."""
    session = new_session(timed)
    draft = recording(timed, session, 2, idempotency_key="k")
    clock.pass_(30)

    with pytest.raises(Conflict) as caught:
        timed.drafts.begin(session.key, 1, idempotency_key="k", draft_message=resolved)

    assert [(row.id, row.message.text) for row in caught.value.stored] == [(draft.id, "1 2 ")]
    assert texts(timed, session) == ["1 2 "]


def test_an_attempt_that_died_before_its_first_part_begins_again(
    timed: Ledger, clock: Clock
) -> None:
    """Nothing had arrived, so nothing was stored under its key."""
    session = new_session(timed)
    recording(timed, session, idempotency_key="k")
    clock.pass_(30)

    again = timed.drafts.begin(session.key, 1, idempotency_key="k", draft_message=resolved)

    assert timed.drafts.finish(again, [complete(1)])[0].position == 1
