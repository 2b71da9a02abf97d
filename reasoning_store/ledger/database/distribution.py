"""The tables of a store distributed over the nodes of a Citus cluster, all by the session's key.

The statements are those of docs/howto/postgresql.md. Those that distribute are one transaction;
the rows that this leaves on the coordinator go in the next one, which can be run again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from sqlalchemy import Connection

from reasoning_store.conversation.errors import InvalidCall, SchemaError, StoreBusy
from reasoning_store.ledger.database import driver_errors, opening, schema_version, topology
from reasoning_store.ledger.database.database import Database
from reasoning_store.ledger.database.postgres import DRIVER
from reasoning_store.ledger.database.statement import driver, quoted, schema_of
from reasoning_store.ledger.database.topology import KEY, Cluster
from reasoning_store.ledger.tables import metadata

_ARGUMENT = "for_key"
"""The argument of the function that decides where its rows are."""


@dataclass(frozen=True, slots=True)
class Step:
    """One statement, and the table or function that it is about."""

    subject: str
    statement: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps that distribute a store; those that were done before are left out."""

    nodes: tuple[str, ...] = ()
    schema: str = schema_version.SCHEMA_NAME
    """The schema in which the steps find the tables."""
    steps: tuple[Step, ...] = ()
    missing: str | None = None
    """Why the store cannot be distributed at all."""
    help: str | None = None

    @property
    def statements(self) -> tuple[str, ...]:
        """All that has to be run by hand in the place of the command."""
        found = f"SET search_path TO {quoted(self.schema)}"
        return (found, *(step.statement for step in self.steps)) if self.steps else ()


def distribution_steps(cluster: Cluster) -> Iterator[Step]:
    """Yield what distributes each table that is not, parents first, and then the function."""
    placed = [name for name in metadata.tables if cluster.tables[name].kind == "hash"]
    anchor = placed[0] if placed else None
    for name in metadata.tables:
        if cluster.tables[name].kind == "local":
            together = "" if anchor is None else f", colocate_with => '{anchor}'"
            yield Step(name, f"SELECT create_distributed_table('{name}', '{KEY}'{together})")
            anchor = anchor or name
    version = schema_version.VERSION_TABLE
    if cluster.tables[version].kind == "local":
        yield Step(version, f"SELECT create_reference_table('{version}')")
    if not cluster.function_is_placed:
        name = cluster.function.partition("(")[0]
        yield Step(
            name,
            f"SELECT create_distributed_function('{cluster.function}', '{_ARGUMENT}',"
            f" colocate_with => '{anchor}')",
        )


def truncation_steps(cluster: Cluster) -> Iterator[Step]:
    """Yield what removes the rows that Citus copied to the nodes and left on the coordinator."""
    for name in metadata.tables:
        if cluster.tables[name].kind == "hash" and cluster.tables[name].is_left:
            yield Step(name, f"SELECT truncate_local_data_after_distributing_table('{name}')")


_TRANSACTIONS = (
    (distribution_steps, "nothing was changed"),
    (truncation_steps, "the coordinator has its old rows still: run this again"),
)
"""The steps of each transaction, and the state that it leaves where one of them fails."""


def misplaced(cluster: Cluster) -> str | None:
    """Return which table lies where no session could be read; None where all are well."""
    groups = {table.colocation for table in cluster.tables.values() if table.kind == "hash"}
    for name, table in cluster.tables.items():
        wanted = (
            ("local", "reference") if name == schema_version.VERSION_TABLE else ("local", "hash")
        )
        if table.kind not in wanted:
            return f"the table {name} is not distributed by {KEY}, but as a {table.kind} table"
        if table.column not in (None, KEY):
            return f"the table {name} is distributed by {table.column}, not by {KEY}"
    if len(groups) > 1:
        return "the tables are distributed in groups that do not lie together"
    return None


def check_cluster(cluster: Cluster) -> None:
    """Refuse a cluster on which the steps would fail halfway."""
    if not cluster.is_coordinator:
        raise InvalidCall(
            "this server is a worker of the cluster", hint="name the coordinator in the URL"
        )
    if not any(node.has_shards for node in cluster.nodes):
        raise SchemaError(
            "no node of this cluster takes shards", hint="SELECT citus_add_node('host', 5432)"
        )
    away = [node.name for node in cluster.nodes if not node.is_active]
    if away:
        raise StoreBusy(
            f"a node of the cluster is away: {', '.join(away)}",
            hint="bring it back, or remove it, and run this again",
        )
    if cluster.referring:
        raise SchemaError(
            f"a table of another program refers to the store: {', '.join(cluster.referring)}",
            hint="drop its foreign key: a table that is distributed cannot have it",
        )
    if not all(one.is_owned for one in cluster.tables.values()):
        raise InvalidCall(
            "this role does not own the tables",
            hint="name the role that upgrades the store in the URL",
        )
    wrong = misplaced(cluster)
    if wrong is not None:
        raise SchemaError(
            wrong, hint="run SELECT undistribute_table('...') for each that is, and this again"
        )


def plan(url: str) -> Plan:
    """Return what ``distribute`` would do, and change nothing."""
    if opening.parse_url(url).drivername != DRIVER:
        return Plan(missing="an SQLite file is on one machine")
    database = opening.connect_to_read(url, connections=1)
    try:
        found = database.read(_planned)
        if found.missing is None:
            _check_nodes(database)
        return found
    finally:
        database.close()


def distribute(url: str) -> Plan:
    """Distribute what is not, remove what that leaves on the coordinator; return what was done."""
    planned = plan(url)
    if planned.missing is not None:
        raise InvalidCall(planned.missing, hint=planned.help)
    if not planned.steps:
        return planned
    database = opening.connect(url, connections=1)
    try:
        steps = [
            step
            for choose, left in _TRANSACTIONS
            for step in database.change_schema(partial(_run_steps, choose=choose, left=left))
        ]
        return replace(planned, steps=tuple(steps))
    finally:
        database.close()


def _planned(connection: Connection) -> Plan:
    cluster = topology.read_cluster(connection)
    if cluster is None:
        return _without_citus(*topology.has_citus(connection))
    check_cluster(cluster)
    nodes = tuple(node.name for node in cluster.nodes if node.has_shards)
    steps = (*distribution_steps(cluster), *truncation_steps(cluster))
    return Plan(nodes, schema_of(connection) or schema_version.SCHEMA_NAME, steps)


def _without_citus(_: bool, is_installed: bool) -> Plan:
    if is_installed:
        create = "run CREATE EXTENSION citus in this database, on every node"
        return Plan(missing="this database has no Citus", help=create)
    return Plan(
        missing="this server has no Citus: all tables are on one machine",
        help="a standby needs none; docs/howto/postgresql.md has both",
    )


def _check_nodes(database: Database) -> None:
    away = database.read_one(topology.nodes_away)
    if away:
        raise StoreBusy(
            f"a node of the cluster does not answer: {', '.join(away)}",
            hint="bring it back, and run this again",
        )


def _run_steps(
    connection: Connection, *, choose: Callable[[Cluster], Iterator[Step]], left: str
) -> tuple[Step, ...]:
    schema_version.claim_database(connection)
    cluster = topology.read_cluster(connection)
    if cluster is None:  # it went meanwhile
        return ()
    check_cluster(cluster)
    steps = tuple(choose(cluster))
    for step in steps:
        try:
            driver(connection).execute(step.statement)
        except Exception as error:
            if driver_errors.is_conflict(error):
                raise
            ours = driver_errors.translate(error)
            raise type(ours)(f"{step.subject}: {ours}; {left}", hint=ours.hint) from None
    return steps
