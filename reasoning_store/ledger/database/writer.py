"""One thread that owns the connection that writes.

Jobs run in the order submitted. Short ones that wait at the same time share a transaction, and so
the wait for the disk; of these, one that fails is taken back and run again by itself.

Python delivers signals to the main thread only, so none falls into a transaction here. The caller
waits for a lock, and withdraws its job if the wait ends before the job has begun.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread, get_ident
from traceback import clear_frames
from typing import Any, Final, TypeVar
from weakref import finalize

from sqlalchemy import Connection

from reasoning_store.conversation.errors import InvalidCall, StoreBusy
from reasoning_store.ledger.database.statement import driver

T = TypeVar("T")
_TOGETHER = 32
"""Jobs that share a transaction at the most: no later one waits for long."""


def in_transaction(connection: Connection, work: Callable[[Connection], T]) -> T:
    """Run ``work`` in a transaction that holds the write lock from its start."""
    raw = driver(connection)
    try:
        raw.execute("BEGIN IMMEDIATE")
        result = work(connection)
        raw.execute("COMMIT")
    except BaseException:
        if raw.in_transaction:
            raw.rollback()
        raise
    return result


class _Job:
    """Work that waits for the thread, and its outcome."""

    __slots__ = ("_unclaimed", "done", "error", "shares", "value", "work")

    def __init__(self, work: Callable[[Connection], Any], *, shares: bool) -> None:
        self.work = work
        self.shares = shares
        """It may share a transaction; else it begins its own."""
        self.value: Any = None
        self.error: BaseException | None = None
        self.done = Lock()
        self.done.acquire()
        self._unclaimed = [None]

    def claim(self) -> bool:
        """Claim it, to run it or to withdraw it: only the first claim succeeds."""
        with suppress(IndexError):
            self._unclaimed.pop()  # one call: no two threads succeed
            return True
        return False

    def finish(self, value: Any = None, error: BaseException | None = None) -> None:
        self.value, self.error = value, error
        self.done.release()


_END: Final = _Job(lambda _: None, shares=False)


class Writer:
    """The thread; it ends when the writer is closed, or when nothing refers to it any more."""

    def __init__(
        self,
        connect: Callable[[], Connection],
        drop: Callable[[Connection], None],
        *,
        after_commit: Callable[[Connection, int], None] | None = None,
        timeout: float,
    ) -> None:
        """``after_commit`` is given the connection, and how many jobs were committed."""
        self._timeout = timeout
        self._loop = _Loop(connect, drop, after_commit)
        # A daemon: at the end of the program nothing waits for a thread without work.
        self._thread = Thread(target=self._loop.run, name="reasoning-store-writer", daemon=True)
        self._thread.start()
        finalize(self, self._loop.jobs.put, _END).atexit = False

    def run(self, work: Callable[[Connection], T], *, shares: bool = False) -> T:
        """Return the result of ``work``, which the thread runs.

        Work that ``shares`` runs in a transaction of the thread's, perhaps with others; any other
        begins and ends its own.
        """
        if get_ident() == self._thread.ident:
            raise StoreBusy("a write was begun inside another one")
        job = _Job(work, shares=shares)
        self._loop.jobs.put(job)
        try:
            if self._loop.has_ended and job.claim():
                raise _closed()
            if not job.done.acquire(timeout=self._timeout):
                if job.claim():
                    raise StoreBusy("the writers before this one took longer than the busy timeout")
                job.done.acquire()  # begun: only its end says whether it was written
        except BaseException:
            job.claim()
            raise
        if job.error is None:
            value: T = job.value
            return value
        error, job.error = job.error, None
        try:
            raise error
        finally:
            del error  # its traceback refers to this frame

    def close(self) -> None:
        """End the thread after the jobs that wait, and close its connection."""
        self._loop.jobs.put(_END)
        if get_ident() == self._thread.ident:
            return
        self._thread.join(self._timeout)
        if self._thread.is_alive():
            raise StoreBusy("a write took longer than the busy timeout: the store closes after it")


class _Loop:
    """Runs in the thread. Holds no reference to the Writer, so that it can be garbage-collected."""

    def __init__(
        self,
        connect: Callable[[], Connection],
        drop: Callable[[Connection], None],
        after_commit: Callable[[Connection, int], None] | None,
    ) -> None:
        self.jobs: SimpleQueue[_Job] = SimpleQueue()
        self.has_ended = False
        self._connect, self._drop_connection, self._follow_up = connect, drop, after_commit
        self._connection: Connection | None = None

    def run(self) -> None:
        while self._serve_next():
            pass
        self.has_ended = True
        while not self.jobs.empty():
            job = self.jobs.get()
            if job is not _END and job.claim():
                job.finish(error=_closed())
        self._drop()

    def _serve_next(self) -> bool:
        """Run the job that waits longest, with the short ones after it; False at the end."""
        job: _Job | None = self.jobs.get()
        short: list[_Job] = []
        while job is not None and job.shares:
            short.append(job)
            is_last = len(short) == _TOGETHER or self.jobs.empty()
            job = None if is_last else self.jobs.get()
        self._run_short([job for job in short if job.claim()])
        if job is not None and job is not _END and job.claim():
            self._run_job(job, job.work)
        return job is not _END

    def _run_short(self, jobs: list[_Job]) -> None:
        if len(jobs) > 1:
            jobs = self._run_together(jobs)
        for job in jobs:
            self._run_job(job, partial(in_transaction, work=job.work))

    def _run_together(self, jobs: list[_Job]) -> list[_Job]:
        """Run them in one transaction; return those that have to be run by themselves."""
        try:
            connection = self._open()
            raw = driver(connection)
            raw.execute("BEGIN IMMEDIATE")
        except BaseException as error:
            self._recover(error)
            for job in jobs:  # all have waited as long as a writer waits
                job.finish(error=error)
            return []
        written: list[_Job] = []
        failed: list[_Job] = []
        try:
            for job in jobs:
                raw.execute("SAVEPOINT one")
                try:
                    job.value = job.work(connection)
                    written.append(job)
                except Exception as error:
                    _clear_frames(error)
                    raw.execute("ROLLBACK TO one")  # fails where the library took all of it back
                    failed.append(job)
                raw.execute("RELEASE one")
            raw.execute("COMMIT")
        except BaseException as error:
            self._recover(error)
            return jobs
        for job in written:
            job.finish(job.value)
        self._after_commit(len(written))
        return failed

    def _run_job(self, job: _Job, work: Callable[[Connection], Any]) -> None:
        try:
            value = work(self._open())
        except BaseException as error:
            self._recover(error)
            job.finish(error=error)
        else:
            job.finish(value)
            self._after_commit(1)

    def _open(self) -> Connection:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _after_commit(self, writes: int) -> None:
        if self._follow_up is not None and self._connection is not None:
            with suppress(Exception):  # the writes are on the disk
                self._follow_up(self._connection, writes)

    def _recover(self, error: BaseException) -> None:
        """Leave the connection without a transaction, or have none."""
        _clear_frames(error)
        if self._connection is None:
            return
        raw = driver(self._connection)
        with suppress(Exception):
            if raw.in_transaction:
                raw.rollback()
        if raw.in_transaction:
            self._drop()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                self._drop_connection(connection)


def _clear_frames(error: BaseException | None) -> None:
    """Let go of the cursors in a traceback.

    A cursor that is freed later, with the traceback, in the thread that has it, resets a statement
    that this thread may be using again by then.
    """
    while error is not None:
        clear_frames(error.__traceback__)
        error = error.__context__


def _closed() -> InvalidCall:
    return InvalidCall("the store is closed", hint="open it again: rs.Store(url)")
