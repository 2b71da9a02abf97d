"""PostgreSQL: only checked when opened, safe behind a pooler, and honest about trouble."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import URL, create_engine, inspect, make_url

from reasoning_store.errors import SchemaError, StoreBusy, UsageError
from reasoning_store.ledger import engine, postgres
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.sql import driver
from reasoning_store.store import upgrade

from .histories import answered, new_session, said
from .opening import open_ledger


def test_a_database_without_our_schema_is_refused(create_database: Callable[..., URL]) -> None:
    """The error names the command; nothing is created; after the command it opens."""
    url = create_database()

    for _ in range(2):
        with pytest.raises(SchemaError, match="has no schema of reasoning-store yet") as caught:
            Ledger.open(url)
        assert caught.value.hint == "run: reasoning-store upgrade"
    engine.upgrade(url)
    engine.upgrade(url)

    with Ledger.open(url) as ledger:
        assert ledger.revision == "0001"


def test_a_database_with_tables_of_others_is_not_upgraded(
    create_database: Callable[..., URL],
) -> None:
    """One of them has a name of ours: it is said to be there, and everything stays as it was."""
    url = create_database().render_as_string(hide_password=False)
    others = create_engine(url, isolation_level="AUTOCOMMIT")
    with others.connect() as connection:
        connection.exec_driver_sql("CREATE TABLE messages (theirs int)")

    with pytest.raises(SchemaError, match="another program's object") as caught:
        upgrade(url)

    assert "a database of its own" in str(caught.value.hint)
    with others.connect() as connection:
        assert inspect(connection).get_table_names() == ["messages"]
    others.dispose()


def test_a_newer_schema_is_refused(postgres_url: str) -> None:
    """With the command that helps."""
    with Ledger.open(postgres_url) as ledger:
        ledger._write(
            lambda connection: driver(connection).execute(
                "UPDATE alembic_version SET version_num = '9999'"
            )
        )

    with pytest.raises(SchemaError, match="newer") as caught:
        Ledger.open(postgres_url)

    assert "pip install" in str(caught.value.hint)


def test_a_database_of_another_encoding_is_refused(create_database: Callable[..., URL]) -> None:
    """Texts would not come back from it."""
    with pytest.raises(SchemaError, match="encoding"):
        Ledger.open(create_database(encoding="SQL_ASCII"))


@pytest.mark.parametrize(
    "change",
    [{"query": {"host": "/nowhere"}}, {"database": "no_such_database"}],
    ids=["host", "database"],
)
def test_a_server_that_is_not_there_is_a_usage_error(
    postgres_url: str, change: dict[str, Any]
) -> None:
    """One clear error, without the password of the URL."""
    url = make_url(postgres_url).set(password="secret-word", **change)

    with pytest.raises(UsageError) as caught:
        Ledger.open(url)

    assert caught.value.hint
    assert "secret-word" not in str(caught.value)


@pytest.mark.parametrize("name", ["postgres", "postgresql"])
def test_other_spellings_of_the_url_open_too(postgres_url: str, name: str) -> None:
    """As providers of databases print them."""
    Ledger.open(postgres_url.replace(postgres.DRIVER, name)).close()


def test_nothing_is_prepared_and_nothing_is_left_in_the_session(postgres_url: str) -> None:
    """A pooler may give each transaction another server connection."""
    with Ledger.open(postgres_url, connections=1) as ledger:
        session = new_session(ledger)
        for _ in range(20):
            ledger.append(session.key, 1, [said(), answered()])
            ledger.history(session.key, 1)

        def left(connection: Any) -> list[Any]:
            return [
                driver(connection).execute(query).fetchall()
                for query in (
                    "SELECT name FROM pg_prepared_statements",
                    "SHOW transaction_isolation",
                    "SELECT locktype FROM pg_locks WHERE locktype = 'advisory'",
                )
            ]

        assert ledger._write(left) == [[], [("read committed",)], []]
        assert ledger._read(left) == [[], [("repeatable read",)], []]


def kill_others(postgres_url: str) -> None:
    with Ledger.open(postgres_url) as other:
        other._write(
            lambda connection: driver(connection).execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )


def test_a_lost_connection_is_answered_where_that_is_safe(postgres_url: str) -> None:
    """Reads run again, and so does an append with an idempotency key; without one it says so."""
    with Ledger.open(postgres_url, connections=1) as ledger:
        session = new_session(ledger)

        kill_others(postgres_url)
        assert ledger.append(session.key, 1, [said()], idempotency_key="k")[0].position == 1
        kill_others(postgres_url)
        assert len(ledger.history(session.key, 1)) == 1
        kill_others(postgres_url)
        with pytest.raises(StoreBusy) as caught:
            ledger.append(session.key, 1, [said()])
        assert caught.value.hint
        assert ledger.append(session.key, 1, [said()])[0].position == 2


def all_used(ledger: Ledger, connections: int) -> None:
    """Have as many connections open and idle."""
    together = threading.Barrier(connections)

    def use(_: int) -> None:
        ledger._read(lambda _: together.wait())

    with ThreadPoolExecutor(connections) as pool:
        list(pool.map(use, range(connections)))


def test_a_server_that_restarts_is_noticed_once(postgres_url: str) -> None:
    """However many connections were idle: the first that is lost casts doubt on the others."""
    with Ledger.open(postgres_url, connections=12) as ledger:
        session = new_session(ledger)

        all_used(ledger, 12)
        kill_others(postgres_url)
        with pytest.raises(StoreBusy):
            ledger.append(session.key, 1, [said()])
        assert ledger.append(session.key, 1, [said()])[0].position == 1

        all_used(ledger, 12)
        kill_others(postgres_url)
        assert len(ledger.history(session.key, 1)) == 1


def test_a_connection_that_died_while_idle_is_replaced(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked before it is used, so that nothing is lost on it."""
    monkeypatch.setattr(postgres, "_IDLE", 0.0)
    with Ledger.open(postgres_url, connections=1) as ledger:
        session = new_session(ledger)
        kill_others(postgres_url)

        assert ledger.append(session.key, 1, [said()])[0].position == 1


def test_a_transaction_that_lost_against_another_runs_again(postgres_url: str) -> None:
    """Deadlocks and serialization failures, a few times; then the store says that it is busy."""
    tries: list[int] = []

    def fail(times: int) -> Callable[[Any], int]:
        def work(connection: Any) -> int:
            tries.append(1)
            if len(tries) <= times:
                driver(connection).execute(
                    "DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40P01'; END $$"
                )
            return len(tries)

        return work

    with Ledger.open(postgres_url) as ledger:
        assert ledger._write(fail(3)) == 4
        tries.clear()
        with pytest.raises(StoreBusy):
            ledger._write(fail(100))
        assert len(tries) == 8


def test_an_exhausted_pool_is_a_busy_store(postgres_url: str) -> None:
    """After the busy timeout."""
    with open_ledger(postgres_url, connections=1, busy_timeout=0.1) as ledger:

        def inside(_: Any) -> None:
            with pytest.raises(StoreBusy):
                ledger.sessions("u")

        ledger._read(inside)
