"""A lock that a forked process does not inherit as it was.

What holds a lock in another thread at the moment of a fork does not come along into the
child, where nobody would ever let go of it: whoever asks for it there would wait for ever.

Knows processes and threads; knows nothing of what is done under the lock.
"""

from __future__ import annotations

import os
import sys
from threading import Lock


class ProcessLock:
    """A lock of a whole process, never given up: make one for a module, not for a value."""

    def __init__(self) -> None:
        self._renew()
        if sys.platform != "win32":
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self._lock = Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
