"""Many threads at once: no error, no gap, no duplicate, and each writer's order kept.

Many processes, and the same through the public face: ``tests/concurrency``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest

from reasoning_store.conversation.blocks import (
    Counts,
    Origin,
    user,
)
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import NewMessage

from .compacting import compact
from .histories import add_part, answered, complete, new_session, part, renew, said, stored_messages
from .whole import whole

THREADS = 8
ROUNDS = 6
T = TypeVar("T")


@pytest.fixture(params=["file", "server", "memory"])
def anywhere(request: pytest.FixtureRequest) -> Iterator[Ledger]:
    """An open ledger; one in memory has one connection, which takes everybody in turn."""
    if request.param == "server":
        url = request.getfixturevalue("postgres_url")
    elif request.param == "file":
        url = f"sqlite:///{request.getfixturevalue('sqlite_path')}"
    else:
        url = "sqlite://"
    with Ledger.open(url) as opened:
        yield opened


def in_threads(work: Callable[[int], T]) -> list[T]:
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(work, range(THREADS)))


# What a thread does, again and again: in the conversation that all share, under a name that
# is its own.


def use_a_profile(ledger: Ledger, shared: int, name: str) -> None:
    own = new_session(ledger)
    ledger.profiles.set("u", "shared", {"by": name})
    ledger.sessions.use_profile(own.key, "shared")

    assert ledger.sessions.get("u", own.id).profile == "shared"


def write_and_read(ledger: Ledger, shared: int, name: str) -> None:
    own = new_session(ledger)
    ledger.messages.append(own.key, 1, [said(name), answered()])

    assert stored_messages(ledger, own.key, 1, tokens=10**6) == stored_messages(ledger, own.key, 1)
    assert ledger.branches.get(own.key, 1).head == 2
    assert ledger.budgets.get(own.key).thought.unreported == 1


def record_on_a_fork(ledger: Ledger, shared: int, name: str) -> None:
    branch = ledger.branches.fork(shared, 1, 7)
    draft = ledger.drafts.begin(shared, branch, idempotency_key=name)
    assert add_part(ledger, draft, 1, part("1 "))
    assert renew(ledger, draft)
    found = ledger.drafts.get(shared, branch)

    assert found is not None
    assert found.parts == (part("1 "),)
    assert ledger.drafts.finish(draft, [complete(1)])[0].position == 7


def compact_and_undo_on_a_fork(ledger: Ledger, shared: int, name: str) -> None:
    branch = ledger.branches.fork(shared, 1, 7)
    compact(ledger, shared, branch, 1, 4, NewMessage(user(name), Counts()))
    (compaction,) = ledger.views.compactions(shared, branch)
    assert ledger.views.view(shared, branch)[0] == compaction
    ledger.compactions.undo(shared, branch, 1)

    assert len(ledger.views.view(shared, branch)) == ledger.branches.get(shared, branch).head


def remember(ledger: Ledger, shared: int, name: str) -> None:
    ledger.budgets.remember(shared, name)

    assert name in ledger.budgets.get(shared).crossed


WORK = (use_a_profile, write_and_read, record_on_a_fork, compact_and_undo_on_a_fork, remember)


def conversation(ledger: Ledger) -> int:
    key = new_session(ledger).key
    ledger.messages.append(key, 1, [said(), answered()] * 3)
    return key


@pytest.mark.parametrize("work", WORK, ids=lambda work: work.__name__)
def test_many_threads_may_do_the_same_at_once(
    anywhere: Ledger, work: Callable[[Ledger, int, str], None]
) -> None:
    """No verb holds anything between its calls that another thread could take."""
    shared = conversation(anywhere)

    def repeat(thread: int) -> None:
        for round_ in range(ROUNDS):
            work(anywhere, shared, f"{thread} {round_}")

    in_threads(repeat)

    assert anywhere.audit.verify().ok


def test_many_threads_may_do_different_things_at_once(anywhere: Ledger) -> None:
    """Each begins with another verb; all that they did is there."""
    shared = conversation(anywhere)

    def take_turns(thread: int) -> None:
        for step in range(ROUNDS * len(WORK)):
            work = WORK[(thread + step) % len(WORK)]
            work(anywhere, shared, f"{thread} {step}")

    in_threads(take_turns)

    assert len(anywhere.branches.all_of(shared)) == 1 + 2 * THREADS * ROUNDS
    assert len(anywhere.budgets.get(shared).crossed) == THREADS * ROUNDS
    assert anywhere.audit.verify().ok


def test_threads_write_one_conversation_and_their_own(anywhere: Ledger) -> None:
    """Each position once, each thread's in its order, and what it wrote is read at once."""
    one, own = new_session(anywhere), [new_session(anywhere) for _ in range(THREADS)]
    turn = [said(), answered(origin=Origin(provider="p"))]

    def write(n: int) -> list[int]:
        positions = []
        for _ in range(25):
            positions += [row.position for row in anywhere.messages.append(one.key, 1, turn)]
            anywhere.messages.append(own[n].key, 1, turn)
            assert stored_messages(anywhere, own[n].key, 1, limit=2)[-1].message == turn[1].message
            assert anywhere.branches.get(one.key, 1).head >= positions[-1]
        return positions

    written = in_threads(write)

    assert list(range(1, 401)) == sorted(n for positions in written for n in positions)
    assert all(positions == sorted(positions) for positions in written)
    whole(anywhere, one.key)
    assert {50} == {anywhere.branches.get(session.key, 1).head for session in own}


def test_two_stores_in_memory_are_two() -> None:
    """What one holds the other does not."""
    with Ledger.open("sqlite://") as one, Ledger.open("sqlite://") as other:
        one.sessions.create("u", "s", encoding="o200k_base")

        assert other.sessions.page("u").items == []
