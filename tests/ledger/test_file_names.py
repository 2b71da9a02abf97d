"""A file gets its name once, whatever else makes one of that name, and on any file system."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from reasoning_store.ledger.database import files


@pytest.fixture(params=["with links", "without links"])
def links(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    def refused(*_: Any, **__: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    if request.param == "without links":
        monkeypatch.setattr(os, "link", refused)
    return str(request.param)


@pytest.mark.usefixtures("links")
def test_a_new_file_gets_its_name_unless_another_has_it(tmp_path: Path) -> None:
    """What stands there stays."""
    target = tmp_path / "chat.db"
    named = []
    for text in ("first", "second"):
        with files.unfinished_file(target) as fresh:
            fresh.write_text(text)
            named.append(files.give_name(fresh, target))

    assert named == [True, False]
    assert target.read_text() == "first"


@pytest.mark.usefixtures("links")
def test_of_several_at_once_one_gives_the_name(tmp_path: Path) -> None:
    """Also where it takes two steps."""
    target = tmp_path / "chat.db"
    ready = threading.Barrier(4)
    named: list[bool] = []

    def make() -> None:
        with files.unfinished_file(target) as fresh:
            fresh.write_text("whole")
            ready.wait(120)
            named.append(files.give_name(fresh, target))

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)

    assert sorted(named) == [False, False, False, True]
    assert target.read_text() == "whole"
    assert [*tmp_path.iterdir()] == [target]
