"""One writer at a time, in the order in which they asked.

SQLite's own busy handler sleeps and retries: under load somebody starves. So the writers of
a process queue here, first come first served, and only the one in front meets the file's
lock. ``threading.Lock`` promises no order.

Knows threads; knows no database.
"""

from __future__ import annotations

from collections import deque
from threading import Lock

from reasoning_store.errors import StoreBusy


class Lane:
    """A lock that is handed from holder to holder in order of arrival."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._guard = Lock()
        self._taken = False
        self._waiting: deque[Lock] = deque()

    def held(self) -> Lane:
        """Wait for the lane, at most the timeout, and hold it: for a ``with`` statement."""
        return self

    def __enter__(self) -> None:
        self._acquire()

    def __exit__(self, *_: object) -> None:
        self._release()

    def _acquire(self) -> None:
        with self._guard:
            if not self._taken:
                self._taken = True
                return
            ticket = Lock()
            ticket.acquire()
            self._waiting.append(ticket)
        try:
            if ticket.acquire(timeout=self._timeout):
                return
        except BaseException:
            # Interrupted while waiting: the place in the queue must not outlive us.
            self._give_up(ticket)
            raise
        self._give_up(ticket)
        raise StoreBusy("the writers before this one took longer than the busy timeout")

    def _give_up(self, ticket: Lock) -> None:
        with self._guard:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
                return
        # It was handed to us in between: hand it on.
        self._release()

    def _release(self) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False
