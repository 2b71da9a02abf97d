"""Ours, doing each workload through the public names.

Where a workload asks for what no public name says (counts given, thinking not read), the
ledger is called as the faces call it.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from statistics import median
from threading import Barrier
from typing import Any, TypeAlias

import reasoning_store as rs
from benchmarks.conversation import SESSION, SIGNER, WRITERS, messages, prose, signed
from benchmarks.workload import (
    Prepare,
    Sample,
    Setting,
    timed,
    timed_after,
    timed_clean,
    timed_each,
)
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.values import Entry
from reasoning_store.store import upgrade
from reasoning_store.tokenizers import counter

POLICIES: tuple[dict[str, Any], ...] = tuple(
    {
        "settings": {
            "reasoning.includeInContext": include,
            "reasoning.stripFromContext": strip,
        },
        **target,
    }
    for include in (False, True)
    for strip in ("none", "all", "allButLast", "priorTurns")
    for target in ({}, {"provider": "moonshot", "model": "kimi-k2-thinking"})
)
KEPT = {"reasoning.includeInContext": True}
SIGNED: dict[str, Any] = {"settings": KEPT, **SIGNER}
Said: TypeAlias = Callable[[], tuple[tuple[rs.Message, rs.Message], ...]]
"""Returns turns of a conversation."""
_BATCH = 500


def url(path: Path) -> str:
    return f"sqlite:///{path}"


def fill(at: str, size: int, said: Said = messages) -> None:
    """Make a conversation of so many messages."""
    with rs.Store(at) as store:
        session = store.session(SESSION, create=True)
        pool = cycle(said())
        for start in range(0, size, _BATCH):
            few = min(_BATCH, size - start)
            batch = [message for _ in range((few + 1) // 2) for message in next(pool)]
            session.append(batch[:few])


def filled(setting: Setting, said: Said = messages) -> Path:
    """Return a new file with a conversation of the setting's size."""
    template = setting.templates / f"{said.__name__}-{setting.size}.db"
    if not template.exists():
        fill(url(template), setting.size, said)
    path = setting.folder / "chat.db"
    shutil.copy(template, path)
    return path


def filled_server(setting: Setting) -> str:
    """Return the URL of a server's database with a conversation of the setting's size."""
    upgrade(setting.server_url)
    fill(setting.server_url, setting.size)
    return setting.server_url


# Writing


def _turn_on(setting: Setting, at: str) -> Iterator[Sample]:
    with rs.Store(at) as store:
        session = store.session(SESSION)
        pool = cycle(messages())
        yield timed_each(setting, lambda: session.append(next(pool)))


@contextmanager
def turn(setting: Setting) -> Iterator[Sample]:
    yield from _turn_on(setting, url(filled(setting)))


@contextmanager
def turn_on_server(setting: Setting) -> Iterator[Sample]:
    yield from _turn_on(setting, filled_server(setting))


@contextmanager
def turn_counted_before(setting: Setting) -> Iterator[Sample]:
    """A turn whose counts are known: what storing it costs."""
    path = filled(setting)
    with rs.Store(url(path)) as store:
        pool = cycle(
            [
                [Entry(one, store._workings.counts(one, "o200k_base")) for one in pair]
                for pair in messages()
            ]
        )
    with Ledger.open(url(path)) as ledger:
        row = ledger.get_session("", SESSION)
        yield timed_each(setting, lambda: ledger.append(row.key, row.current_branch, next(pool)))


@contextmanager
def turn_async(setting: Setting) -> Iterator[Sample]:
    path = filled(setting)
    pool = cycle(messages())
    with asyncio.Runner() as runner:
        store = rs.AsyncStore(url(path))
        runner.run(store.__aenter__())
        session = runner.run(store.session(SESSION))

        async def turns() -> float:
            took = []
            for _ in range(setting.repeats):
                start = setting.clock()
                await session.append(next(pool))
                took.append(setting.clock() - start)
            return median(took)

        yield lambda: runner.run(turns())
        runner.run(store.close())


@contextmanager
def writers(setting: Setting) -> Iterator[Sample]:
    """Eight threads on one store, each with a conversation of its own."""
    with rs.Store(url(setting.folder / "chat.db")) as store:
        sessions = [store.session(create=True) for _ in range(WRITERS)]
        pools = [cycle(messages()) for _ in range(WRITERS)]
        works: list[Callable[[], object]] = [
            lambda session=session, pool=pool: session.append(next(pool))  # type: ignore[misc]
            for session, pool in zip(sessions, pools, strict=True)
        ]
        with together(setting, works) as sample:
            yield sample


@contextmanager
def together(setting: Setting, works: list[Callable[[], object]]) -> Iterator[Sample]:
    """Give a sample of threads that each do their work so many times, at once.

    They are the same from sample to sample, as a server's are.
    """
    ready = Barrier(len(works) + 1)

    def run(work: Callable[[], object]) -> None:
        ready.wait()
        for _ in range(setting.size):
            work()

    with ThreadPoolExecutor(len(works)) as threads:

        def sample() -> float:
            running = [threads.submit(run, work) for work in works]
            ready.wait()
            start = setting.clock()
            for one in running:
                one.result()
            return (setting.clock() - start) / (setting.size * len(works))

        yield sample


# Reading


def _history_of(setting: Setting, at: str) -> Iterator[Sample]:
    with rs.Store(at) as store:
        yield timed_clean(setting, store.session(SESSION).history)


@contextmanager
def history(setting: Setting) -> Iterator[Sample]:
    yield from _history_of(setting, url(filled(setting)))


@contextmanager
def history_on_server(setting: Setting) -> Iterator[Sample]:
    yield from _history_of(setting, filled_server(setting))


@contextmanager
def history_stripped(setting: Setting) -> Iterator[Sample]:
    with Ledger.open(url(filled(setting))) as ledger:
        row = ledger.get_session("", SESSION)
        yield timed_clean(
            setting, lambda: ledger.history(row.key, row.current_branch, thinking=False)
        )


@contextmanager
def usage(setting: Setting) -> Iterator[Sample]:
    """The context usage under every policy, one after the other; a figure is one of them."""
    with rs.Store(url(filled(setting))) as store:
        session = store.session(SESSION)
        policies = cycle(POLICIES)
        every = len(POLICIES) * setting.repeats
        yield timed(setting, lambda: session.usage(limit=212_000, **next(policies)), every)


def _request_settings(*, thinking: bool) -> dict[str, Any]:
    return {"settings": KEPT} if thinking else {}


def request_cold(*, thinking: bool, dump: bool = False) -> Prepare:
    """The first request of a store that was just opened; with ``dump`` written as JSON."""
    return _first_request(_request_settings(thinking=thinking), messages, dump=dump)


def request_signed(*, dump: bool = False) -> Prepare:
    """The same of signed thoughts that are kept."""
    return _first_request(SIGNED, signed, dump=dump)


def _first_request(asked: dict[str, Any], said: Said, *, dump: bool) -> Prepare:
    @contextmanager
    def prepare(setting: Setting) -> Iterator[Sample]:
        path = filled(setting, said)

        def sample() -> float:
            with rs.Store(url(path)) as store:
                session = store.session(SESSION)

                def build() -> object:
                    request = session.build_request(**asked)
                    return json.dumps(request.body) if dump else request

                return timed_clean(setting, build)()

        yield sample

    return prepare


def request_next(*, thinking: bool) -> Prepare:
    """The next request, after one more turn; the turn itself is not in the figure."""
    asked = _request_settings(thinking=thinking)

    @contextmanager
    def prepare(setting: Setting) -> Iterator[Sample]:
        with rs.Store(url(filled(setting))) as store:
            session = store.session(SESSION)
            pool = cycle(messages())
            session.build_request(**asked)

            yield timed_after(
                setting,
                lambda: session.append(next(pool)),
                lambda: session.build_request(**asked),
            )

    return prepare


# The rest


@contextmanager
def tokens(setting: Setting) -> Iterator[Sample]:
    text = prose(setting.size)
    encoding = counter("o200k_base")
    yield timed(setting, lambda: encoding.count(text))


@contextmanager
def bytes_on_disk(setting: Setting) -> Iterator[Sample]:
    """The file's size for each message, after everything in the WAL is in it."""
    path = filled(setting)
    size = path.stat().st_size / setting.size
    yield lambda: size
