"""Ours, doing each workload through the public names.

Where a workload asks for what no public name says (counts given, thinking not read), the
ledger is called as the faces call it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from typing import Any

import reasoning_store as rs
from benchmarks.conversation import MAKER, SESSION, SIGNER, WRITERS, messages, prose, signed
from benchmarks.histories import POLICIES, Said, filled, filled_server, url
from benchmarks.timing import (
    timed,
    timed_awaited,
    timed_clean,
    timed_each,
    timed_together,
)
from benchmarks.workload import Prepare, Sample, Setting
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import NewMessage
from reasoning_store.tokens import DEFAULT_ENCODING, counter

KEPT = {"reasoning.includeInContext": True}
NO_THINKING = 1 << 62
"""A position after all messages: thinking before it is not read."""
SIGNED: dict[str, Any] = {"settings": KEPT, **SIGNER}


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
                [NewMessage(one, store._state.count(one, DEFAULT_ENCODING)) for one in pair]
                for pair in messages()
            ]
        )
    with Ledger.open(url(path)) as ledger:
        row = ledger.sessions.get("", SESSION)
        yield timed_each(
            setting, lambda: ledger.messages.append(row.key, row.current_branch, next(pool))
        )


@contextmanager
def turn_async(setting: Setting) -> Iterator[Sample]:
    path = filled(setting)
    pool = cycle(messages())
    with asyncio.Runner() as runner:
        store = rs.AsyncStore(url(path))
        runner.run(store.__aenter__())
        session = runner.run(store.session(SESSION))
        yield timed_awaited(setting, runner, lambda: session.append(next(pool)))
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
        with timed_together(setting, works) as sample:
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
        row = ledger.sessions.get("", SESSION)
        yield timed_clean(
            setting,
            lambda: ledger.views.view(row.key, row.current_branch, thinking_from=NO_THINKING),
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
    return {**MAKER, "settings": KEPT} if thinking else MAKER


def request(*, thinking: bool, dump: bool = False) -> Prepare:
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


# The rest


@contextmanager
def tokens(setting: Setting) -> Iterator[Sample]:
    text = prose(setting.size)
    encoding = counter(DEFAULT_ENCODING)
    yield timed(setting, lambda: encoding.count(text))


@contextmanager
def bytes_on_disk(setting: Setting) -> Iterator[Sample]:
    """The file's size for each message, after everything in the WAL is in it."""
    path = filled(setting)
    size = path.stat().st_size / setting.size
    yield lambda: size
