"""A cluster to distribute a store on: the one that is named, and a database that records.

REASONING_STORE_TEST_CITUS names the coordinator of a Citus cluster, by a URL of a database with
the extension and nodes, as a superuser to whom all nodes answer without a password. Every test that
asks for ``postgres_url`` then works on a store that is distributed, and the tests marked ``citus``
run. Those marked ``citus_programs`` kill nodes of their own: they run where the programs of
REASONING_STORE_TEST_PROGRAMS have the extension. Where there is none, only the other one is used: a
plain PostgreSQL with functions and tables of Citus's names. It shows which statements are run, in
which order and in which transaction, and nothing of what Citus does.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import URL, NullPool, create_engine, make_url
from sqlalchemy.exc import DBAPIError

from reasoning_store.ledger.database import distribution, opening
from reasoning_store.ledger.database.postgres import DRIVER
from tests.servers import PROGRAMS, program

NAMED = "REASONING_STORE_TEST_CITUS"
_PATIENCE = 60.0
RECORDING, CITUS = "a database that records", "citus"
KINDS = (RECORDING, *([CITUS] if NAMED in os.environ else []))
_RECORDING = """
    CREATE TABLE calls (number int GENERATED ALWAYS AS IDENTITY, call text);
    CREATE TABLE pg_dist_partition
        (logicalrelid oid, partmethod "char", partkey text, colocationid int, repmodel "char");
    CREATE TABLE pg_dist_shard (logicalrelid oid);
    CREATE TABLE pg_dist_local_group AS SELECT 0 AS groupid;
    CREATE TABLE pg_dist_object (classid oid, objid oid, distribution_argument_index int);
    CREATE TABLE pg_dist_node AS SELECT n AS nodeid, 'w' || n AS nodename, 5432 AS nodeport,
        true AS isactive, true AS shouldhaveshards, 'primary' AS noderole, true AS answers,
        'on' AS synchronous_commit, 'origin' AS replication_role, '' AS standby_names
        FROM generate_series(1, 2) n;
    CREATE FUNCTION column_to_column_name(oid, text) RETURNS text LANGUAGE sql AS 'SELECT $2';
    CREATE FUNCTION citus_check_cluster_node_health
        (OUT from_nodename text, OUT from_nodeport int, OUT to_nodename text, OUT to_nodeport int,
        OUT result bool) RETURNS SETOF record LANGUAGE sql AS $$
            SELECT f.nodename, f.nodeport, t.nodename, t.nodeport,
                CASE WHEN f.answers THEN t.answers END
            FROM pg_dist_node f, pg_dist_node t
        $$;
    CREATE FUNCTION run_command_on_workers(command text, OUT nodename text, OUT nodeport int,
        OUT success bool, OUT result text) RETURNS SETOF record LANGUAGE plpgsql AS $$
        DECLARE node record;
        BEGIN
            FOR node IN SELECT * FROM pg_dist_node ORDER BY nodeid LOOP
                PERFORM set_config('synchronous_commit', node.synchronous_commit, true),
                    set_config('session_replication_role', node.replication_role, true);
                EXECUTE replace(command, 'current_setting(''synchronous_standby_names'')',
                    quote_literal(node.standby_names)) INTO result;
                SELECT node.nodename, node.nodeport, node.answers INTO nodename, nodeport, success;
                RETURN NEXT;
            END LOOP;
        END $$;
    CREATE FUNCTION create_distributed_table(name regclass, key text, colocate_with text = 'x')
        RETURNS void LANGUAGE sql AS $$
            INSERT INTO pg_dist_partition VALUES (name, 'h', key, 7, 's');
            INSERT INTO pg_dist_shard SELECT name FROM generate_series(1, 32);
            INSERT INTO calls (call) VALUES (name::text);
        $$;
    CREATE FUNCTION create_reference_table(name regclass) RETURNS void LANGUAGE sql AS $$
            INSERT INTO pg_dist_partition VALUES (name, 'n', NULL, 8, 't');
            INSERT INTO calls (call) VALUES (name::text);
        $$;
    CREATE FUNCTION create_distributed_function
        (signature regprocedure, argument text, colocate_with text) RETURNS void LANGUAGE sql AS $$
            INSERT INTO pg_dist_object SELECT 'pg_proc'::regclass, oid, 0 FROM pg_proc
                WHERE oid = signature AND proargnames[1] = argument;
            INSERT INTO calls (call) SELECT proname FROM pg_proc WHERE oid = signature;
        $$;
    CREATE FUNCTION truncate_local_data_after_distributing_table(name regclass)
        RETURNS void LANGUAGE plpgsql AS $$ BEGIN
            EXECUTE format('TRUNCATE %s CASCADE', name);
            INSERT INTO calls (call) VALUES ('truncate ' || name);
        END $$;
"""


@cache
def has_programs() -> bool:
    """Whether the programs of the server that the tests run have the extension."""
    asked = [str(program("pg_config")), "--sharedir"]
    found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    return Path(found, "extension", "citus.control").exists()


def missing(test: pytest.Item) -> str | None:
    """Return the variable that would have to name a Citus for this test; None: nothing."""
    if test.get_closest_marker("citus") and CITUS not in KINDS:
        return NAMED
    if test.get_closest_marker("citus_programs") and not has_programs():
        return PROGRAMS
    return None


def run(url: str, statements: str) -> Sequence[Any]:
    """Run statements in a transaction, and return the rows of the last one."""
    made = create_engine(make_url(url).set(drivername=DRIVER), poolclass=NullPool)
    with made.begin() as connection:
        cursor = connection.connection.cursor()
        cursor.execute(statements)
        return cursor.fetchall() if cursor.description else ()


def run_each(url: URL, statements: str) -> None:
    """Run statements one by one, each in a transaction of its own."""
    made = create_engine(url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with made.connect() as connection:
        for statement in filter(None, map(str.strip, statements.split(";"))):
            connection.exec_driver_sql(statement)


def record_calls(url: str) -> None:
    """Let a database with the schema record what Citus would be asked to do."""
    run(url, _RECORDING)


def recorded_calls(url: str) -> list[str]:
    """Return the tables and functions that were distributed, in order."""
    return [call for (call,) in run(url, "SELECT call FROM calls ORDER BY number")]


@contextmanager
def nodes_of_three() -> Iterator[list[URL]]:
    """Give a coordinator and two workers, by a database of each that is dropped at the end."""
    named = make_url(os.environ[NAMED]).set(drivername=DRIVER, database="postgres")
    workers = run(
        os.environ[NAMED],
        "SELECT nodename, nodeport FROM pg_dist_node"
        " WHERE groupid > 0 AND noderole = 'primary' ORDER BY nodeid LIMIT 2",
    )
    nodes = [named, *(named.set(host=host, port=port) for host, port in workers)]
    name = f"rs_{os.getpid()}_cluster"
    yield [node.set(database=name) for node in nodes]
    for node in nodes:
        _run_until_free(node, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def join_nodes(coordinator: URL, *workers: URL) -> None:
    """Make the databases, the extension in each, and a cluster of them."""
    for node in (coordinator, *workers):
        run_each(
            node.set(database="postgres"), f"CREATE DATABASE {node.database} TEMPLATE template0"
        )
        run_each(node, "CREATE EXTENSION citus")
    places = [f"'{node.host}', {node.port or 5432}" for node in (coordinator, *workers)]
    run_each(coordinator, f"SELECT citus_set_coordinator_host({places[0]})")
    for place in places[1:]:
        run_each(coordinator, f"SELECT citus_add_node({place})")


def _run_until_free(url: URL, statement: str) -> None:
    """Run a statement, again while a process of Citus looks into the database."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            return run_each(url, statement)
        except DBAPIError:
            if time.monotonic() > end:
                raise


@contextmanager
def named_cluster() -> Iterator[str]:
    """Give a new store on the cluster that is named, in a schema of its own."""
    name = f"rs_{os.getpid()}_{next(_NUMBERS)}"
    bare = make_url(os.environ[NAMED]).set(drivername=DRIVER)
    # So a test that asks in SQL finds the tables by their names.
    url = bare.update_query_dict(
        {"options": f"-c search_path={name},public -c citus.shard_count=4"}
    )
    run(_text(bare), f"CREATE SCHEMA {name}")
    try:
        opening.upgrade(opening.with_schema(url, name))
        yield _text(url)
    finally:
        run(_text(bare), f"DROP SCHEMA {name} CASCADE")


class DistributedStores:
    """Empty stores on the cluster that is named, which are lent, emptied and lent again."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._free: list[str] = []

    @contextmanager
    def lend(self) -> Iterator[str]:
        """Give a distributed store with no rows; one whose tables a test changed is dropped."""
        url = self._free.pop() if self._free else self._made()
        before = run(url, _SHAPE)
        yield url
        if run(url, _SHAPE) == before:
            run(url, "TRUNCATE sessions, settings_profiles CASCADE")
            self._free.append(url)

    def close(self) -> None:
        """Drop them all."""
        self._stack.close()

    def _made(self) -> str:
        url = self._stack.enter_context(named_cluster())
        distribution.distribute(url)
        return url


_NUMBERS = count()
_SHAPE = """
    SELECT relname, relnatts, relchecks, relhastriggers, relforcerowsecurity, version_num
    FROM pg_class, alembic_version
    WHERE relnamespace = current_schema()::regnamespace ORDER BY relname
"""


def _text(url: URL) -> str:
    return url.render_as_string(hide_password=False)
