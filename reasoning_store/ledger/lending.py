"""A few things of one kind, each lent to one at a time, the one that came back last first.

What was used last is warm: a connection has its pages in memory still. Asking for one that
is idle is one step of a list, which is whole whatever the threads do, so that no lock is
taken; only who finds none idle makes one, or waits for one, under the lock.

Knows threads; knows no database.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Condition
from typing import Generic, TypeVar

from reasoning_store.errors import StoreBusy

T = TypeVar("T")
_BUSY = "every connection was in use for longer than the busy timeout"


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
        self._changed = Condition()
        self._waiting = 0
        self._closed = False

    def take(self) -> T:
        """Return one that is the caller's until it gives it back; waits where all are lent."""
        try:
            return self._idle.pop()
        except IndexError:
            return self._another()

    def give(self, one: T) -> None:
        """Take one back."""
        self._idle.append(one)
        # Who waits has said so before it looks once more whether one is idle.
        if self._waiting:
            with self._changed:
                self._changed.notify()
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
        until = time.monotonic() + self._timeout
        with self._changed:
            self._waiting += 1
            try:
                while not self._left:
                    try:
                        return self._idle.pop()
                    except IndexError:
                        if not self._changed.wait(until - time.monotonic()):
                            raise StoreBusy(_BUSY) from None
                self._left -= 1
            finally:
                self._waiting -= 1
        try:
            return self._make()
        except BaseException:
            self._one_less()
            raise

    def _one_less(self) -> None:
        with self._changed:
            self._left += 1
            self._changed.notify()
