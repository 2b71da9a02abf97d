"""The checks around each use of an open database, and errors of ours in place of a driver's."""

from __future__ import annotations

import os

from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.ledger.database import driver_errors


class Guard:
    """Entered with ``with`` around each use of a database, which belongs to one process."""

    __slots__ = ("_process", "is_open", "read_only")

    def __init__(self, *, read_only: bool = False) -> None:
        self._process = os.getpid()
        self.is_open = True
        self.read_only = read_only

    def __enter__(self) -> None:
        if not self.is_open:
            raise InvalidCall("the store is closed", hint="open it again: rs.Store(url)")
        if not self.is_own_process:
            raise forked()

    __exit__ = staticmethod(driver_errors.raise_ours)

    @property
    def is_own_process(self) -> bool:
        return os.getpid() == self._process

    def check_writable(self) -> None:
        if self.read_only:
            raise InvalidCall(
                "the store was opened to be read only",
                hint="open it without read_only=True to write",
            )

    def close(self) -> bool:
        """Refuse each use from now on; return False if nothing is left to close."""
        was_open, self.is_open = self.is_open and self.is_own_process, False
        return was_open


def forked() -> InvalidCall:
    """Return the error of a store in the child of a fork."""
    # SQLite's locks and a server's connection do not survive it.
    return InvalidCall(
        "the store was opened by the process that this one was forked from",
        hint="open the store after the fork, in each process",
    )
