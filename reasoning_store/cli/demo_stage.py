"""The stage of `demo`: it plays with pauses at a terminal, and writes at once in a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from select import select

from reasoning_store.cli.output import Page
from reasoning_store.cli.terminal_text import one_line

WIDTH = 80
_LABEL = 10
_STYLES = {"thought": "dim", "answer": "bold"}
_ARRIVING = "yellow"


class Stage:
    """The lines of the demo on a page, with a pause after each while it plays.

    Enter ends the pauses of the scene.
    """

    def __init__(self, speed: float) -> None:
        self.page = Page()
        self._speed = speed
        self._skips = False
        at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
        self.plays = at_terminal and os.environ.get("TERM") != "dumb"

    @contextmanager
    def keys(self) -> Iterator[None]:
        """Read the keys of the terminal meanwhile; none of them is written to it."""
        try:
            import termios
        except ImportError:
            termios = None  # type: ignore[assignment]
        if not self.plays or termios is None:
            yield
            return
        number = sys.stdin.fileno()
        before = termios.tcgetattr(number)
        quiet = list(before)
        quiet[3] &= ~(termios.ECHO | termios.ICANON)
        termios.tcsetattr(number, termios.TCSADRAIN, quiet)
        try:
            yield
        finally:
            termios.tcsetattr(number, termios.TCSAFLUSH, before)

    def pause(self, seconds: float) -> None:
        """Wait, unless the scene is skipped."""
        if not self.plays or self._skips:
            return
        sys.stdout.flush()
        if select([sys.stdin], [], [], seconds / self._speed)[0]:
            typed = os.read(sys.stdin.fileno(), 1024)
            self._skips = not typed or bool({*typed} & {*b"\r\n"})

    def scene(self, title: str) -> None:
        """Begin a scene; its pauses are not skipped yet."""
        self._skips = False
        self.line()
        self.line(title, "bold green")
        self.line()
        self.pause(0.5)

    def line(self, text: str = "", style: str = "") -> None:
        self.page.line(text, style)

    def paragraph(self, text: str) -> None:
        """Write a text in lines of the page's width."""
        for line in wrap_text(text, WIDTH):
            self.line(line)
        self.pause(0.015 * len(text))

    def labelled(self, label: str, text: str, style: str = "") -> None:
        """Write a text after a label, wrapped at the width of the page."""
        for line in wrap_text(text, WIDTH - _LABEL):
            self.line(f"{label:<{_LABEL}}{line}".rstrip(), style)
            label = ""
        self.pause(0.4)

    def table(
        self, columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()
    ) -> None:
        """Write rows under their names; the row with a star is marked."""
        self.page.table(columns, rows, right=right, styles=_row_style)
        self.pause(0.3 * len(rows))


class TypedReply:
    """A reply that types itself: the text as it arrives, then the thought and the answer in it."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._kind = ""
        self._label = ""
        self._text = ""
        self._arriving = ""

    def arrive(self, text: str) -> None:
        """Add a text that came over the wire, with its tags."""
        self._arriving += one_line(text)
        if self._text and len(self._arriving) > WIDTH - _LABEL - len(self._text):
            waiting, self._arriving = self._arriving, ""
            words, _, begun = self._text.rpartition(" ")
            self._draw(words or begun)
            self._break_line()
            self._text, self._arriving = begun if words else "", waiting
        self._draw()
        self._stage.pause(0.012 * len(text))

    def settle(self, kind: str, text: str) -> None:
        """Replace the text that arrived by its part of the thought or the answer."""
        taken_out, found, rest = self._arriving.rpartition(text)
        if taken_out:
            self._stage.pause(0.6)
        self._arriving = ""
        if kind != self._kind:
            self._end_line()
            self._kind = self._label = kind
        self._arriving = rest if found else ""
        self._text += text
        *full, self._text = wrap_text(self._text, WIDTH - _LABEL)
        for line in full:
            self._draw(line)
            self._break_line()
        self._draw()

    def end(self) -> None:
        """End the reply; a text that is left of the wire's was a tag."""
        if self._arriving:
            self._stage.pause(0.6)
        self._arriving = ""
        self._end_line()

    def _end_line(self) -> None:
        if self._text:
            self._draw()
            self._break_line()
        self._kind = self._text = ""

    def _break_line(self) -> None:
        self._stage.line()
        self._label = ""

    def _draw(self, text: str | None = None) -> None:
        room = WIDTH - _LABEL - len(self._text)
        style = _STYLES.get(self._kind, "")
        self._stage.page.rewrite_line(
            [
                (f"{self._label:<{_LABEL}}", style),
                (self._text if text is None else text, style),
                (self._arriving[-room:] if text is None and room > 0 else "", _ARRIVING),
            ]
        )


def _row_style(row: Sequence[str]) -> str:
    if "sent" in row:
        return "green"
    return "bold" if row[0] == "*" else ""


def wrap_text(text: str, width: int) -> list[str]:
    """Return the lines of a text; a space at its end stays."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}"
        if lines == [""]:
            lines = [word]
        elif len(longer) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines
