"""What a command says, and to whom.

Data goes to standard output and nothing else does; messages, warnings and progress go to
standard error. A person at a terminal gets tables and colour, a pipe the same as plain
text, and ``--json`` one object of a fixed form:

    {"schema": "reasoning-store/1", "command": "usage", "data": ...}

``data`` is what the command's page in the documentation says; keys are added to it, and
none is renamed or removed under the same ``schema``. rich is imported for a terminal only.

It knows how things are said. It must not know what.
"""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from reasoning_store.cli.call import Call
from reasoning_store.cli.printable import json_text, one_line, printable

if TYPE_CHECKING:
    from reasoning_store.cli.console import Console

SCHEMA = "reasoning-store/1"
"""The form of every JSON answer. What breaks a reader of it makes this another."""


def answer(call: Call, data: Any, people: Callable[[Page], None]) -> None:
    """Say what a command found: ``data`` to a program, ``people`` writes it for others."""
    if call.json:
        sys.stdout.write(_json(_envelope(call, data)) + "\n")
    else:
        people(Page())


def silent(page: Page) -> None:
    """Say nothing to people: the command did what it was told."""


def answer_each(call: Call, items: Iterable[Any]) -> None:
    """Say an answer that is a list as it comes, without holding it."""
    head, _, tail = _json(_envelope(call, [0])).rpartition("0")
    sys.stdout.write(head.rstrip())
    comma = ""
    for item in items:
        sys.stdout.write(f"{comma}\n    {json_text(item, ascii_only=_ascii(), indent=None)}")
        comma = ","
    sys.stdout.write(tail + "\n")


def note(text: str) -> None:
    """Tell whoever started the command something that is not its answer."""
    sys.stderr.write(printable(text) + "\n")
    sys.stderr.flush()


def warn(texts: Iterable[str]) -> None:
    for text in texts:
        note(one_line(f"warning: {text}"))


def when(time: datetime) -> str:
    """Return a time for a person, in the zone of the place."""
    with suppress(OverflowError, OSError):  # there it may be before the year 1, or after 9999
        time = time.astimezone()
    return f"{time:%Y-%m-%d %H:%M}"


def stamp(time: datetime) -> str:
    """Return a time for a program."""
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def plural(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def for_a_person() -> bool:
    """Whether standard output is looked at, as opposed to read by a program."""
    return sys.stdout.isatty() or bool(os.environ.get("FORCE_COLOR"))


def _envelope(call: Call, data: Any) -> dict[str, Any]:
    return {"schema": SCHEMA, "command": call.command, "data": data}


def _json(value: Any) -> str:
    return json_text(value, ascii_only=_ascii())


def _ascii() -> bool:
    return (sys.stdout.encoding or "ascii").lower().replace("-", "") != "utf8"


_LEAST = 6
"""Where a terminal has less than this for each column, a line that it wraps is read more easily."""


class Page:
    """Standard output for people: lines, tables and a bar, with colour at a terminal."""

    def __init__(self) -> None:
        self._console: Console | None = None
        if for_a_person():
            from reasoning_store.cli.console import Console

            self._console = Console(markup=False)

    def line(self, text: str = "", style: str = "") -> None:
        """Write text as it stands, line ends too; ``style`` is for a terminal."""
        text = printable(text)
        if self._console is None:
            sys.stdout.write(text + "\n")
        else:
            from rich.text import Text

            self._console.print(Text(text, style=style), soft_wrap=True)

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[str]],
        *,
        right: Collection[str] = (),
        styles: Callable[[Sequence[str]], str] | None = None,
    ) -> None:
        """Write rows under their names; a cell is one line."""
        cells = [[one_line(cell) for cell in row] for row in rows]
        if self._console is None or self._console.width < _LEAST * len(columns):
            for line in _aligned([list(columns), *cells], [name in right for name in columns]):
                sys.stdout.write(line + "\n")
            return
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in columns:
            table.add_column(
                Text(name), justify="right" if name in right else "left", overflow="fold"
            )
        for row in cells:
            table.add_row(*map(Text, row), style=styles(row) if styles is not None else None)
        self._console.print(table)

    def bar(self, share: float, style: str) -> None:
        """Write how full something is."""
        width = 40
        full = min(width, round(width * share))
        self.line(f"[{'#' * full}{'.' * (width - full)}] {share:.0%}", style)


def _aligned(rows: Sequence[Sequence[str]], right: Sequence[bool]) -> Iterator[str]:
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        padded = (
            " " * (width - _width(cell)) + cell if is_right else cell + " " * (width - _width(cell))
            for cell, width, is_right in zip(row, widths, right, strict=True)
        )
        yield "  ".join(padded).rstrip()


_UNSEEN = ("Mn", "Me", "Cf")
"""The categories of what stands upon or between characters, and takes no room of its own."""


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.category(c) in _UNSEEN else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )
