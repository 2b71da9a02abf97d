"""AsyncFollowing: a reply that is followed from an asynchronous loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from reasoning_store.aio.threads import Threads
from reasoning_store.conversation.chunks import Chunk
from reasoning_store.ingress.followed_chunks import Placed
from reasoning_store.recording.following import ReplyFollower


class AsyncFollowing:
    """A reply that is followed from a loop. Made by ``AsyncSession.follow``.

    Iterate it with ``async for``: see ``Following``.
    """

    def __init__(
        self, threads: Threads, make: Callable[[str | None], ReplyFollower], after: str | None
    ) -> None:
        self._threads = threads
        self._make = make
        self._after = after
        self._follower: ReplyFollower | None = None
        self._ready: deque[Placed] = deque()
        self._more = asyncio.Event()

    @property
    def cursor(self) -> str | None:
        """The place after the last chunk: ``follow(after=cursor)`` reads on there, in any
        process."""
        return self._after if self._follower is None else self._follower.cursor

    def __aiter__(self) -> AsyncIterator[Chunk]:
        return self

    async def __anext__(self) -> Chunk:
        follower = self._follower
        if follower is None:
            follower = self._follower = await self._threads.read(self._make, self._after)
            loop = asyncio.get_running_loop()

            def wake() -> None:
                with suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(self._more.set)

            follower.wake = wake
        while not self._ready:
            if follower.over:
                raise StopAsyncIteration
            self._more.clear()
            # A piece from memory needs no thread.
            self._ready.extend(follower.take_received() or await self._threads.read(follower.take))
            if not self._ready and not follower.over:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._more.wait(), follower.seconds)
        chunk, place = self._ready.popleft()
        follower.cursor = follower.cursor_at(place)
        return chunk
