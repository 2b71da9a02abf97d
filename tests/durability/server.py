"""A PostgreSQL server of a test's own, which it may kill and start again.

Unlike the one that all tests share, it waits for its disk.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from sqlalchemy import make_url

from reasoning_store.ledger.database import opening
from reasoning_store.ledger.database.postgres import DRIVER
from tests.servers import as_owner_of, ended_with_us, program, short_folder

_PATIENCE = 120.0


class Server:
    """A server in a folder of its own, on a socket there."""

    def __init__(
        self,
        folder: Path,
        *,
        copy_of: Server | None = None,
        prepare: str | None = None,
        library: str | None = None,
    ) -> None:
        """Make a new server, with a library of an extension, or a standby of another one.

        A standby is prepared by commands for a shell, in which DATA is its folder.
        """
        self.folder = self._folder = folder
        self._library = library
        self._data = folder / "data"
        self._as_user = as_owner_of(folder)
        self.url = make_url(f"{DRIVER}://postgres@/postgres?host={folder}")
        if copy_of is not None:
            source = f"host={copy_of.folder} user=postgres application_name={folder.name}"
            assert self._run("pg_basebackup", f"--dbname={source}", "--checkpoint=fast") == 0
            # A newer program would write what the library of an older server does not know.
            (self._data / "standby.signal").touch()
            with (self._data / "postgresql.auto.conf").open("a", encoding="utf-8") as settings:
                settings.write(f"primary_conninfo = '{source}'\n")
            if prepare is not None:
                commands = prepare.replace("DATA", str(self._data))
                subprocess.run(("sh", "-ec", commands), check=True)
            self.start()
            return
        self._run("initdb", "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C")
        self.start()
        if library is None:
            opening.upgrade(self.url)

    def _words(self, command: str, *words: str) -> tuple[str, ...]:
        return (*self._as_user, str(program(command)), "--pgdata", str(self._data), *words)

    def _run(self, command: str, *words: str) -> int:
        done = subprocess.run(
            self._words(command, *words),
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_PATIENCE,
        )
        return done.returncode

    def start(self) -> None:
        """Start it; after a kill, once the system has let go of what it held."""
        options = f"-k {self._folder} -c listen_addresses='' -c max_connections=100"
        if self._library is not None:
            options += f" -c shared_preload_libraries={self._library} -c wal_level=logical"
        words = ("--silent", "--wait", "--log", str(self._folder / "log"), "--options", options)
        end = time.monotonic() + _PATIENCE
        while self._run("pg_ctl", *words, "start") != 0:
            assert time.monotonic() < end, (self._folder / "log").read_text()
            time.sleep(0.1)

    def promote(self) -> None:
        """Make a standby the primary."""
        assert self._run("pg_ctl", "--silent", "--wait", "promote") == 0

    def hold_back_replication(self) -> None:
        """Stop what sends the log to a standby; the server itself goes on."""
        for (pid,) in self.ask("SELECT pid FROM pg_stat_replication"):
            os.kill(int(str(pid)), signal.SIGSTOP)

    def ask(self, statement: str) -> list[tuple[object, ...]]:
        """Run one statement outside of a transaction and return its rows."""
        address = f"host={self._folder} user=postgres dbname=postgres"
        with psycopg.connect(address, autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    @property
    def stopping(self) -> tuple[str, ...]:
        """The command that stops it in immediate mode: without a checkpoint, as in a crash."""
        return self._words("pg_ctl", "--silent", "--wait", "--mode=immediate", "stop")

    def stop_at_once(self) -> None:
        subprocess.run(self.stopping, cwd=self._folder, capture_output=True, timeout=_PATIENCE)

    def kill(self) -> None:
        """kill -9: the postmaster first, so that no one tidies up, then all it has started."""
        postmaster = int((self._data / "postmaster.pid").read_text().splitlines()[0])
        started = subprocess.run(
            ("ps", "-o", "pid=", "--ppid", str(postmaster)),
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for pid in (postmaster, *map(int, started)):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


@contextmanager
def server(
    *, copy_of: Server | None = None, prepare: str | None = None, library: str | None = None
) -> Iterator[Server]:
    """Run a server of one's own, or a standby of another one."""
    with short_folder() as folder:
        made = Server(folder, copy_of=copy_of, prepare=prepare, library=library)
        with ended_with_us(folder, made.stopping):
            yield made
