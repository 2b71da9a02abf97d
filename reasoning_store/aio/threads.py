"""Threads that run synchronous verbs for the asynchronous ones: writes in order, reads in parallel.

A verb that has begun is waited for, also when its task is cancelled; then the cancellation goes
on. A verb that has not begun is dropped.

A lane of one thread writes in the order of the calls: on SQLite each session has such a lane, and
several of them may share a commit. On a server there is one lane of many threads, and the
database decides the order.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from functools import partial, wraps
from itertools import islice
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.ledger.database.guard import forked

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")
U = TypeVar("U")

_ASIDE = 2
_BATCH = 256


class _Pools:
    """The threads of one store, which belong to one process."""

    def __init__(self, *, lanes: int, writers: int, readers: int) -> None:
        self._process = os.getpid()
        self.is_closed = False
        self.writes = [_pool(writers, "write") for _ in range(lanes)]
        self.reads = _pool(readers, "read") if readers else self.writes[0]
        # A long verb keeps no other waiting; its own steps queue like any other's.
        self.aside = _pool(_ASIDE, "aside")

    @property
    def is_own_process(self) -> bool:
        return os.getpid() == self._process

    def usable(self) -> Self:
        if self.is_closed:
            raise InvalidCall("the store is closed", hint="async with rs.AsyncStore(url) as store")
        if not self.is_own_process:
            raise forked()
        return self


def _pool(threads: int, name: str) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix=f"reasoning-store-{name}")


class Threads:
    """The threads of one store, seen from one of the lanes in which it writes.

    There are ``lanes`` for writes, of ``writers`` threads each.
    """

    def __init__(self, *, lanes: int = 1, writers: int, readers: int) -> None:
        self._pools = _Pools(lanes=lanes, writers=writers, readers=readers)
        self._lane = 0

    def lane_of(self, what: Hashable) -> Threads:
        """Return the same threads, with the lane in which all of one thing is written."""
        other = copy(self)
        other._lane = hash(what)
        return other

    @property
    def _writes(self) -> ThreadPoolExecutor:
        lanes = self._pools.usable().writes
        return lanes[self._lane % len(lanes)]

    async def write(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await _hop(self._writes, partial(work, *args, **kwargs))

    async def write_always(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Write also when the task is cancelled before the write has begun."""
        return await _hop(self._writes, partial(work, *args, **kwargs), may_be_dropped=False)

    async def read(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await _hop(self._pools.usable().reads, partial(work, *args, **kwargs))

    async def run_long(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a long verb on threads of its own, outside the order of writes."""
        return await _hop(self._pools.usable().aside, partial(work, *args, **kwargs))

    async def iterate(self, make: Callable[[], Iterator[T]]) -> AsyncIterator[T]:
        """Yield what an iterator gives, which is read in a thread, a batch ahead at most."""
        items = await self.run_long(make)
        while batch := await self.run_long(lambda: list(islice(items, _BATCH))):
            for item in batch:
                yield item

    async def close_after_writes(self, close: Callable[[], None]) -> None:
        """Run ``close`` when every write given so far has ended, cancelled or not."""
        pools = self._pools
        if not pools.is_own_process:
            return
        pools.is_closed = True

        def close_last() -> None:
            for lane in pools.writes:
                lane.shutdown()
            close()

        closing = _pool(1, "close")
        try:
            await _hop(closing, close_last, may_be_dropped=False)
        finally:
            closing.shutdown(wait=False)
            self.close()

    def close(self) -> None:
        """Let the threads end with what they were given."""
        pools = self._pools
        pools.is_closed = True
        for threads in (*pools.writes, pools.reads, pools.aside):
            threads.shutdown(wait=False)


def awaited(
    verb: Callable[Concatenate[S, P], T],
    *,
    by: Callable[..., Coroutine[Any, Any, Any]] = Threads.read,
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Return a verb of a synchronous handle for the asynchronous one, run by one of its threads."""

    @wraps(verb)
    async def run(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = await by(self._threads, verb, self._sync, *args, **kwargs)
        return result

    return run


def written(
    verb: Callable[Concatenate[S, P], T],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Return an awaited verb that writes, run in the order of the calls."""
    return awaited(verb, by=Threads.write)


def awaited_as(
    verb: Callable[Concatenate[S, P], T],
    make: Callable[[Threads, T], U],
    *,
    by: Callable[..., Coroutine[Any, Any, Any]] = Threads.read,
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, U]]:
    """Return an awaited verb; ``make`` makes its result of the synchronous one."""
    awaited_verb = awaited(verb, by=by)

    @wraps(verb)
    async def run(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> U:
        return make(self._threads, await awaited_verb(self, *args, **kwargs))

    return run


async def _hop(
    executor: ThreadPoolExecutor,
    work: Callable[[], T],
    *,
    may_be_dropped: bool = True,
) -> T:
    try:
        begun = executor.submit(work)
    except RuntimeError:
        if threading.main_thread().is_alive():
            raise
        # A loop in another thread outlives the main one; Python's pools do not, and have done
        # what they were given. A call that comes now is made here.
        return work()
    waiting = asyncio.wrap_future(begun)
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        if may_be_dropped and begun.cancel():
            raise  # it was still in the queue, and has done nothing
        while not waiting.done():
            try:
                await asyncio.wait([waiting])
            except asyncio.CancelledError:
                continue  # asked again; a transaction cannot be left in the middle
        if not waiting.cancelled():
            waiting.exception()  # read: the caller gets the cancellation
        raise
