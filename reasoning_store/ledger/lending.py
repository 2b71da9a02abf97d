"""A few things of one kind, each lent to one at a time, the one that came back last first.

What was used last is warm: a connection has its pages in memory still. Asking for one that
is idle is one step of a list, which is whole whatever the threads do, so that no lock is
taken; only who finds none idle makes one, or waits for one, under the lock. Who waits is
served in the order of asking: what comes back goes to whoever waits longest, or a thread
that asks again and again would be served before it every time.

Knows threads; knows no database.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

from reasoning_store.errors import StoreBusy

T = TypeVar("T")
_BUSY = "every connection was in use for longer than the busy timeout"


class _Place(Generic[T]):
    """A place in the queue."""

    __slots__ = ("handed", "served")

    def __init__(self) -> None:
        self.served = Lock()
        self.served.acquire()
        self.handed: list[T] = []
        """What one was served with; nothing is leave to make one."""


class Lending(Generic[T]):
    """At most so many, made when they are asked for and nothing is idle."""

    def __init__(
        self, make: Callable[[], T], drop: Callable[[T], None], *, most: int, timeout: float
    ) -> None:
        self._make, self._drop = make, drop
        self._left = most
        """How many more may be made."""
        self._timeout = timeout
        self._idle: list[T] = []
        self._guard = Lock()
        self._waiting: deque[_Place[T]] = deque()
        self._closed = False

    def take(self) -> T:
        """Return one that is the caller's until it gives it back; waits where all are lent."""
        try:
            return self._idle.pop()
        except IndexError:
            pass
        return self._another()

    def give(self, one: T) -> None:
        """Take one back."""
        self._idle.append(one)
        # Who waits has taken a place before it looks once more whether one is idle.
        if self._waiting:
            with self._guard:
                self._serve()
        if self._closed:
            self.close()

    def lose(self, one: T) -> None:
        """Drop one that is of no use any more; another may be made in its place."""
        try:
            self._drop(one)
        finally:
            self._one_less()

    def close(self) -> None:
        """Drop those that are idle now, and each of the others when it comes back."""
        self._closed = True
        try:
            while True:
                self._drop(self._idle.pop())
        except IndexError:
            return

    def _another(self) -> T:
        place: _Place[T] = _Place()
        with self._guard:
            self._waiting.append(place)
            self._serve()
        try:
            served = place.served.acquire(timeout=self._timeout)
        except BaseException:
            # Interrupted while waiting: the place in the queue must not outlive us.
            self._leave(place)
            raise
        if not served:
            self._leave(place)
            raise StoreBusy(_BUSY)
        if place.handed:
            return place.handed[0]
        try:
            return self._make()
        except BaseException:
            self._one_less()
            raise

    def _serve(self) -> None:
        """Serve those who wait, as far as it goes; of whoever holds the guard."""
        while self._waiting:
            handed = []
            try:
                handed.append(self._idle.pop())
            except IndexError:
                if not self._left:
                    return
                self._left -= 1
            place = self._waiting.popleft()
            place.handed = handed
            place.served.release()

    def _leave(self, place: _Place[T]) -> None:
        with self._guard:
            if place in self._waiting:
                self._waiting.remove(place)
                return
        # It was served in between: that goes on to the next.
        if place.handed:
            self.give(place.handed[0])
        else:
            self._one_less()

    def _one_less(self) -> None:
        with self._guard:
            self._left += 1
            self._serve()
