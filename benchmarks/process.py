"""Whole processes: the processor time until one answers, and how much memory it holds.

A process is started anew for every figure, with the interpreter that runs this.
``python -m benchmarks.process KIND FILE`` is the process whose memory is measured.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.workload import Prepare, Sample, Setting

CHECKOUT = Path(__file__).resolve().parent.parent
_KIB = 1024


def started(*arguments: str) -> Prepare:
    """Return a contender that starts ``python`` with these arguments."""

    @contextmanager
    def prepare(setting: Setting) -> Iterator[Sample]:
        yield lambda: _processor_time(arguments)

    return prepare


def reading(command: str, *, session: bool = True) -> Prepare:
    """Return a contender that runs a command over a conversation and waits for its end."""

    @contextmanager
    def prepare(setting: Setting) -> Iterator[Sample]:
        from benchmarks.conversation import SESSION
        from benchmarks.histories import filled, url

        database = url(filled(setting))
        named = (SESSION,) if session else ()
        arguments = ("-m", "reasoning_store", *command.split(), *named, "--db", database)
        yield lambda: _processor_time(arguments)

    return prepare


def _processor_time(arguments: tuple[str, ...]) -> float:
    """Run ``python`` with these arguments; return the seconds of processor time it took.

    It may keep its compiled modules, as an installed program does.
    """
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments],
        cwd=CHECKOUT,
        env=kept,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def importing(*modules: str) -> Prepare:
    return started("-c", f"import {', '.join(modules)}" if modules else "pass")


def resident(kind: str, fill: Callable[[Setting], Path]) -> Prepare:
    """Return a contender that loads a history in a process of its own; a figure is bytes."""

    @contextmanager
    def prepare(setting: Setting) -> Iterator[Sample]:
        path = fill(setting)

        def sample() -> float:
            ran = subprocess.run(
                [sys.executable, "-m", "benchmarks.process", kind, str(path), str(setting.size)],
                cwd=CHECKOUT,
                check=True,
                stdout=subprocess.PIPE,
            )
            return float(ran.stdout)

        yield sample

    return prepare


def _most_held() -> int:
    """Return the most memory that this process has held, in bytes."""
    # Not from getrusage where the system tells it otherwise: that counts from before exec,
    # when the process was a copy of the one that started it.
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = [one for one in status.read_text().splitlines() if one.startswith("VmHWM:")]
        return int(line.split()[1]) * _KIB
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else _KIB
    )


def _load(kind: str, path: Path, size: int) -> object:
    if kind == "ours":
        import reasoning_store as rs
        from benchmarks.conversation import SESSION

        with rs.Store(f"sqlite:///{path}") as store:
            return store.session(SESSION).history()
    if kind == "floor":
        from benchmarks import bare

        return bare.load(bare.connect(path).execute, 1, size)
    from benchmarks.rivals import load_alone

    return load_alone(kind, path)


if __name__ == "__main__":
    _history = _load(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
    print(_most_held())
