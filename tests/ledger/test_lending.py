"""Connections are lent: at most so many, each to one at a time, and none is lost."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest

from reasoning_store.errors import StoreBusy
from reasoning_store.ledger import lending as room
from reasoning_store.ledger.lending import Lending, Lent

from .histories import new_session, said
from .interrupts import everywhere
from .opening import open_ledger


def lending(*, most: int, timeout: float = 30.0, dropped: list[int] | None = None) -> Lending[int]:
    """Return one of numbers, made in order."""
    drop = [] if dropped is None else dropped
    return Lending(count(1).__next__, drop.append, most=most, timeout=timeout, busy="busy")


def used(lent: Lent[int]) -> int:
    """Use one, which may be lent again."""
    lent.fit = True
    return lent.one


def whole(numbers: Lending[int], most: int) -> list[int]:
    """Borrow all there are at once, and return them; one that is lost is waited for in vain."""
    if not most:
        return []
    return numbers.lend(lambda lent: [*whole(numbers, most - 1), used(lent)])


def test_what_came_back_last_is_lent_first() -> None:
    """Its pages are in memory still."""
    numbers = lending(most=3)

    assert whole(numbers, 3) == [1, 2, 3]
    assert numbers.lend(used) == 3
    assert numbers.lend(lambda lent: (used(lent), numbers.lend(used))) == (3, 2)
    assert numbers.lend(used) == 3


def test_one_that_is_not_fit_is_dropped() -> None:
    """Another is made in its place, once those that are idle are in use."""
    dropped: list[int] = []
    numbers = lending(most=2, dropped=dropped)
    assert whole(numbers, 2) == [1, 2]

    with pytest.raises(ZeroDivisionError):
        numbers.lend(lambda lent: lent.one / 0)

    assert dropped == [2]
    assert numbers.lend(used) == 1
    assert sorted(whole(numbers, 2)) == [1, 3]


def test_nothing_is_made_while_something_is_idle() -> None:
    """One reader at a time is one connection."""
    numbers = lending(most=3)

    assert [numbers.lend(used) for _ in range(5)] == [1] * 5


def test_who_finds_all_lent_waits_for_one() -> None:
    """It is woken by what comes back, fit or not."""
    dropped: list[int] = []
    numbers = lending(most=1, dropped=dropped)
    for fit in (True, False):
        with ThreadPoolExecutor(1) as pool:

            def hold(lent: Lent[int], pool: ThreadPoolExecutor = pool, fit: bool = fit) -> Any:
                waits = pool.submit(numbers.lend, used)
                while not numbers._waiting:
                    pass
                assert lent.one == 1
                assert not waits.done()
                lent.fit = fit
                return waits

            assert numbers.lend(hold).result(30) == (1 if fit else 2)
    assert dropped == [1]


def test_who_waits_is_served_in_the_order_of_asking() -> None:
    """However many wait."""
    numbers = lending(most=1)
    order: list[int] = []
    waiting: list[threading.Thread] = []

    def hold(lent: Lent[int]) -> None:
        for n in range(20):
            thread = threading.Thread(
                target=numbers.lend, args=(lambda lent, n=n: order.append(n),)
            )
            thread.start()
            waiting.append(thread)
            while len(numbers._waiting) <= n:
                pass

    numbers.lend(hold)
    for thread in waiting:
        thread.join()

    assert list(range(20)) == order


def test_who_asks_again_is_not_served_before_who_waits() -> None:
    """Or a thread that asks again and again would have it always."""
    numbers = lending(most=1)
    served: list[str] = []

    with ThreadPoolExecutor(1) as pool:

        def hold(lent: Lent[int]) -> None:
            pool.submit(numbers.lend, lambda lent: served.append("waited"))
            while not numbers._waiting:
                pass
            lent.fit = True

        numbers.lend(hold)
        numbers.lend(lambda lent: served.append("asked again"))

    assert served == ["waited", "asked again"]


def test_who_waits_too_long_is_told() -> None:
    """And what comes back later is there for the next."""
    numbers = lending(most=1, timeout=0.01)

    def hold(lent: Lent[int]) -> None:
        with pytest.raises(StoreBusy, match="busy") as caught:
            numbers.lend(used)
        assert caught.value.__context__ is None  # a list that was empty is nobody's business
        used(lent)

    numbers.lend(hold)

    assert not numbers._waiting
    assert numbers.lend(used) == 1


def test_one_that_could_not_be_made_is_no_loss() -> None:
    """Another may be made in its place."""
    answers: Iterator[int | Exception] = iter([ZeroDivisionError(), 7])

    def make() -> int:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    numbers = Lending(make, lambda _: None, most=1, timeout=0.01, busy="busy")
    with pytest.raises(ZeroDivisionError):
        numbers.lend(used)

    assert numbers.lend(used) == 7


def test_one_that_could_not_be_dropped_is_no_loss() -> None:
    """Its place is free all the same."""

    def drop(_: int) -> None:
        raise ZeroDivisionError

    numbers = Lending(count(1).__next__, drop, most=1, timeout=0.01, busy="busy")
    with pytest.raises(ZeroDivisionError):
        numbers.lend(lambda lent: lent.one)

    assert numbers.lend(used) == 2


def test_closing_drops_what_is_idle_and_what_comes_back() -> None:
    """What is lent is in use, and is dropped after that."""
    dropped: list[int] = []
    numbers = lending(most=2, dropped=dropped)
    whole(numbers, 2)

    def hold(lent: Lent[int]) -> None:
        assert used(lent) == 2
        numbers.close()
        assert dropped == [1]

    numbers.lend(hold)

    assert dropped == [1, 2]


def test_one_that_cannot_be_dropped_keeps_no_other_open() -> None:
    """Closing drops all of them, and then says what went wrong."""
    dropped: list[int] = []

    def drop(one: int) -> None:
        dropped.append(one)
        if one == 2:
            raise ZeroDivisionError

    numbers = Lending(count(1).__next__, drop, most=3, timeout=0.01, busy="busy")
    whole(numbers, 3)

    with pytest.raises(ZeroDivisionError):
        numbers.close()

    assert sorted(dropped) == [1, 2, 3]
    numbers.close()
    assert len(dropped) == 3


def test_who_asks_while_it_is_closed_is_served() -> None:
    """What is away to be dropped comes back to whoever waits for it by then."""
    with ThreadPoolExecutor() as threads:

        def drop(one: int) -> None:
            if not asked:
                asked.append(threads.submit(numbers.lend, used))
                while not numbers._waiting:
                    pass

        asked: list[Future[int]] = []
        numbers = Lending(count(1).__next__, drop, most=1, timeout=30.0, busy="busy")
        numbers.lend(used)
        numbers.close()

        assert asked[0].result() == 2


def test_no_two_threads_have_the_same() -> None:
    """However many ask at once."""
    numbers = lending(most=3)
    held: set[int] = set()
    guard = threading.Lock()

    def hold(lent: Lent[int]) -> None:
        one = used(lent)
        with guard:
            assert one not in held
            held.add(one)
        with guard:
            held.remove(one)

    def use(_: int) -> None:
        for _ in range(200):
            numbers.lend(hold)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(8)))

    assert sorted(whole(numbers, 3)) == [1, 2, 3]


@pytest.mark.parametrize("fit", [True, False])
def test_an_interrupt_anywhere_loses_no_place(fit: bool) -> None:
    """At any step of a loan: all there may be can be borrowed at once after it."""
    numbers = lending(most=2, timeout=0.2)

    def work(lent: Lent[int]) -> None:
        assert lent.one
        lent.fit = fit

    steps = everywhere(room.__file__, lambda: lambda: numbers.lend(work), lambda: whole(numbers, 2))

    assert steps > 12
    assert not numbers._waiting


def test_an_interrupt_of_who_gives_back_leaves_nobody_waiting() -> None:
    """Whoever waits is served all the same, and in time."""
    numbers = lending(most=1, timeout=30)
    waits: list[threading.Thread] = []
    served: list[int] = []

    def prepare() -> Callable[[], None]:
        def work(lent: Lent[int]) -> None:
            thread = threading.Thread(target=lambda: served.append(numbers.lend(used)))
            waits.append(thread)
            thread.start()
            while not numbers._waiting:
                pass
            lent.fit = True

        return lambda: numbers.lend(work)

    def check() -> None:
        for thread in waits:
            thread.join(20)
            assert not thread.is_alive()
        assert len(served) == len(waits)
        assert whole(numbers, 1)

    assert everywhere(room.__file__, prepare, check) > 20


def test_an_interrupt_of_who_waits_takes_nothing_along() -> None:
    """Neither its turn nor what it was served with just then."""
    numbers = lending(most=1, timeout=20)
    holds: list[threading.Thread] = []

    def prepare() -> Callable[[], None]:
        taken, over = threading.Event(), threading.Event()

        def hold(lent: Lent[int]) -> None:
            lent.fit = True
            taken.set()
            while not (numbers._waiting or over.is_set()):
                pass

        thread = threading.Thread(target=numbers.lend, args=(hold,))
        thread.start()
        taken.wait()

        def run() -> None:
            try:
                numbers.lend(used)
            finally:
                over.set()

        holds.append(thread)
        return run

    def check() -> None:
        holds.pop().join(20)
        assert not numbers._waiting
        assert whole(numbers, 1)

    assert everywhere(room.__file__, prepare, check) > 20


@pytest.mark.parametrize("module", ["sqlite", "sqlite_transactions", "postgres"])
def test_an_interrupted_verb_leaves_the_store_as_it_was(
    request: pytest.FixtureRequest, module: str
) -> None:
    """At any step of a read or a write: both go on, and what was acknowledged is there."""
    on_server = module == "postgres"
    kind = request.getfixturevalue("postgres_url" if on_server else "sqlite_path")
    file = str(sys.modules[f"reasoning_store.ledger.{module}"].__file__)
    url = kind if on_server else f"sqlite:///{kind}"
    with open_ledger(url, connections=1, busy_timeout=20) as ledger:
        session = new_session(ledger)
        kept: list[int] = []

        def write() -> None:
            kept.append(ledger.append(session.key, 1, [said()])[0].position)

        def check() -> None:
            history = ledger.history(session.key, 1)
            assert {row.position for row in history} >= {*kept}
            write()

        read = everywhere(file, lambda: lambda: ledger.history(session.key, 1), check)
        written = everywhere(file, lambda: write, check)

        assert min(read, written) > 3
        assert ledger.verify().ok
