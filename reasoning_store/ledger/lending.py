"""A few things of one kind, each lent to one at a time, the one that came back last first.

What was used last is warm: a connection has its pages in memory still. A single one is a
lane: whoever asks first works first. Taking one that is idle is one step of a list, so that
no lock is taken; only a thread that finds none idle waits in the queue, under the lock. Those
that wait are served in the order of asking: what comes back goes to the one that waits
longest, or a thread that asks again and again would be served before it every time.

Theory. There are as many places as things that may be, from the beginning; a thing is made
where a place that is lent has none. A place is only ever moved, from one list to another,
by a single call that runs no Python in between: so an interrupt, which Python raises between
any two steps of its own, finds it in the one list or in the other. The list of whoever
borrows is there before anything is in it, and is emptied at the end whatever happened, twice:
what an interrupt kept the first time from doing the second time does.

A *job* may be done by another thread. The one that gets the only thing there is takes along
the jobs that stand next in the queue, and does them with its own: their threads need not be
woken one after the other for it. A job that came to nothing that way stands first in the queue
again, and is then done alone; or it is told at once that it has waited for long enough.

Knows threads; knows no database.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar

from reasoning_store.errors import StoreBusy

T = TypeVar("T")
R = TypeVar("R")
_TOGETHER = 32
"""Jobs that are taken along at the most: nobody behind them waits for long."""
_LAST = (-1,)
"""``a.extend(map(b.pop, _LAST))`` moves the last of ``b`` behind ``a``, or nothing at all."""


class Lent(Generic[T]):
    """A place, and what stands there."""

    __slots__ = ("_make", "_one", "fit")

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._one: T | None = None
        self.fit = False
        """To be said by whoever borrows: what stands there may be lent again. Else it goes."""

    @property
    def one(self) -> T:
        """What is lent; it is made now where nothing stands there."""
        if self._one is None:
            self._one = self._make()
        return self._one

    def clear(self, drop: Callable[[T], None]) -> None:
        """Drop what stands there."""
        one, self._one = self._one, None
        if one is not None:
            drop(one)


class Job(Protocol):
    """Work that may be done together with others'."""

    alone: bool
    """It has to be done by itself."""
    given_up: bool
    """Nobody waits for it any more: where it is not begun yet, it is to be left."""

    @property
    def done(self) -> bool:
        """Whether it is done; to be said by whoever does it."""
        ...


J = TypeVar("J", bound=Job)


class _Turn(Generic[T]):
    """A turn in the queue: where what is waited for is put, and what wakes whoever waits."""

    __slots__ = ("held", "job", "served", "until")

    def __init__(self, held: list[Lent[T]], job: Job | None, until: float) -> None:
        self.held = held
        self.job = job
        self.until = until
        self.served = Lock()
        self.served.acquire()

    def may_be_taken_along(self) -> bool:
        return self.job is not None and not self.job.alone


class Lending(Generic[T]):
    """At most so many, made when they are asked for and nothing is idle."""

    def __init__(
        self,
        make: Callable[[], T],
        drop: Callable[[T], None],
        *,
        most: int,
        timeout: float,
        busy: str,
    ) -> None:
        self._drop = drop
        self._timeout = timeout
        self._busy = busy
        self._most = most
        self._idle = [Lent(make) for _ in range(most)]
        self._guard = Lock()
        self._waiting: deque[_Turn[T]] = deque()
        self._closed = False

    def lend(self, work: Callable[[Lent[T]], R]) -> R:
        """Run ``work`` with one that nobody else has meanwhile; wait where all are lent."""
        held: list[Lent[T]] = []
        try:
            try:
                self._take(held, None, self._until())
                return work(held[0])
            finally:
                self._back(held)
        finally:
            self._back(held)

    def do(self, job: J, work: Callable[[Lent[T], Sequence[J]], None]) -> None:
        """Have ``job`` done: by ``work``, or by whoever has the one thing before.

        ``work`` is given the jobs that are waited for behind this one, in their order. It
        may do them, too, all or none: those that are not done are waited for again.
        """
        held: list[Lent[T]] = []
        along: list[_Turn[T]] = []
        try:
            try:
                self._take(held, job, self._until())
                if held:
                    if not job.alone:
                        self._take_along(along, held)
                    jobs: list[Any] = [turn.job for turn in along]
                    work(held[0], jobs)
            finally:
                self._settle(along)
                self._back(held)
        finally:
            self._settle(along)
            self._back(held)

    @contextmanager
    def emptied(self, until: float) -> Iterator[None]:
        """Take every place as it comes back, and drop what stands there, until this is left."""
        with ExitStack() as taken:
            for _ in range(self._most):
                held: list[Lent[T]] = []
                taken.callback(self._back, held)
                self._take(held, None, until)
                held[0].clear(self._drop)
            yield

    def close(self) -> None:
        """Drop those that are idle now, and each of the others when it comes back."""
        self._closed = True
        places: list[Lent[T]] = []
        try:
            while True:
                places.extend(map(self._idle.pop, _LAST))
        except IndexError:
            pass
        try:
            with ExitStack() as dropping:  # each of them, also where another cannot be
                for place in places:
                    dropping.callback(place.clear, self._drop)
        finally:
            self._idle += places
            # A thread that asked while they were away found none.
            if self._waiting:
                with self._guard:
                    self._serve(self._idle)

    def _until(self) -> float:
        return time.monotonic() + self._timeout

    def _take(self, held: list[Lent[T]], job: Job | None, until: float) -> None:
        """Put one into ``held``, which stays empty where somebody else did the job."""
        with suppress(IndexError):
            held.extend(map(self._idle.pop, _LAST))
        if not held:
            self._wait(held, job, until)
        for lent in held:
            lent.fit = False

    def _wait(self, held: list[Lent[T]], job: Job | None, until: float) -> None:
        turn = _Turn(held, job, until)
        try:
            with self._guard:
                self._waiting.append(turn)
                self._serve(self._idle)
            # A job that is being done is not given up: who could say what became of it? By
            # whoever does it this one is woken, whatever did.
            if not turn.served.acquire(timeout=max(until - time.monotonic(), 0)):
                with self._guard:
                    if turn in self._waiting:
                        self._waiting.remove(turn)
                        raise StoreBusy(self._busy)
                turn.served.acquire()
            if not held and not (job is not None and job.done):
                raise StoreBusy(self._busy)
        except BaseException:
            # Before anything else: a second interrupt may end this.
            if job is not None:
                job.given_up = True
            with self._guard:
                if turn in self._waiting:
                    self._waiting.remove(turn)
            raise

    def _take_along(self, along: list[_Turn[T]], held: list[Lent[T]]) -> None:
        """Take the next jobs out of the queue."""
        if not self._waiting:
            return
        with self._guard:
            # Whoever served this one may have been interrupted before it took its turn away.
            self._withdraw(held)
            while self._waiting and len(along) < _TOGETHER:
                if not self._waiting[0].may_be_taken_along():
                    return
                along.extend(map(deque.popleft, (self._waiting,)))

    def _settle(self, along: list[_Turn[T]]) -> None:
        """Wake those whose job is done; the others stand first in the queue again.

        Its steps may be done again: the turn goes last.
        """
        if not along:
            return
        with self._guard:
            while along:
                turn = along[-1]
                job = turn.job
                if job is None or job.done or turn.until < time.monotonic():
                    if turn.served.locked():
                        turn.served.release()
                elif not (job.given_up or turn in self._waiting):
                    job.alone = True
                    self._waiting.appendleft(turn)
                along.pop()

    def _back(self, held: list[Lent[T]]) -> None:
        """Take back what is held, and the turn of whoever has not been served."""
        if self._waiting:
            with self._guard:
                self._withdraw(held)
        if held:
            (lent,) = held
            try:
                if not lent.fit:
                    lent.clear(self._drop)
            finally:
                self._put(held, warm=lent.fit)
        # One that waits has a turn before it looks once more whether anything is idle.
        if self._waiting:
            with self._guard:
                self._serve(self._idle)
        if self._closed:
            self.close()

    def _put(self, held: list[Lent[T]], *, warm: bool) -> None:
        if self._waiting:
            with self._guard:
                self._serve(held)
        if not held:
            return
        if warm:
            self._idle.extend(map(held.pop, _LAST))
        else:
            self._idle[:0] = map(held.pop, _LAST)

    def _serve(self, places: list[Lent[T]]) -> None:
        """Serve those who wait, as far as it goes; of whoever holds the guard.

        Its steps may be done again: the turn goes last, when all else is done.
        """
        while self._waiting:
            first = self._waiting[0]
            if not first.held:
                try:
                    first.held.extend(map(places.pop, _LAST))
                except IndexError:
                    return
            if first.served.locked():
                first.served.release()
            self._waiting.popleft()

    def _withdraw(self, held: list[Lent[T]]) -> None:
        for turn in [*self._waiting]:
            if turn.held is held:
                self._waiting.remove(turn)
