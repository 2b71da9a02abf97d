"""kill -9 of the nodes of a Citus cluster under load: each acknowledged turn is there, once.

The nodes are servers of the test's own, so their programs need the extension.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

import reasoning_store as rs
from reasoning_store.ledger.database import distribution, opening

from . import programs
from .processes import Told, crowd
from .server import Server, server
from .whole import check_whole

pytestmark = [pytest.mark.long, pytest.mark.citus_programs]
WRITERS, TURNS, KILLS = 4, 120, 3
_NODES = """
    WITH keys AS MATERIALIZED (SELECT session_key FROM reasoning_store.sessions)
    SELECT nodename FROM keys, citus_shards WHERE shardid =
        get_shard_id_for_distribution_column('reasoning_store.sessions', session_key)
"""
"""Where the sessions are."""


@pytest.fixture
def joined() -> Iterator[list[Server]]:
    """A coordinator and two workers, with a store of which nothing is distributed."""
    with ExitStack() as stack:
        made = [stack.enter_context(server(library="citus")) for _ in range(3)]
        for node in made:
            node.ask("CREATE EXTENSION citus")
        coordinator, *workers = made
        coordinator.ask(f"SELECT citus_set_coordinator_host('{coordinator.folder}', 5432)")
        for worker in workers:
            coordinator.ask(f"SELECT citus_add_node('{worker.folder}', 5432)")
        opening.upgrade(coordinator.url)
        yield made


@pytest.fixture
def nodes(joined: list[Server]) -> list[Server]:
    """The same, distributed over the workers."""
    distribution.distribute(url_of(joined[0]))
    return joined


def url_of(node: Server) -> str:
    return node.url.render_as_string(hide_password=False)


def check_each_once(url: str, told: list[list[Told]]) -> None:
    """Each acknowledged turn is where its writer was told, and only there."""
    with rs.Store(url) as store:
        for writer, lines in enumerate(told):
            there = store.session(f"s{writer}").history()
            assert [item.position for item in there] == list(range(1, 2 * TURNS + 1))
            stored = [line[1:] for line in lines if line[0] == "stored"]
            assert [number for number, _ in stored] == list(range(TURNS))
            for number, (first, second) in stored:
                assert there[first - 1].message == rs.user(f"w{writer} {number}")
                assert there[second - 1].message == programs.turn(number)[1]
    check_whole(url)


@pytest.mark.parametrize("killed", [0, 1, 2], ids=["coordinator", "worker1", "worker2"])
def test_a_node_that_is_killed_loses_and_repeats_nothing(nodes: list[Server], killed: int) -> None:
    """Three times, under four writers, each with a session of its own."""
    url = url_of(nodes[0])
    with rs.Store(url) as store:
        for writer in range(WRITERS):
            store.session(f"s{writer}", create=True)
    assert {node for (node,) in nodes[0].ask(_NODES)} == {str(one.folder) for one in nodes[1:]}
    each = [(url, f"w{n}", TURNS, f"s{n}") for n in range(WRITERS)]
    with crowd(programs.append_in_spite_of_all, each) as children:
        for _ in range(KILLS):
            children[0].hear_until("stored", TURNS // (KILLS + 2))
            nodes[killed].kill()
            nodes[killed].start()
        told = [child.finish() for child in children]

    check_each_once(url, told)
    assert [node.ask("SELECT gid FROM pg_prepared_xacts") for node in nodes] == [[], [], []]


def test_a_node_that_is_away_is_named_and_nothing_is_distributed(joined: list[Server]) -> None:
    """The same command works when it is back."""
    url, away = url_of(joined[0]), joined[2]
    away.kill()
    for verb in (distribution.plan, distribution.distribute):
        with pytest.raises(rs.StoreBusy, match=f"(?m)does not answer: {away.folder}:5432$"):
            verb(url)
    assert joined[0].ask("SELECT * FROM pg_dist_partition") == []

    away.start()
    assert distribution.distribute(url).steps
