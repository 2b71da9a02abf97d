"""The databases that the tests run on: a real SQLite file, and a real PostgreSQL server.

The server is found as ``servers`` says. It is started once, for all processes of a run, and
stopped at the end, even of a run that is killed; a test gets an empty database. Where there is
no server at all, the tests fail: nothing is skipped.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import URL

import reasoning_store as rs
from reasoning_store.ledger.ledger import Ledger
from tests import clusters
from tests.databases import Databases
from tests.properties import QUICK, THOROUGH, load_profile
from tests.servers import NAMED, server

# What helps the tests says as much as they do when it finds something else.
_HELPERS = (
    "cli concurrency docs durability egress faces importers ingress ledger testing wire happenings"
)
pytest.register_assert_rewrite(*(f"tests.{name}" for name in _HELPERS.split()))


def pytest_configure(config: pytest.Config) -> None:
    """Try properties as thoroughly as the tests that are chosen: in CI with the same examples."""
    is_quick = config.getoption("markexpr") == "not long"
    load_profile(QUICK if is_quick else THOROUGH, is_repeatable=bool(os.environ.get("CI")))
    # Several workers share one server, which the process that starts them runs.
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        stack = ExitStack()
        config.add_cleanup(stack.close)
        os.environ[NAMED] = stack.enter_context(server()).render_as_string(hide_password=False)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Use one worker more than there are processors: now and then one waits for a disk."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else 2


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of a Citus, where there is none."""
    left_out = [item for item in items if clusters.missing(item)]
    if left_out:
        items[:] = [item for item in items if not clusters.missing(item)]
        config.hook.pytest_deselected(items=left_out)


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """After each module, let the collector pass over what is left: nearly all of it stays."""
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests would have run on Citus too, where there is none."""
    stats = terminalreporter.stats
    number = sum(clusters.RECORDING in report.nodeid for report in stats.get("passed", ()))
    lacking = Counter(filter(None, map(clusters.missing, stats.get("deselected", ()))))
    if number and clusters.CITUS not in clusters.KINDS:
        lacking[clusters.NAMED] += number
    for variable, count in lacking.items():
        terminalreporter.write_line(f"{count} tests would run on a Citus: see {variable}")


@pytest.fixture(scope="session", autouse=True)
def signals_for_programs() -> None:
    """Where a signal is ignored, as under nohup, programs that tests start have its default.

    A program inherits that a signal is ignored, but not that it is handled.
    """
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


@pytest.fixture
def own_garbage() -> None:
    """Let the collector look only at what the test makes: all else is old, and much."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[URL]:
    """A server, by the URL of a database on which others can be created."""
    with server() as url:
        yield url


@pytest.fixture(scope="session")
def databases(postgres_server: URL) -> Iterator[Databases]:
    """The databases on the server; they go when the tests end."""
    made = Databases(postgres_server)
    yield made
    made.close()


@pytest.fixture(scope="session")
def create_database(databases: Databases) -> Callable[..., URL]:
    """Make databases on the server; they go when the tests end."""
    return databases.create


@pytest.fixture(scope="session")
def postgres_template(databases: Databases) -> str:
    """The name of a database with the schema and no rows."""
    return databases.template


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the schema and no rows."""
    path = tmp_path_factory.mktemp("template") / "empty.db"
    Ledger.open(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def sqlite_path(tmp_path: Path, sqlite_template: Path) -> Path:
    """A new file with the schema."""
    path = tmp_path / "chat.db"
    shutil.copy(sqlite_template, path)
    return path


@pytest.fixture
def plain_url(databases: Databases) -> Iterator[str]:
    """An empty database with the schema, on one server."""
    with databases.lend() as url:
        yield url.render_as_string(hide_password=False)


@pytest.fixture
def recording_url(create_database: Callable[..., URL], postgres_template: str) -> str:
    """A new database with the schema, which records what Citus would be asked to do."""
    url = create_database(postgres_template).render_as_string(hide_password=False)
    clusters.record_calls(url)
    return url


@pytest.fixture(scope="session")
def distributed_stores() -> Iterator[clusters.DistributedStores]:
    """Stores on the Citus that is named; they go when the tests end."""
    made = clusters.DistributedStores()
    yield made
    made.close()


@pytest.fixture
def postgres_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """An empty store on a server: distributed over the nodes of a Citus, where one is named."""
    if clusters.CITUS in clusters.KINDS:
        stores: clusters.DistributedStores = request.getfixturevalue("distributed_stores")
        with stores.lend() as url:
            yield url
    else:
        yield request.getfixturevalue("plain_url")


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """The URL of a new, empty store on each engine."""
    if request.param == "sqlite":
        return f"sqlite:///{request.getfixturevalue('sqlite_path')}"
    found: str = request.getfixturevalue("postgres_url")
    return found


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    """An open ledger on each engine."""
    with Ledger.open(url) as opened:
        yield opened


@pytest.fixture
def store(url: str) -> Iterator[rs.Store]:
    """A store on each engine."""
    with rs.Store(url) as opened:
        yield opened
