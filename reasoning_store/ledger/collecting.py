"""Reading much at once without the garbage collector going through it again and again.

The collector looks at everything that lives whenever enough is new. Rows that are read live,
all of them, and none is part of a cycle: so it finds nothing, and reading a conversation
would cost more than in proportion to its length (twice as much at a hundred thousand
messages). While a verb reads, the collector waits; it is as it was when the verb returns,
and where the application has turned it off, it stays off.

Knows the collector; knows nothing of what is read.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def uncollected(read: Callable[P, T]) -> Callable[P, T]:
    """Return the same, with the collector waiting meanwhile."""

    @wraps(read)
    def waiting(*args: P.args, **kwargs: P.kwargs) -> T:
        # Threads need no lock here: whoever finds it on turns it on again.
        if not gc.isenabled():
            return read(*args, **kwargs)
        gc.disable()
        try:
            return read(*args, **kwargs)
        finally:
            gc.enable()

    return waiting
