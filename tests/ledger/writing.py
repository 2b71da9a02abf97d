"""Writers of an SQLite file that wait at the same time, and how often they wait for the disk."""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from reasoning_store.ledger.database.writer import Writer
from reasoning_store.ledger.ledger import Ledger


def writer_of(ledger: Ledger) -> Writer:
    database: Any = ledger.database
    writer: Writer = database._writer
    return writer


def commits(path: Path) -> int:
    """Return how many transactions stand in the write-ahead log of a database."""
    log = Path(f"{path}-wal").read_bytes()
    (page,) = struct.unpack(">I", log[8:12])
    salt = log[16:24]
    frames = range(32, len(log) - 24 - page + 1, 24 + page)
    return sum(log[at + 8 : at + 16] == salt and log[at + 4 : at + 8] != bytes(4) for at in frames)


def waiting(writer: Writer) -> int:
    """Return how many works wait for the writer, but for the one that it does."""
    return writer._loop.jobs.qsize()


def at_once(writer: Writer, works: Sequence[Callable[[], Any]]) -> list[Future[Any]]:
    """Do something in as many threads, all of which wait for the writer before it does any."""
    with ThreadPoolExecutor(len(works)) as pool:

        def hold(_: object) -> list[Future[Any]]:
            asked = []
            for number, work in enumerate(works):
                asked.append(pool.submit(work))
                while waiting(writer) <= number:
                    pass
            return asked

        return writer.run(hold)


class Held:
    """A work that the writer does until it is let go of."""

    def __init__(self, writer: Writer) -> None:
        self._began, self._goes_on = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=writer.run, args=(self._hold,))

    def _hold(self, _: object) -> None:
        self._began.set()
        self._goes_on.wait()

    def __enter__(self) -> None:
        self._thread.start()
        self._began.wait()

    def __exit__(self, *_: object) -> None:
        self._goes_on.set()
        self._thread.join()
