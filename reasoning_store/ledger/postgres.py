"""PostgreSQL as the ledger uses it: psycopg 3, nothing a pooler breaks.

No prepared statements, no state in a session of the server's, READ COMMITTED. One statement
is one round trip: nothing is said before it or after. A write is a
function that can be run again: it is, when it lost against another (40001, 40P01), and
when the connection was lost and an idempotency key makes the second run harmless.

Knows PostgreSQL; knows no table.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DisconnectionError

from reasoning_store.errors import MissingExtra, SchemaError, UsageError
from reasoning_store.ledger import faults
from reasoning_store.ledger.sql import STREAMS, driver

T = TypeVar("T")
DRIVER = "postgresql+psycopg"
_ATTEMPTS = 8
_IDLE = 5.0
_OLDEST = 150000
_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


def engine(url: URL, *, pool_size: int, busy_timeout: float) -> Engine:
    """Return an engine that is safe behind a pooler."""
    try:
        from psycopg import capabilities
    except ImportError:
        raise MissingExtra("PostgreSQL needs psycopg 3", extra="postgres") from None
    made = create_engine(
        url,
        connect_args={
            "prepare_threshold": None,
            "client_encoding": "utf8",
            "application_name": "reasoning-store",
        },
        # The driver begins nothing; where there is more than one statement, we say so.
        isolation_level="AUTOCOMMIT",
        execution_options={STREAMS: capabilities.has_stream_chunked()},
        hide_parameters=True,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=busy_timeout,
    )
    _ping_after_idling(made)

    @event.listens_for(made, "begin")
    def _begin(connection: Connection) -> None:
        driver(connection).execute(connection.get_execution_options().get("begin", _WRITE))

    return made


def _ping_after_idling(made: Engine) -> None:
    """Find a connection that died in the pool before a statement is lost on it.

    Asking at every checkout would add a round trip to every turn; a server does not
    restart within the seconds of one.
    """

    @event.listens_for(made, "checkin")
    def _note(_: object, record: Any) -> None:
        record.info["idle since"] = time.monotonic()

    @event.listens_for(made, "checkout")
    def _ask(raw: Any, record: Any, _: object) -> None:
        if time.monotonic() - record.info.get("idle since", time.monotonic()) < _IDLE:
            return
        try:
            raw.execute("SELECT 1")
        except Exception:
            raise DisconnectionError("the connection died in the pool") from None


class PostgresDatabase:
    """A pool of connections to one server."""

    def __init__(self, url: URL, *, busy_timeout: float, pool_size: int) -> None:
        self._engine = engine(url, pool_size=pool_size, busy_timeout=busy_timeout)
        self._snapshot = self._engine.execution_options(begin=_READ)

    def check_server(self, connection: Connection) -> None:
        """Refuse a server on which texts or statements would not be what they are here."""
        row: Any = connection.exec_driver_sql(
            "SELECT current_setting('server_version_num')::int, current_setting('server_encoding')"
        ).fetchone()
        version, encoding = row
        if version < _OLDEST:
            raise SchemaError(f"PostgreSQL {version // 10000} is older than 15")
        if encoding != "UTF8":
            raise SchemaError(
                f"the database's encoding is {encoding}",
                hint="create the database with ENCODING 'UTF8'",
            )

    def read(self, work: Callable[[Connection], T], *, single: bool = False) -> T:
        """Run ``work`` on one snapshot."""
        run = _in_statement if single else _in_transaction
        return _retried(lambda: run(self._snapshot, work), again_when_lost=True)

    def write(
        self,
        work: Callable[[Connection], T],
        *,
        single: bool = False,
        again_when_lost: bool = False,
    ) -> T:
        """Run ``work`` in one transaction; ``single`` says that it is one statement."""
        run = _in_statement if single else _in_transaction
        return _retried(lambda: run(self._engine, work), again_when_lost=again_when_lost)

    def change_schema(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` in one transaction, as any other write."""
        return self.write(work)

    def scrub(self, *, rewrite: bool) -> tuple[str, ...]:
        """Do nothing: the server clears dead rows itself (docs/howto/backup-and-erase.md)."""
        return ()

    def copies(self) -> tuple[str, ...]:
        """Return nothing: what copies a server has is known to whoever runs it."""
        return ()

    def copy_to(self, target: Path, *, replace: bool) -> Mapping[str, int]:
        """Refuse: a server has its own tool."""
        raise UsageError(
            "a PostgreSQL database is backed up with its own tool",
            hint="run: pg_dump --format=custom --file=chat.dump DATABASE",
        )

    def close(self) -> None:
        self._engine.dispose()


def _in_transaction(chosen: Engine, work: Callable[[Connection], T]) -> T:
    with chosen.connect() as connection, _discarded_when_dead(connection), connection.begin():
        return work(connection)


def _in_statement(chosen: Engine, work: Callable[[Connection], T]) -> T:
    with chosen.connect() as connection, _discarded_when_dead(connection):
        return work(connection)


@contextmanager
def _discarded_when_dead(connection: Connection) -> Iterator[None]:
    """Keep a connection that broke under a statement of ours from going back to the pool."""
    try:
        yield
    except BaseException:
        if driver(connection).closed:
            connection.invalidate()
        raise


def _retried(once: Callable[[], T], *, again_when_lost: bool) -> T:
    for attempt in range(1, _ATTEMPTS):
        try:
            return once()
        except Exception as error:
            again = faults.conflicts(error) or (again_when_lost and faults.lost(error))
            if not again:
                raise
        time.sleep(random.uniform(0, 0.01 * 2**attempt))
    return once()
