"""A few connections, lent to the threads that ask for them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from reasoning_store.conversation.errors import StoreBusy
from reasoning_store.ledger.database.pool import Pool


def numbers(
    size: int,
    *,
    closed: list[int] | None = None,
    timeout: float = 30.0,
    is_alive: Callable[[int], bool] = lambda _: True,
) -> Pool[int]:
    """A pool of 1, 2, 3, ... in which an error makes unfit."""
    left = [] if closed is None else closed
    return Pool(
        count(1).__next__,
        left.append,
        size=size,
        timeout=timeout,
        is_alive=is_alive,
        is_fit=lambda _, error: error is None,
    )


def use(pool: Pool[int]) -> int:
    with pool.lent() as one:
        return one


def test_the_one_used_last_is_lent_first_and_no_other_is_made() -> None:
    """Its pages are in memory."""
    pool = numbers(3)
    with pool.lent(), pool.lent():
        pass

    assert [use(pool), use(pool)] == [1, 1]


def test_one_that_failed_is_closed_and_another_made() -> None:
    """No one meets what was left on it."""
    closed: list[int] = []
    pool = numbers(1, closed=closed)
    with pytest.raises(ZeroDivisionError), pool.lent():
        raise ZeroDivisionError

    assert closed == [1]
    assert use(pool) == 2


def test_one_that_died_while_it_was_idle_is_not_lent() -> None:
    closed: list[int] = []
    pool = numbers(1, closed=closed, is_alive=lambda one: one != 1)
    use(pool)

    assert use(pool) == 2
    assert closed == [1]


def test_one_that_cannot_be_made_takes_no_room() -> None:
    """The next caller tries again."""
    tries = count()

    def make() -> int:
        if next(tries) < 3:
            raise ZeroDivisionError
        return 7

    pool = Pool(make, lambda _: None, size=1, timeout=30, is_fit=lambda *_: True)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            use(pool)

    assert use(pool) == 7


def test_no_two_threads_have_the_same_and_no_more_than_allowed_are_made() -> None:
    pool = numbers(3)
    used: set[int] = set()
    guard = threading.Lock()

    def work(_: int) -> int:
        with pool.lent() as one:
            with guard:
                assert one not in used
                used.add(one)
            with guard:
                used.remove(one)
            return one

    with ThreadPoolExecutor(8) as threads:
        assert {*threads.map(work, range(2000))} <= {1, 2, 3}


def test_a_caller_that_waits_too_long_is_refused_and_the_next_is_not() -> None:
    pool = numbers(1, timeout=0.01)
    with pool.lent(), pytest.raises(StoreBusy, match="in use") as caught:
        use(pool)

    assert caught.value.hint
    assert use(pool) == 1


def test_closing_closes_what_is_idle_and_what_comes_back() -> None:
    closed: list[int] = []
    pool = numbers(2, closed=closed)
    with pool.lent():
        use(pool)
        pool.close()
        assert closed == [2]

    assert closed == [2, 1]
