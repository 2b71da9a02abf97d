"""The databases that the tests run on: a real SQLite file, and a real PostgreSQL server.

The server is found as ``servers`` says. It is started once and stopped at the end; a test
gets a database of its own, made from a template. Where there is no server at all, the tests
fail: nothing is skipped.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from sqlalchemy import URL, create_engine

from reasoning_store.ledger import engine
from reasoning_store.ledger.ledger import Ledger
from tests.servers import server

# What helps the tests says as much as they do when it finds something else.
_HELPERS = "cli concurrency durability egress importers ingress ledger testing wire happenings"
pytest.register_assert_rewrite(*(f"tests.{name}" for name in _HELPERS.split()))

# Time never decides a test; in CI the examples are the same at every run.
_PATIENT: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
hypothesis_settings.register_profile("here", **_PATIENT)
hypothesis_settings.register_profile("ci", derandomize=True, **_PATIENT)
hypothesis_settings.load_profile("ci" if os.environ.get("CI") else "here")

_numbers = count()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[URL]:
    """A server, by the URL of a database on which others can be created."""
    with server() as url:
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
