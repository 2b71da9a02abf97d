"""Keeps the drafts of replies that are being recorded: one thread for a whole store.

About once a second it writes what each reply has got since, so that a process that dies
loses a second of it at most and readers elsewhere can follow; the loop that shows a reply
never waits for a disk. While a reply waits for its model its lease is renewed. A reply
whose reader has stopped asking is not kept alive: what arrived is written, the lease runs
out, and everybody else sees a message that was interrupted.

What is due of many replies is written in one transaction, so that they wait for the disk
once. What a masker does is done before, reply by reply: nobody else waits for it.

Whoever ends such a reply in this process is given what was not written yet, too. As the store is
closed, or the program ends, what arrived of replies that nobody has let go of is written, and
reads as interrupted.

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
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Protocol

from reasoning_store.collected import settle
from reasoning_store.errors import StoreBusy, StoreFull
from reasoning_store.ledger.ledger import Ledger
from reasoning_store.ledger.values import Growth

_TOGETHER = 100
"""Replies that are written in one transaction: nobody else waits for long behind it."""


class Kept(Protocol):
    """A reply, as it is seen here."""

    def gather(self, *, last: bool) -> None:
        """Make ready what there is to write; ``last``: nothing is held back for later."""
        ...

    def due(self, *, last: bool) -> Growth | None:
        """Return what is to be written of it now, if anything; ``last``: that this is all."""
        ...

    def kept(self, written: Growth, *, mine: bool) -> None:
        """What was due is written; not ``mine``: the draft is somebody else's by now."""
        ...

    @property
    def is_ending(self) -> bool:
        """Whether somebody is storing it at this moment."""
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


_keepers: weakref.WeakSet[DraftKeeper] = weakref.WeakSet()


class DraftKeeper:
    """The thread that keeps the drafts of one store."""

    def __init__(self, ledger: Ledger, *, every: float) -> None:
        # A store that nobody has any more is gone before the thread looks again.
        self._ledger = weakref.ref(ledger)
        self._every = every
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        """Held from what is due until it is known to be written; no masker is asked meanwhile."""
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
        self._keep(reply for reply in self._all() if reply.place == (session_key, branch))

    def keep_all(self) -> None:
        """Write now what has arrived of every reply: nothing can be written after this.

        Who is still reading one is told at its end; to everybody else it is interrupted.
        """
        settle()
        self._keep(self._all(), last=True)

    def rest(self, draft: str, written: int) -> Sequence[str]:
        """Return what arrived here of a draft that somebody ends, and is not written."""
        return [part for reply in self._all() for part in reply.rest(draft, written)]

    def forked(self) -> None:
        """This is a forked child: whose loop is left here waits for none of the parent's."""
        self._lock, self._writing = threading.Lock(), threading.Lock()
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
                if self._thread is not threading.current_thread():
                    return  # an interrupt came between its start and here: there is another
                if not self._kept:
                    self._thread = None
                    return
            # One that is masked, counted and stored at its end waits for nobody.
            self._keep(reply for reply in self._all() if not reply.is_ending)

    def _keep(self, replies: Iterable[Kept], *, last: bool = False) -> None:
        """Write what these have got. What the store refuses is written with what comes next.

        Where it takes nothing at all, nobody waits for it as long again.
        """
        rest = iter(replies)
        while some := [*islice(rest, _TOGETHER)]:
            for reply in some:
                with suppress(Exception):  # its masker's: the others are kept all the same
                    reply.gather(last=last)
            if not self._keep_together(some, last=last):
                return

    def _keep_together(self, replies: Sequence[Kept], *, last: bool) -> bool:
        """Write what is due of these in one transaction; False where nothing can be written."""
        try:
            with self._writing:
                found = [(reply, reply.due(last=last)) for reply in replies]
                due = [(reply, growth) for reply, growth in found if growth is not None]
                if due and (ledger := self._ledger()) is not None:
                    mine = ledger.keep_drafts([growth for _, growth in due], last=last)
                    for (reply, growth), is_mine in zip(due, mine, strict=True):
                        reply.kept(growth, mine=is_mine)
                return True
        except (StoreBusy, StoreFull):
            return False
        except Exception:
            # Something is wrong with one of them, and the others are kept all the same.
            if len(replies) == 1:
                return True
        return all([self._keep_together([reply], last=last) for reply in replies])


def _at_the_end() -> None:
    for keeper in [*_keepers]:
        keeper.keep_all()


def _in_child() -> None:
    for keeper in [*_keepers]:
        keeper.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
atexit.register(_at_the_end)
