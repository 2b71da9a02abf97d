"""SQLite files: made whole, held right, refused unchanged."""

from __future__ import annotations

import gc
import sqlite3 as stdlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from reasoning_store.conversation.errors import (
    CorruptRow,
    InvalidCall,
    MissingExtra,
    SchemaError,
    StoreBusy,
    StoreFull,
)
from reasoning_store.ledger.database import (
    checkpoints,
    opening,
    sqlite_connections,
)
from reasoning_store.ledger.database.statement import driver
from reasoning_store.ledger.ledger import Ledger
from tests.durability.disk import Disk, watched
from tests.properties import each

from .histories import answered, new_session, said, stored_messages
from .opening import open_ledger
from .whole import narrow, whole
from .writing import writer_of

# Never two libraries on one file in one process: they do not see each other's locks.
LIBRARY: Any = sqlite_connections.library()


def opened(path: Path) -> Ledger:
    return open_ledger(f"sqlite:///{path}", busy_timeout=0.2)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def foreign(path: Path) -> None:
    with LIBRARY.connect(path) as raw:
        raw.execute("PRAGMA journal_mode=WAL")
        raw.execute("CREATE TABLE notes (text)")
    raw.close()


def newer(path: Path) -> None:
    opened(path).close()
    with LIBRARY.connect(path) as raw:
        raw.execute("UPDATE alembic_version SET version_num = '9999'")
    raw.close()


def truncated(path: Path) -> None:
    opened(path).close()
    path.write_bytes(path.read_bytes()[:5000])


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: path.write_bytes(b""), "empty"),
        (lambda path: path.write_bytes(b"a letter to my aunt" * 100), "not a database of"),
        (foreign, "not a database of"),
        (newer, "newer version"),
        (truncated, "damaged"),
    ],
    ids=["empty", "text", "foreign", "newer", "truncated"],
)
def test_a_file_that_is_not_ours_is_refused_and_not_touched(
    tmp_path: Path, make: object, says: str
) -> None:
    """One clear error with a hint, no byte changed, no file next to it."""
    make(tmp_path / "chat.db")  # type: ignore[operator]
    before = contents(tmp_path)

    with pytest.raises((SchemaError, CorruptRow), match=says) as caught:
        opened(tmp_path / "chat.db")

    assert caught.value.hint
    assert before == contents(tmp_path)


@pytest.mark.parametrize("name", ["a?b#c%20&d=.db", "\udcff \u00e9.db", " .db", "file:x.db"])
def test_a_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    """What means something in a URL, and what is no text, too."""
    path = tmp_path / name
    for _ in range(2):
        database = opening._embedded(path, 2)
        database.close()

    assert [*tmp_path.iterdir()] == [path]


def test_a_file_that_is_gone_is_not_made_anew(sqlite_path: Path) -> None:
    """A connection that is opened later says so, and leaves no empty file of everybody's."""
    with opened(sqlite_path) as ledger:
        for each in sqlite_path.parent.iterdir():
            each.unlink()
        with pytest.raises(InvalidCall, match="was moved away or removed") as caught:
            ledger.database.read(lambda _: ledger.sessions.get("u", "absent"))
        assert "put it back" in str(caught.value.hint)

        assert not [*sqlite_path.parent.iterdir()]


def test_an_unreferenced_store_keeps_no_file_open(sqlite_path: Path) -> None:
    """No one closed it: its connections go with it."""
    ledger = opened(sqlite_path)
    session = new_session(ledger)
    ledger.messages.append(session.key, 1, [said()])
    assert sqlite_path.with_name("chat.db-wal").exists()

    del ledger
    while {path.name for path in sqlite_path.parent.iterdir()} != {"chat.db"}:
        gc.collect()  # its thread closes the file soon after
        time.sleep(0.01)

    with opened(sqlite_path) as ledger:
        assert len(stored_messages(ledger, session.key, 1)) == 1


def test_a_file_that_took_the_place_of_an_open_one_is_left_alone(
    sqlite_path: Path, tmp_path: Path
) -> None:
    """A connection that is opened later would write the other's log into it."""
    with opened(sqlite_path) as ledger:
        session = new_session(ledger)
        ledger.messages.append(session.key, 1, [said()])
        ledger.backup(tmp_path / "copy.db")
        ledger.messages.append(session.key, 1, [said("since then")])
        (tmp_path / "copy.db").rename(sqlite_path)

        with pytest.raises(InvalidCall, match=r"chat\.db is another file") as caught:
            ledger.database.read(lambda _: stored_messages(ledger, session.key, 1))
        assert "move chat.db-wal away" in str(caught.value.hint)
        assert len(stored_messages(ledger, session.key, 1)) == 2  # it goes on with what it has open

    sqlite_path.with_name("chat.db-wal").rename(tmp_path / "aside")
    with opened(sqlite_path) as ledger:
        assert len(stored_messages(ledger, session.key, 1)) == 1
        assert ledger.audit.verify().ok


def test_no_new_file_is_made_next_to_the_log_of_another(sqlite_path: Path, tmp_path: Path) -> None:
    """It would be given what that file said, and lose its own data."""
    away = tmp_path / "away"
    with opened(sqlite_path) as ledger:
        session = new_session(ledger)
        sqlite_path.rename(away)
        with pytest.raises(InvalidCall, match=r"chat\.db-wal is there without chat\.db") as caught:
            opened(sqlite_path)
        assert "move chat.db-wal away" in str(caught.value.hint)
        assert not sqlite_path.exists()
        away.rename(sqlite_path)
        ledger.messages.append(session.key, 1, [said()])

    with opened(sqlite_path) as ledger:
        assert len(stored_messages(ledger, session.key, 1)) == 1


def test_a_link_leads_to_its_file(tmp_path: Path) -> None:
    """Also to one that is not there yet: it is made whole, for its owner only, and no copy."""
    (tmp_path / "data").mkdir()
    link = tmp_path / "chat.db"
    link.symlink_to(tmp_path / "data" / "kept.db")

    with opened(link) as ledger:
        new_session(ledger)
        (tmp_path / "data" / "other.db").write_bytes(b"")
        link.unlink()
        link.symlink_to(tmp_path / "data" / "other.db")
        assert len(ledger.sessions.page("u").items) == 1

    kept = tmp_path / "data" / "kept.db"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert {*tmp_path.rglob("*")} == {kept.parent, kept, kept.with_name("other.db"), link}


@each(
    "url",
    [
        "sqlite:///{tmp}/no/such/folder/chat.db",
        "sqlite:///{tmp}",
        "sqlite:///{tmp}/a%00b\0.db",
        "sqlite:///{tmp}/chat.db?mode=ro",
        "sqlite:///{tmp}/why?.db",
        "sqlite:///{tmp}/\ud800.db",
        "sqlite://host/chat.db",
        "mysql://secret-user:secret-word@host/chat",
        "oracle+cx://host",
        "chat.db",
        "",
    ],
)
def test_a_url_that_cannot_be_opened_is_an_invalid_call(tmp_path: Path, url: str) -> None:
    """It says what to write instead, holds no password, and makes no file."""
    with pytest.raises(InvalidCall) as caught:
        Ledger.open(url.replace("{tmp}", str(tmp_path)))

    assert "secret" not in f"{caught.value} {caught.value.hint}"
    assert contents(tmp_path) == {}


def test_a_missing_driver_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra that brings it."""
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(MissingExtra) as caught:
        Ledger.open("postgresql://localhost/chat")

    assert "pip install 'reasoning-store[postgres]'" in str(caught.value.hint)


def test_another_process_that_writes_is_waited_for(sqlite_path: Path) -> None:
    """However often it has the lock still."""
    with (
        watched(LIBRARY, Disk()) as disk,
        closing(LIBRARY.connect(sqlite_path, isolation_level=None)) as holder,
        Ledger.open(f"sqlite:///{sqlite_path}") as ledger,
        ThreadPoolExecutor(1) as threads,
    ):
        session = new_session(ledger)
        holder.execute("BEGIN IMMEDIATE")
        before = disk.occupied
        stored = threads.submit(ledger.messages.append, session.key, 1, [said()])
        while disk.occupied < before + 3 and not stored.done():
            pass
        holder.execute("COMMIT")

        assert stored.result()[0].position == 1


def test_waiting_too_long_for_another_process_is_an_error(sqlite_path: Path) -> None:
    """That the store is busy; reads go on, and so do writes when it is not."""
    holder = LIBRARY.connect(sqlite_path, isolation_level=None)
    with opened(sqlite_path) as ledger:
        session = new_session(ledger)
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy):
            ledger.messages.append(session.key, 1, [said()])
        assert stored_messages(ledger, session.key, 1) == []
        holder.execute("COMMIT")
        assert ledger.messages.append(session.key, 1, [said()])[0].position == 1
    holder.close()


def test_a_store_that_is_closed_while_it_is_busy_keeps_nothing_open(sqlite_path: Path) -> None:
    """It says that it was busy; the one who is writing still finishes, and then all is closed."""
    ledger = opened(sqlite_path)
    session = new_session(ledger)
    stored_messages(ledger, session.key, 1)
    began, goes_on = threading.Event(), threading.Event()

    def hold(_: Connection) -> None:
        began.set()
        goes_on.wait()

    with ThreadPoolExecutor(1) as threads:
        writing = threads.submit(ledger.database.write, hold)
        began.wait()
        with pytest.raises(StoreBusy):
            ledger.close()
        goes_on.set()
        writing.result()
    writer_of(ledger)._thread.join(120)

    # SQLite removes it with the last connection that closes.
    assert not sqlite_path.with_name(f"{sqlite_path.name}-wal").exists()
    ledger.close()


def test_a_full_disk_keeps_what_was_acknowledged(sqlite_path: Path) -> None:
    """The write is refused whole, reads go on, and writing resumes without a gap."""
    with opened(sqlite_path) as ledger:
        session = new_session(ledger)
        pages = ledger.database.write(
            lambda connection: driver(connection).execute("PRAGMA page_count").fetchone()[0]
        )
        limit = f"PRAGMA max_page_count={pages + 20}"
        ledger.database.write(lambda connection: driver(connection).execute(limit).fetchall())
        kept = 0

        def fill() -> None:
            nonlocal kept
            while True:
                ledger.messages.append(session.key, 1, [answered(thought="x" * 1000)])
                kept += 1

        with pytest.raises(StoreFull) as caught:
            fill()

        assert caught.value.hint
        assert kept > 5
        assert kept == len(stored_messages(ledger, session.key, 1))
        ledger.database.write(
            lambda connection: driver(connection).execute("PRAGMA max_page_count=100000").fetchall()
        )
        assert kept + 1 == ledger.messages.append(session.key, 1, [said()])[0].position
        whole(ledger, session.key)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE bodies SET data = '{' WHERE position = 2",
        "UPDATE bodies SET data = '{} {}' WHERE position = 2",
        'UPDATE bodies SET data = \'{"blocks":[{"type":"text","no":1}]}\'',
        "UPDATE branches SET segments = '[[1'",
        "DELETE FROM bodies WHERE position = 2",
        "DELETE FROM thinking_blocks WHERE position = 2",
        "DELETE FROM messages WHERE position = 2",
        "DELETE FROM messages WHERE position = 3",
        "UPDATE branches SET next_position = 3",
        "UPDATE messages SET exactness = 9",
        "UPDATE messages SET shape = '{' WHERE position = 2",
        "UPDATE bodies SET data = '[]'",
        "UPDATE sessions SET metadata = '{'",
    ],
)
def test_a_damaged_row_is_raised_and_never_skipped(sqlite_path: Path, damage: str) -> None:
    """Reading it, or appending where the branch wrongly says that nothing stands."""
    secret = "the text of a conversation"
    with opened(sqlite_path) as ledger:
        session = new_session(ledger)
        ledger.messages.append(session.key, 1, [said(secret), answered(secret), said(secret)])
    with LIBRARY.connect(sqlite_path) as raw:
        raw.execute(damage)
    raw.close()

    def use(ledger: Ledger) -> None:
        stored_messages(ledger, session.key, 1)
        narrow(ledger, session.key, 1, at=2)
        ledger.sessions.get("u", session.id)
        ledger.messages.append(session.key, 1, [said(secret)])

    with opened(sqlite_path) as ledger, pytest.raises(CorruptRow) as caught:
        use(ledger)

    assert secret not in str(caught.value)


def test_a_process_that_forked_is_refused(sqlite_path: Path) -> None:
    """The child gets a usage error; the parent's store is none the worse."""
    program = (
        "import os, sys\n"
        "from reasoning_store.conversation.errors import InvalidCall\n"
        "from reasoning_store.ledger.ledger import Ledger\n"
        "ledger = Ledger.open(sys.argv[1])\n"
        "ledger.sessions.create('u', 'before', encoding='o200k_base')\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    try:\n"
        "        ledger.sessions.create('u', 'child', encoding='o200k_base')\n"
        "    except InvalidCall as error:\n"
        "        ledger.close()\n"
        "        sys.exit(7 if error.hint else 8)\n"
        "    sys.exit(9)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7\n"
        "ledger.sessions.create('u', 'after', encoding='o200k_base')\n"
        "ledger.close()\n"
    )

    subprocess.run(
        [sys.executable, "-c", program, f"sqlite:///{sqlite_path}"], check=True, timeout=60
    )

    with opened(sqlite_path) as ledger:
        assert {"before", "after"} == {row.id for row in ledger.sessions.page("u").items}
    with LIBRARY.connect(sqlite_path) as raw:
        assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    raw.close()


@each(
    "version, expected",
    [
        ((3, 6, 23), False),
        ((3, 7, 0), True),
        ((3, 40, 1), True),
        ((3, 44, 5), True),
        ((3, 44, 6), False),
        ((3, 45, 0), True),
        ((3, 50, 6), True),
        ((3, 50, 7), False),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
        ((3, 53, 4), False),
    ],
)
def test_the_libraries_that_can_lose_data_are_known(
    version: tuple[int, ...], expected: bool
) -> None:
    """Fixed in 3.51.3, and before that in 3.44.6 and 3.50.7."""
    assert expected == checkpoints.is_vulnerable(version)


def test_a_vulnerable_library_checkpoints_only_under_the_write_lock(
    sqlite_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing checkpoints by itself; we do, and the WAL stays small."""
    monkeypatch.setattr(checkpoints, "is_vulnerable", lambda version: True)
    seen: list[bool] = []
    plain = checkpoints.Checkpoints.copy_pages

    def copy_pages(self: checkpoints.Checkpoints, connection: Any) -> None:
        connect = self._connect

        def look() -> Any:
            with closing(stdlib.connect(sqlite_path, timeout=0, isolation_level=None)) as other:
                with pytest.raises(stdlib.OperationalError, match="locked"):
                    other.execute("BEGIN IMMEDIATE")
                seen.append(True)
            return connect()

        self._connect = look
        try:
            plain(self, connection)
        finally:
            self._connect = connect

    monkeypatch.setattr(checkpoints.Checkpoints, "copy_pages", copy_pages)
    wal = Path(f"{sqlite_path}-wal")
    with open_ledger(f"sqlite:///{sqlite_path}", driver=stdlib) as ledger:
        session = new_session(ledger)
        for run in (ledger.database.write, ledger.database.read):
            assert run(
                lambda connection: (
                    driver(connection).execute("PRAGMA wal_autocheckpoint").fetchone()
                )
            ) == (0,)
        sizes = []
        for _ in range(600):
            ledger.messages.append(session.key, 1, [answered(thought="x" * 2000)])
            sizes.append(wal.stat().st_size)

    assert len(seen) >= 5
    assert max(sizes) < 16_000_000
    assert max(sizes[300:]) <= 1.1 * max(sizes[:300])


def test_both_libraries_write_one_file(sqlite_path: Path) -> None:
    """The one that Python brings reads what pysqlite3 wrote, and the other way."""
    with open_ledger(f"sqlite:///{sqlite_path}", driver=stdlib) as ledger:
        session = new_session(ledger)
        ledger.messages.append(session.key, 1, [said()], idempotency_key="k")
        assert not ledger.messages.append(session.key, 1, [said()], idempotency_key="k")[0].is_new
    with opened(sqlite_path) as ledger:
        assert ledger.messages.append(session.key, 1, [said()])[0].position == 2


def test_an_old_library_is_refused() -> None:
    """RETURNING and STRICT came with 3.35 and 3.37."""

    class Old:
        sqlite_version = "3.34.1"
        sqlite_version_info = (3, 34, 1)

    with pytest.raises(InvalidCall) as caught:
        open_ledger("sqlite://", driver=Old)  # type: ignore[arg-type]

    assert caught.value.hint


@pytest.mark.parametrize("open_", [Ledger.open, partial(Ledger.open, read_only=True)])
def test_a_file_with_a_second_name_is_refused(
    sqlite_path: Path, open_: Callable[[str], Ledger]
) -> None:
    """A hard link: what is written by one name is in a log that the other has not."""
    second = sqlite_path.with_name("second.db")
    second.hardlink_to(sqlite_path)
    for path in (sqlite_path, second):
        with pytest.raises(InvalidCall, match="a second name"):
            open_(f"sqlite:///{path}")
    second.unlink()

    open_(f"sqlite:///{sqlite_path}").close()
