"""Threads that the asynchronous face works in: writes in order, reads beside one another.

A verb that has begun is waited for, also when its task is cancelled; then the cancellation
goes on. One that has not begun yet never does. It knows threads and tasks, and nothing of
what is done in them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import ParamSpec, Self, TypeVar

from reasoning_store.errors import UsageError

P = ParamSpec("P")
T = TypeVar("T")

_ASIDE = 2
_BATCH = 256


class Hops:
    """Threads for one store: writes in order, reads beside one another."""

    def __init__(self, *, writers: int, readers: int) -> None:
        self._writers, self._readers = writers, readers
        self._closed = False
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._writes = ThreadPoolExecutor(self._writers, thread_name_prefix="reasoning-store-write")
        self._reads = (
            ThreadPoolExecutor(self._readers, thread_name_prefix="reasoning-store-read")
            if self._readers
            else self._writes
        )
        # What takes long stands in nobody's way; its own steps queue like any other's.
        self._aside = ThreadPoolExecutor(_ASIDE, thread_name_prefix="reasoning-store-aside")

    def _here(self) -> Self:
        if self._closed:
            raise UsageError("the store is closed", hint="async with rs.AsyncStore(url) as store")
        if os.getpid() != self._process:
            # Threads do not come along into a forked process, where work given to these
            # would wait for ever: the store itself is to say that it cannot be used there.
            self._begin()
        return self

    async def write(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await _hop(self._here()._writes, partial(work, *args, **kwargs))

    async def must(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Write also when the task is cancelled before the write has begun."""
        return await _hop(
            self._here()._writes, partial(work, *args, **kwargs), may_be_dropped=False
        )

    async def read(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await _hop(self._here()._reads, partial(work, *args, **kwargs))

    async def aside(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run what goes through much of the store, in many short steps."""
        return await _hop(self._here()._aside, partial(work, *args, **kwargs))

    async def each(self, make: Callable[[], Iterator[T]]) -> AsyncIterator[T]:
        """Yield what an iterator gives, which is read in a thread, a batch ahead at most."""
        items = await self.aside(make)
        while batch := await self.aside(lambda: list(islice(items, _BATCH))):
            for item in batch:
                yield item

    def close(self) -> None:
        self._closed = True
        self._writes.shutdown(wait=False)
        self._reads.shutdown(wait=False)
        self._aside.shutdown(wait=False)


async def _hop(
    executor: ThreadPoolExecutor, work: Callable[[], T], *, may_be_dropped: bool = True
) -> T:
    begun = executor.submit(work)
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
            waiting.exception()  # seen: the cancellation is what the caller is told
        raise
