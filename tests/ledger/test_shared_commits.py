"""Writers that wait for an SQLite file at the same time: one commit, and each as if alone."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from sqlalchemy import Connection

from reasoning_store.conversation.errors import (
    Conflict,
    InvalidCall,
    NotFound,
    StoreBusy,
    StoreFull,
)
from reasoning_store.ledger.database import sqlite_connections
from reasoning_store.ledger.database.statement import driver
from reasoning_store.ledger.ledger import Ledger

from .histories import new_session, said, stored_messages
from .opening import open_ledger
from .writing import Held, at_once, commits, waiting, writer_of


def test_writers_that_wait_share_one_commit(sqlite_path: Path) -> None:
    """Twenty messages in three conversations wait for the disk once."""
    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        sessions = [new_session(ledger) for _ in range(3)]
        before = commits(sqlite_path)
        works = [
            partial(ledger.messages.append, sessions[n % 3].key, 1, [said(f"{n}")])
            for n in range(20)
        ]
        stored = [each.result(120) for each in at_once(writer_of(ledger), works)]

        assert commits(sqlite_path) == before + 1
        for turn, session in enumerate(sessions):
            texts = [row.message.text for row in stored_messages(ledger, session.key, 1)]
            assert texts == [f"{n}" for n in range(turn, 20, 3)]
        assert [row.position for (row,) in stored] == [n // 3 + 1 for n in range(20)]
        assert ledger.audit.verify().ok


def test_a_failing_write_fails_alone(sqlite_path: Path) -> None:
    """Each gets the error that it would get alone, and the others are stored."""
    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        key = new_session(ledger).key
        ledger.messages.append(key, 1, [said("taken")], idempotency_key="k")
        works: list[Callable[[], object]] = [
            lambda: ledger.messages.append(key, 1, [said("one")]),
            lambda: ledger.messages.append(key, 1, [said("other")], idempotency_key="k"),
            lambda: ledger.messages.append(key, 1, [said("taken")], idempotency_key="k"),
            lambda: ledger.messages.append(key + 1, 1, [said("nowhere")]),
            lambda: ledger.messages.append(key, 1, [said("late")], after=0),
            lambda: ledger.messages.append(key, 1, [said("two")]),
        ]
        errors = [each.exception(120) for each in at_once(writer_of(ledger), works)]

        assert [type(error) for error in errors] == [
            type(None),
            Conflict,
            type(None),
            NotFound,
            Conflict,
            type(None),
        ]
        texts = [row.message.text for row in stored_messages(ledger, key, 1)]
        assert sorted(texts) == ["one", "taken", "two"]
        assert ledger.audit.verify().ok


def test_a_failing_write_makes_no_other_wait_again(sqlite_path: Path) -> None:
    """What it wrote is taken back alone; the others are on the disk with the one commit."""
    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        key = new_session(ledger).key
        ledger.messages.append(key, 1, [said("taken")], idempotency_key="k")
        before = commits(sqlite_path)
        works: list[Callable[[], object]] = [
            partial(ledger.messages.append, key, 1, [said(f"{n}")]) for n in range(10)
        ]
        works[5] = lambda: ledger.messages.append(key, 1, [said("taken")], idempotency_key="k")
        for each in at_once(writer_of(ledger), works):
            each.result(120)

        assert commits(sqlite_path) == before + 1
        assert len(stored_messages(ledger, key, 1)) == 10


@pytest.mark.parametrize("way", ["a statement", "with all that was begun", "to take it back"])
@pytest.mark.parametrize("at", range(0, 60, 4))
def test_a_failing_statement_among_several_writers_loses_no_acknowledged_write(
    sqlite_path: Path, at: int, way: str
) -> None:
    """Whichever it is, and whatever it takes along: who learns of no error is stored, once."""
    failing = failing_driver()
    with open_ledger(f"sqlite:///{sqlite_path}", driver=failing) as ledger:
        key = new_session(ledger).key
        works = [partial(ledger.messages.append, key, 1, [said(f"{n}")]) for n in range(5)]
        failing.fails_at, failing.way = at, way
        errors = [each.exception(120) for each in at_once(writer_of(ledger), works)]
        failing.fails_at, failing.fails_to_take_back = None, False
        ledger.messages.append(key, 1, [said("after")])

        texts = [row.message.text for row in stored_messages(ledger, key, 1)]
        assert sorted(texts) == sorted(
            ["after", *(f"{n}" for n, error in enumerate(errors) if error is None)]
        )
        assert ledger.audit.verify().ok


def failing_driver() -> Any:
    """Return the driver, whose ``fails_at``-th statement of a writer fails when it is asked to."""
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
        works = [lambda: ledger.messages.append(key, 1, [said("once")], idempotency_key="k")] * 10
        stored = [each.result(120) for each in at_once(writer_of(ledger), works)]

        assert len({row.id for (row,) in stored}) == 1
        assert [row.message.text for row in stored_messages(ledger, key, 1)] == ["once"]


def test_a_full_disk_is_reported_to_each_writer_without_room(sqlite_path: Path) -> None:
    """A write without an error is stored."""
    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        key = new_session(ledger).key

        def leave_little_room(connection: Connection) -> None:
            execute = driver(connection).execute
            (pages,) = execute("PRAGMA page_count").fetchone()
            execute(f"PRAGMA max_page_count={pages + 6}").fetchall()

        ledger.database.write(leave_little_room)
        works = [
            lambda n=n: ledger.messages.append(key, 1, [said(f"{n}" * 9000)]) for n in range(8)
        ]
        errors = [each.exception(120) for each in at_once(writer_of(ledger), works)]

        assert {type(error) for error in errors} == {type(None), StoreFull}
        stored = {row.message.text[0] for row in stored_messages(ledger, key, 1)}
        assert stored == {f"{n}" for n, error in enumerate(errors) if error is None}
        assert ledger.audit.verify().ok


def test_a_wait_that_is_interrupted_leaves_nothing_to_be_written_later(sqlite_path: Path) -> None:
    """An application that was interrupted may look at what is stored: nothing is added to it."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
            key = new_session(ledger).key
            writer = writer_of(ledger)

            def interrupt() -> None:
                while not waiting(writer):
                    pass
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

            thread = threading.Thread(target=interrupt)
            with Held(writer):
                thread.start()
                with pytest.raises(KeyboardInterrupt):
                    ledger.messages.append(key, 1, [said("given up")])
                thread.join()
            ledger.messages.append(key, 1, [said("after")])

            assert [row.message.text for row in stored_messages(ledger, key, 1)] == ["after"]
    finally:
        signal.signal(signal.SIGINT, handler)


def test_a_wait_that_is_too_long_leaves_nothing_to_be_written_later(sqlite_path: Path) -> None:
    """The caller learns that the store is busy, and the work is not done after all."""
    with open_ledger(f"sqlite:///{sqlite_path}", busy_timeout=0.05) as ledger:
        key = new_session(ledger).key
        with Held(writer_of(ledger)), pytest.raises(StoreBusy, match="before this one"):
            ledger.messages.append(key, 1, [said("too late")])
        ledger.messages.append(key, 1, [said("after")])

        assert [row.message.text for row in stored_messages(ledger, key, 1)] == ["after"]


def test_a_write_that_has_begun_is_waited_for_however_long_it_takes(sqlite_path: Path) -> None:
    """Only its end says whether it was written."""
    with open_ledger(f"sqlite:///{sqlite_path}", busy_timeout=0.05) as ledger:
        ended = threading.Event()

        def work(_: object) -> str:
            assert not ended.wait(0.3)
            return "written"

        assert ledger.database.write(work) == "written"


def test_writers_are_served_in_the_order_of_asking(sqlite_path: Path) -> None:
    """Short ones and long ones alike, though the short ones share commits."""
    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:
        order: list[int] = []

        def note(n: int, _: object) -> None:
            order.append(n)

        works: list[Callable[[], object]] = [
            partial(ledger.database.write, partial(note, n), single=n % 3 > 0) for n in range(20)
        ]
        for each in at_once(writer_of(ledger), works):
            each.result(120)

        assert order == [*range(20)]


def test_a_write_inside_a_write_is_refused(sqlite_path: Path) -> None:
    """As a finalizer may try that the collector runs in the middle; it would wait for itself."""
    with Ledger.open(f"sqlite:///{sqlite_path}") as ledger:

        def work(_: object) -> None:
            ledger.database.write(lambda _: None)

        with pytest.raises(StoreBusy, match="inside another"):
            ledger.database.write(work)


def test_a_store_that_is_closed_while_writers_wait_does_their_work_first(
    sqlite_path: Path,
) -> None:
    """Each is on the disk, or learns that the store is closed."""
    ledger = Ledger.open(f"sqlite:///{sqlite_path}")
    key = new_session(ledger).key
    writer = writer_of(ledger)
    works: list[Callable[[], object]] = [
        partial(ledger.messages.append, key, 1, [said(f"{n}")]) for n in range(5)
    ]
    errors = [each.exception(120) for each in at_once(writer, [*works, ledger.close])]
    with pytest.raises(InvalidCall, match="closed"):
        writer.run(lambda _: None)

    assert errors == [None] * 6
    with Ledger.open(f"sqlite:///{sqlite_path}") as again:
        assert len(stored_messages(again, key, 1)) == 5


def test_a_store_that_nothing_refers_to_ends_its_thread(sqlite_path: Path) -> None:
    """And closes what it writes with: SQLite then removes the log."""
    ledger = Ledger.open(f"sqlite:///{sqlite_path}")
    ledger.messages.append(new_session(ledger).key, 1, [said("kept")])
    thread = writer_of(ledger)._thread
    del ledger
    gc.collect()
    thread.join(120)

    assert not thread.is_alive()
