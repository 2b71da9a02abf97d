"""A bar on standard error for work that takes more than a second, at a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any, Self, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

T = TypeVar("T")
SHARES = 1000
"""The total of work whose share is known, for ``reach``."""
_DELAY = 1.0
"""Seconds before the bar is shown."""


class Progress:
    """Work that is under way; a thread draws the bar, so that one long call moves it too."""

    def __init__(self, label: str, total: int | None = None) -> None:
        self._label = label
        self._total = total
        self._done = 0
        self._lock = Lock()
        self._over = False
        self._shown: RichProgress | None = None
        self._task: Any = None
        self._timer = Timer(_DELAY, self._show)
        self._timer.daemon = True

    def advance(self, by: int) -> None:
        self._done += by
        if self._shown is not None:
            self._shown.update(self._task, completed=self._done)

    def each(self, items: Iterable[T], size: Callable[[T], int] = lambda item: 1) -> Iterator[T]:
        """Yield the items, each of which is done by its size."""
        for item in items:
            self.advance(size(item))
            yield item

    def reach(self, share: float) -> None:
        """Show a share of the total as done."""
        self.advance(round(share * (self._total or 0)) - self._done)

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

        from reasoning_store.cli.output import rich_console

        columns: list[Any] = [TextColumn("{task.description}", markup=False), BarColumn()]
        if self._total is not None:
            columns.append(TaskProgressColumn())
        bar = RichProgress(
            *columns, TimeElapsedColumn(), console=rich_console(stderr=True), transient=True
        )
        with self._lock:
            if self._over:
                return
            self._task = bar.add_task(self._label, total=self._total, completed=self._done)
            bar.start()
            self._shown = bar
