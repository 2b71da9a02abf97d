"""PostgreSQL as the ledger uses it: psycopg 3, nothing a pooler breaks.

No prepared statements, no state in a session of the server's, READ COMMITTED. One statement is
one round trip. A write is a function that can be run again: it is, when it lost against another
(40001, 40P01), and when the connection was lost and an idempotency key makes the second run
harmless.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from reasoning_store.conversation.errors import InvalidCall, MissingExtra, SchemaError
from reasoning_store.ledger.database import driver_errors
from reasoning_store.ledger.database.guard import Guard
from reasoning_store.ledger.database.pool import Pool
from reasoning_store.ledger.database.statement import SCHEMA, STREAMS, driver

P = ParamSpec("P")
T = TypeVar("T")
DRIVER = "postgresql+psycopg"
RETRY_SECONDS = 10.0
"""For how long what was lost is tried again: a fail-over takes seconds."""
_LONGEST_PATIENCE = 3600
_LONGEST_PAUSE = 0.5
_DEFAULTS = {"connect_timeout": 10, "tcp_user_timeout": 10_000}
"""Of libpq, in seconds and milliseconds: without them a machine that vanishes is waited for
for a quarter of an hour. The URL may have others."""
_IDLE = 5.0
_IDLE_STATUS = 0
"""libpq's number for a connection on which nothing is begun."""
_OLDEST = 150000
_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


SCHEMA_IN_URL = "schema"
_RETRY_IN_URL = "retry_seconds"
"""Options of a URL that libpq does not have: the store's schema, how long it is tried again."""


def engine(url: URL) -> Engine:
    """Return an engine that is safe with a pooler."""
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
            **{name: value for name, value in _DEFAULTS.items() if name not in url.query},
        },
        # The driver begins nothing; where there is more than one statement, we do.
        isolation_level="AUTOCOMMIT",
        execution_options={STREAMS: capabilities.has_stream_chunked()},
        hide_parameters=True,
        poolclass=NullPool,
        pool_reset_on_return=None,  # one that is in a transaction is never used again
    )

    @event.listens_for(made, "begin")
    def _begin(connection: Connection) -> None:
        # SQLAlchemy begins one by itself (see schema_version), perhaps in a transaction of ours.
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

        Asking each time would add a round trip to every turn; a server does not restart within the
        seconds of one. After a restart the first lost connection is the sign: those that were idle
        then are ``doubted``.
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

    def __init__(
        self, url: URL, *, busy_timeout: float, pool_size: int, read_only: bool = False
    ) -> None:
        self._guard = Guard(read_only=read_only)
        asked = url.query.get(SCHEMA_IN_URL)
        self.schema: str | None = asked if isinstance(asked, str) else None
        """The schema of the tables; None: not looked for yet."""
        self._patience = _seconds(url.query.get(_RETRY_IN_URL))
        bare = url.difference_update_query([SCHEMA_IN_URL, _RETRY_IN_URL])
        connect = engine(bare).connect
        self._pool = Pool(
            lambda: _Connected(connect()),
            _Connected.drop,
            size=pool_size,
            timeout=busy_timeout,
            is_alive=self._is_alive,
            is_fit=self._is_fit,
        )
        self._doubted = -math.inf
        """The time when a connection was lost: those that were idle then may be lost too."""
        self._single: str | None = None
        """The statement before a write of one statement; none is needed if the role's default is
        ours."""

    def reach(self) -> None:
        """Connect to the server, and refuse one that is not fit for a store."""
        with self._guard:
            try:
                self._run(self._check_server, None, again_when_lost=False)
            except DBAPIError as error:
                if not driver_errors.is_lost(error):
                    raise
                raise driver_errors.unreachable_error(error) from None

    def _check_server(self, connection: Connection) -> None:
        """Refuse a server on which texts or statements would not be what they are here."""
        row: Any = connection.exec_driver_sql(
            "SELECT current_setting('server_version_num')::int, current_setting('server_encoding'),"
            " current_setting('default_transaction_isolation')"
        ).fetchone()
        version, encoding, isolation = row
        self._single = None if isolation == "read committed" else _WRITE
        if version < _OLDEST:
            raise SchemaError(f"PostgreSQL {version // 10000} is older than 15")
        if encoding != "UTF8":
            raise SchemaError(
                f"the database's encoding is {encoding}",
                hint="create the database with ENCODING 'UTF8'",
            )

    @property
    def is_read_only(self) -> bool:
        return self._guard.read_only

    def read(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        with self._guard:
            return self._run(
                lambda connection: work(connection, *args, **kwargs), _READ, again_when_lost=True
            )

    def read_one(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        with self._guard:
            return self._run(
                lambda connection: work(connection, *args, **kwargs), None, again_when_lost=True
            )

    read_alone = read

    def write(
        self,
        work: Callable[[Connection], T],
        *,
        single: bool = False,
        again_when_lost: bool = False,
    ) -> T:
        """Run ``work`` in one transaction; ``single``: it is one statement."""
        self._guard.check_writable()
        begin = self._single if single else _WRITE
        with self._guard:
            return self._run(work, begin, again_when_lost=again_when_lost)

    def change_schema(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` in one transaction, which SQLAlchemy knows of."""

        def known(connection: Connection) -> T:
            with connection.begin():
                return work(connection)

        with self._guard:
            return self._run(known, None, again_when_lost=False)

    def _run(
        self, work: Callable[[Connection], T], begin: str | None, *, again_when_lost: bool
    ) -> T:
        """Run ``work`` after ``begin``; again, for a while, where it lost against another."""
        seconds = RETRY_SECONDS if self._patience is None else self._patience
        ends_at, pause = time.monotonic() + seconds, 0.02
        while True:
            try:
                with self._pool.lent() as connected:
                    connection = connected.connection
                    if self.schema is not None:
                        connection.execution_options(**{SCHEMA: self.schema})
                    return (
                        work(connection)
                        if begin is None
                        else _in_transaction(connection, work, begin)
                    )
            except Exception as error:
                lost = driver_errors.is_lost(error) or driver_errors.is_internal(error)
                again = (again_when_lost and lost) or driver_errors.is_conflict(error)
                if not again or time.monotonic() > ends_at:
                    raise
            time.sleep(random.uniform(0, pause))
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _is_alive(self, connected: _Connected) -> bool:
        if connected.answers(self._doubted):
            return True
        self._doubted = time.monotonic()
        return False

    def _is_fit(self, connected: _Connected, error: BaseException | None) -> bool:
        if connected.is_clean():
            return True
        self._doubted = time.monotonic()
        return False

    def require_scrub(self, connection: Connection) -> None:
        """Do nothing: the server clears dead rows itself (docs/howto/backup-and-erase.md)."""

    def unerased(self) -> tuple[str, ...]:
        return ()

    def scrub(self, *, wait: bool = True) -> tuple[str, ...]:
        return ()

    def empty_log(self) -> None:
        """Do nothing: the server's log is its own."""

    def copy_to(self, target: Path, *, replace: bool) -> Mapping[str, int]:
        """Refuse: a server has its own tool."""
        raise InvalidCall(
            "a PostgreSQL database is backed up with its own tool",
            hint="run: pg_dump --format=custom --file=chat.dump DATABASE",
        )

    def close(self) -> None:
        if self._guard.close():
            self._pool.close()


def _in_transaction(connection: Connection, work: Callable[[Connection], T], begin: str) -> T:
    # Past SQLAlchemy, as every statement of ours is (see statement.py).
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


def _seconds(given: object) -> float | None:
    """Return for how long a lost statement is tried again, as the URL has it."""
    if given is None:
        return None
    with suppress(TypeError, ValueError):
        seconds = float(given)  # type: ignore[arg-type]
        if 0 <= seconds <= _LONGEST_PATIENCE:
            return seconds
    raise InvalidCall(
        f"{_RETRY_IN_URL}: a number of seconds from 0 to {_LONGEST_PATIENCE}",
        hint=f"as in ?{_RETRY_IN_URL}=30",
    )
