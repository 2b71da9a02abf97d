"""The stage of `demo`: it writes line by line, with pauses at a terminal."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from textwrap import wrap

from reasoning_store.cli.output import Page

WIDTH = 80
_LABEL = 10


class Stage:
    """The lines of the demo on a page, with a pause after each at a terminal."""

    def __init__(self, speed: float) -> None:
        self.page = Page()
        at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
        self._pace = 1 / speed if at_terminal and os.environ.get("TERM") != "dumb" else 0

    def pause(self, seconds: float) -> None:
        """Wait, at a terminal."""
        if self._pace:
            sys.stdout.flush()
            time.sleep(seconds * self._pace)

    def scene(self, title: str) -> None:
        self.line(f"\n{title}\n", "bold green")
        self.pause(0.5)

    def line(self, text: str = "", style: str = "") -> None:
        self.page.line(text, style)

    def paragraph(self, text: str) -> None:
        """Write a text in lines of the page's width."""
        self.labelled("", text, width=0)
        self.pause(0.01 * len(text))

    def labelled(self, label: str, text: str, style: str = "", width: int = _LABEL) -> None:
        """Write a text after a label, wrapped at the width of the page."""
        room = WIDTH - width
        for line in wrap(text, room, break_long_words=False, break_on_hyphens=False):
            self.line(f"{label:<{width}}{line}", style)
            label = ""
        self.pause(0.4)

    def table(
        self, columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()
    ) -> None:
        """Write rows under their names; the row with a star is marked."""
        self.page.table(columns, rows, right=right, styles=_row_style)
        self.pause(0.3 * len(rows))


def _row_style(row: Sequence[str]) -> str:
    if "sent" in row:
        return "green"
    return "bold" if row[0] == "*" else ""
