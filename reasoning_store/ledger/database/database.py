"""An open database, as the subjects of the ledger use it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from sqlalchemy import Connection

P = ParamSpec("P")
T = TypeVar("T")


def reads(work: Callable[Concatenate[Connection, P], T]) -> Callable[Concatenate[Any, P], T]:
    """Return ``work`` as a method of a class with a ``_database``: one read of it."""

    def read(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        found: T = self._database.read(work, *args, **kwargs)
        return found

    return read


class Database(Protocol):
    """An open database: two kinds of transaction and no others; neither waits for other code.

    It checks that it is open and in its own process, and a driver's errors become ours here.
    """

    @property
    def is_read_only(self) -> bool:
        """Whether it was opened to be read, and refuses every write."""
        ...

    def read(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Return ``work(connection, ...)``; all that it reads is of one moment."""
        ...

    def read_one(
        self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Return the same of a ``work`` that is one statement: it needs no transaction."""
        ...

    def read_alone(self, work: Callable[[Connection], T]) -> T:
        """Return ``work(connection)`` on a connection that has read nothing before.

        Another one may have cached parts of the search's index that are older than its snapshot.
        """
        ...

    def write(
        self, work: Callable[[Connection], T], *, single: bool = ..., again_when_lost: bool = ...
    ) -> T:
        """Run ``work`` in one transaction.

        ``single``: it is short: one statement on PostgreSQL, which needs no transaction around it;
        on SQLite several of them may share one. ``again_when_lost``: it may run a second time if it
        is unknown whether it ran.
        """
        ...

    def change_schema(self, work: Callable[[Connection], T]) -> T:
        """Run ``work``, which may rebuild tables, in one transaction."""
        ...

    def require_scrub(self, connection: Connection) -> None:
        """Note in a transaction that erases that ``scrub`` is to follow."""
        ...

    def unerased(self) -> tuple[str, ...]:
        """Return the files that may hold what an erasure took; none is rewritten."""
        ...

    def scrub(self, *, wait: bool = ...) -> tuple[str, ...]:
        """Let what was erased leave the files; return those that may still hold it."""
        ...

    def empty_log(self) -> None:
        """Let what was deleted leave the log, unless another connection needs the log now."""
        ...

    def copy_to(self, target: Path, *, replace: bool) -> Mapping[str, int]:
        """Write a copy; return how many rows each table has in it."""
        ...

    def close(self) -> None:
        """Close every connection; a second time, and in a forked child, do nothing."""
        ...
