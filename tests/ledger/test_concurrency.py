"""Many threads at once: no error, no gap, no duplicate, and each writer's order kept.

Many processes, and the same through the public face: ``tests/concurrency``.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from reasoning_store.blocks import Counts, Origin, user
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.values import Entry

from .histories import answered, complete, new_session, part, said


def check_threads(ledger: Ledger) -> None:
    one, many = new_session(ledger), [new_session(ledger) for _ in range(8)]
    turn = [said(), answered(origin=Origin(provider="p"))]

    def write(n: int) -> list[int]:
        positions = []
        for _ in range(25):
            positions += [row.position for row in ledger.append(one.key, 1, turn)]
            ledger.append(many[n].key, 1, turn)
            assert ledger.history(many[n].key, 1, limit=2)[-1].message == turn[1].message
            assert ledger.states(one.key, 1).head.position >= positions[-1]
        return positions

    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(write, range(8)))

    assert list(range(1, 401)) == sorted(n for positions in told for n in positions)
    assert all(positions == sorted(positions) for positions in told)
    assert all(row.stored == row.actual for row in ledger.recount(one.key, 1))
    assert {50} == {ledger.head(session.key, 1).position for session in many}


def check_verbs(ledger: Ledger) -> None:
    one = new_session(ledger)
    ledger.append(one.key, 1, [said(), answered()] * 3)
    rounds = 6

    def work(n: int) -> None:
        own = new_session(ledger)
        for turn in range(rounds):
            ledger.set_profile("u", "shared", {"turn": turn})
            ledger.use_profile(own.key, "shared")
            ledger.append(own.key, 1, [said(), answered()])
            branch = ledger.fork(one.key, 1, 7)
            draft = ledger.begin_draft(one.key, branch, idempotency_key=f"{n} {turn}")
            assert ledger.add_part(draft, 1, part("1 "))
            assert ledger.renew(draft)
            found = ledger.draft(one.key, branch)
            assert found is not None
            assert found.parts == (part("1 "),)
            assert ledger.finish_draft(draft, [complete(1)])[0].position == 7
            ledger.compact(one.key, branch, 1, 2 + turn % 2 * 2, Entry(user("S"), Counts()))
            (compaction,) = ledger.compactions(one.key, branch)
            assert ledger.view(one.key, branch).rows[0] == compaction
            ledger.undo(one.key, branch, 1)
            assert ledger.states(one.key, branch).lineage == ledger.states(one.key, branch).head
            assert ledger.history(own.key, 1, tokens=10**6) == ledger.history(own.key, 1)
            ledger.remember_crossing(one.key, f"{turn}")
            assert ledger.get_session("u", own.id).profile == "shared"
        assert ledger.head(own.key, 1).position == 2 * rounds
        assert ledger.budget(own.key).thought.unreported == rounds

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(work, n) for n in range(8)]:
            done.result()

    assert len(ledger.branches(one.key)) == 8 * rounds + 1
    assert sorted(ledger.budget(one.key).crossed) == [str(turn) for turn in range(rounds)]


def test_every_verb_may_be_called_from_many_threads(ledger: Ledger) -> None:
    """None holds anything between its calls that another could take."""
    check_verbs(ledger)


def test_every_verb_works_on_one_connection_in_memory() -> None:
    """From many threads as well."""
    with Ledger.open("sqlite://") as ledger:
        check_verbs(ledger)


def test_threads_share_one_ledger(ledger: Ledger) -> None:
    """Writing and reading, one session and many."""
    check_threads(ledger)


def test_threads_share_one_connection_in_memory() -> None:
    """A database in memory has one connection, and takes everybody in turn."""
    with Ledger.open("sqlite://") as ledger:
        check_threads(ledger)


def test_two_stores_in_memory_are_two() -> None:
    """What one holds the other does not."""
    with Ledger.open("sqlite://") as one, Ledger.open("sqlite://") as other:
        one.create_session("u", "s", encoding="o200k_base")

        assert other.sessions("u").items == []
