"""Jobs that wait for the same lane: done together or alone, each once, and told in time."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import count

import pytest

from reasoning_store.errors import StoreBusy
from reasoning_store.ledger import lending as room
from reasoning_store.ledger.lending import Lending, Lent

from .interrupts import everywhere
from .lanes import aside

TRANSACTIONS = "reasoning_store.ledger.sqlite_transactions"


class Task:
    """A job that is done by being noted."""

    def __init__(self, name: int, *, alone: bool = False) -> None:
        self.name = name
        self.alone = alone
        self.given_up = False
        self.by: list[int] = []

    @property
    def done(self) -> bool:
        return bool(self.by)


def one(timeout: float = 30.0) -> Lending[int]:
    return Lending(count(1).__next__, lambda _: None, most=1, timeout=timeout, busy="busy")


def all_at_once(task: Task) -> Callable[[Lent[int], Sequence[Task]], None]:
    """Return what does a task, and every other that it is given."""

    def work(lent: Lent[int], others: Sequence[Task]) -> None:
        lent.fit = True
        for other in (task, *others):
            other.by.append(task.name)

    return work


def ask(lane: Lending[int], tasks: Sequence[Task], pool: ThreadPoolExecutor) -> list[Future[None]]:
    """Have tasks wait for the lane, one behind the other; of whoever holds it."""
    asked = []
    for task in tasks:
        before = len(lane._waiting)
        asked.append(pool.submit(lane.do, task, all_at_once(task)))
        while len(lane._waiting) == before:
            pass
    return asked


def held(lane: Lending[int], tasks: Sequence[Task]) -> list[Task]:
    """Return the tasks when they are done, all having waited for one who held the lane."""
    with ThreadPoolExecutor(len(tasks)) as pool:

        def hold(lent: Lent[int]) -> list[Future[None]]:
            lent.fit = True
            return ask(lane, tasks, pool)

        for each in lane.lend(hold):
            each.result(30)
    assert not lane._waiting
    return [*tasks]


def test_jobs_that_wait_are_done_by_the_first_of_them() -> None:
    """The others return when it has done theirs."""
    tasks = held(one(), [Task(n) for n in range(5)])

    assert [task.by for task in tasks] == [[0]] * 5


def test_a_job_that_is_to_be_done_alone_is() -> None:
    """It takes none along, and those before it do not take it."""
    tasks = held(one(), [Task(0), Task(1), Task(2, alone=True), Task(3), Task(4)])

    assert [task.by for task in tasks] == [[0], [0], [2], [3], [3]]


def test_a_job_that_came_to_nothing_with_others_is_done_alone() -> None:
    """In the order of asking, before all that stood behind."""
    lane = one()
    tasks = [Task(n) for n in range(4)]
    order: list[int] = []

    def only_own(task: Task) -> Callable[[Lent[int], Sequence[Task]], None]:
        def work(lent: Lent[int], others: Sequence[Task]) -> None:
            lent.fit = True
            assert task.name == 0 or not others
            task.by.append(task.name)
            order.append(task.name)

        return work

    with ThreadPoolExecutor(4) as pool:

        def hold(lent: Lent[int]) -> None:
            for number, task in enumerate(tasks):
                pool.submit(lane.do, task, only_own(task))
                while len(lane._waiting) <= number:
                    pass

        lane.lend(hold)

    assert order == [0, 1, 2, 3]


class Hourglass:
    """Time that is over for everybody who waits as soon as it is turned, and not before."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.overdue = 0
        """How many have seen that their time is over, and wait on."""
        self._over = threading.Event()
        monkeypatch.setattr(room, "time", self)
        glass = self

        class Timed:
            def __init__(self) -> None:
                self._lock = threading.Lock()
                self.locked, self.release = self._lock.locked, self._lock.release

            def acquire(self, timeout: float | None = None) -> bool:
                if timeout is None:
                    return self._lock.acquire()
                while not self._lock.acquire(blocking=False):
                    if glass._over.is_set():
                        glass.overdue += 1
                        return False
                return True

        monkeypatch.setattr(room, "Lock", Timed)

    def monotonic(self) -> float:
        return 1_000_000.0 if self._over.is_set() else 0.0

    def turn(self) -> None:
        self._over.set()


@pytest.mark.parametrize("done", [True, False])
def test_a_job_that_is_being_done_is_waited_for_and_told_at_once_if_it_comes_to_nothing(
    monkeypatch: pytest.MonkeyPatch, done: bool
) -> None:
    """However long: nobody could say what became of it. Behind its time it waits no second one."""
    lane = one()
    glass = Hourglass(monkeypatch)
    first, second = Task(1), Task(2)
    asked: list[Future[None]] = []

    def slowly(lent: Lent[int], others: Sequence[Task]) -> None:
        assert [*others] == [second]
        glass.turn()
        while not glass.overdue:
            assert not asked[1].done()
        all_at_once(first)(lent, others if done else ())

    with ThreadPoolExecutor(2) as pool:

        def hold(lent: Lent[int]) -> None:
            asked.append(pool.submit(lane.do, first, slowly))
            while not lane._waiting:
                pass
            asked.extend(ask(lane, [second], pool))

        lane.lend(hold)
        asked[0].result(30)
        if done:
            asked[1].result(30)
        else:
            assert isinstance(asked[1].exception(30), StoreBusy)

    assert (first.by, second.by) == ([1], [1] if done else [])
    assert not lane._waiting


def test_a_job_that_nobody_has_begun_is_given_up_in_time() -> None:
    """And is done by nobody afterwards."""
    lane = one(timeout=0.01)
    task = Task(1)

    def hold(_: Lent[int]) -> None:
        with pytest.raises(StoreBusy, match="busy"):
            lane.do(task, all_at_once(task))

    lane.lend(hold)

    assert not task.done
    assert not lane._waiting


@pytest.mark.parametrize("together", [True, False])
def test_an_interrupt_of_who_does_them_leaves_no_job_undone(together: bool) -> None:
    """By it or by itself, each is done once, and nobody waits for ever."""
    lane = one()
    threads: list[threading.Thread] = []
    tasks: list[Task] = []

    def prepare() -> Callable[[], None]:
        mine = Task(0)
        tasks[:] = [Task(n) for n in range(1, 4)]

        def work(lent: Lent[int], others: Sequence[Task]) -> None:
            lent.fit = True
            for task in (mine, *others) if together else (mine,):
                task.by += [0]

        works = [partial(lane.do, task, all_at_once(task)) for task in tasks]
        waiting = aside(lane, threads, works)

        def run() -> None:
            lane._waiting.extend(waiting)
            lane.do(mine, work)

        return run

    def check() -> None:
        lane.lend(lambda lent: setattr(lent, "fit", True))
        while threads:
            thread = threads.pop()
            thread.join(20)
            assert not thread.is_alive()
        assert not lane._waiting
        assert all(len(task.by) == 1 for task in tasks)

    assert everywhere(room.__file__, prepare, check) > 20


def test_who_was_interrupted_is_not_served_any_more() -> None:
    """Its job was taken along and came to nothing; nobody is there to do it alone."""
    lane = one(timeout=20)
    first, mine = Task(1), Task(2)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupt(lent: Lent[int], others: Sequence[Task]) -> None:
        lent.fit = True
        first.by.append(1)
        assert [*others] == [mine]
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        assert gone.wait(20)

    gone = threading.Event()
    try:
        with ThreadPoolExecutor(2) as pool:
            begun = threading.Event()

            def hold(lent: Lent[int]) -> None:
                lent.fit = True
                begun.set()
                while len(lane._waiting) < 2:
                    pass

            pool.submit(lane.lend, hold)
            begun.wait()
            done = pool.submit(lane.do, first, interrupt)
            while not lane._waiting:
                pass
            with pytest.raises(KeyboardInterrupt):
                lane.do(mine, all_at_once(mine))
            gone.set()
            done.result(20)
    finally:
        signal.signal(signal.SIGINT, handler)

    assert not mine.done
    assert not lane._waiting
    lane.do(mine, all_at_once(mine))
    assert mine.by == [2]


def test_who_was_interrupted_twice_is_not_served_either(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lane is not given to a thread that has gone on."""
    lane = one()
    first, mine = Task(1), Task(2)
    guard, main = lane._guard, threading.main_thread()
    armed, gone = threading.Event(), threading.Event()

    class Guard:
        """Where the second interrupt finds the thread."""

        def __enter__(self) -> None:
            if armed.is_set() and threading.current_thread() is main:
                armed.clear()
                raise KeyboardInterrupt
            guard.acquire()

        def __exit__(self, *_: object) -> None:
            guard.release()

    def interrupt(lent: Lent[int], others: Sequence[Task]) -> None:
        lent.fit = True
        first.by.append(1)
        assert [*others] == [mine]
        armed.set()
        signal.pthread_kill(main.ident or 0, signal.SIGINT)
        assert gone.wait(20)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(lane, "_guard", Guard())
    try:
        with ThreadPoolExecutor(2) as pool:
            begun = threading.Event()

            def hold(lent: Lent[int]) -> None:
                lent.fit = True
                begun.set()
                while len(lane._waiting) < 2:
                    pass

            pool.submit(lane.lend, hold)
            begun.wait()
            done = pool.submit(lane.do, first, interrupt)
            while not lane._waiting:
                pass
            with pytest.raises(KeyboardInterrupt):
                lane.do(mine, all_at_once(mine))
            gone.set()
            done.result(20)
    finally:
        signal.signal(signal.SIGINT, handler)

    assert not mine.done
    assert not lane._waiting
    assert lane._idle


def test_who_is_woken_by_one_that_is_interrupted_does_its_job_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It does not find its own turn behind it, which nobody has taken away yet."""
    done = threading.Event()

    class Late(Lending[int]):
        """When it was interrupted, whom it has woken is sooner."""

        def _back(self, held: list[Lent[int]]) -> None:
            if isinstance(sys.exc_info()[1], KeyboardInterrupt):
                assert done.wait(20)
            super()._back(held)

    class Interrupting:
        """A lock behind whose release an interrupt is heard."""

        def __init__(self) -> None:
            lock = threading.Lock()
            self.acquire, self.locked, self._release = lock.acquire, lock.locked, lock.release

        def release(self) -> None:
            self._release()
            if threading.current_thread() is threading.main_thread():
                raise KeyboardInterrupt

    lane = Late(count(1).__next__, lambda _: None, most=1, timeout=20, busy="busy")
    monkeypatch.setattr(room, "Lock", Interrupting)
    task = Task(1)

    def work(lent: Lent[int], others: Sequence[Task]) -> None:
        all_at_once(task)(lent, others)
        done.set()

    with ThreadPoolExecutor(1) as pool:
        asked: list[Future[None]] = []

        def hold(lent: Lent[int]) -> None:
            lent.fit = True
            asked.append(pool.submit(lane.do, task, work))
            while not lane._waiting:
                pass

        with pytest.raises(KeyboardInterrupt):
            lane.lend(hold)
        asked[0].result(20)

    assert task.by == [1]
    assert not lane._waiting
    assert lane._idle
