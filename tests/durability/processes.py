"""Processes that a test starts, listens to and kills.

They are forked off one process that has everything imported and the vocabulary unpacked,
so that a child costs milliseconds and a test can kill many. What a child tells comes
through a pipe: what stands in it was said before the child died.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from multiprocessing.synchronize import Barrier
from typing import Any

_FORKS = multiprocessing.get_context("forkserver")
_PROGRAMS = ("durability.programs", "concurrency.programs", "concurrency.chat_worker")
_FORKS.set_forkserver_preload([f"tests.{name}" for name in _PROGRAMS])
_PATIENCE = 120.0

Told = tuple[Any, ...]


class Child:
    """A running process and what it has told."""

    def __init__(self, program: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self._ear, mouth = _FORKS.Pipe(duplex=False)
        self._process = _FORKS.Process(target=program, args=(mouth, *arguments), daemon=True)
        self._process.start()
        mouth.close()
        self.heard: list[Told] = []

    def hear(self) -> Told | None:
        """Wait for the next thing that it tells; None says that it is over."""
        if not self._ear.poll(_PATIENCE):
            raise AssertionError(f"silence, after {self.heard[-3:]}")
        try:
            told: Told = self._ear.recv()
        except (EOFError, OSError):  # at the end of what it told, or in the middle of it
            return None
        self.heard.append(told)
        return told

    def hear_until(self, word: str, times: int = 1) -> Told:
        """Wait until it has told something that begins with ``word``, so many times."""
        while told := self.hear():
            times -= told[0] == word
            if times == 0:
                return told
        raise AssertionError(f"it ended ({self.ended()}), after {self.heard[-3:]}")

    def kill(self) -> None:
        """kill -9, and hear what it had told until then."""
        self._process.kill()
        while self.hear():
            pass
        assert self.ended() == -signal.SIGKILL

    def ended(self) -> int | None:
        """Wait for its end and return how it ended."""
        self._process.join(_PATIENCE)
        return self._process.exitcode

    def finish(self) -> list[Told]:
        """Let it run to its end, which has to be a good one, and return all it told."""
        while self.hear():
            pass
        assert self.ended() == 0, self.heard[-3:]
        return self.heard

    def close(self) -> None:
        self._process.kill()
        self._process.join(_PATIENCE)
        self._process.close()
        self._ear.close()


@contextmanager
def running(program: Callable[..., None], *arguments: Any) -> Iterator[Child]:
    """Run ``program(pipe, *arguments)`` in a process of its own, which ends with the block."""
    child = Child(program, arguments)
    try:
        yield child
    finally:
        child.close()


@contextmanager
def crowd(program: Callable[..., None], each: list[tuple[Any, ...]]) -> Iterator[list[Child]]:
    """Run one process for each list of arguments."""
    children: list[Child] = []
    try:
        children.extend(Child(program, arguments) for arguments in each)
        yield children
    finally:
        for child in children:
            child.close()


def gate(how_many: int) -> Barrier:
    """Return what so many processes wait at until all of them are there."""
    return _FORKS.Barrier(how_many, timeout=_PATIENCE)


def context() -> ForkServerContext:
    """Return what other processes are forked from."""
    return _FORKS


def stay() -> None:
    """Go no further: what calls this waits to be killed."""
    time.sleep(_PATIENCE)
    raise AssertionError("nobody came")


__all__ = ["Barrier", "Child", "Connection", "Told", "context", "crowd", "gate", "running", "stay"]
