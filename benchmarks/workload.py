"""What a workload is: who does it, over which sizes, and what is promised of it.

A contender is prepared once for a size and then does the work again and again, taking turns
with the others; each go tells what it cost, in the workload's own unit. So setting up is
never in a figure, and an asynchronous contender can hold its own clock.

Values. It must not know any workload, nor import anything that is large: the processes whose
memory is measured import this. How a go is timed is in ``timing``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

Sample: TypeAlias = Callable[[], float]
"""One go at the work; returns what one unit of it cost."""
Kind: TypeAlias = Literal["ours", "floor", "bare", "rival", "other"]
Unit: TypeAlias = Literal["seconds", "bytes"]
Growth: TypeAlias = Literal["linear", "flat"]


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a contender works, how much there is, and how often it may repeat itself."""

    folder: Path
    """Its own, empty, on the storage that the workload asks for."""
    size: int
    repeats: int
    """How many units one go is made of, where a unit is short."""
    templates: Path
    """What contenders of one run share: histories that are made once and copied."""
    clock: Callable[[], float] = time.perf_counter
    """What a go is timed by."""
    server: str | None = None
    """A PostgreSQL database of its own, where the workload needs one."""

    @property
    def server_url(self) -> str:
        """The database; a workload that needs none must not ask."""
        assert self.server is not None
        return self.server


Prepare: TypeAlias = Callable[[Setting], AbstractContextManager[Sample]]


@dataclass(frozen=True, slots=True)
class Contender:
    """Someone who does the work."""

    name: str
    kind: Kind
    prepare: Prepare
    only_at: int | None = None
    """The one size that it is asked for, where others would only take time."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A promise: at most so many times another contender's cost, or a class of time."""

    at_most: float
    against: str
    """``floor``, ``best rival``, a contender's name, or ``class`` (``at_most`` in the unit)."""


FLOOR, OBJECTS, BEST, CLASS = "floor", "floor, as objects", "best rival", "class"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One row of the table."""

    name: str
    title: str
    """What it is, and of what a figure is: ``a durable turn``."""
    sizes: tuple[int, ...]
    of: str
    """What a size counts: messages, characters."""
    contenders: tuple[Contender, ...]
    promise: str | None = None
    """The promise that it measures; None where nothing is promised."""
    bounds: tuple[Bound, ...] = ()
    judged: int | None = None
    """The size at which the bounds hold; the largest where None."""
    growth: Growth | None = None
    each: bool = False
    """A figure is one of as many units as the size says; what grows is all of them."""
    unit: Unit = "seconds"
    storage: Literal["memory", "disk"] = "memory"
    server: bool = False
    """It needs a PostgreSQL server."""
    repeats: int = 1
    rounds: tuple[int, int] = (7, 25)
    """At least and at most so many rounds; in between the time decides."""
    before: int = 1
    """So many goes of each contender come before the first round and are not counted."""
    smoke: tuple[int, ...] = (10,)
    """The sizes of a run that only shows that it works."""

    @property
    def clock(self) -> Callable[[], float]:
        """What waits for a disk or a server is timed by the wall, what only works is not."""
        waits = self.server or self.storage == "disk"
        return time.perf_counter if waits else time.process_time

    @property
    def judged_at(self) -> int:
        return self.judged or max(self.sizes)
