"""What runs in the processes that are killed. Each tells through its pipe where it is."""

from __future__ import annotations

import asyncio
import ctypes
import os
import random
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from sqlalchemy import Engine, event
from sqlalchemy.pool import Pool

import reasoning_store as rs
from reasoning_store.ledger import stored_drafts
from reasoning_store.ledger.database import (
    checkpoints,
    opening,
    schema_version,
    sqlite_connections,
)
from reasoning_store.recording import draft_writer

from .disk import Disk, watched
from .processes import Connection, stay

T = TypeVar("T")

Pipe = Connection
_STEPS = {"BEGIN": "begin", "SELECT": "sent", "COMMIT": "commit"}
LETTERS = "abcdefghijklmnopqrstuvwxyz"
rs.effective_tokens([rs.user("the vocabulary is unpacked once, before anybody is forked")])


def turn(number: int) -> list[rs.Message]:
    """A turn that is no small thing to write: several pages, a thought, an origin."""
    thought = f"thought {number} " + LETTERS * (20 + number % 7 * 60)
    return [
        rs.user(f"question {number}"),
        rs.assistant(
            rs.ThinkingBlock(thought=thought, source_field="reasoning_content"),
            rs.TextBlock(text=f"answer {number}"),
            origin=rs.Origin(provider="p", model=f"m{number % 3}"),
        ),
    ]


def key(number: int) -> str:
    return f"turn {number}"


def on_every_statement(said: Callable[[str], None]) -> None:
    """Be told of each statement that a driver is given, on either engine, before it runs."""

    @event.listens_for(Pool, "connect")
    def _trace(raw: Any, _: object) -> None:
        if not isinstance(raw, psycopg.Connection):
            raw.set_trace_callback(said)

    plain = psycopg.Cursor.execute

    def execute(self: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
        said(str(query))
        return plain(self, query, *args, **kwargs)

    psycopg.Cursor.execute = execute  # type: ignore[method-assign]


def append_turns(tell: Pipe, url: str, session_id: str, first: int, stop_at: int | None) -> None:
    """Append turns for ever, from ``first`` on.

    It tells of each: that it is ``asked`` for, that its transaction is to ``begin``, that it
    is ``inside`` at each statement, that its ``commit`` begins, and that it is ``stored``;
    on PostgreSQL, where it is one statement, that this is ``sent``. Inside, at the statement
    ``stop_at``, counted over all of them, it stays.
    """
    number = first - 1
    left = -1 if stop_at is None else stop_at
    appending = False

    def said(statement: str) -> None:
        nonlocal left
        word = statement.split(maxsplit=1)[0]
        if not appending:
            return
        if word in ("BEGIN", "COMMIT", "SELECT"):
            tell.send((_STEPS[word], number))
            return
        tell.send(("inside", number))
        if left == 0:
            tell.send(("stopped", number))
            stay()
        left -= 1

    on_every_statement(said)
    with rs.Store(url) as store:
        session = store.session(session_id, create=True)
        while True:
            number += 1
            tell.send(("asked", number))
            appending = True
            stored = session.append(turn(number), idempotency_key=key(number))
            appending = False
            tell.send(("stored", number, [item.position for item in stored]))


def erase_and_stay(tell: Pipe, url: str, what: str) -> None:
    """Erase, and stay where the rows are gone and the file is to be rewritten."""

    def said(statement: str) -> None:
        if statement == "PRAGMA wal_checkpoint(TRUNCATE)":
            tell.send(("stopped",))
            stay()

    on_every_statement(said)
    with rs.Store(url) as store:
        ERASURES[what](store)


def erase_in_memory_of(tell: Pipe, url: str, room: int) -> None:
    """Erase a message with so much more memory, and tell which files may still hold it."""
    with rs.Store(url) as store:
        session = store.session("s")
        used = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_DATA, (used + room, -1))
        copies = session.erase(1).copies
        resource.setrlimit(resource.RLIMIT_DATA, (-1, -1))
    tell.send(("erased", copies))


def erase_on_disk_of(tell: Pipe, url: str, room: int) -> None:
    """Erase a message where no file may be longer than ``room``, and open the store again.

    It tells which files may still hold the message, and how long each file of the folder is.
    """
    folder = Path(url.removeprefix("sqlite:///")).parent

    def named(files: Sequence[str]) -> tuple[set[str], dict[str, int]]:
        sizes = {one.name: one.stat().st_size for one in folder.iterdir()}
        return {Path(name).name for name in files}, sizes

    resource.setrlimit(resource.RLIMIT_FSIZE, (room, -1))
    with rs.Store(url) as store:
        tell.send(("erased", *named(store.session("s").erase(1).copies)))
    with rs.Store(url) as store:
        tell.send((store.session("s").get(1).message.status, *named(store.scrub())))


def read_and_stay(tell: Pipe, path: str) -> None:
    """Keep a snapshot of a file open until killed."""
    reader = sqlite_connections.library().connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM messages").fetchone()
    tell.send(("reading",))
    stay()


ERASURES: dict[str, Callable[[rs.Store], rs.results.Erased]] = {
    "session": lambda store: store.session("s").erase(),
    "message": lambda store: store.session("s").erase(2),
    "reasoning": lambda store: store.session("s").erase(only="reasoning"),
    "owner": lambda store: store.erase(),
}


def append_in_threads(tell: Pipe, url: str, writers: int) -> None:
    """Append turns for ever, each of several threads to a session of its own.

    It tells of each that is ``stored``: whose it is, and its number.
    """
    telling = threading.Lock()

    def write(session: rs.Session) -> None:
        for number in range(len(session.history()) // 2 + 1, 1_000_000):
            session.append(turn(number), idempotency_key=key(number))
            with telling:
                tell.send(("stored", session.id, number))

    with rs.Store(url) as store:
        for name in range(writers):
            session = store.session(f"s{name}", create=True)
            threading.Thread(target=write, args=(session,)).start()
        stay()


def record_replies(tell: Pipe, url: str, session_id: str, seed: int) -> None:
    """Record replies for ever, each of many words; tell when one is ``stored``."""
    draft_writer.PART_SECONDS, stored_drafts.LEASE = 0.01, 0.5
    chance = random.Random(seed)

    def stream(number: int) -> Iterator[dict[str, Any]]:
        words = [f"<think>thought {number} ", LETTERS, "</th", "ink>"]
        words += [f"{word} " for word in range(chance.randint(5, 60))]
        for word in words:
            yield {"choices": [{"index": 0, "delta": {"content": word}}]}
            time.sleep(0.004)

    with rs.Store(url) as store:
        session = store.session(session_id, create=True)
        for number in range(1_000_000):
            tell.send(("begun", number))
            with session.record(stream(number), model="m") as reply:
                for _ in reply:
                    pass
            assert reply.stored is not None
            tell.send(("stored", reply.stored.position, reply.stored.message.text))


def record_choices_and_die(tell: Pipe, url: str, session_id: str, last: int, awaited: bool) -> None:
    """Record a reply of three choices, and die before the statement after ``last`` of its end."""
    ran, ending = 0, False

    def said(statement: str) -> None:
        nonlocal ran
        if not ending:
            return
        if ran == last:
            os.kill(os.getpid(), signal.SIGKILL)
        ran += 1

    def stream() -> Iterator[dict[str, Any]]:
        nonlocal ending
        for choice in (1, 0, 2):
            text = f"<think>thought {choice}</think>choice {choice}"
            yield {"choices": [{"index": choice, "delta": {"content": text}}]}
        ending = True

    on_every_statement(said)
    # What arrives is written at the end alone: no other statement comes between.
    draft_writer.PART_SECONDS = 3600.0
    with rs.Store(url) as store:
        session = store.session(session_id, create=True)
        session.append(turn(1))
        if not awaited:
            with session.record(stream(), model="m") as reply:
                for _ in reply:
                    pass

    async def record() -> None:
        async with rs.AsyncStore(url) as store:
            session = await store.session(session_id)
            async with session.record(stream(), model="m") as reply:
                async for _ in reply:
                    pass

    if awaited:
        asyncio.run(record())


def append_beside_checkpoints(tell: Pipe, path: str, session_id: str, turns: int) -> None:
    """Append as with a vulnerable library; tell how often it checkpointed, and when unlocked.

    ``copied`` is how many pages it wrote to the file itself, ``bare`` how many of them while
    it did not hold the write lock; ``longest`` is how long the WAL has been.
    """
    checkpoints.is_vulnerable = lambda version: True
    checkpoints._CHECKPOINT_PAGES = 60
    longest = 0
    with (
        watched(sqlite_connections.library(), Disk(remembers=True)) as disk,
        rs.Store(f"sqlite:///{path}") as store,
    ):
        session = store.session(session_id, create=True)
        for number in range(1, turns + 1):
            session.append(turn(number), idempotency_key=f"{session_id} {number}")
            longest = max(longest, Path(f"{path}-wal").stat().st_size)
        # Not what closing does: that it does alone, holding the whole file.
        done = list(disk.operations)
    held, copied, bare = False, 0, 0
    for operation in done:
        if operation.kind in ("lock", "unlock") and operation.at == _WRITE_LOCK:
            held = operation.kind == "lock"
        if operation.kind == "write" and operation.path == path:
            copied += 1
            bare += not held
    tell.send(("done", copied, bare, longest))


_WRITE_LOCK = 0
"""Of a WAL's locks, the one that every writer holds (SQLite's file format, 2.3.2)."""


def append_with_pythons_own_library(
    tell: Pipe, url: str, session_id: str, turns: int, checkpoint_pages: int
) -> None:
    """Append turns, the library being the one that Python brings."""
    sys.modules["pysqlite3.dbapi2"] = None  # type: ignore[assignment]
    checkpoints.is_vulnerable = lambda version: True
    checkpoints._CHECKPOINT_PAGES = checkpoint_pages
    # Nothing is cut off here: without waiting for the disk there are more chances to lose.
    sqlite_connections._PRAGMAS += ("synchronous=OFF",)  # type: ignore[assignment]
    assert sqlite_connections.library().__name__ == "sqlite3.dbapi2"
    with rs.Store(url) as store:
        session = store.session(session_id, create=True)
        for number in range(1, turns + 1):
            session.append(turn(number), idempotency_key=f"{session_id} {number}")
    tell.send(("done",))


def upgrade_and_die(
    tell: Pipe, url: str, scripts: str, revisions: tuple[str, ...], last: int
) -> None:
    """Upgrade a database, and die before the statement after ``last``, or before its commit.

    Where there are not so many, it tells how many there were.
    """
    ran = 0

    def said(statement: str) -> None:
        nonlocal ran
        if ran == last:
            os.kill(os.getpid(), signal.SIGKILL)
        ran += 1

    on_every_statement(said)
    event.listen(Engine, "commit", lambda _: said("COMMIT"))
    _migrate_by(scripts, revisions)
    opening.upgrade(url)
    tell.send(("done", ran))


def upgrade_and_die_at_the_disk(
    tell: Pipe, url: str, scripts: str, revisions: tuple[str, ...], last: int
) -> None:
    """The same, before it asks the disk for more than ``last`` things."""
    _migrate_by(scripts, revisions)
    with watched(sqlite_connections.library(), Disk(kills=True)) as disk:
        disk.break_at(last + 1, for_good=True)
        opening.upgrade(url)
    tell.send(("done",))


def _migrate_by(scripts: str, revisions: tuple[str, ...]) -> None:
    schema_version.scripts_folder = lambda: Path(scripts)
    schema_version.REVISIONS = revisions  # type: ignore[assignment]


def fill_up(tell: Pipe, url: str, room: int) -> None:
    """Append until no file may be longer than ``room``, look, and go on when they may."""
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    number = 0
    with rs.Store(url) as store:
        session = store.session("s", create=True)
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, unlimited[1]))
        try:
            while True:
                session.append(turn(number + 1), idempotency_key=key(number + 1))
                number += 1
        except rs.StoreFull as error:
            tell.send(("full", number, len(session.history()), error.hint))
        for _ in range(3):
            with suppress(rs.StoreFull):
                session.append(turn(number + 1), idempotency_key=key(number + 1))
                tell.send(("stored",))
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
        stored = session.append(turn(number + 1), idempotency_key=key(number + 1))
        tell.send(("went on", [item.position for item in stored], stored[0].is_new))


def try_everything(tell: Pipe, url: str) -> None:
    """Open a store, read and write, with no right that the files' modes do not give."""
    _drop_privileges()
    try:
        with rs.Store(url) as store:
            session = store.session("s")
            tell.send(("read", len(session.history())))
            session.append(rs.user("more"))
            tell.send(("stored",))
    except rs.ReasoningStoreError as error:
        tell.send(("refused", type(error).__name__, str(error), error.hint))


def _drop_privileges() -> None:
    """Give up what lets root write where the mode says that no one may (Linux)."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        version_3, nobody_else = 0x20080522, 0
        header = (ctypes.c_uint32 * 2)(version_3, nobody_else)
        no_capability = (ctypes.c_uint32 * 6)()
        if libc.capset(header, no_capability) != 0:
            raise OSError(ctypes.get_errno(), "capset")


def _until_answered(ask: Callable[[], T]) -> T:
    """Ask again until the server has answered."""
    while True:
        try:
            return ask()
        except rs.StoreBusy:
            time.sleep(0.05)


def append_in_spite_of_all(
    tell: Pipe, url: str, writer: str, turns: int, session_id: str = "s"
) -> None:
    """Append turns, each asked for again under its key until the server has answered."""
    with _until_answered(lambda: rs.Store(url)) as store:
        session = _until_answered(lambda: store.session(session_id))

        def append(number: int) -> list[rs.results.Stored]:
            messages = [rs.user(f"{writer} {number}"), *turn(number)[1:]]
            return session.append(messages, idempotency_key=f"{writer} {number}")

        for number in range(turns):
            stored = _until_answered(partial(append, number))
            tell.send(("stored", number, [item.position for item in stored]))
