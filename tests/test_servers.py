"""The server of the tests ends with them, and what a test gets of it is empty."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import URL, create_engine, make_url

import reasoning_store as rs
from tests.databases import Databases

_PATIENCE = 120.0
_RUN = """
import sys, time
from tests.servers import server
with server() as url:
    print(url.query["host"], flush=True)
    sys.stdin.read()
"""


def test_a_run_that_is_killed_leaves_no_server() -> None:
    """Neither its processes nor its folder, though nothing of the run could tidy up."""
    environment = {k: v for k, v in os.environ.items() if k != "REASONING_STORE_TEST_POSTGRES"}
    with subprocess.Popen(
        [sys.executable, "-c", _RUN],
        cwd=Path(__file__).parent.parent,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stdout is not None
        folder = Path(run.stdout.readline().strip())
        pid = int((folder / "data" / "postmaster.pid").read_text().splitlines()[0])
        run.kill()
    end = time.monotonic() + _PATIENCE
    while folder.exists() or is_running(pid):
        assert time.monotonic() < end, f"{folder} is still there"
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return state.stdout.strip()[:1] not in ("", "Z")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT, signal.SIGHUP])
def test_a_program_that_a_test_starts_is_ended_by_the_signals_that_end_programs(
    number: signal.Signals,
) -> None:
    """Also where the tests run under nohup or in the background of a script."""
    waiting = "import sys, time; print(flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", waiting], stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        program.stdout.readline()
        program.send_signal(number)

        assert program.wait(_PATIENCE) == -number


@pytest.mark.long
def test_tests_of_signals_pass_where_signals_are_ignored() -> None:
    """As under nohup, and in the background of a shell that is not interactive."""

    def ignore() -> None:
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)

    of_signals = ("tests/cli/test_output.py", "tests/ledger/test_interrupts.py")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *of_signals],
        cwd=Path(__file__).parent.parent,
        preexec_fn=ignore,
        capture_output=True,
        text=True,
    )

    assert ran.returncode == 0, ran.stdout


def rows(url: URL) -> int:
    with rs.Store(url.render_as_string(hide_password=False)) as store:
        return len(store.sessions().items)


def change_nothing(url: URL) -> None:
    with rs.Store(url.render_as_string(hide_password=False)) as store:
        store.session("s", create=True).append(rs.user("Hello"))


def change_the_schema(url: URL) -> None:
    made = create_engine(url)
    with made.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE sessions ADD COLUMN more int")
    made.dispose()


def leave_statistics(url: URL) -> None:
    change_nothing(url)
    made = create_engine(url)
    with made.begin() as connection:
        connection.exec_driver_sql("ANALYZE")
    made.dispose()


def change_a_setting(url: URL) -> None:
    made = create_engine(url)
    with made.begin() as connection:
        connection.exec_driver_sql(f"ALTER DATABASE {url.database} SET work_mem = '1MB'")
    made.dispose()


@pytest.mark.parametrize(
    ("use", "is_lent_again"),
    [
        (change_nothing, True),
        (change_the_schema, False),
        (leave_statistics, False),
        (change_a_setting, False),
    ],
)
def test_a_database_is_lent_again_where_it_is_as_it_was_made(
    databases: Databases, use: Callable[[URL], None], is_lent_again: bool
) -> None:
    """Without rows; one that differs in anything else is dropped."""
    with databases.lend() as first:
        use(first)
    with databases.lend() as second:
        assert (second == first) == is_lent_again
        assert rows(second) == 0


def test_a_database_is_lent_again_without_the_connections_that_a_test_left_open(
    databases: Databases,
) -> None:
    """A transaction that was never ended would otherwise hold up the next test."""
    with databases.lend() as first:
        left = create_engine(first).connect()
        left.exec_driver_sql("LOCK TABLE sessions")
    with databases.lend() as second:
        assert rows(make_url(second)) == 0
    left.invalidate()
