"""What an object that the garbage collector found has left to do, done by another thread.

Theory. Python collects when enough is new: between any two steps of any thread, whatever that
thread holds at the moment. A loop over a reply that is part of a cycle, as the frames of a web
framework are, ends there, and what arrived of the reply is to be stored. But the thread may
be writing that very reply, or be in a transaction: a thread that waits there for a lock
waits for itself. So nothing of ours is done while a thread collects. It is put into a queue that
takes no lock of Python's to put into, and done by a thread that holds nothing, one after
the other, in the order in which it was left.

It knows the collector, threads and processes; it must not know what is done.
"""

from __future__ import annotations

import _thread
import atexit
import gc
import os
import sys
import threading
from collections import deque
from collections.abc import Callable


class _Left:
    """What is left to do, in order."""

    def __init__(self) -> None:
        self._works: deque[Callable[[], object]] = deque()
        self._unfinished: deque[None] = deque()
        # No thread that collects takes it. Reentrant: closing a store may be among what is left,
        # and that waits for what was left before it.
        self._one_by_one = threading.RLock()

    def put(self, work: Callable[[], object]) -> None:
        # Single calls that run no Python and take no lock of its own.
        self._unfinished.append(None)
        self._works.append(work)
        _thread.start_new_thread(self.settle, ())

    def settle(self) -> None:
        if not self._unfinished:
            return
        with self._one_by_one:
            while self._works:
                try:
                    self._works.popleft()()
                except Exception as error:
                    # It is no business of the thread that waits here.
                    told = (type(error), error, error.__traceback__, None)
                    threading.excepthook(threading.ExceptHookArgs(told))
                finally:
                    self._unfinished.pop()


_left = _Left()


def elsewhere(work: Callable[[], object]) -> bool:
    """Have ``work`` done by another thread where this one is collecting; say whether it is.

    What goes wrong there is reported as what goes wrong in any thread. Where the
    interpreter itself ends nothing can be done any more, by anybody: its modules are gone.
    """
    if sys.is_finalizing():
        return True
    if not _collecting():
        return False
    _left.put(work)
    return True


def settle() -> None:
    """Wait until all that was left is done."""
    _left.settle()


def _collecting() -> bool:
    """Whether this thread collects; rarely also where another one does.

    Python does not say so. But while a collection is under way no other is begun, in no
    thread: asked for one of the youngest objects, the collector counts none.
    """
    before = _collections()
    gc.collect(0)
    return _collections() == before


def _collections() -> list[int]:
    return [generation["collections"] for generation in gc.get_stats()]


def _in_child() -> None:
    # What the parent has left to do is the parent's, and so is a lock that is held there.
    global _left
    _left = _Left()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
atexit.register(settle)
