"""A bar for what takes more than a second, on standard error, for a person only.

Whoever waits less sees nothing, and a pipe or a log never does. The bar is drawn by a
thread of its own, so that also one call that takes long is seen to go on; rich is imported
only then.

It knows how much is done of how much. It must not know what.
"""

from __future__ import annotations

import sys
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

AFTER = 1.0
"""How many seconds nobody minds waiting."""


class Progress:
    """Something under way: ``advance`` tells how much of ``total`` is done."""

    def __init__(self, label: str, total: int | None = None) -> None:
        self._label = label
        self._total = total
        self._done = 0
        self._lock = Lock()
        self._over = False
        self._shown: RichProgress | None = None
        self._task: Any = None
        self._timer = Timer(AFTER, self._show)
        self._timer.daemon = True

    def advance(self, by: int = 1) -> None:
        self._done += by
        if self._shown is not None:
            self._shown.update(self._task, completed=self._done)

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            self._over = True
            if self._shown is not None:
                self._shown.stop()

    def _show(self) -> None:
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

        from reasoning_store.cli.console import Console

        columns: list[Any] = [TextColumn("{task.description}", markup=False), BarColumn()]
        if self._total is not None:
            columns.append(TaskProgressColumn())
        bar = RichProgress(
            *columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True
        )
        with self._lock:
            if self._over:
                return
            self._task = bar.add_task(self._label, total=self._total, completed=self._done)
            bar.start()
            self._shown = bar
