"""No file of SQLite's is open while the process forks.

Theory. The system's locks on a file belong to a process. So SQLite remembers, for all
connections of the process together, which of them it holds. A forked child inherits that
memory, and none of the locks: a connection that it opens itself is told that what it asks for
is held already, and locks nothing. Two processes that write like that undo each other's pages,
and what was acknowledged is gone. It is not enough that the child leaves alone what it
inherited.

Therefore every connection is closed before a fork. Whoever works with one is waited for, and
none is made before the fork is over; then they are made anew, as they are asked for. Where
one is not given back in time the fork takes place all the same, for a fork cannot be
refused; and the child is refused the file.

Knows processes, and databases only as what can be let go of; knows no SQL.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Lock, get_ident
from typing import Protocol
from weakref import WeakSet

from reasoning_store.errors import StoreBusy, UsageError

_PATIENCE = 10.0
"""Seconds for which a fork waits for those who work."""
_ONCE = (True,)
"""``a.extend(map(lock.acquire, _ONCE))`` takes a lock and notes it, or neither."""


class Open(Protocol):
    """A database whose file is open."""

    @property
    def path(self) -> str | None: ...

    def let_go(self, until: float) -> AbstractContextManager[None]:
        """Have no connection open, as long as this is entered; StoreBusy where one stays."""
        ...


class _Forks:
    """What is open in this process, and what happens to it around a fork."""

    def __init__(self) -> None:
        self.open: WeakSet[Open] = WeakSet()
        self.gate = Lock()
        """Taken while a connection is made, and while the process forks."""
        self._one = Lock()
        """Taken by a thread that forks."""
        self._taken: dict[int, list[bool]] = {}
        """Of each thread that forks, how many of the two it has: first that, then the gate."""
        self._held = ExitStack()
        self._let_go: list[Open] = []
        self._asked: list[Open] | None = None
        """All that was to be let go of; None as long as not everybody was asked."""
        self.inherited: frozenset[tuple[int, int]] = frozenset()
        self._kept: tuple[Open, ...] = ()
        """What was inherited open: to close it would be to work with it."""

    def before(self) -> None:
        # Python forks though an interrupt ends this at any place. Each lock is taken in one
        # call, which runs no Python: it is noted, or not taken.
        taken = self._taken[get_ident()] = []
        taken.extend(map(self._one.acquire, _ONCE))
        until = time.monotonic() + _PATIENCE
        done: list[Open] = []
        while True:
            for database in [one for one in [*self.open] if one not in done]:
                done.append(database)
                with suppress(StoreBusy):
                    self._held.enter_context(database.let_go(until))
                    self._let_go.append(database)
            taken.extend(map(self.gate.acquire, _ONCE))
            if all(one in done for one in [*self.open]):
                self._asked = done
                return
            taken.pop()
            self.gate.release()  # somebody has opened another meanwhile

    def in_parent(self) -> None:
        taken = self._taken.pop(get_ident(), [])
        if not taken:
            return  # it did not wait for its turn
        self._let_go.clear()
        self._asked = None
        try:
            self._held.pop_all().close()
        finally:
            for lock in [self._one, self.gate][: len(taken)]:
                lock.release()

    def for_child(self) -> _Forks:
        """Return what a child begins with: what was held is given back to nobody there."""
        made = _Forks()
        asked = [*self.open] if self._asked is None else self._asked
        left = [one for one in asked if one not in self._let_go]
        names = {name for one in left if (name := _name(one.path)) is not None}
        made.inherited = self.inherited | names
        made._kept = (*self._kept, *left)
        return made


_forks = _Forks()


def register(database: Open) -> None:
    """Let go of a database whenever the process forks, as long as somebody has it."""
    _forks.open.add(database)


@contextmanager
def opening(path: str) -> Iterator[None]:
    """Make a connection to a file, while the process does not fork."""
    with _forks.gate:
        if _forks.inherited and _name(path) in _forks.inherited:
            raise UsageError(
                f"{Path(path).name} was in use when this process was forked from another",
                hint="fork where nobody is writing, or start the process anew (spawn)",
            )
        yield


def _name(path: str | None) -> tuple[int, int] | None:
    """Return what a file is known by, whatever its path is called."""
    if path is None:
        return None
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _in_child() -> None:
    global _forks
    _forks = _forks.for_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _forks.before(),
        after_in_parent=lambda: _forks.in_parent(),
        after_in_child=_in_child,
    )
