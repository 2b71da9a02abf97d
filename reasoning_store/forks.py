"""A lock that a forked process does not inherit as it was.

What holds a lock in another thread at the moment of a fork does not come along into the
child, where nobody would ever let go of it: whoever asks for it there would wait for ever.

It knows processes and threads; it must not know what is done under the lock.
"""

from __future__ import annotations

import os
from threading import Lock


class ProcessLock:
    """A lock of a whole process, never given up: make one for a module, not for a value.

    It is taken as ``with that.lock``: between two steps of Python an interrupt would leave it
    taken for ever, and taking ``lock`` itself is one.
    """

    def __init__(self) -> None:
        self._renew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self.lock = Lock()
