"""PgBouncer in transaction mode, in front of one server or another."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.servers import short_folder

from .server import Server

_PATIENCE = 120.0
_SETTINGS = """\
[databases]
postgres = host={server} user=postgres
[pgbouncer]
listen_addr =
unix_socket_dir = {folder}
auth_type = any
pool_mode = transaction
default_pool_size = 3
server_login_retry = 1
ignore_startup_parameters = extra_float_digits,options
logfile = {folder}/log
pidfile = {folder}/pid
"""


class Pooler:
    """A running PgBouncer."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.folder = folder
        self._settings = folder / "pgbouncer.ini"
        self._point_at(server)
        program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
        assert program is not None, "this test needs PgBouncer: apt-get install pgbouncer"
        user = ("--user", "postgres") if os.geteuid() == 0 else ()
        if user:
            shutil.chown(folder, "postgres")
        self._process = subprocess.Popen(
            (program, *user, "--quiet", str(self._settings)),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def _point_at(self, server: Server) -> None:
        text = _SETTINGS.format(server=server.folder, folder=self.folder)
        self._settings.write_text(text, "utf-8")

    def wait_until_ready(self) -> None:
        """Return once it answers."""
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                psycopg.connect(self.address).close()
                return
            except psycopg.OperationalError:
                assert time.monotonic() < end, (self.folder / "log").read_text()
                time.sleep(0.05)

    @property
    def address(self) -> str:
        return f"host={self.folder} port=6432 user=postgres dbname=postgres"

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://postgres@/postgres?host={self.folder}&port=6432"

    def move_to(self, server: Server) -> None:
        """Send every transaction that begins from now on to another server."""
        self._point_at(server)
        self._process.send_signal(signal.SIGHUP)

    def close(self) -> None:
        self._process.kill()
        self._process.wait(_PATIENCE)


@contextmanager
def pooler(server: Server) -> Iterator[Pooler]:
    with short_folder() as folder:
        made = Pooler(folder, server)
        try:
            made.wait_until_ready()
            yield made
        finally:
            made.close()
