"""A store of each release that is distributed on a real Citus: upgraded, and distributed again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import URL, inspect

from reasoning_store.ledger.database import distribution, opening, schema_version
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.tables import metadata
from tests import clusters

from . import released

_SIGNATURE = "SELECT oid::regprocedure::text FROM pg_proc WHERE proname = 'append_messages'"


def distribute_tables(url: URL) -> list[str]:
    """Distribute the tables of a release by hand, and return those that it did not have."""
    tables: set[str] = set()
    opening.run_schema_command(
        url, lambda connection: tables.update(inspect(connection).get_table_names())
    )
    text, together = url.render_as_string(hide_password=False), ""
    for name in metadata.tables:
        if name in tables:
            clusters.run(
                text, f"SELECT create_distributed_table('{name}', 'session_key'{together})"
            )
            together = ", colocate_with => 'sessions'"
    clusters.run(text, "SELECT create_reference_table('alembic_version')")
    ((signature,),) = clusters.run(text, _SIGNATURE)
    clusters.run(text, f"SELECT create_distributed_function('{signature}', 'for_key'{together})")
    for name in ("sessions", "settings_profiles"):
        clusters.run(text, f"SELECT truncate_local_data_after_distributing_table('{name}')")
    return [name for name in metadata.tables if name not in tables]


def exported(url: URL) -> list[str]:
    """Return the lines of a sound store."""
    with Ledger.open(url) as ledger:
        assert ledger.audit.verify().ok
        return [*ledger.transfer.export_lines()]


@pytest.mark.citus
@pytest.mark.parametrize(
    "revision",
    [
        schema_version.REVISIONS[0],
        *(pytest.param(one, marks=pytest.mark.long) for one in schema_version.REVISIONS[1:]),
    ],
)
def test_a_distributed_store_of_a_release_is_upgraded_and_distributed_again(
    revision: str, create_database: Callable[[], URL]
) -> None:
    """On all nodes, with its rows: it exports what the same store on one server does."""
    single = create_database()
    with clusters.nodes_of_three() as nodes:
        clusters.join_nodes(*nodes)
        url = nodes[0].update_query_dict({"options": "-c citus.shard_count=4"})
        for database in (single, url):
            released.load("postgres", revision, database)
        missing = distribute_tables(url)
        for database in (single, url):
            opening.upgrade(database)
        done = distribution.distribute(url.render_as_string(hide_password=False))

        assert [step.subject for step in done.steps] == missing
        assert exported(url) == exported(single)
