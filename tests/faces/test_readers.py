"""How many reads of one store run at once is the caller's choice, in both faces."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

import reasoning_store as rs

READERS = 3


@contextmanager
def counted() -> Iterator[tuple[Callable[[Any], None], list[int]]]:
    """Give work that reads until so many of it run at once, and how many ran at each moment."""
    together = threading.Barrier(READERS, timeout=60)
    lock = threading.Lock()
    running, moments = 0, list[int]()

    def change(by: int) -> None:
        nonlocal running
        with lock:
            running += by
            moments.append(running)

    def work(_: Any) -> None:
        change(1)
        together.wait()
        change(-1)

    yield work, moments
    assert max(moments) == READERS


def test_so_many_threads_read_at_once(url: str) -> None:
    """The others wait for a connection."""
    with (
        rs.Store(url, readers=READERS) as store,
        ThreadPoolExecutor(3 * READERS) as threads,
        counted() as (work, moments),
    ):
        list(threads.map(store._state.ledger.database.read, [work] * 3 * READERS))
    assert len(moments) == 6 * READERS


def test_so_many_tasks_read_at_once(url: str) -> None:
    async def read(work: Callable[[Any], None]) -> None:
        async with rs.AsyncStore(url, readers=READERS) as store:
            database = store._sync._state.ledger.database
            await asyncio.gather(
                *[store._threads.read(database.read, work) for _ in range(3 * READERS)]
            )

    with counted() as (work, moments):
        asyncio.run(read(work))
    assert len(moments) == 6 * READERS


@pytest.mark.parametrize("readers", [0, -1, True, 1.5, "8", None])
def test_a_number_of_readers_that_makes_no_sense_is_refused(readers: Any) -> None:
    """Before a database is opened."""
    with pytest.raises(rs.InvalidCall, match=r"^readers: ") as raised:
        rs.Store("sqlite:////absent/chat.db", readers=readers)
    assert raised.value.hint == "as in readers=8"
