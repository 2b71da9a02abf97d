"""A conversation of one turn, deleted from files of any size: by ours, and by the bare driver.

A file is grown by copies of one conversation under other keys, which takes seconds a gigabyte.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from statistics import median

import reasoning_store as rs
from benchmarks.conversation import messages
from benchmarks.histories import fill, url
from benchmarks.workload import Sample, Setting
from reasoning_store.ledger.database import sqlite_connections
from reasoning_store.ledger.keys import session_key
from reasoning_store.ledger.tables import metadata

_ONE = "one-turn"
_MESSAGES = 200
_MEGABYTE = 1_000_000


def grown(setting: Setting) -> Path:
    """Return a new file of as many megabytes as the setting's size."""
    template = setting.templates / f"grown-{setting.size}.db"
    if not template.exists():
        fill(url(template), _MESSAGES)
        with closing(sqlite3.connect(template)) as raw:
            _copy_sessions(raw, template, setting.size * _MEGABYTE)
    path = setting.folder / "chat.db"
    shutil.copy(template, path)
    return path


def _copy_sessions(raw: sqlite3.Connection, path: Path, wanted: int) -> None:
    raw.execute("PRAGMA synchronous=OFF")
    ((first,),) = raw.execute("SELECT session_key FROM sessions").fetchall()
    copies = []
    for table in metadata.sorted_tables:
        names = ", ".join(column.name for column in table.columns if column.name != "session_key")
        copies.append(
            f"INSERT INTO {table.name} (session_key, {names})"
            f" SELECT ?, {names} FROM {table.name} WHERE session_key = ?"
        )
    number = 0
    while path.stat().st_size < wanted:
        for _ in range(4):
            number += 1
            for copy in copies:
                raw.execute(copy, (session_key("copy", str(number)), first))
        raw.commit()
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@contextmanager
def _deleting(setting: Setting, delete: Callable[[rs.Store], None]) -> Iterator[Sample]:
    with rs.Store(url(grown(setting))) as store:
        asked, answered = messages()[0]

        def sample() -> float:
            took = []
            for _ in range(setting.repeats):
                store.session(_ONE, create=True).append([asked, answered])
                start = setting.clock()
                delete(store)
                took.append(setting.clock() - start)
            return median(took)

        yield sample


def deleted(setting: Setting) -> AbstractContextManager[Sample]:
    """Ours: the rows go, and the log is emptied."""

    def delete(store: rs.Store) -> None:
        store.session(_ONE).delete()

    return _deleting(setting, delete)


@contextmanager
def bare_delete(setting: Setting) -> Iterator[Sample]:
    """The bare driver: one durable statement, and the log is emptied."""
    path = setting.folder / "chat.db"
    key = session_key("", _ONE)

    def delete(_: rs.Store) -> None:
        raw.execute("DELETE FROM sessions WHERE session_key = ?", (key,))
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    connect = sqlite_connections.library().connect
    with (
        _deleting(setting, delete) as sample,
        closing(connect(str(path), isolation_level=None, check_same_thread=False)) as raw,
    ):
        for pragma in ("foreign_keys=ON", "secure_delete=ON", "synchronous=FULL"):
            raw.execute(f"PRAGMA {pragma}").fetchall()
        yield sample
