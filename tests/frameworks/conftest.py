"""The stores of these tests: one on each engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import URL

import reasoning_store as rs
from tests.databases import Databases
from tests.docs.provider import Provider
from tests.integrations.loops import twenty_steps
from tests.servers import server


@pytest.fixture(scope="session")
def databases() -> Iterator[Databases]:
    """The databases on a PostgreSQL server; they go when the tests end."""
    with server() as url:
        made = Databases(url)
        yield made
        made.close()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a new, empty store on each engine."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'chat.db'}"
        return
    databases: Databases = request.getfixturevalue("databases")
    with databases.lend() as lent:
        assert isinstance(lent, URL)
        yield lent.render_as_string(hide_password=False)


@pytest.fixture
def store(url: str) -> Iterator[rs.Store]:
    """A new, empty store on each engine."""
    with rs.Store(url) as opened:
        yield opened


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A strict provider that asks for a tool twenty times, then answers."""
    with Provider(twenty_steps()).listening() as listening:
        yield listening
