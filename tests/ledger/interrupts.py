"""An interrupt at each place where Python would hear of one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dis import opname
from itertools import count
from types import FrameType
from typing import Any

_HEARD = ("CALL", "RESUME", "JUMP_BACKWARD")
"""How the instructions are called after which Python looks whether it was interrupted."""


def _ask_for_instructions() -> None:
    """Python 3.12 tells a trace of them only where someone had asked before it was set."""
    sys._getframe().f_trace_opcodes = True


_ask_for_instructions()


class Interrupt:
    """Raises KeyboardInterrupt in one module, where Python would hear of one: the ``at``-th."""

    def __init__(self, at: int, file: str) -> None:
        self.left = at
        self.file = file
        self.before: dict[FrameType, str] = {}

    def __call__(self, frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename != self.file:
            return None
        frame.f_trace_opcodes = True
        if event == "call":
            self.before[frame] = "RESUME"
        if event == "opcode":
            heard = self.before.get(frame, "").startswith(_HEARD)
            self.before[frame] = opname[frame.f_code.co_code[frame.f_lasti]]
            self.left -= heard
            if heard and self.left < 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self


def everywhere(
    file: str, prepare: Callable[[], Callable[[], Any]], check: Callable[[], Any]
) -> int:
    """Interrupt what ``prepare`` returns at each place where it can be; return how many."""
    for at in count():
        done = _interrupted(prepare(), Interrupt(at, file))
        check()
        if done:
            return at
    raise AssertionError


def _interrupted(run: Callable[[], Any], interrupt: Interrupt) -> bool:
    """Run in a thread of its own; return whether that came to its end.

    An interrupt that a trace raises where an exception is handled leaves that exception in
    the thread, as the one under way, for whatever the thread does next.
    """
    with ThreadPoolExecutor(1, initializer=lambda: sys.settrace(interrupt)) as pool:
        try:
            pool.submit(run).result()
        except KeyboardInterrupt:
            return False
        finally:
            # Else what was interrupted is in a cycle, and goes when the collector comes.
            interrupt.before.clear()
        return True
