"""Keeps the drafts of replies that are being recorded: one thread for a whole store.

About once a second it writes what each reply has got since, so that a process that dies
loses a second of it at most and readers elsewhere can follow; the loop that shows a reply
never waits for a disk. While a reply waits for its model its lease is renewed. A reply
whose reader has stopped asking is not kept alive: what arrived is written, the lease runs
out, and everybody else sees a message that was interrupted.

Whoever ends such a reply in this process is given what was not written yet, too. As the program
ends, what arrived of replies that nobody has let go of is written.

The thread lives while there is something to keep. An interrupt may come between any two steps
of the program's own thread: so what both of them use is locked and woken by single calls that
run no Python, and never stays locked. It knows replies as ``Kept``; it must not know what is in
one.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Protocol

from reasoning_store.collected import settle


class Kept(Protocol):
    """A reply, as the keeper sees it."""

    def keep(self, *, last: bool = False) -> bool:
        """Write what there is to write, and say whether the store took it. Never raises.

        ``last`` says that nothing can be written after this: nothing is held back then.
        """
        ...

    @property
    def busy(self) -> bool:
        """Whether somebody is writing it at this moment."""
        ...

    @property
    def place(self) -> tuple[int, int] | None:
        """The session and the branch that it is recorded on."""
        ...

    def rest(self, draft: str, written: int) -> Sequence[str]:
        """Return the parts of a draft behind the first ``written``; none of another's."""
        ...

    def forked(self) -> None:
        """This is a forked child: what another thread of the parent holds is nobody's here."""
        ...


_keepers: weakref.WeakSet[Keeper] = weakref.WeakSet()


class Keeper:
    """The thread that keeps the drafts of one store."""

    def __init__(self, *, every: float) -> None:
        self._every = every
        self._lock = threading.Lock()
        # Without callbacks: they would be Python that runs as a reply goes, wherever that is.
        self._kept: set[weakref.ref[Kept]] = set()
        self._hurry: SimpleQueue[None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._process = os.getpid()
        _keepers.add(self)

    def add(self, reply: Kept) -> None:
        """Begin to keep a reply, until it is discarded or forgotten."""
        with self._lock:
            self._kept.add(weakref.ref(reply))
            if self._thread is None:
                thread = threading.Thread(
                    target=self._run, name="reasoning-store-keeper", daemon=True
                )
                # Without it the reply is stored at its end all the same; with the next one it
                # is tried again.
                with suppress(RuntimeError):
                    thread.start()
                    self._thread = thread

    def discard(self, reply: Kept) -> None:
        with self._lock:
            self._kept.discard(weakref.ref(reply))
        if not self._kept:
            self.hurry()

    def keep_on(self, session_key: int, branch: int) -> None:
        """Write now what is recorded here: something else is about to be said there."""
        settle()
        for reply in self._all():
            if reply.place == (session_key, branch):
                reply.keep()

    def keep_all(self) -> None:
        """Write now what has arrived of every reply: nothing can be written after this.

        Where the store takes nothing, no other reply waits for it as long again.
        """
        settle()
        for reply in self._all():
            if not reply.keep(last=True):
                return

    def rest(self, draft: str, written: int) -> Sequence[str]:
        """Return what arrived here of a draft that somebody ends, and is not written."""
        return [part for reply in self._all() for part in reply.rest(draft, written)]

    def forked(self) -> None:
        """This is a forked child: whose loop is left here waits for none of the parent's."""
        self._lock = threading.Lock()
        for one in self._kept:
            if (reply := one()) is not None:
                reply.forked()

    def _all(self) -> Sequence[Kept]:
        # A forked child writes nothing of its parent's.
        if not self._kept or os.getpid() != self._process:
            return ()
        with self._lock:
            kept = [*self._kept]
        return [reply for one in kept if (reply := one()) is not None]

    def hurry(self) -> None:
        """Look soon: a reply has got much at once, or there is none any more."""
        self._hurry.put(None)

    def _run(self) -> None:
        while True:
            with suppress(Empty):
                self._hurry.get(timeout=self._every)
                while True:
                    self._hurry.get_nowait()
            with self._lock:
                self._kept = {one for one in self._kept if one() is not None}
                kept = [*self._kept]
                if self._thread is not threading.current_thread():
                    return  # an interrupt came between its start and here: there is another
                if not kept:
                    self._thread = None
                    return
            for one in kept:
                # Nothing here keeps alive for longer what its reader has let go of.
                reply = one()
                # One that is being written, or masked and counted at its end, waits for nobody.
                if reply is not None and not reply.busy:
                    reply.keep()
                del reply


def _at_the_end() -> None:
    for keeper in [*_keepers]:
        keeper.keep_all()


def _in_child() -> None:
    for keeper in [*_keepers]:
        keeper.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
atexit.register(_at_the_end)
