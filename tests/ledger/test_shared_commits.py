"""Writers that wait for an SQLite file at the same time: one commit, and each as if alone."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from reasoning_store.errors import Conflict, NotFound, StoreFull
from reasoning_store.ledger import lending as room
from reasoning_store.ledger import sqlite_connections
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.lending import Lent
from reasoning_store.ledger.sql import driver

from .histories import new_session, said
from .interrupts import everywhere
from .lanes import aside, commits, lane_of
from .opening import open_ledger

TRANSACTIONS = "reasoning_store.ledger.sqlite_transactions"


def at_once(ledger: Ledger, works: Sequence[Callable[[], Any]]) -> list[Future[Any]]:
    """Do something in as many threads, all of which wait for the lane before any has it."""
    lane = lane_of(ledger)
    with ThreadPoolExecutor(len(works)) as pool:

        def hold(lent: Lent[Any]) -> list[Future[Any]]:
            assert lent.one
            lent.fit = True
            asked = []
            for number, work in enumerate(works):
                asked.append(pool.submit(work))
                while len(lane._waiting) <= number:
                    pass
            return asked

        return lane.lend(hold)


def test_writers_that_wait_share_one_commit(sqlite_path: Path) -> None:
    """Twenty messages in three conversations wait for the disk once."""
    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        sessions = [new_session(ledger) for _ in range(3)]
        before = commits(sqlite_path)
        works = [partial(ledger.append, sessions[n % 3].key, 1, [said(f"{n}")]) for n in range(20)]
        stored = [each.result(30) for each in at_once(ledger, works)]

        assert commits(sqlite_path) == before + 1
        for turn, session in enumerate(sessions):
            texts = [row.message.text for row in ledger.history(session.key, 1)]
            assert texts == [f"{n}" for n in range(turn, 20, 3)]
        assert [row.position for (row,) in stored] == [n // 3 + 1 for n in range(20)]
        assert ledger.verify().ok


def test_one_that_fails_takes_nobody_along(sqlite_path: Path) -> None:
    """Each is told what it would have been told alone, and the others are stored."""
    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        key = new_session(ledger).key
        ledger.append(key, 1, [said("taken")], idempotency_key="k")
        works: list[Callable[[], object]] = [
            lambda: ledger.append(key, 1, [said("one")]),
            lambda: ledger.append(key, 1, [said("other")], idempotency_key="k"),
            lambda: ledger.append(key, 1, [said("taken")], idempotency_key="k"),
            lambda: ledger.append(key + 1, 1, [said("nowhere")]),
            lambda: ledger.append(key, 1, [said("late")], after=0),
            lambda: ledger.append(key, 1, [said("two")]),
        ]
        told = [each.exception(30) for each in at_once(ledger, works)]

        assert [type(error) for error in told] == [
            type(None),
            Conflict,
            type(None),
            NotFound,
            Conflict,
            type(None),
        ]
        texts = [row.message.text for row in ledger.history(key, 1)]
        assert sorted(texts) == ["one", "taken", "two"]
        assert ledger.verify().ok


def test_one_that_fails_makes_nobody_wait_again(sqlite_path: Path) -> None:
    """What it wrote is taken back alone; the others are on the disk with the one commit."""
    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        key = new_session(ledger).key
        ledger.append(key, 1, [said("taken")], idempotency_key="k")
        before = commits(sqlite_path)
        works: list[Callable[[], object]] = [
            partial(ledger.append, key, 1, [said(f"{n}")]) for n in range(10)
        ]
        works[5] = lambda: ledger.append(key, 1, [said("taken")], idempotency_key="k")
        for each in at_once(ledger, works):
            each.result(30)

        assert commits(sqlite_path) == before + 1
        assert len(ledger.history(key, 1)) == 10


@pytest.mark.parametrize("way", ["a statement", "with all that was begun", "to take it back"])
@pytest.mark.parametrize("at", range(0, 60, 4))
def test_a_statement_that_fails_among_several_writers_loses_nothing_that_was_told(
    sqlite_path: Path, at: int, way: str
) -> None:
    """Whichever it is, and whatever it takes along: who is told of no error is stored, once."""
    failing = failing_driver()
    with open_ledger(f"sqlite:///{sqlite_path}", driver=failing) as ledger:
        key = new_session(ledger).key
        works = [partial(ledger.append, key, 1, [said(f"{n}")]) for n in range(5)]
        failing.fails_at, failing.way = at, way
        told = [each.exception(30) for each in at_once(ledger, works)]
        failing.fails_at, failing.fails_to_take_back = None, False
        ledger.append(key, 1, [said("after")])

        texts = [row.message.text for row in ledger.history(key, 1)]
        assert sorted(texts) == sorted(
            ["after", *(f"{n}" for n, error in enumerate(told) if error is None)]
        )
        assert ledger.verify().ok
        assert len(lane_of(ledger)._idle) == 1


def failing_driver() -> Any:
    """Return the driver, whose ``fails_at``-th statement of a writer fails when it is told to."""
    real: Any = sqlite_connections.library()
    made: Any = ModuleType("failing")
    vars(made).update({name: value for name, value in vars(real).items() if name[0] != "_"})
    made.fails_at, made.way, made.fails_to_take_back = None, "", False

    def fail_in_turn(sql: str, raw: Any) -> None:
        if made.fails_to_take_back and sql.startswith("ROLLBACK"):
            made.fails_to_take_back = False
            raise real.OperationalError("disk I/O error")
        if made.fails_at is None or sql.startswith("PRAGMA"):
            return
        made.fails_at -= 1
        if made.fails_at < 0:
            made.fails_at = None
            if made.way == "with all that was begun":
                real.Connection.rollback(raw)
            made.fails_to_take_back = made.way == "to take it back"
            raise real.OperationalError("disk I/O error")

    class FailingCursor(real.Cursor):  # type: ignore[misc]
        def execute(self, sql: str, *values: Any) -> Any:
            fail_in_turn(sql, self.connection)
            return super().execute(sql, *values)

    class FailingConnection(real.Connection):  # type: ignore[misc]
        def cursor(self, *_: Any) -> Any:
            return super().cursor(FailingCursor)

        def execute(self, sql: str, *values: Any) -> Any:
            if not sql.startswith("SELECT"):
                fail_in_turn(sql, self)
            return super().cursor(real.Cursor).execute(sql, *values)

        def rollback(self) -> None:
            if made.fails_to_take_back:
                made.fails_to_take_back = False
                raise real.OperationalError("disk I/O error")
            super().rollback()

    made.connect = partial(real.connect, factory=FailingConnection)
    return made


def test_one_key_at_once_is_one_message(sqlite_path: Path) -> None:
    """Though all who give it stand in one transaction."""
    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        key = new_session(ledger).key
        works = [lambda: ledger.append(key, 1, [said("once")], idempotency_key="k")] * 10
        stored = [each.result(30) for each in at_once(ledger, works)]

        assert len({row.id for (row,) in stored}) == 1
        assert [row.message.text for row in ledger.history(key, 1)] == ["once"]


def test_a_disk_that_is_full_is_told_to_each_who_had_no_room(sqlite_path: Path) -> None:
    """Who is not told of it is stored."""
    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        key = new_session(ledger).key
        ledger._write(
            lambda connection: (
                driver(connection)
                .execute(f"PRAGMA max_page_count={len(sqlite_path.read_bytes()) // 4096 + 12}")
                .fetchall()
            )
        )
        works = [lambda n=n: ledger.append(key, 1, [said(f"{n}" * 9000)]) for n in range(8)]
        told = [each.exception(30) for each in at_once(ledger, works)]

        assert {type(error) for error in told} == {type(None), StoreFull}
        stored = {row.message.text[0] for row in ledger.history(key, 1)}
        assert stored == {f"{n}" for n, error in enumerate(told) if error is None}
        assert ledger.verify().ok


def test_what_was_given_up_before_it_was_begun_is_not_written_later(sqlite_path: Path) -> None:
    """Whoever was interrupted may look what is stored: nothing is added behind its back."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with (
            open_ledger(f"sqlite:///{sqlite_path}", busy_timeout=20) as ledger,
            closing(
                sqlite_connections.library().connect(str(sqlite_path), isolation_level=None)
            ) as other,
            ThreadPoolExecutor(3) as pool,
        ):
            key = new_session(ledger).key
            lane = lane_of(ledger)
            begun, both = threading.Event(), threading.Event()

            def hold(lent: Lent[Any]) -> None:
                assert lent.one
                lent.fit = True
                begun.set()
                while len(lane._waiting) < 2:
                    pass
                both.set()

            def interrupt() -> None:
                both.wait()
                while lane._waiting:  # the first has begun, and takes the second along
                    pass
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

            other.execute("BEGIN IMMEDIATE")
            pool.submit(lane.lend, hold)
            begun.wait()
            stored = pool.submit(ledger.append, key, 1, [said("first")])
            while not lane._waiting:
                pass
            pool.submit(interrupt)
            with pytest.raises(KeyboardInterrupt):
                ledger.append(key, 1, [said("given up")])
            other.execute("COMMIT")
            stored.result(30)

            assert [row.message.text for row in ledger.history(key, 1)] == ["first"]
    finally:
        signal.signal(signal.SIGINT, handler)


@pytest.mark.parametrize("module", [TRANSACTIONS, room.__name__])
def test_an_interrupt_of_who_writes_for_others_writes_each_once(
    sqlite_path: Path, module: str
) -> None:
    """Wherever it comes: before the commit each does its own, after it none does."""
    file = str(sys.modules[module].__file__)
    names = count()
    with open_ledger(f"sqlite:///{sqlite_path}", busy_timeout=20) as ledger:
        key = new_session(ledger).key
        lane = lane_of(ledger)
        threads: list[threading.Thread] = []
        kept: list[str] = []

        def write(name: str) -> None:
            ledger.append(key, 1, [said(name)])
            kept.append(name)

        def prepare() -> Callable[[], None]:
            others = [f"{next(names)}" for _ in range(3)]

            waiting = aside(lane, threads, [partial(write, name) for name in others])

            def run() -> None:
                lane._waiting.extend(waiting)
                write(f"{next(names)}")

            return run

        def check() -> None:
            lane.lend(lambda lent: setattr(lent, "fit", True))
            while threads:
                thread = threads.pop()
                thread.join(30)
                assert not thread.is_alive()
            texts = [row.message.text for row in ledger.history(key, 1)]
            assert len(texts) == len({*texts})
            assert {*kept} <= {*texts}

        assert everywhere(file, prepare, check) > 8
        assert ledger.verify().ok
