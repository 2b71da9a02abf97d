"""Files that may not be written or may not grow: a named error, and nothing changed."""

from __future__ import annotations

from pathlib import Path

import pytest

import reasoning_store as rs

from . import programs
from .processes import Told, running
from .whole import check_whole


@pytest.mark.parametrize(
    ("file", "folder", "told"),
    [
        (0o400, 0o700, [("read", 2), ("refused", "SQLITE_READONLY")]),
        (0o600, 0o500, [("refused", "SQLITE_READONLY")]),
        (0o400, 0o500, [("refused", "SQLITE_READONLY")]),
        (0o000, 0o700, [("refused", "SQLITE_CANTOPEN")]),
    ],
    ids=["file", "folder", "both", "unreadable"],
)
def test_what_may_not_be_written_is_refused_and_stays_as_it_is(
    tmp_path: Path, file: int, folder: int, told: list[Told]
) -> None:
    """A usage error that says what to do, to root as well; it is read where it can be."""
    path = tmp_path / "folder" / "chat.db"
    path.parent.mkdir()
    url = f"sqlite:///{path}"
    with rs.Store(url) as store:
        store.session("s", create=True).append(programs.turn(1))
    before = path.read_bytes()
    path.chmod(file)
    path.parent.chmod(folder)
    try:
        with running(programs.try_everything, url) as child:
            heard = child.finish()
    finally:
        path.parent.chmod(0o700)
        path.chmod(0o600)

    *_, (_, kind, text, hint) = heard
    assert [*heard[:-1], ("refused", text[text.index("(") + 1 : -1])] == told
    assert kind == "InvalidCall"
    assert "folder" in hint
    assert path.read_bytes() == before
    check_whole(url)


def test_a_file_that_may_grow_no_further_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    """The system refuses the write; reads go on, and so do writes when there is room."""
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    with running(programs.fill_up, url, 1_000_000) as child:
        full, went_on = child.finish()

    _, turns, messages, hint = full
    assert turns > 5
    assert messages == 2 * turns
    assert hint
    assert went_on == ("went on", [messages + 1, messages + 2], True)
    check_whole(url)
    with rs.Store(url) as store:
        there = [item.message for item in store.session("s").history()]
    assert there == [m for number in range(1, turns + 2) for m in programs.turn(number)]
