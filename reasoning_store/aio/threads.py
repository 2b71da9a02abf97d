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
from concurrent.futures import Future, ThreadPoolExecutor, wait
from copy import copy
from functools import partial, wraps
from itertools import islice
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from reasoning_store.conversation.errors import InvalidCall

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")
U = TypeVar("U")

_ASIDE = 2
_BATCH = 256


class _Writers(ThreadPoolExecutor):
    """The threads of one lane, which knows what it was given and is not done yet."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads, thread_name_prefix="reasoning-store-write")
        self.given: set[Future[Any]] = set()

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        begun = super().submit(work, *args, **kwargs)
        self.given.add(begun)
        begun.add_done_callback(self.given.discard)
        return begun


class _Pools:
    """The threads of one store."""

    def __init__(self, *, lanes: int, writers: int, readers: int) -> None:
        self._lanes, self._writers, self._readers = lanes, writers, readers
        self._closed = False
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self.writes = [_Writers(self._writers) for _ in range(self._lanes)]
        self.reads = (
            ThreadPoolExecutor(self._readers, thread_name_prefix="reasoning-store-read")
            if self._readers
            else self.writes[0]
        )
        # A long verb keeps no other waiting; its own steps queue like any other's.
        self.aside = ThreadPoolExecutor(_ASIDE, thread_name_prefix="reasoning-store-aside")

    def of_process(self) -> Self:
        if self._closed:
            raise InvalidCall("the store is closed", hint="async with rs.AsyncStore(url) as store")
        if os.getpid() != self._process:
            # Threads do not come along into a forked process, where work given to these
            # would wait for ever: the store itself refuses to be used there.
            self._begin()
        return self

    def close(self) -> None:
        self._closed = True
        for threads in (*self.writes, self.reads, self.aside):
            threads.shutdown(wait=False)


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
        lanes = self._pools.of_process().writes
        return lanes[self._lane % len(lanes)]

    async def write(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await _hop(self._writes, partial(work, *args, **kwargs))

    async def write_always(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Write also when the task is cancelled before the write has begun."""
        return await _hop(self._writes, partial(work, *args, **kwargs), may_be_dropped=False)

    async def run_after_writes(self, work: Callable[[], T]) -> T:
        """Run ``work`` when every write given so far has ended, cancelled or not."""
        before = [given for pool in self._pools.of_process().writes for given in [*pool.given]]

        def run_last() -> T:
            wait(before)
            return work()

        return await _hop(self._writes, run_last, may_be_dropped=False)

    async def read(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await _hop(self._pools.of_process().reads, partial(work, *args, **kwargs))

    async def run_long(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a long verb on threads of its own, outside the order of writes."""
        return await _hop(self._pools.of_process().aside, partial(work, *args, **kwargs))

    async def run_fed(self, work: Callable[[], T], *, stop: Callable[[], None]) -> T:
        """Run work that waits for this loop; a cancellation calls ``stop``."""
        return await _hop(self._pools.of_process().aside, work, stop=stop)

    async def iterate(self, make: Callable[[], Iterator[T]]) -> AsyncIterator[T]:
        """Yield what an iterator gives, which is read in a thread, a batch ahead at most."""
        items = await self.run_long(make)
        while batch := await self.run_long(lambda: list(islice(items, _BATCH))):
            for item in batch:
                yield item

    def close(self) -> None:
        self._pools.close()


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
    stop: Callable[[], None] | None = None,
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
        if stop is not None:
            stop()
        while not waiting.done():
            try:
                await asyncio.wait([waiting])
            except asyncio.CancelledError:
                continue  # asked again; a transaction cannot be left in the middle
        if not waiting.cancelled():
            waiting.exception()  # read: the caller gets the cancellation
        raise
