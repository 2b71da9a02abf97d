"""PostgreSQL: only checked when opened, safe behind a pooler, and honest about trouble."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import URL, NullPool, create_engine, inspect, make_url

import reasoning_store as rs
from reasoning_store.conversation.errors import (
    InvalidCall,
    ReasoningStoreError,
    SchemaError,
    StoreBusy,
)
from reasoning_store.ledger.database import (
    opening,
    postgres,
    schema_version,
)
from reasoning_store.ledger.database.statement import driver
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.records import NewParts
from reasoning_store.ledger.tables import metadata
from reasoning_store.store import Store
from tests import clusters

from .histories import answered, new_session, said, stored_messages
from .opening import open_ledger


def test_a_database_without_our_schema_is_refused(create_database: Callable[..., URL]) -> None:
    """The error names the command; nothing is created; after the command it opens."""
    url = create_database()

    for _ in range(2):
        with pytest.raises(SchemaError, match="has no schema of reasoning-store yet") as caught:
            Ledger.open(url)
        assert caught.value.hint == "run: reasoning-store db upgrade"
    opening.upgrade(url)
    opening.upgrade(url)

    with Ledger.open(url) as ledger:
        revision = ledger.database.read(schema_version.current_revision)
    assert revision == schema_version.REVISIONS[-1]


THEIRS = """
    CREATE TABLE messages (theirs int); CREATE TABLE sessions (theirs int);
    CREATE TABLE alembic_version (version_num varchar(32) NOT NULL);
    INSERT INTO messages VALUES (7);
"""


@pytest.mark.parametrize("revision", [None, "deadbeef0001", "0001", schema_version.REVISIONS[-1]])
@pytest.mark.parametrize("schema", [None, "chats of ours"])
def test_a_store_has_a_schema_of_its_own_next_to_the_tables_of_an_application(
    create_database: Callable[..., URL], revision: str | None, schema: str | None
) -> None:
    """The application's tables and versions are never read, taken for ours or touched."""
    url = create_database().render_as_string(hide_password=False)
    others = create_engine(url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with others.connect() as connection:
        connection.exec_driver_sql(THEIRS)
        if revision is not None:
            connection.exec_driver_sql("INSERT INTO alembic_version VALUES (%s)", (revision,))

    with pytest.raises(SchemaError, match="has no schema of reasoning-store yet"):
        Store(url, schema=schema)
    rs.Store.upgrade(url, schema=schema)
    with Store(url, schema=schema) as store:
        session = store.session("s", create=True)
        session.append(rs.user("Is 91 prime?"), idempotency_key="k")
        session.append(rs.assistant(rs.ThinkingBlock(thought="7 * 13"), "No."))
        counted = [row.counted for row in store.report(by=("owner", "day"))]
        used = session.budget().used
        verified = store.verify()

    assert counted == [used]
    assert verified.problems == ()
    with others.connect() as connection:
        seen = inspect(connection)
        found = connection.exec_driver_sql("SELECT version_num FROM public.alembic_version")
        assert [version for (version,) in found] == ([] if revision is None else [revision])
        assert set(seen.get_table_names("public")) == {"messages", "sessions", "alembic_version"}
        assert set(seen.get_table_names(schema or "reasoning_store")) == {
            *metadata.tables,
            "alembic_version",
        }


@pytest.mark.parametrize("revision", [None, "deadbeef0001", "0001"])
def test_a_version_of_another_program_is_not_taken_for_ours(
    create_database: Callable[..., URL], revision: str | None
) -> None:
    """Where a store is asked for in the schema of an application, it is refused."""
    url = create_database().render_as_string(hide_password=False)
    others = create_engine(url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with others.connect() as connection:
        connection.exec_driver_sql(THEIRS)
        if revision is not None:
            connection.exec_driver_sql("INSERT INTO alembic_version VALUES (%s)", (revision,))

    for refused in (Store, Store.upgrade):
        with pytest.raises(SchemaError, match="another program's") as caught:
            refused(url, schema="public")
        assert "?schema=" in str(caught.value.hint)
    with others.connect() as connection:
        assert len(inspect(connection).get_table_names()) == 3


def test_tables_of_others_where_a_store_is_to_be_are_left_as_they_are(
    create_database: Callable[..., URL],
) -> None:
    """One of them has a name of ours: it is stated to be there, with what helps."""
    url = create_database().render_as_string(hide_password=False)
    others = create_engine(url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with others.connect() as connection:
        connection.exec_driver_sql("CREATE TABLE messages (theirs int)")

    with pytest.raises(SchemaError, match="another program's object") as caught:
        rs.Store.upgrade(f"{url}&schema=public")

    assert "?schema=" in str(caught.value.hint)
    with others.connect() as connection:
        assert inspect(connection).get_table_names() == ["messages"]


def test_a_store_in_the_public_schema_is_found_there(plain_url: str) -> None:
    """By its own tables; a new one is not made next to it."""
    with Store(plain_url) as store:
        store.session("s", create=True)
    rs.Store.upgrade(plain_url)
    with Store(plain_url, schema="public") as store:
        assert store.session("s").id == "s"


def test_the_url_sets_how_long_a_lost_connection_is_retried(postgres_url: str) -> None:
    """In seconds; what is no number of them is refused."""
    tries: list[int] = []

    def lost(_: Any) -> None:
        tries.append(1)
        raise psycopg.OperationalError("gone")

    with Ledger.open(f"{postgres_url}&retry_seconds=0") as ledger, pytest.raises(StoreBusy):
        ledger.database.read(lost)

    assert len(tries) <= 2
    for wrong in ("soon", "-1", "nan", "1e9"):
        with pytest.raises(InvalidCall, match="retry_seconds: a number of seconds"):
            Ledger.open(f"{postgres_url}&retry_seconds={wrong}")


def test_a_file_has_no_schema(tmp_path: Path) -> None:
    """It is an option of servers."""
    with pytest.raises(InvalidCall, match="schema"):
        Store(f"sqlite:///{tmp_path}/chat.db", schema="public")


def test_a_newer_schema_is_refused(postgres_url: str) -> None:
    """With the command that helps."""
    with Ledger.open(postgres_url) as ledger:
        ledger.database.write(
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
    ("change", "kind"),
    [
        ({"query": {"host": "/nowhere"}}, StoreBusy),
        ({"database": "no_such_database"}, InvalidCall),
    ],
    ids=["host", "database"],
)
def test_an_unreachable_server_is_distinguished_from_one_that_refuses(
    postgres_url: str, change: dict[str, Any], kind: type[Exception]
) -> None:
    """One clear error, without the password of the URL."""
    url = make_url(postgres_url).set(password="secret-word", **change)

    with pytest.raises(kind) as caught:
        Ledger.open(url)

    assert getattr(caught.value, "hint", None)
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
            ledger.messages.append(session.key, 1, [said(), answered()])
            stored_messages(ledger, session.key, 1)

        def left(connection: Any) -> list[Any]:
            return [
                driver(connection).execute(query).fetchall()
                for query in (
                    "SELECT name FROM pg_prepared_statements",
                    "SHOW transaction_isolation",
                    "SELECT locktype FROM pg_locks"
                    " WHERE locktype = 'advisory' AND pid = pg_backend_pid()",
                )
            ]

        assert ledger.database.write(left) == [[], [("read committed",)], []]
        assert ledger.database.read(left) == [[], [("repeatable read",)], []]


def kill_others(postgres_url: str) -> None:
    with Ledger.open(postgres_url) as other:
        other.database.write(
            lambda connection: driver(connection).execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )


def test_an_internal_error_of_the_server_is_tried_again_where_that_is_safe(
    postgres_url: str,
) -> None:
    """As Citus passes on that a node went away: a key makes sure that nothing is stored twice."""
    clusters.run(
        postgres_url,
        "CREATE SEQUENCE tries; CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " IF nextval('tries') % 3 > 0 THEN RAISE 'gone' USING ERRCODE = 'XX000'; END IF;"
        " RETURN new; END $$;"
        " CREATE TRIGGER fail BEFORE INSERT ON bodies FOR EACH ROW EXECUTE FUNCTION fail()",
    )
    with Ledger.open(postgres_url) as ledger:
        session = new_session(ledger)
        with pytest.raises(ReasoningStoreError, match="XX000"):
            ledger.messages.append(session.key, 1, [said()])

        stored = ledger.messages.append(session.key, 1, [said()], idempotency_key="k")

        assert [row.position for row in stored] == [1]
        assert len(stored_messages(ledger, session.key, 1)) == 1


def test_a_lost_connection_is_answered_where_that_is_safe(postgres_url: str) -> None:
    """Reads run again, and so does an append with an idempotency key; without one it says so."""
    with Ledger.open(postgres_url, connections=1) as ledger:
        session = new_session(ledger)

        kill_others(postgres_url)
        assert (
            ledger.messages.append(session.key, 1, [said()], idempotency_key="k")[0].position == 1
        )
        kill_others(postgres_url)
        assert len(stored_messages(ledger, session.key, 1)) == 1
        kill_others(postgres_url)
        with pytest.raises(StoreBusy) as caught:
            ledger.messages.append(session.key, 1, [said()])
        assert caught.value.hint
        assert ledger.messages.append(session.key, 1, [said()])[0].position == 2


def all_used(ledger: Ledger, connections: int) -> None:
    """Have as many connections open and idle."""
    together = threading.Barrier(connections)

    def use(_: int) -> None:
        ledger.database.read(lambda _: together.wait())

    with ThreadPoolExecutor(connections) as pool:
        list(pool.map(use, range(connections)))


def test_a_server_that_restarts_is_noticed_once(postgres_url: str) -> None:
    """However many connections were idle: the first that is lost casts doubt on the others."""
    with Ledger.open(postgres_url, connections=12) as ledger:
        session = new_session(ledger)

        all_used(ledger, 12)
        kill_others(postgres_url)
        with pytest.raises(StoreBusy):
            ledger.messages.append(session.key, 1, [said()])
        assert ledger.messages.append(session.key, 1, [said()])[0].position == 1

        all_used(ledger, 12)
        kill_others(postgres_url)
        assert len(stored_messages(ledger, session.key, 1)) == 1


def test_a_connection_that_died_while_idle_is_replaced(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked before it is used, so that nothing is lost on it."""
    monkeypatch.setattr(postgres, "_IDLE", 0.0)
    with Ledger.open(postgres_url, connections=1) as ledger:
        session = new_session(ledger)
        kill_others(postgres_url)

        assert ledger.messages.append(session.key, 1, [said()])[0].position == 1


def drop_behind_a_commit(
    monkeypatch: pytest.MonkeyPatch, postgres_url: str, drops: Callable[[], bool]
) -> None:
    """Lose the connection after a transaction was committed, before its answer is used."""
    whole = postgres._in_transaction

    def dropping(connection: Any, work: Any, begin: str) -> Any:
        result = whole(connection, work, begin)
        if begin == postgres._WRITE and drops():
            kill_others(postgres_url)
            driver(connection).execute("SELECT 1")
        return result

    monkeypatch.setattr(postgres, "_in_transaction", dropping)


@pytest.mark.parametrize("seconds", [postgres.RETRY_SECONDS, -1.0])
def test_a_reply_begins_though_the_connection_is_lost_after_its_beginning(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """By itself, and where that took too long, by trying again under the same key."""
    monkeypatch.setattr(postgres, "RETRY_SECONDS", seconds)
    with Ledger.open(postgres_url) as ledger:
        session = new_session(ledger)
        drops = iter([True])
        drop_behind_a_commit(monkeypatch, postgres_url, lambda: next(drops, False))

        if seconds < 0:
            with pytest.raises(StoreBusy):
                ledger.drafts.begin(session.key, 1, idempotency_key="k")
        draft = ledger.drafts.begin(session.key, 1, idempotency_key="k")

        assert draft.position == 1
        assert ledger.drafts.write_parts([NewParts(draft, 1, ("[]",))]) == [True]


def test_an_append_runs_at_read_committed_whatever_the_role_has(plain_url: str) -> None:
    """Else two appends of a moment would refuse each other."""
    change = "ALTER DATABASE {} SET default_transaction_isolation = 'repeatable read'"
    with Ledger.open(plain_url) as ledger:
        name = make_url(plain_url).database
        ledger.database.write(lambda connection: driver(connection).execute(change.format(name)))

    def isolation(connection: Any) -> str:
        (level,) = driver(connection).execute("SHOW transaction_isolation").fetchone()
        return str(level)

    with Ledger.open(plain_url) as ledger:
        assert ledger.database.read_one(isolation) == "repeatable read"
        assert ledger.database.write(isolation, single=True) == "read committed"


def test_several_hosts_are_written_as_libpq_has_them() -> None:
    """With a port each, a role, and what else is asked of them."""
    url = opening.parse_url("postgresql://u:p%40@h1:5601,h2/db?target_session_attrs=read-write")

    assert (url.username, url.password, url.host, url.database) == ("u", "p@", None, "db")
    assert url.query == {"host": ("h1:5601", "h2"), "target_session_attrs": "read-write"}


def test_a_transaction_that_lost_against_another_runs_again(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deadlocks and serialization failures, for a while; then the store says that it is busy."""
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
        assert ledger.database.write(fail(3)) == 4
        tries.clear()
        monkeypatch.setattr(postgres, "RETRY_SECONDS", 0.1)
        with pytest.raises(StoreBusy):
            ledger.database.write(fail(100))
        assert len(tries) > 1


def test_an_exhausted_pool_is_a_busy_store(postgres_url: str) -> None:
    """After the busy timeout."""
    with open_ledger(postgres_url, connections=1, busy_timeout=0.1) as ledger:

        def inside(_: Any) -> None:
            with pytest.raises(StoreBusy):
                ledger.sessions.page("u")

        ledger.database.read(inside)
