"""A clock that is given: for what depends on the hour, and not on how fast a machine is."""

from __future__ import annotations

SECOND = 1_000_000


class Clock:
    """A clock that goes when it is asked to."""

    def __init__(self) -> None:
        self.now = 1_700_000_000 * SECOND

    def __call__(self) -> int:
        return self.now

    def pass_(self, seconds: float) -> None:
        self.now += int(seconds * SECOND)
