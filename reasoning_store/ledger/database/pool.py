"""A few connections, each lent to one thread at a time: the one used last is lent first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from reasoning_store.conversation.errors import StoreBusy

T = TypeVar("T")


class Pool(Generic[T]):
    """At most ``size`` connections, made when they are asked for and no idle one is left."""

    def __init__(
        self,
        connect: Callable[[], T],
        close: Callable[[T], None],
        *,
        size: int,
        timeout: float,
        is_alive: Callable[[T], bool] = lambda _: True,
        is_fit: Callable[[T, BaseException | None], bool],
    ) -> None:
        self._connect, self._close = connect, close
        self._is_alive, self._is_fit = is_alive, is_fit
        self._timeout = timeout
        self._idle: list[T] = []
        # Queues and lists, each with calls that run no Python: whatever a finalizer or a signal
        # runs in the middle may use the pool, too.
        self._free: SimpleQueue[None] = SimpleQueue()
        for _ in range(size):
            self._free.put(None)
        self._closed = False

    @contextmanager
    def lent(self) -> Iterator[T]:
        """Lend a connection; it is lent again where ``is_fit`` agrees, given what was raised."""
        try:
            self._free.get(timeout=self._timeout)
        except Empty:
            raise StoreBusy(
                "every connection was in use for longer than the busy timeout"
            ) from None
        try:
            connection = self._idle_or_new()
            try:
                yield connection
            except BaseException as error:
                self._take_back(connection, error)
                raise
            self._take_back(connection, None)
        finally:
            self._free.put(None)

    def _idle_or_new(self) -> T:
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                break
            if self._is_alive(connection):
                return connection
            self._close(connection)
        return self._connect()

    def _take_back(self, connection: T, error: BaseException | None) -> None:
        if not self._is_fit(connection, error):
            self._close(connection)
            return
        self._idle.append(connection)
        if self._closed:
            self.close()

    def close(self) -> None:
        """Close the idle connections now, and each of the others when it comes back."""
        self._closed = True
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return
            self._close(connection)
