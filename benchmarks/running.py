"""Runs a workload: every contender prepared, then round after round, taking turns.

In each round every contender has one go. Each order comes forwards and then backwards, and
the next one begins with another, so that no one always comes after the same one.
The first goes of each are not counted, unless one round is all that a workload asks for.
Rounds go on until the time is up, within its limits.

Knows clocks and folders; knows no workload and judges nothing.
"""

from __future__ import annotations

import gc
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from benchmarks.workload import Contender, Sample, Setting, Workload

Figures: TypeAlias = dict[int, dict[str, list[float]]]
"""By size and by contender, one figure a round."""
Database: TypeAlias = Callable[[], str]
"""Makes an empty database on a server and returns its URL."""


@dataclass(frozen=True, slots=True)
class Storage:
    """The two places to store: one that costs no waiting, one that is durable."""

    memory: Path
    disk: Path
    templates: Path

    @contextmanager
    def folder(self, kind: str) -> Iterator[Path]:
        root = self.memory if kind == "memory" else self.disk
        made = Path(tempfile.mkdtemp(prefix="reasoning-store-bench-", dir=root))
        try:
            yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)


def run(
    workload: Workload,
    storage: Storage,
    *,
    database: Database | None,
    seconds: float,
    smoke: bool = False,
) -> Figures:
    """Return the figures of every size; ``seconds`` is about what one size may take."""
    sizes = workload.smoke if smoke else workload.sizes
    return {
        size: _one_size(workload, size, storage, database, seconds, smoke=smoke) for size in sizes
    }


def _one_size(
    workload: Workload,
    size: int,
    storage: Storage,
    database: Database | None,
    seconds: float,
    *,
    smoke: bool,
) -> dict[str, list[float]]:
    present = [one for one in workload.contenders if smoke or one.only_at in (None, size)]
    least, most = (1, 1) if smoke else workload.rounds
    repeats = min(workload.repeats, 2) if smoke else workload.repeats
    with ExitStack() as stack:
        samples: dict[str, Sample] = {}
        for one in present:
            folder = stack.enter_context(storage.folder(workload.storage))
            server = database() if workload.server and database is not None else None
            setting = Setting(folder, size, repeats, storage.templates, workload.clock, server)
            samples[one.name] = stack.enter_context(one.prepare(setting))
            if least > 1:
                for _ in range(workload.before):
                    samples[one.name]()
        with _own_objects_only():
            return _rounds(present, samples, seconds, least, most)


@contextmanager
def _own_objects_only() -> Iterator[None]:
    """Keep the collector from going through what everybody's packages hold, at our cost."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _rounds(
    present: list[Contender], samples: dict[str, Sample], seconds: float, least: int, most: int
) -> dict[str, list[float]]:
    figures: dict[str, list[float]] = {one.name: [] for one in present}
    until = time.monotonic() + seconds
    for number in range(most):
        if number >= least and time.monotonic() > until:
            break
        turn = number // 2 % len(present)
        order = [*present[turn:], *present[:turn]]
        for one in order[::-1] if number % 2 else order:
            figures[one.name].append(samples[one.name]())
    return figures
