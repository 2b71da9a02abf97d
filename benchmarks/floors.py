"""The floors: each workload done by the bare driver, tiktoken alone, or a bare loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from itertools import count, cycle
from queue import SimpleQueue
from threading import Lock
from typing import Any

import reasoning_store as rs
from benchmarks import bare
from benchmarks.conversation import SESSION, WRITERS, Turn, messages, prose, signed, turns
from benchmarks.histories import POLICIES, Said, filled, filled_server, url
from benchmarks.timing import (
    timed,
    timed_awaited,
    timed_clean,
    timed_each,
    timed_together,
)
from benchmarks.workload import Prepare, Sample, Setting

_POOL = 128


def _clock() -> Iterator[int]:
    return count(int(time.time() * 1e6))


def turn(*, counted: bool) -> Prepare:
    """A turn written by the driver, its tokens counted by tiktoken or known before."""

    @contextmanager
    def prepare(setting: Setting) -> Iterator[Sample]:
        encoder, pool, clock = bare.encode(), cycle(_counted()), _clock()
        with closing(bare.connect(filled(setting))) as connection:

            def work() -> None:
                one, known = next(pool)
                counts = bare.tokens(encoder, one) if counted else known
                bare.write(connection, one, counts, next(clock))

            yield timed_each(setting, work)

    return prepare


@contextmanager
def turn_by_thread(setting: Setting) -> Iterator[Sample]:
    """The same, counted by its caller and written by one thread that owns the connection."""
    encoder, pool, clock = bare.encode(), cycle(turns(_POOL)), _clock()
    jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
    done = Lock()
    with closing(bare.connect(filled(setting))) as connection, ThreadPoolExecutor(1) as threads:

        def serve() -> None:
            while (job := jobs.get()) is not None:
                job()
                done.release()

        def work() -> None:
            one = next(pool)
            counts = bare.tokens(encoder, one)
            jobs.put(partial(bare.write, connection, one, counts, next(clock)))
            done.acquire()

        done.acquire()
        threads.submit(serve)
        try:
            yield timed_each(setting, work)
        finally:
            jobs.put(None)


def _counted() -> list[tuple[Turn, tuple[int, int, int]]]:
    encoder = bare.encode()
    return [(one, bare.tokens(encoder, one)) for one in turns(_POOL)]


@contextmanager
def turn_async(setting: Setting) -> Iterator[Sample]:
    """The same in one hop to one thread."""
    encoder, pool, clock = bare.encode(), cycle(turns(_POOL)), _clock()
    with (
        closing(bare.connect(filled(setting))) as connection,
        ThreadPoolExecutor(1) as thread,
        asyncio.Runner() as runner,
    ):

        def work() -> None:
            one = next(pool)
            bare.write(connection, one, bare.tokens(encoder, one), next(clock))

        loop = runner.get_loop()
        yield timed_awaited(setting, runner, lambda: loop.run_in_executor(thread, work))


@contextmanager
def writers(setting: Setting) -> Iterator[Sample]:
    """Eight threads that count by themselves and share one connection and a lock."""
    path = setting.folder / "chat.db"
    with rs.Store(url(path)) as store:
        store.session(SESSION, create=True)
    encoder, clock, lock = bare.encode(), _clock(), Lock()
    with closing(bare.connect(path)) as connection:
        bare.write_maker(connection.execute)

        def work(pool: Iterator[Turn]) -> None:
            one = next(pool)
            counts = bare.tokens(encoder, one)
            with lock:
                bare.write(connection, one, counts, next(clock))

        pools = [cycle(turns(_POOL)) for _ in range(WRITERS)]
        works: list[Callable[[], object]] = [
            lambda pool=pool: work(pool)  # type: ignore[misc]
            for pool in pools
        ]
        with timed_together(setting, works) as sample:
            yield sample


def load(*, thinking: bool, objects: bool = False) -> Prepare:
    read = bare.load_objects if objects else bare.load

    @contextmanager
    def prepare(setting: Setting) -> Iterator[Sample]:
        with closing(bare.connect(filled(setting))) as connection:
            yield timed_clean(
                setting, lambda: read(connection.execute, 1, setting.size, thinking=thinking)
            )

    return prepare


@contextmanager
def usage(setting: Setting) -> Iterator[Sample]:
    """The sums of the columns that a count is made of; no policy is applied."""
    with closing(bare.connect(filled(setting))) as connection:
        yield timed(
            setting,
            lambda: bare.narrow(connection.execute, 1, setting.size),
            len(POLICIES) * setting.repeats,
        )


@contextmanager
def recount(setting: Setting) -> Iterator[Sample]:
    """Counting every text again, the history being at hand."""
    encoder, history = bare.encode(), turns(setting.size)
    yield timed(setting, lambda: [bare.tokens(encoder, one) for one in history])


def request(*, thinking: bool) -> Prepare:
    """A connection that was just opened, as ours is."""
    return _first_request(partial(bare.rendered, thinking=thinking), messages)


def request_signed() -> Prepare:
    """The same of signed thoughts that are kept."""
    return _first_request(bare.rendered_signed, signed)


def _first_request(rendered: Callable[..., object], said: Said) -> Prepare:
    @contextmanager
    def prepare(setting: Setting) -> Iterator[Sample]:
        path = filled(setting, said)

        def sample() -> float:
            with closing(bare.connect(path)) as connection:
                execute = connection.execute
                return timed_clean(setting, lambda: rendered(execute, 1, setting.size))()

        yield sample

    return prepare


@contextmanager
def tokens(setting: Setting) -> Iterator[Sample]:
    encoder, text = bare.encode(), prose(setting.size)
    yield timed(setting, lambda: len(encoder(text)))


@contextmanager
def bytes_of_text(setting: Setting) -> Iterator[Sample]:
    """What was said, in UTF-8 and nothing else."""
    said = sum(len(part.encode()) for one in turns(setting.size) for part in one)
    yield lambda: said / (2 * len(turns(setting.size)))


# PostgreSQL


def _psycopg(at: str) -> Any:
    import psycopg

    return psycopg.connect(at.replace("postgresql+psycopg", "postgresql"), autocommit=True)


def server_turn(*, counted: bool, prepared: bool = True) -> Prepare:
    """One statement in one round trip, prepared on the server or planned each time."""

    @contextmanager
    def prepare(setting: Setting) -> Iterator[Sample]:
        encoder, pool, clock = bare.encode(), cycle(_counted()), _clock()
        with closing(_psycopg(filled_server(setting))) as connection:

            def work() -> None:
                one, known = next(pool)
                counts = bare.tokens(encoder, one) if counted else known
                connection.execute(
                    bare.POSTGRES_TURN,
                    bare.postgres_turn(one, counts, next(clock)),
                    prepare=prepared,
                ).fetchall()

            yield timed_each(setting, work)

    return prepare


@contextmanager
def server_load(setting: Setting) -> Iterator[Sample]:
    with closing(_psycopg(filled_server(setting))) as connection:

        def execute(text: str, values: Any) -> Any:
            return connection.execute(text, values, binary=True).fetchall()

        yield timed_clean(setting, lambda: bare.load(execute, 1, setting.size, mark="%s"))
