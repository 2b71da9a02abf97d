"""The command that distributes a store: its statements, in order, and a named error for the rest.

Each test runs on a database that records, and on a Citus cluster where one is named: see
``tests/clusters.py``. Only the second shows that Citus takes them.
"""

from __future__ import annotations

import gc
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import URL, BinaryExpression, BindParameter, FromClause, make_url, select
from sqlalchemy.sql import operators, visitors

import reasoning_store as rs
from reasoning_store import ledger
from reasoning_store.conversation.errors import (
    InvalidCall,
    ReasoningStoreError,
    SchemaError,
    StoreBusy,
)
from reasoning_store.ledger.database import distribution
from reasoning_store.ledger.database.statement import Statement
from reasoning_store.ledger.tables import metadata, sessions, settings_profiles
from tests import clusters

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "postgresql.md"
ON_PAGE = re.findall(
    r"SELECT create_\w+\([^;]*;",
    PAGE.read_text("utf-8"),
)


@pytest.fixture(params=clusters.KINDS)
def cluster(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a store of which nothing is distributed."""
    if request.param == clusters.CITUS:
        with clusters.named_cluster() as url:
            yield url
    else:
        yield request.getfixturevalue("recording_url")


def words(statement: str) -> str:
    return re.sub(r"'\s+'|\s|;", "", statement)


def test_the_statements_are_those_of_the_page_in_their_order(cluster: str) -> None:
    """Planned and run alike; a second run finds nothing to do."""
    planned = distribution.plan(cluster)
    done = distribution.distribute(cluster)

    assert [words(step.statement) for step in done.steps] == [*map(words, ON_PAGE)]
    assert planned == done
    assert distribution.plan(cluster).steps == ()
    assert distribution.distribute(cluster).steps == ()


def test_a_table_is_distributed_after_those_it_refers_to() -> None:
    """The order is that in which the tables are described."""
    names = [*metadata.tables]
    for table in metadata.tables.values():
        parents = {key.referred_table.name for key in table.foreign_key_constraints}
        assert all(names.index(parent) < names.index(table.name) for parent in parents)


def statements() -> list[Any]:
    """Return every statement of the ledger, as SQLAlchemy has it."""
    for module in pkgutil.walk_packages(ledger.__path__, f"{ledger.__name__}."):
        importlib.import_module(module.name)
    gc.unfreeze()  # the collector names no object that it passes over
    return [one._statement for one in gc.get_objects() if isinstance(one, Statement)]


def key_groups(statement: Any) -> int:
    """Return in how many groups the tables of a statement fall that share a session's key."""
    group: dict[Any, Any] = {}

    def first(one: Any) -> Any:
        while group.setdefault(one, one) is not one:
            one = group[one]
        return one

    tables, originals = set(), set()
    for part in visitors.iterate(statement):
        if isinstance(part, FromClause) and part.__visit_name__ in ("table", "alias"):
            tables.add(part)
            originals.add(getattr(part, "element", None))
        if isinstance(part, BinaryExpression) and part.operator is operators.eq:
            sides = [part.left, part.right]
            keys = [
                "one key" if isinstance(one, BindParameter) else one.table
                for one in sides
                if isinstance(one, BindParameter) or getattr(one, "name", "") == "session_key"
            ]
            if len(keys) == 2 and keys != ["one key", "one key"]:
                group[first(keys[0])] = first(keys[1])
    # A table that stands in the statement only under another name is not a second one.
    return len({first(one) for one in tables if one not in originals or one in group})


def test_the_tables_of_a_statement_are_joined_by_the_session_key() -> None:
    """Else Citus refuses it; a session's statements then need one shard."""
    by_owner = select(sessions.c.id, settings_profiles.c.name).where(
        settings_profiles.c.session_key == sessions.c.owner_key
    )
    groups = [(key_groups(one), str(one)) for one in statements()]

    assert key_groups(by_owner) == 2
    assert len(groups) > 100
    assert [text for number, text in groups if number > 1] == []


def test_every_verb_works_on_a_distributed_store(cluster: str) -> None:
    """On Citus too, where one is named; a database that records is one server."""
    distribution.distribute(cluster)
    with rs.Store(cluster) as store:
        mine = store.for_owner("user-7")
        mine.settings.set("reasoning.effort", "low")
        session = mine.session("s", create=True, title="Primes")
        first = session.append(rs.user("Is 91 prime?"), idempotency_key="k")
        again = session.append(rs.user("Is 91 prime?"), idempotency_key="k")
        session.append(rs.assistant(rs.ThinkingBlock(thought="7 * 13"), "No."))
        session.edit(1, rs.user("Is 97 prime?"))
        session.append(rs.assistant("Yes."))
        session.update_metadata({"about": "primes"})
        session.settings.set("reasoning.includeInContext", True)
        usage, request = session.usage(limit=1000), session.build_request(provider="deepseek")
        listed = [item.id for item in mine.sessions().items]
        found = mine.search("prime").items
        lines = list(mine.export_lines())
        reports = store.report(by=("owner", "day"))
        whole = store.verify()
        session.erase()
        loaded = mine.import_lines(lines).messages
        erased = mine.erase().sessions

    assert (first.position, again.is_new) == (1, False)
    assert all((request, usage, reports))
    assert (listed, bool(found), whole.ok) == (["s"], True, True)
    assert (loaded, erased) == (4, 1)


def test_a_repeated_key_is_answered_inside_a_transaction(cluster: str) -> None:
    """There Citus does not run the append on one node, and loses the code of an error."""
    distribution.distribute(cluster)
    options = f"{make_url(cluster).query.get('options', '')} -c default_transaction_isolation"
    url = make_url(cluster).update_query_dict({"options": f"{options}=serializable"})
    with rs.Store(url.render_as_string(hide_password=False)) as store:
        session = store.session("s", create=True)
        made = [session.append(rs.user("Hello"), idempotency_key="k").is_new for _ in range(2)]
        with pytest.raises(rs.Conflict):
            session.append(rs.user("Another"), idempotency_key="k")

    assert made == [True, False]


def test_the_rows_from_before_leave_the_coordinator(cluster: str) -> None:
    """Else what is erased later would stay on its disk."""
    with rs.Store(cluster) as store:
        store.session("s", create=True).append([rs.user("Is 91 prime?"), rs.assistant("No.")])
    done = distribution.distribute(cluster)
    left = [step.subject for step in done.steps if "truncate_local" in step.statement]

    assert left[:1] == ["sessions"]
    assert {*left} <= {*metadata.tables}
    assert distribution.plan(cluster).steps == ()


def test_a_half_distributed_store_gets_the_rest(cluster: str) -> None:
    """The rest lies with what is distributed already."""
    distribute = "SELECT create_distributed_table('{}', 'session_key', colocate_with => '{}')"
    clusters.run(cluster, distribute.format("sessions", "default"))
    clusters.run(cluster, distribute.format("branches", "sessions"))
    done = distribution.distribute(cluster)

    assert {*metadata.tables} - {step.subject for step in done.steps} == {"sessions", "branches"}
    assert "colocate_with => 'sessions'" in done.steps[0].statement
    assert placed(cluster) == {*metadata.tables, "alembic_version"}
    assert distribution.plan(cluster).steps == ()


def placed(url: str) -> set[str]:
    """Return the tables of a store that are distributed."""
    return {name for (name,) in clusters.run(url, _PLACED)}


_PLACED = """
    SELECT relname FROM pg_dist_partition JOIN pg_class c ON c.oid = logicalrelid
    WHERE relnamespace = current_schema()::regnamespace
"""
ANYWHERE: dict[str, tuple[str, type[ReasoningStoreError], str]] = {
    "a table of an application": (
        "CREATE TABLE orders (session bigint REFERENCES sessions)",
        SchemaError,
        "refers to the store: orders",
    ),
    "another kind": (
        "SELECT create_reference_table('settings_profiles')",
        SchemaError,
        "settings_profiles is not distributed by session_key, but as a reference table",
    ),
}


@pytest.mark.parametrize("case", ANYWHERE)
def test_tables_that_are_not_fit_are_refused_by_name(cluster: str, case: str) -> None:
    """Nothing more is distributed, and there is help."""
    check_refused(cluster, *ANYWHERE[case])


def check_refused(url: str, made: str, kind: type[ReasoningStoreError], says: str) -> None:
    clusters.run(url, made)
    before = placed(url)
    for verb in (distribution.plan, distribution.distribute):
        with pytest.raises(kind, match=says) as caught:
            verb(url)
        assert caught.value.hint
    assert placed(url) == before


REFUSED: dict[str, tuple[str, type[ReasoningStoreError], str]] = {
    "a worker": ("UPDATE pg_dist_local_group SET groupid = 1", InvalidCall, "is a worker"),
    "no nodes": ("DELETE FROM pg_dist_node", SchemaError, "no node of this cluster takes shards"),
    "a node that is disabled": (
        "UPDATE pg_dist_node SET isactive = false WHERE nodeid = 2",
        StoreBusy,
        "is away: w2:5432",
    ),
    "a node that is away": (
        "UPDATE pg_dist_node SET answers = false WHERE nodeid = 1",
        StoreBusy,
        "(?m)does not answer: w1:5432$",
    ),
    "another column": (
        "SELECT create_distributed_table('messages', 'branch')",
        SchemaError,
        "messages is distributed by branch, not by session_key",
    ),
    "two groups": (
        "SELECT create_distributed_table('sessions', 'session_key');"
        " SELECT create_distributed_table('branches', 'session_key');"
        " UPDATE pg_dist_partition SET colocationid = 9 WHERE logicalrelid = 'branches'::regclass",
        SchemaError,
        "do not lie together",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_cluster_that_is_not_fit_is_refused_by_name(recording_url: str, case: str) -> None:
    """On a database that records: nothing more is distributed, and there is help."""
    check_refused(recording_url, *REFUSED[case])


def test_a_role_that_does_not_own_the_tables_is_refused(cluster: str) -> None:
    """Before anything is distributed."""
    ((schema,),) = clusters.run(cluster, "SELECT current_schema()")
    clusters.run(cluster, f"GRANT USAGE ON SCHEMA {schema} TO pg_monitor")
    clusters.run(cluster, f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO pg_monitor")
    options = make_url(cluster).query.get("options", "")
    url = make_url(cluster).update_query_dict({"options": f"{options} -c role=pg_monitor"})

    with pytest.raises(InvalidCall, match="does not own the tables"):
        distribution.distribute(url.render_as_string(hide_password=False))
    assert placed(cluster) == set()


def test_a_statement_that_fails_takes_the_others_back(recording_url: str) -> None:
    """The error names its table; the next run begins again."""
    clusters.run(
        recording_url,
        "ALTER TABLE pg_dist_partition ADD CHECK (logicalrelid <> 'drafts'::regclass)",
    )

    with pytest.raises(ReasoningStoreError, match=r"^drafts: .*; nothing was changed$"):
        distribution.distribute(recording_url)
    assert clusters.recorded_calls(recording_url) == []


def test_a_server_without_citus_says_what_is_missing(
    create_database: Callable[..., URL], plain_url: str
) -> None:
    """By plan; by distribute as an error; and an older schema is to be upgraded first."""
    found = distribution.plan(plain_url)

    assert found.steps == ()
    assert found.missing in (
        "this server has no Citus: all tables are on one machine",
        "this database has no Citus",  # its programs have the extension
    )
    with pytest.raises(InvalidCall, match="has no Citus"):
        distribution.distribute(plain_url)
    with pytest.raises(SchemaError, match="no schema of reasoning-store yet"):
        distribution.plan(create_database().render_as_string(hide_password=False))
