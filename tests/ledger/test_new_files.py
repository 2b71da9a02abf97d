"""A new SQLite file: made whole, once, by whoever is first; and what killed makers leave."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reasoning_store.conversation.errors import (
    InvalidCall,
    ReasoningStoreError,
)
from reasoning_store.ledger.database import (
    files,
    sqlite_connections,
    sqlite_file,
)
from reasoning_store.ledger.database.statement import driver
from reasoning_store.ledger.ledger import Ledger

from .histories import answered, new_session, said, stored_messages
from .opening import open_ledger

# Never two libraries on one file in one process: they do not see each other's locks.
LIBRARY: Any = sqlite_connections.library()


def opened(path: Path) -> Ledger:
    return open_ledger(f"sqlite:///{path}", busy_timeout=0.2)


def test_a_new_file_is_ours_from_its_first_byte(tmp_path: Path) -> None:
    """Mode 0600 for it and what lies next to it, whatever the umask; nothing is left over."""
    path = tmp_path / "chat [1] #.db"
    old = os.umask(0)
    try:
        with opened(path) as ledger:
            ledger.messages.append(new_session(ledger).key, 1, [said()])
            modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    finally:
        os.umask(old)

    assert {path.name: 0o600, f"{path.name}-wal": 0o600, f"{path.name}-shm": 0o600} == modes
    assert [path] == list(tmp_path.iterdir())
    with LIBRARY.connect(path) as raw:
        assert raw.execute("PRAGMA application_id").fetchone() == (sqlite_file.APPLICATION_ID,)
    raw.close()


def test_every_connection_has_the_recipe(sqlite_path: Path) -> None:
    """The one that writes, and those that read."""
    wanted = {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "trusted_schema": 0,
        "cell_size_check": 1,
        "secure_delete": 1,
        "journal_size_limit": 67108864,
        "busy_timeout": 200,
        "mmap_size": 0,
        "cache_size": -8192,
        "page_size": 8192,
        "application_id": sqlite_file.APPLICATION_ID,
    }

    with opened(sqlite_path) as ledger:
        for run in (ledger.database.write, ledger.database.read):
            found = run(
                lambda connection: {
                    name: driver(connection).execute(f"PRAGMA {name}").fetchone()[0]
                    for name in wanted
                }
            )
            assert wanted == found
        with pytest.raises(ReasoningStoreError):
            ledger.database.read(
                lambda connection: driver(connection).execute("DELETE FROM sessions")
            )


def test_what_is_closed_is_there_when_opened_again(tmp_path: Path) -> None:
    """A store is its file."""
    with opened(tmp_path / "chat.db") as ledger:
        session = new_session(ledger)
        stored = ledger.messages.append(session.key, 1, [answered()])

    with opened(tmp_path / "chat.db") as ledger:
        assert stored[0].digest == stored_messages(ledger, session.key, 1)[0].digest
    with pytest.raises(InvalidCall, match="closed"):
        stored_messages(ledger, session.key, 1)
    ledger.close()


def test_processes_that_create_one_file_at_once_agree(tmp_path: Path) -> None:
    """All open the same one, whole."""
    path = tmp_path / "chat.db"
    program = (
        "import sys\n"
        "from reasoning_store.ledger.ledger import Ledger\n"
        "with Ledger.open(sys.argv[1]) as ledger:\n"
        "    ledger.sessions.create('u', sys.argv[2], encoding='o200k_base')\n"
    )
    makers = [
        subprocess.Popen([sys.executable, "-c", program, f"sqlite:///{path}", str(n)])
        for n in range(6)
    ]

    assert [maker.wait(timeout=120) for maker in makers] == [0] * 6
    with opened(path) as ledger:
        assert len(ledger.sessions.page("u").items) == 6
    assert [path] == list(tmp_path.iterdir())


MAKES = """
import os, sys, time
from pathlib import Path
from reasoning_store.ledger.database import schema_version
from reasoning_store.ledger.ledger import Ledger

if sys.argv[2] == "stops":
    upgrade = schema_version.upgrade

    def stopped(connection):
        upgrade(connection)
        print("made", flush=True)
        sys.stdin.readline()

    schema_version.upgrade = stopped
with Ledger.open(sys.argv[1]) as ledger:
    ledger.sessions.create("u", encoding="o200k_base")
"""


@pytest.mark.parametrize("names", [["one"] * 8, list("abcdefgh"), [":memory:"] * 8])
def test_threads_that_create_files_at_once_do_not_meet(tmp_path: Path, names: list[str]) -> None:
    """Of one file, of files of their own, or in memory: each finds its own tables, all of them."""
    barrier = threading.Barrier(len(names))

    def create(name: str) -> bool:
        url = f"sqlite:///{name if name == ':memory:' else tmp_path / name}"
        barrier.wait()
        with Ledger.open(url) as ledger:
            ledger.messages.append(new_session(ledger).key, 1, [said()])
            return ledger.audit.verify().ok

    with ThreadPoolExecutor(len(names)) as threads:
        assert [*threads.map(create, names)] == [True] * len(names)


def making_of(path: Path) -> list[Path]:
    """What is being made under names of its makers', or was when they were killed."""
    return [one for one in files.find_unfinished(path.parent) if one.suffix == ".new"]


def making(path: Path) -> subprocess.Popen[bytes]:
    """Start a process that has all but created a file, and goes on when it is asked to."""
    maker = subprocess.Popen(
        [sys.executable, "-c", MAKES, f"sqlite:///{path}", "stops"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert maker.stdout is not None
    assert maker.stdout.readline() == b"made\n"
    return maker


def test_what_a_killed_creation_left_is_in_no_ones_way(tmp_path: Path) -> None:
    """The file is created all the same; what was left goes with the next erasure."""
    path = tmp_path / "chat [1].db"
    killed = [making(path), making(path)]
    for maker in killed:
        maker.kill()
        maker.communicate()
    assert len(making_of(path)) == 2

    with opened(path) as ledger:
        ledger.erasure.erase_session(new_session(ledger).key)

    assert [path] == list(tmp_path.iterdir())


def test_what_a_living_process_is_making_stays(tmp_path: Path) -> None:
    """Others create and open the file and erase in it; it works when it comes to its end."""
    path = tmp_path / "chat.db"
    maker = making(path)
    making_it = making_of(path)

    for _ in range(2):
        with opened(path) as ledger:
            ledger.sessions.create("u", encoding="o200k_base")
            ledger.erasure.erase_session(new_session(ledger).key)
        assert making_of(path) == making_it
    maker.communicate(b"go on\n")

    assert maker.returncode == 0
    with opened(path) as ledger:
        assert len(ledger.sessions.page("u").items) == 3
    assert [path] == list(tmp_path.iterdir())


def test_a_maker_that_was_killed_before_it_removed_its_name_locks_no_one_out(
    tmp_path: Path,
) -> None:
    """The file has two names then, and is not taken for one with a hard link of a person's."""
    path = tmp_path / "chat.db"
    maker = making(path)
    (mine,) = making_of(path)
    maker.kill()
    maker.communicate()
    opened(path).close()
    mine.unlink()
    os.link(path, mine)

    opened(path).close()

    assert [path] == list(tmp_path.iterdir())


def test_only_what_killed_makers_left_is_removed(tmp_path: Path) -> None:
    """Neither what a person has named so, nor what another machine may be making."""
    path = tmp_path / "chat.db"
    names = [
        ".chat.db.new",
        ".chat.db.12345678.new",
        ".notes.txt",
        ".chat.db.00000000-1-abcdefgh.new",
        f".chat.db.{files._machine()}-{os.getpid()}-abcdefgh.new",
    ]
    for name in names:
        (tmp_path / name).write_text("x")
    with opened(path) as ledger:
        ledger.erasure.erase_session(new_session(ledger).key)

    assert {one.name for one in tmp_path.iterdir()} == {path.name, *names}


def test_files_next_to_a_database_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file for each user, all in one folder: opening one costs the same, however many."""
    path = tmp_path / "chat.db"
    opened(path).close()
    listed: list[str] = []

    def noted(list_: Callable[[Any], Any], at: Any) -> Any:
        listed.append(str(at))
        return list_(at)

    for name in ("listdir", "scandir"):
        monkeypatch.setattr(os, name, partial(noted, getattr(os, name)))

    opened(path).close()

    assert str(tmp_path) not in listed
