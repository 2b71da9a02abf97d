"""PostgreSQL as the ledger uses it: psycopg 3, nothing a pooler breaks.

No prepared statements, no state in a session of the server's, READ COMMITTED. One statement
is one round trip: nothing is said before it or after. A write is a
function that can be run again: it is, when it lost against another (40001, 40P01), and
when the connection was lost and an idempotency key makes the second run harmless.

Knows PostgreSQL; knows no table.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.pool import NullPool

from reasoning_store.errors import MissingExtra, SchemaError, UsageError
from reasoning_store.ledger import faults
from reasoning_store.ledger.lending import Lending, Lent
from reasoning_store.ledger.sql import STREAMS, driver

T = TypeVar("T")
DRIVER = "postgresql+psycopg"
_ATTEMPTS = 8
_IDLE = 5.0
_IDLE_STATUS = 0
"""libpq's number for a connection on which nothing is begun."""
_OLDEST = 150000
_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


def engine(url: URL) -> Engine:
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
        poolclass=NullPool,
        pool_reset_on_return=None,  # one that is in a transaction is never used again
    )

    @event.listens_for(made, "begin")
    def _begin(connection: Connection) -> None:
        # What SQLAlchemy begins by itself (see migrate) may be in a transaction already.
        raw = driver(connection)
        if raw.pgconn.transaction_status == _IDLE_STATUS:
            raw.execute(_WRITE)

    return made


class _Connected:
    """A connection, and since when it was idle."""

    __slots__ = ("connection", "since")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.since = time.monotonic()

    def answers(self, doubted: float) -> bool:
        """Whether it lives still, before a statement is lost on it.

        Asking each time would add a round trip to every turn; a server does not restart
        within the seconds of one. Where it did, the first connection that is lost tells:
        those that were idle then are ``doubted``.
        """
        if self.since > doubted and time.monotonic() - self.since < _IDLE:
            return True
        try:
            driver(self.connection).execute("SELECT 1")
        except Exception:
            return False
        return True

    def is_clean(self) -> bool:
        """Whether it may be lent again: not lost, and nothing is begun on it."""
        connection = self.connection
        try:
            if connection.in_transaction():
                connection.rollback()
            clean: bool = driver(connection).pgconn.transaction_status == _IDLE_STATUS
        except Exception:
            return False
        self.since = time.monotonic()
        return clean

    def drop(self) -> None:
        self.connection.invalidate()
        self.connection.close()


class PostgresDatabase:
    """A few connections to one server."""

    def __init__(self, url: URL, *, busy_timeout: float, pool_size: int) -> None:
        connect = engine(url).connect
        self._lending = Lending(
            lambda: _Connected(connect()),
            _Connected.drop,
            most=pool_size,
            timeout=busy_timeout,
            busy="every connection was in use for longer than the busy timeout",
        )
        self._doubted = -math.inf
        """When a connection was lost: what was idle then may be lost too."""

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
        return _retried(lambda: self._run(work, None if single else _READ), again_when_lost=True)

    def write(
        self,
        work: Callable[[Connection], T],
        *,
        single: bool = False,
        again_when_lost: bool = False,
    ) -> T:
        """Run ``work`` in one transaction; ``single`` says that it is one statement."""
        begin = None if single else _WRITE
        return _retried(lambda: self._run(work, begin), again_when_lost=again_when_lost)

    def change_schema(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` in one transaction, which SQLAlchemy knows of."""

        def known(connection: Connection) -> T:
            with connection.begin():
                return work(connection)

        return _retried(lambda: self._run(known, None), again_when_lost=False)

    def _run(self, work: Callable[[Connection], T], begin: str | None) -> T:
        def run(lent: Lent[_Connected]) -> tuple[T] | None:
            connected, alive = lent.one, False
            try:
                alive = connected.answers(self._doubted)
                if not alive:
                    return None
                connection = connected.connection
                return (work(connection) if begin is None else _begun(connection, work, begin),)
            finally:
                lent.fit = alive and connected.is_clean()
                if not lent.fit:
                    self._doubted = time.monotonic()

        while (answer := self._lending.lend(run)) is None:
            pass  # one that had been lost while it was idle
        return answer[0]

    def scrub(self) -> tuple[str, ...]:
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
        self._lending.close()


def _begun(connection: Connection, work: Callable[[Connection], T], begin: str) -> T:
    # Past SQLAlchemy, as every statement of ours is (see sql).
    raw = driver(connection)
    raw.execute(begin)
    try:
        result = work(connection)
    except BaseException:
        with suppress(Exception):  # where it is lost, there is nothing to take back
            raw.rollback()
        raise
    raw.commit()
    return result


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
