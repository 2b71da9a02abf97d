"""A file gets its name once, whoever else makes one of that name, and on any file system."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from reasoning_store.ledger import making


@pytest.fixture(params=["with links", "without links"])
def links(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    def refused(*_: Any, **__: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    if request.param == "without links":
        monkeypatch.setattr(os, "link", refused)
    return str(request.param)


@pytest.mark.usefixtures("links")
def test_what_is_made_gets_its_name_unless_somebody_was_first(tmp_path: Path) -> None:
    """What stands there stays."""
    target = tmp_path / "chat.db"
    told = []
    for text in ("first", "second"):
        with making.beside(target) as fresh:
            fresh.write_text(text)
            told.append(making.put(fresh, target))

    assert told == [True, False]
    assert target.read_text() == "first"


@pytest.mark.usefixtures("links")
def test_of_several_at_once_one_gives_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where to look and to name are two steps: nobody looks between another's."""
    target = tmp_path / "chat.db"
    ready, both_looked = threading.Barrier(2), threading.Barrier(2)
    told: list[bool] = []
    exists = Path.exists

    def look(path: Path) -> bool:
        found = exists(path)
        if path == target and not found:
            with suppress(threading.BrokenBarrierError):
                both_looked.wait(0.5)  # in vain, where they come one by one
        return found

    monkeypatch.setattr(Path, "exists", look)

    def make() -> None:
        with making.beside(target) as fresh:
            ready.wait(30)
            told.append(making.put(fresh, target))

    threads = [threading.Thread(target=make) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert sorted(told) == [False, True]
