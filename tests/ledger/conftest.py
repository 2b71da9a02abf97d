"""Fixtures of the tests of the ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reasoning_store.ledger.ledger import Ledger


@pytest.fixture(params=["sqlite", "postgres"])
def other(
    request: pytest.FixtureRequest, tmp_path: Path, sqlite_template: Path
) -> Iterator[Ledger]:
    """An open ledger next to the first, on each engine."""
    if request.param == "sqlite":
        path = tmp_path / "other.db"
        path.write_bytes(sqlite_template.read_bytes())
        url = f"sqlite:///{path}"
    else:
        create: Callable[..., Any] = request.getfixturevalue("create_database")
        made = create(request.getfixturevalue("postgres_template"))
        url = made.render_as_string(hide_password=False)
    with Ledger.open(url) as opened:
        yield opened
