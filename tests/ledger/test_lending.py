"""Connections are lent: at most so many, each to one at a time, and none is lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from reasoning_store.errors import StoreBusy
from reasoning_store.ledger.lending import Lending


def lending(*, most: int, timeout: float = 30.0, dropped: list[int] | None = None) -> Lending[int]:
    """Return one of numbers, made in order."""
    drop = [] if dropped is None else dropped
    return Lending(count(1).__next__, drop.append, most=most, timeout=timeout)


def test_what_came_back_last_is_lent_first() -> None:
    """Its pages are in memory still."""
    numbers = lending(most=3)
    assert [numbers.take() for _ in range(3)] == [1, 2, 3]

    for one in (3, 1, 2):
        numbers.give(one)

    assert [numbers.take() for _ in range(3)] == [2, 1, 3]


def test_another_is_made_in_the_place_of_one_that_is_lost() -> None:
    """It is dropped, and whoever waits for one is served."""
    dropped: list[int] = []
    numbers = lending(most=1, dropped=dropped)
    first = numbers.take()

    with ThreadPoolExecutor(1) as pool:
        waits = pool.submit(numbers.take)
        while not numbers._waiting:
            pass
        numbers.lose(first)

        assert (waits.result(), dropped) == (2, [1])


def test_nothing_is_made_while_something_is_idle() -> None:
    """One reader at a time is one connection."""
    numbers = lending(most=3)

    for _ in range(5):
        one = numbers.take()
        assert one == 1
        numbers.give(one)


def test_who_finds_all_lent_waits_for_one() -> None:
    """It is woken by what comes back."""
    numbers = lending(most=1)
    one = numbers.take()

    with ThreadPoolExecutor(1) as pool:
        waits = pool.submit(numbers.take)
        while not numbers._waiting:
            pass
        assert not waits.done()
        numbers.give(one)
        assert waits.result(30) == one


def test_who_waits_longest_is_served_first() -> None:
    """Also before whoever gives one back and asks again: or that one would have it always."""
    numbers = lending(most=1)
    one = numbers.take()
    served: list[str] = []

    def use(name: str) -> None:
        mine = numbers.take()
        served.append(name)
        numbers.give(mine)

    with ThreadPoolExecutor(2) as pool:
        for waiting, name in enumerate(["first", "second"], 1):
            pool.submit(use, name)
            while len(numbers._waiting) < waiting:
                pass
        numbers.give(one)
        assert numbers.take() == one
        assert served[0] == "first"
        numbers.give(one)

    assert served == ["first", "second"]


def test_who_waits_too_long_is_told() -> None:
    """And what comes back later is there for the next."""
    numbers = lending(most=1, timeout=0.01)
    one = numbers.take()

    with pytest.raises(StoreBusy):
        numbers.take()
    numbers.give(one)

    assert numbers.take() == one


def test_one_that_could_not_be_made_is_no_loss() -> None:
    """Another may be made in its place."""
    answers: Iterator[int | Exception] = iter([ZeroDivisionError(), 7])

    def make() -> int:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    numbers = Lending(make, lambda _: None, most=1, timeout=0.01)
    with pytest.raises(ZeroDivisionError):
        numbers.take()

    assert numbers.take() == 7


def test_closing_drops_what_is_idle_and_what_comes_back() -> None:
    """What is lent is in use, and is dropped after that."""
    dropped: list[int] = []
    numbers = lending(most=2, dropped=dropped)
    idle, lent = numbers.take(), numbers.take()
    numbers.give(idle)

    numbers.close()
    assert dropped == [idle]
    numbers.give(lent)

    assert dropped == [idle, lent]


def test_no_two_threads_have_the_same() -> None:
    """However many ask at once."""
    numbers = lending(most=3)
    held: set[int] = set()
    guard = threading.Lock()

    def use(_: int) -> None:
        for _ in range(200):
            one = numbers.take()
            with guard:
                assert one not in held
                held.add(one)
            with guard:
                held.remove(one)
            numbers.give(one)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, range(8)))

    assert sorted(numbers.take() for _ in range(3)) == [1, 2, 3]
