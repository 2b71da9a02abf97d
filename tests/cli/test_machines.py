"""More than one machine: standbys as doctor shows them, and the command `db distribute`."""

from __future__ import annotations

import pytest

import reasoning_store as rs
from reasoning_store.cli.exit_codes import Exit
from reasoning_store.diagnosis import State, standby_state
from reasoning_store.ledger.database.topology import ServerSettings
from tests import clusters
from tests.cli.conftest import Here

DISTRIBUTED = "distributed by session_key: 32 shards on 2 nodes"


def test_doctor_shows_the_standbys_and_the_machine_of_the_tables(
    here: Here, plain_url: str
) -> None:
    """On one server that has no standby."""
    ran = here(f"db doctor --db '{plain_url}' --json")
    details = {one["name"]: one["detail"] for one in ran.data["findings"]}

    assert details["standbys"].startswith("0 connected, synchronous_standby_names is empty")
    assert details["tables"] == "on one server: this database has no Citus"


@pytest.mark.parametrize(
    ("commit", "names", "is_standby", "standbys", "state", "says"),
    [
        ("on", "", False, 0, "ok", "0 connected"),
        ("on", "", False, 2, "note", "a fail-over loses the last acknowledged messages"),
        ("on", "FIRST 1 (s1)", False, 1, "ok", "synchronous_standby_names is FIRST 1 (s1)"),
        ("on", "s1", False, 0, "note", "every write waits"),
        ("local", "s1", False, 1, "note", "does not wait for it"),
        ("on", "", True, 0, "note", "takes no writes"),
        ("on", "s1", True, 0, "note", "promoted, every write would wait for s1"),
    ],
)
def test_doctor_names_what_a_fail_over_would_lose(
    commit: str, names: str, is_standby: bool, standbys: int, state: State, says: str
) -> None:
    """For each way in which a primary may be set."""
    found, detail = standby_state(ServerSettings(commit, "origin", names, is_standby, standbys))

    assert found == state
    assert says in detail


@pytest.mark.parametrize(
    ("before", "name", "state", "says"),
    [
        ("SELECT 1", "tables", "note", "on the coordinator alone"),
        (
            "SELECT create_distributed_table('sessions', 'session_key')",
            "tables",
            "failed",
            "not distributed: branches, origins,",
        ),
        (
            "SELECT create_distributed_table('messages', 'branch')",
            "tables",
            "failed",
            "messages is distributed by branch",
        ),
        ("UPDATE pg_dist_node SET answers = false", "nodes", "failed", "w1:5432, w2:5432"),
    ],
)
def test_doctor_names_what_is_not_distributed(
    here: Here, recording_url: str, before: str, name: str, state: str, says: str
) -> None:
    """On a database that records what Citus is asked to do."""
    clusters.run(recording_url, before)
    ran = here(f"db doctor --db '{recording_url}' --json")
    (found,) = [one for one in ran.data["findings"] if one["name"] == name]

    assert found["state"] == state
    assert says in found["detail"]


@pytest.mark.parametrize(
    ("setting", "value", "name", "state", "says"),
    [
        ("synchronous_commit", "off", "durability", "note", "w2:5432: synchronous_commit is off"),
        ("synchronous_commit", "on", "durability", "ok", "synchronous_commit is on"),
        ("synchronous_commit", "on", "standbys", "note", "0 connected, synchronous_standby_names"),
        ("standby_names", "s1", "standbys", "note", "w2:5432: 0 connected, "),
        (
            "replication_role",
            "replica",
            "foreign keys",
            "failed",
            "w2:5432: session_replication_role is replica",
        ),
    ],
)
def test_doctor_asks_every_node_and_names_the_worst(
    here: Here, recording_url: str, setting: str, value: str, name: str, state: str, says: str
) -> None:
    """The rows of a cluster are on its workers, and so is what outlives them."""
    clusters.run(recording_url, f"UPDATE pg_dist_node SET {setting} = '{value}' WHERE nodeid = 2")  # noqa: S608
    ran = here(f"db doctor --db '{recording_url}' --json")
    found = [one for one in ran.data["findings"] if one["name"] == name]

    assert found[-1]["state"] == state
    assert found[-1]["detail"].startswith(says)


def test_doctor_shows_the_settings_of_the_nodes_that_answer(here: Here, recording_url: str) -> None:
    clusters.run(recording_url, "UPDATE pg_dist_node SET answers = nodename = 'w1'")
    found = {
        one["name"]: one["state"]
        for one in here(f"db doctor --db '{recording_url}' --json").data["findings"]
    }

    assert (found["durability"], found["nodes"]) == ("ok", "failed")


def test_distribute_prints_the_statements_and_leaves_nothing_to_do(
    here: Here, recording_url: str
) -> None:
    """On a database that records: printed by --check, run once, and doctor finds all well."""
    with rs.Store(recording_url) as store:
        store.session("chat-42", create=True).append(rs.user("Hello"))
    checked = here(f"db distribute --check --db '{recording_url}'")
    unchanged = clusters.recorded_calls(recording_url)
    ran = here(f"db distribute --db '{recording_url}'")
    again = here(f"db distribute --check --db '{recording_url}'")
    findings = here(f"db doctor --db '{recording_url}' --json").data["findings"]

    assert (checked.code, ran.code, again.code) == (Exit.FAILED, Exit.DONE, Exit.DONE)
    assert (unchanged, again.out) == ([], "")
    assert "SELECT create_distributed_table('sessions', 'session_key');" in checked.out
    assert ran.out.startswith(checked.out)
    assert "on 2 nodes: w1:5432, w2:5432" in ran.err
    assert [one["detail"] for one in findings if one["name"] == "tables"] == [DISTRIBUTED]
