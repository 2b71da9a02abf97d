"""Reading much at once without the garbage collector going through it again and again.

The collector looks at everything that lives whenever enough is new. Rows that are read live,
all of them, and none is part of a cycle: so it finds nothing, and reading a conversation
would cost more than in proportion to its length (twice as much at a hundred thousand
messages). While a verb reads, the collector waits; it is as it was when the verb returns,
and where the application has turned it off, it stays off. A process that is forked while
another thread reads has no such thread to turn it on again: there it goes on at once.

Knows the collector; knows nothing of what is read.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from functools import wraps
from threading import get_ident
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_holding: set[int] = set()
"""The threads that keep the collector waiting."""


def uncollected(read: Callable[P, T]) -> Callable[P, T]:
    """Return the same, with the collector waiting meanwhile."""

    @wraps(read)
    def waiting(*args: P.args, **kwargs: P.kwargs) -> T:
        # Threads need no lock here: whoever finds it on turns it on again.
        if not gc.isenabled():
            return read(*args, **kwargs)
        try:
            _holding.add(get_ident())
            gc.disable()
            return read(*args, **kwargs)
        finally:
            gc.enable()
            _holding.discard(get_ident())

    return waiting


def _in_child() -> None:
    if _holding:
        _holding.clear()
        gc.enable()


if hasattr(os, "register_at_fork"):  # where there are no forks there is nothing to register
    os.register_at_fork(after_in_child=_in_child)
