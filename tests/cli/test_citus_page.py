"""docs/howto/postgresql.md on a real Citus: its statements, in order, and then every verb."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import URL

import reasoning_store as rs
from tests import clusters
from tests.cli.conftest import Here
from tests.docs import verbs
from tests.docs.pages import CHECKOUT, read

PAGE = read(CHECKOUT / "docs" / "howto" / "postgresql.md")
ROLES, GRANTS, _, WORKERS, EXTENSION, NODES, DISTRIBUTION, _ = (
    block.text for block in PAGE if block.language == "sql"
)


@pytest.fixture
def nodes() -> Iterator[list[URL]]:
    """A coordinator and two workers, with what stands for "chat" in the names of the page."""
    with clusters.nodes_of_three() as nodes:
        yield nodes
    for node in nodes:
        for role in ("owner", "app"):
            server = node.set(database="postgres")
            clusters.run_each(server, f"DROP ROLE IF EXISTS {node.database}_{role}")


def distribute_by_the_page(nodes: list[URL], here: Here, monkeypatch: pytest.MonkeyPatch) -> URL:
    """Follow the page as the roles that it names, and return the URL of a program."""
    name, (coordinator, *workers) = str(nodes[0].database), nodes
    owner, app = (coordinator.set(username=f"{name}_{role}") for role in ("owner", "app"))
    clusters.run_each(coordinator.set(database="postgres"), ROLES.replace("chat", name))
    clusters.run_each(owner, GRANTS.replace("chat", name))
    for worker in workers:
        clusters.run_each(worker.set(database="postgres"), WORKERS.replace("chat", name))
    for node in nodes:
        clusters.run_each(node, EXTENSION)
    addresses = NODES.replace("chat_", f"{name}_")
    for word, node in zip(("coordinator", "worker1", "worker2"), nodes, strict=True):
        addresses = addresses.replace(f"'{word}', 5432", f"'{node.host}', {node.port or 5432}")
    clusters.run_each(coordinator, addresses)

    monkeypatch.setenv("REASONING_STORE_URL", owner.render_as_string(hide_password=False))
    upgraded, checked = here("db upgrade"), here("db distribute --check")
    done, again = here("db distribute"), here("db distribute --check")
    assert [upgraded.code, done.code, again.code] == [0, 0, 0]
    assert squeezed(checked.out) == squeezed(DISTRIBUTION)
    return app


def squeezed(statements: str) -> str:
    """Return statements without spaces, quoted names, and breaks in their texts."""
    return "".join(statements.split()).replace("''", "").replace('"', "")


@pytest.mark.citus
def test_the_statements_of_the_page_end_in_a_cluster_on_which_every_verb_works(
    nodes: list[URL], here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the examples of the reference; `db doctor` finds nothing to mend."""
    app = distribute_by_the_page(nodes, here, monkeypatch)
    url = app.render_as_string(hide_password=False)
    findings = here(f"db doctor --db '{url}' --json").data["findings"]

    (tables,) = [one for one in findings if one["name"] == "tables"]
    assert tables["detail"] == "distributed by session_key: 8 shards on 2 nodes"
    assert {one["state"] for one in findings} <= {"ok", "note"}
    for example in verbs.examples():
        if example is not verbs.store_backup:  # a server has a tool of its own
            use(url, example)


def use(url: str, example: verbs.Example) -> None:
    with rs.Store(url) as store:
        try:
            example(store, verbs.conversation(store))
            assert store.verify().ok
        except BaseException as error:
            error.add_note(f"the example: {example.__name__}")
            raise
        for owner in (store, store.for_owner("user-7")):
            owner.erase()
