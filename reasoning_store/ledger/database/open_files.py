"""The SQLite files that this process has open, or had open when it was forked.

The system's locks on a file belong to a process. SQLite remembers, for all connections of a
process together, which of them it holds; a forked child inherits that memory and none of the
locks, so a connection of its own to the same file would lock nothing, and two processes would
undo each other's pages. Therefore the child is refused the file, and never closes a connection
that it inherited: to close the last one may remove a log that others still write.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Collection
from pathlib import Path
from typing import Final, Protocol
from weakref import WeakSet

from reasoning_store.conversation.errors import InvalidCall


class Holder(Protocol):
    """A store that has files of SQLite's open."""

    def held_files(self) -> Collection[tuple[int, int]]:
        """Return the device and inode of each of them."""
        ...


HOLDERS: Final[WeakSet[Holder]] = WeakSet()
"""The stores of this process."""
_INHERITED: Final[set[tuple[int, int]]] = set()


def check_not_held(status: os.stat_result, subject: str) -> None:
    """Refuse a file that a store of this process has open, by whatever name.

    Closing a second handle on a file drops every POSIX lock that the process has on it, and
    SQLite writes on as if it still had them. So a file of a store is opened by SQLite alone.
    """
    if any((status.st_dev, status.st_ino) in holder.held_files() for holder in [*HOLDERS]):
        raise InvalidCall(
            f"{subject}: a store of this process has it open",
            hint="name another file; what the store holds is read through the store",
        )


def check_not_inherited(path: str) -> None:
    """Refuse a file that was open when this process was forked from another."""
    if not _INHERITED:
        return
    try:
        status = os.stat(path)
    except OSError:
        return
    if (status.st_dev, status.st_ino) in _INHERITED:
        raise InvalidCall(
            f"{Path(path).name} was open in the process that this one was forked from",
            hint="open it after the fork only, or start this process anew (spawn)",
        )


def _after_fork_in_child() -> None:
    for holder in [*HOLDERS]:
        _INHERITED.update(holder.held_files())
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(holder))  # for good: never closed here
    HOLDERS.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
