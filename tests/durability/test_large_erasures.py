"""Erasing from a file that is larger than the memory that is left, or than the room on the disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.ledger.database import scrubbing, sqlite_connections
from tests.ledger.erasures import found

from . import programs
from .processes import running
from .whole import check_whole

LIBRARY = sqlite_connections.library()
_MB = 1 << 20


@pytest.fixture
def large(sqlite_path: Path) -> Path:
    """A file of 43 MB, with a message to erase."""
    with rs.Store(f"sqlite:///{sqlite_path}") as store:
        session = store.session("s", create=True)
        session.append(rs.user("<gone>"))
        picture = rs.MediaBlock(kind="image", mime_type="image/png", data=bytes(_MB))
        for _ in range(32):
            session.append(rs.user(picture))
    return sqlite_path


def test_an_erasure_takes_the_same_memory_however_large_the_file_is(large: Path) -> None:
    with running(programs.erase_in_memory_of, f"sqlite:///{large}", 32 * _MB) as child:
        heard = child.finish()

    assert heard == [("erased", ())]
    assert found(large, "gone") == {}
    check_whole(f"sqlite:///{large}")


@pytest.mark.parametrize("room", [-_MB, 4096], ids=["its copy", "the copy's log"])
def test_a_store_opens_where_the_disk_has_no_room_to_finish_an_erasure(
    large: Path, room: int
) -> None:
    """Each answer names the file until there is room, and nothing of the attempt is left on the
    disk; then opening it finishes the erasure."""
    size = large.stat().st_size
    with running(programs.erase_on_disk_of, f"sqlite:///{large}", size + room) as child:
        heard = child.finish()

    for what, left, sizes in heard:
        assert what == "erased"
        assert large.name in left
        assert sizes.pop(f"{large.name}-shm") <= _MB
        assert sizes == {large.name: size, f"{large.name}-wal": 0}
    rs.Store(f"sqlite:///{large}").close()
    assert found(large, "gone") == {}
    assert [one.name for one in large.parent.iterdir()] == [large.name]
    check_whole(f"sqlite:///{large}")


@pytest.mark.parametrize("error", [MemoryError, PermissionError, LIBRARY.DatabaseError])
def test_a_store_opens_whatever_keeps_an_erasure_from_being_finished(
    sqlite_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """Also where there is no memory at all, or no right to the folder, or a page is damaged."""

    def fail(*_: object) -> bool:
        raise error

    with rs.Store(f"sqlite:///{sqlite_path}") as store:
        session = store.session("s", create=True)
        session.append(rs.user("<gone>"))
        with monkeypatch.context() as patch:
            patch.setattr(scrubbing, "_rewrite", fail)
            assert str(sqlite_path) in session.erase(1).copies
            with rs.Store(f"sqlite:///{sqlite_path}") as other:
                assert str(sqlite_path) in other.scrub()
                assert str(sqlite_path) in other.verify().unerased

    rs.Store(f"sqlite:///{sqlite_path}").close()
    assert found(sqlite_path, "gone") == {}


def test_what_another_program_writes_between_the_copy_and_its_return_is_not_lost(
    sqlite_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The erasure is not finished then; the next one is."""
    url = f"sqlite:///{sqlite_path}"
    connect = LIBRARY.connect
    with rs.Store(url) as store, rs.Store(url) as other:
        session = store.session("s", create=True)
        session.append(rs.user("<gone>"))

        def write_before(name: str, *args: Any, **kwargs: Any) -> Any:
            if name.endswith(".new"):
                other.session("s").append(rs.user("kept"))
            return connect(name, *args, **kwargs)

        with monkeypatch.context() as patch:
            patch.setattr(LIBRARY, "connect", write_before)
            assert str(sqlite_path) in session.erase(1).copies

        assert [item.message.text for item in session.history()] == ["", "kept"]
        assert session.erase(1).copies == ()
        assert found(sqlite_path, "gone") == {}
    check_whole(url)
