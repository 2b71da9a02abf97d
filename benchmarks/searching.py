"""A search by words: ours, and the bare index query with the texts that it finds.

The index is warm: it was brought up to date before the first go. The floor has no owner, no
branch, no snippet and no look at whether the words stand in the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import cycle
from typing import Any

import psycopg

import reasoning_store as rs
from benchmarks import bare
from benchmarks.conversation import SESSION, messages
from benchmarks.histories import filled, filled_server, url
from benchmarks.timing import timed, timed_each
from benchmarks.workload import Sample, Setting

WORDS = ("prime", "against example", "646", "absent")
"""Common, two that are common, a rare one, and none."""
_IN_FILE = """
    SELECT b.text, group_concat(t.thought) FROM search_index f
    JOIN search_entries e ON e.number = f.rowid
    JOIN bodies b ON b.session_key = e.session_key AND b.branch = e.branch
        AND b.position = e.position
    LEFT JOIN thinking_blocks t ON t.session_key = e.session_key AND t.branch = e.branch
        AND t.position = e.position AND e.kind = 2
    WHERE f.search_index MATCH ? GROUP BY f.rowid ORDER BY f.rowid DESC LIMIT 21
"""
_ON_SERVER = """
    SELECT b.text FROM search_entries e
    JOIN bodies b ON b.session_key = e.session_key AND b.branch = e.branch
        AND b.position = e.position
    WHERE e.words @@ %s::tsquery ORDER BY e.number DESC LIMIT 21
"""


def _searches(setting: Setting, at: str) -> Iterator[Sample]:
    with rs.Store(at) as store:
        store.search(WORDS[0])
        yield timed(setting, lambda: [store.search(word) for word in WORDS])


@contextmanager
def ours(setting: Setting) -> Iterator[Sample]:
    yield from _searches(setting, url(filled(setting)))


@contextmanager
def ours_on_server(setting: Setting) -> Iterator[Sample]:
    yield from _searches(setting, filled_server(setting))


@contextmanager
def floor(setting: Setting) -> Iterator[Sample]:
    path = filled(setting)
    with rs.Store(url(path)) as store:
        store.search(WORDS[0])
    asked = [" AND ".join([f'"{word}" *' for word in words.split()]) for words in WORDS]
    with closing(bare.connect(path)) as connection:
        yield timed(
            setting, lambda: [connection.execute(_IN_FILE, (one,)).fetchall() for one in asked]
        )


@contextmanager
def floor_on_server(setting: Setting) -> Iterator[Sample]:
    at = filled_server(setting)
    with rs.Store(at) as store:
        store.search(WORDS[0])
    asked = [" & ".join([f"'{word}':*" for word in words.split()]) for words in WORDS]
    bare_url = at.replace("postgresql+psycopg", "postgresql")
    with psycopg.connect(bare_url, autocommit=True) as connection:
        yield timed(
            setting, lambda: [connection.execute(_ON_SERVER, (one,)).fetchall() for one in asked]
        )


def turn(*, searched: bool) -> Callable[[Setting], Any]:
    """A turn on a file, after a search or where none ever was."""

    @contextmanager
    def prepare(setting: Setting) -> Iterator[Sample]:
        with rs.Store(url(filled(setting))) as store:
            if searched:
                store.search(WORDS[0])
            session, pool = store.session(SESSION), cycle(messages())
            yield timed_each(setting, lambda: session.append(next(pool)))

    return prepare
