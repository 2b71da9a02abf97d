"""The ways in which a go at the work is timed, each for another kind of work.

It knows a setting's clock and how often to repeat; it must not know any workload.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from statistics import median
from threading import Barrier

from benchmarks.workload import Sample, Setting

_REST, _PATIENCE = 0.002, 5.0
"""Seconds in which nothing is to work, and to wait for them."""


def timed(setting: Setting, work: Callable[[], object], repeats: int | None = None) -> Sample:
    """Return a sample that does ``work`` so many times and tells what one took."""
    clock, repeats = setting.clock, repeats or setting.repeats

    def sample() -> float:
        start = clock()
        for _ in range(repeats):
            work()
        return (clock() - start) / repeats

    return sample


def timed_each(setting: Setting, work: Callable[[], object]) -> Sample:
    """Return the same for work that waits for a disk: the one in the middle, by its own time.

    A disk that another makes wait is fifty times as slow for one write, and the mean of
    a few would tell of nothing else.
    """
    clock = setting.clock

    def sample() -> float:
        took = []
        for _ in range(setting.repeats):
            start = clock()
            work()
            took.append(clock() - start)
        return median(took)

    return sample


def timed_awaited(
    setting: Setting, runner: asyncio.Runner, work: Callable[[], Awaitable[object]]
) -> Sample:
    """Return the same for work that is awaited; the clock runs inside the event loop."""
    clock = setting.clock

    async def several() -> float:
        took = []
        for _ in range(setting.repeats):
            start = clock()
            await work()
            took.append(clock() - start)
        return median(took)

    return lambda: runner.run(several())


def timed_clean(setting: Setting, work: Callable[[], object]) -> Sample:
    """Return a sample of work that is not to pay for what others left behind.

    Their threads have come to rest before, and their garbage is gone. What the work returns is
    let go of after the clock has stopped.
    """
    clock = setting.clock

    def sample() -> float:
        _rest()
        gc.collect()
        start = clock()
        made = work()
        took = clock() - start
        del made
        return took

    return sample


def _rest() -> None:
    """Wait until no thread of this process works, for seconds at the most.

    LiteLLM works on in the background when it has given the last of a stream.
    """
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        before = time.process_time()
        time.sleep(_REST)
        if time.process_time() - before < _REST / 10:
            return


@contextmanager
def timed_together(setting: Setting, works: Sequence[Callable[[], object]]) -> Iterator[Sample]:
    """Give a sample of threads that each do their work as often as the size says, at once.

    They are the same from sample to sample, as a server's are.
    """
    clock = setting.clock
    ready = Barrier(len(works) + 1)

    def run(work: Callable[[], object]) -> None:
        ready.wait()
        for _ in range(setting.size):
            work()

    with ThreadPoolExecutor(len(works)) as threads:

        def sample() -> float:
            running = [threads.submit(run, work) for work in works]
            ready.wait()
            start = clock()
            for one in running:
                one.result()
            return (clock() - start) / (setting.size * len(works))

        yield sample
