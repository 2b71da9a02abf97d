"""The machines of a server: its standbys, and where Citus keeps the tables of a store."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from reasoning_store.ledger.database.schema_version import SCHEMA_NAME, VERSION_TABLE
from reasoning_store.ledger.database.statement import driver, quoted, schema_of
from reasoning_store.ledger.tables import metadata

KEY = "session_key"
"""The column by which every table is distributed."""
OURS = (*metadata.tables, VERSION_TABLE)
"""Every table of a store, parents first."""
_FUNCTION = "append_messages"
_SETTINGS = """
    SELECT json_build_array(current_setting('synchronous_commit'),
        current_setting('session_replication_role'), current_setting('synchronous_standby_names'),
        pg_is_in_recovery(), (SELECT count(*) FROM pg_stat_replication))::text
"""
_OF_WORKERS = """
    SELECT nodename || ':' || nodeport, result FROM run_command_on_workers(%s)
    WHERE success ORDER BY 1
"""
_HAS_CITUS = """
    SELECT to_regclass('pg_dist_partition') IS NOT NULL,
        EXISTS (SELECT 1 FROM pg_available_extensions WHERE name = 'citus')
"""
# A name without a schema is found in pg_catalog first, where Citus has its own.
_NODES = """
    SELECT nodename, nodeport, isactive, shouldhaveshards,
        EXISTS (SELECT 1 FROM pg_dist_local_group WHERE groupid = 0)
    FROM pg_dist_node WHERE noderole = 'primary' ORDER BY nodeid
"""
_TABLES = """
    SELECT c.relname, p.partmethod::text, p.repmodel::text, p.colocationid,
        CASE WHEN p.partmethod = 'h' THEN column_to_column_name(p.logicalrelid, p.partkey) END,
        pg_relation_size(c.oid) > 0, pg_has_role(c.relowner, 'USAGE'),
        (SELECT count(*) FROM pg_dist_shard s WHERE s.logicalrelid = c.oid)
    FROM pg_class c LEFT JOIN pg_dist_partition p ON p.logicalrelid = c.oid
    WHERE c.relnamespace = to_regnamespace(%s) AND c.relname = ANY (%s)
"""
_REFERRING = """
    SELECT DISTINCT conrelid::regclass::text FROM pg_constraint
    JOIN pg_class ours ON ours.oid = confrelid
    JOIN pg_class theirs ON theirs.oid = conrelid
    WHERE contype = 'f' AND ours.relnamespace = to_regnamespace(%s) AND ours.relname = ANY (%s)
        AND NOT (theirs.relnamespace = ours.relnamespace AND theirs.relname = ANY (%s))
    ORDER BY 1
"""
_FUNCTIONS = """
    SELECT array_to_string(ARRAY(SELECT format_type(t, NULL) FROM unnest(p.proargtypes) t), ', '),
        EXISTS (SELECT 1 FROM pg_dist_object o WHERE o.objid = p.oid
            AND o.classid = 'pg_proc'::regclass AND o.distribution_argument_index IS NOT NULL)
    FROM pg_proc p WHERE p.pronamespace = to_regnamespace(%s) AND p.proname = %s
"""
_POOL = "SELECT current_setting('citus.max_adaptive_executor_pool_size', true)::int"
_AWAY = """
    SELECT DISTINCT CASE WHEN result IS NULL THEN from_nodename || ':' || from_nodeport
        ELSE to_nodename || ':' || to_nodeport END AS away
    FROM citus_check_cluster_node_health() WHERE result IS NOT TRUE ORDER BY 1
"""
"""Each node tries every node: NULL if it could not be asked itself."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The settings of a server that decide what outlives it."""

    synchronous_commit: str
    replication_role: str
    standby_names: str
    is_standby: bool
    standbys: int
    """How many are connected to it."""


@dataclass(frozen=True, slots=True)
class Node:
    """A server of a cluster."""

    name: str
    is_active: bool
    has_shards: bool


@dataclass(frozen=True, slots=True)
class Placement:
    """The nodes on which Citus stores a table: one, all, or by a column of it."""

    kind: str
    """``local``, ``reference``, ``hash``, or a kind that no table of a store has."""
    column: str | None = None
    colocation: int = 0
    is_left: bool = False
    """Whether the coordinator still has the rows from before it was distributed."""
    is_owned: bool = True
    """Whether this role may distribute it."""
    shards: int = 0


@dataclass(frozen=True, slots=True)
class Cluster:
    """A store on a Citus cluster: the nodes, and the place of each table."""

    is_coordinator: bool
    nodes: tuple[Node, ...]
    tables: Mapping[str, Placement]
    referring: tuple[str, ...]
    """Tables of others that refer to ours."""
    function: str
    """The signature of the function that appends."""
    function_is_placed: bool
    pool_size: int | None
    """With how many connections a node is asked for all its shards at once."""


def read_settings(connection: Connection) -> ServerSettings:
    """Return what the server has for this role."""
    row: Any = driver(connection).execute(_SETTINGS).fetchone()
    return ServerSettings(*json.loads(row[0]))


def read_worker_settings(connection: Connection) -> dict[str, ServerSettings]:
    """Return what each worker that answers has for this role: their tables hold the rows."""
    rows: Any = driver(connection).execute(_OF_WORKERS, (_SETTINGS,)).fetchall()
    return {name: ServerSettings(*json.loads(text)) for name, text in rows}


def has_citus(connection: Connection) -> tuple[bool, bool]:
    """Return whether this database has Citus, and whether its server could have it."""
    row: Any = driver(connection).execute(_HAS_CITUS).fetchone()
    return bool(row[0]), bool(row[1])


def read_cluster(connection: Connection) -> Cluster | None:
    """Return what Citus knows of a store; None where there is no Citus."""
    if not has_citus(connection)[0]:
        return None
    raw: Any = driver(connection)
    schema = quoted(schema_of(connection) or SCHEMA_NAME)
    ours = list(OURS)
    nodes = raw.execute(_NODES).fetchall()
    tables = {
        name: _placement(*rest) for name, *rest in raw.execute(_TABLES, (schema, ours)).fetchall()
    }
    functions = raw.execute(_FUNCTIONS, (schema, _FUNCTION)).fetchall()
    return Cluster(
        is_coordinator=all(is_coordinator for *_, is_coordinator in nodes),
        nodes=tuple(Node(f"{name}:{port}", *rest) for name, port, *rest, _ in nodes),
        tables={name: tables[name] for name in OURS if name in tables},
        referring=tuple(
            name for (name,) in raw.execute(_REFERRING, (schema, ours, ours)).fetchall()
        ),
        function=f"{_FUNCTION}({functions[0][0]})" if functions else "",
        function_is_placed=all(is_placed for *_, is_placed in functions),
        pool_size=raw.execute(_POOL).fetchone()[0],
    )


def _placement(
    method: str | None,
    model: str | None,
    colocation: int | None,
    column: str | None,
    is_left: bool,
    is_owned: bool,
    shards: int,
) -> Placement:
    if method == "h":
        return Placement("hash", column, colocation or 0, is_left, is_owned, shards)
    if method == "n" and model == "t":
        return Placement("reference", is_owned=is_owned, shards=shards)
    # Citus also knows local tables ("n" with model "s" and no group), which it distributes.
    is_local = method is None or (method == "n" and not colocation)
    return Placement("local" if is_local else "other", is_owned=is_owned, shards=shards)


def nodes_away(connection: Connection) -> tuple[str, ...]:
    """Return the nodes that another one does not reach."""
    raw: Any = driver(connection)
    return tuple(name for (name,) in raw.execute(_AWAY).fetchall())
