"""Who takes part: ours and the floor in every workload, others where there are any."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from benchmarks.workload import Contender, Prepare


def ours(prepare: Prepare) -> Contender:
    return Contender("ours", "ours", prepare)


def floor(prepare: Prepare, only_at: int | None = None) -> Contender:
    return Contender("floor", "floor", prepare, only_at)


def bare(name: str, prepare: Prepare) -> Contender:
    """Return a bare program that does what ours has to, where the floor does less."""
    return Contender(name, "bare", prepare)


def other(name: str, prepare: Prepare, only_at: int | None = None) -> Contender:
    return Contender(name, "other", prepare, only_at)


def if_installed(
    package: str, name: str, make: Callable[[], Prepare], only_at: int | None = None
) -> tuple[Contender, ...]:
    """Return a rival where its package is there; it is not made where it is not."""
    found = find_spec(package) is not None
    return (Contender(name, "rival", make(), only_at),) if found else ()
