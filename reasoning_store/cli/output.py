"""Output: answers to standard output, everything else to standard error.

A terminal gets tables and colour, a pipe plain text, ``--json`` one object:

    {"schema": "reasoning-store/1", "command": "usage", "data": ...}

Keys are added to ``data``; none is renamed or removed under the same ``schema``. rich is
imported for a terminal only.
"""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any

from reasoning_store.cli.command import Call
from reasoning_store.cli.terminal_text import json_text, one_line, printable

if TYPE_CHECKING:
    from rich.console import Console

    from reasoning_store import results

SCHEMA = "reasoning-store/1"
"""The form of every JSON answer; a change that breaks a reader gets another name."""


def print_answer(call: Call, data: Any, write_page: Callable[[Page], None] | None = None) -> None:
    """Print an answer: ``data`` as JSON, or for people the page that ``write_page`` writes."""
    if call.json:
        sys.stdout.write(_to_json(_answer_object(call, data)) + "\n")
    elif write_page is not None:
        write_page(Page())


def answer_fields(value: object, keys: str) -> dict[str, Any]:
    """Return attributes of a value by their keys in an answer: ``createdAt`` is ``created_at``."""
    found = {key: getattr(value, _UPPER.sub(r"_\g<0>", key).lower()) for key in keys.split()}
    return {key: utc_time(one) if isinstance(one, datetime) else one for key, one in found.items()}


_UPPER = re.compile("[A-Z]")


def print_items(call: Call, items: Iterable[Any]) -> None:
    """Print an answer that is a list, item by item."""
    head, _, tail = _to_json(_answer_object(call, [0])).rpartition("0")
    sys.stdout.write(head.rstrip())
    comma = ""
    for item in items:
        sys.stdout.write(f"{comma}\n    {json_text(item, ascii_only=_needs_ascii(), indent=None)}")
        comma = ","
    sys.stdout.write(tail + "\n")


def print_piece(text: str) -> None:
    """Write a piece of a text that is arriving, and show it at once."""
    sys.stdout.write(printable(text))
    sys.stdout.flush()


def print_note(text: str) -> None:
    """Write a message to standard error."""
    sys.stderr.write(printable(text) + "\n")
    sys.stderr.flush()


def print_list(
    call: Call,
    name: str,
    found: results.Page[Any],
    items: Sequence[dict[str, Any]],
    write_page: Callable[[Page], None],
    *,
    otherwise: str,
) -> None:
    """Print a page of a list; note for a person how it goes on, or ``otherwise`` if it is empty."""
    print_answer(call, {name: items, "next": found.next}, write_page)
    if not items and not call.json:
        print_note(otherwise)
    if found.next is not None and not call.json:
        print_note(f"there may be more; --after {found.next} goes on")


REMOVED = "sessions messages thinkingBlocks profiles"
"""The keys of what was deleted or erased."""


def print_removed(call: Call, verb: str, removed: object, keys: str) -> None:
    """Print the numbers of what was deleted or erased."""
    answer = answer_fields(removed, keys)
    named = zip(REMOVED.split(), ("session", "message", "thinking block", "profile"), strict=True)
    counts = [plural(answer[key], one) for key, one in named if answer[key] or key != "profiles"]
    print_answer(call, answer, lambda page: page.line(f"{verb}: {', '.join(counts)}"))


def print_warnings(texts: Iterable[str]) -> None:
    """Write warnings to standard error, one line each."""
    for text in texts:
        print_note(one_line(f"warning: {text}"))


def local_time(time: datetime) -> str:
    """Return a time for a person, in the local zone."""
    with suppress(OverflowError, OSError):  # the zone may move it before year 1 or after 9999
        time = time.astimezone()
    return f"{time:%Y-%m-%d %H:%M}"


def utc_time(time: datetime) -> str:
    """Return a time for a program, in ISO format."""
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def plural(number: int, one: str, many: str | None = None) -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def is_for_person() -> bool:
    """Whether standard output is a terminal, or FORCE_COLOR asks for one."""
    return sys.stdout.isatty() or bool(os.environ.get("FORCE_COLOR"))


def _answer_object(call: Call, data: Any) -> dict[str, Any]:
    return {"schema": SCHEMA, "command": call.command, "data": data}


def _to_json(value: Any) -> str:
    return json_text(value, ascii_only=_needs_ascii())


def _needs_ascii() -> bool:
    return (sys.stdout.encoding or "ascii").lower().replace("-", "") != "utf8"


_NARROWEST_COLUMN = 6
"""Below this width for each column, wrapped lines are easier to read than a table."""


def rich_console(**attributes: Any) -> Console:
    """Return a rich console that changes no text and raises BrokenPipeError."""
    import rich.console

    class QuietConsole(rich.console.Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich would end the program with a code of its own

    return QuietConsole(highlight=False, emoji=False, **attributes)


def print_page(write_page: Callable[[Page], None], *, pages: bool) -> None:
    """Print the page that ``write_page`` writes; at a terminal that is too small, in a pager."""
    if not (pages and sys.stdin.isatty() and sys.stdout.isatty()):
        write_page(Page())
        return
    import io
    import shutil

    import click

    text = io.StringIO()
    write_page(Page(text))
    if text.getvalue().count("\n") < shutil.get_terminal_size().lines:
        sys.stdout.write(text.getvalue())
    else:
        click.echo_via_pager(text.getvalue(), color=True)


class Page:
    """Standard output for people: lines, tables and a bar, with colour at a terminal.

    ``terminal`` takes what a terminal would.
    """

    def __init__(self, terminal: IO[str] | None = None) -> None:
        self._console: Console | None = None
        if terminal is not None:
            self._console = rich_console(markup=False, file=terminal, force_terminal=True)
        elif is_for_person():
            self._console = rich_console(markup=False)

    def line(self, text: str = "", style: str = "") -> None:
        """Write lines; ``style`` is for a terminal."""
        text = printable(text)
        if self._console is None:
            sys.stdout.write(text + "\n")
        else:
            from rich.text import Text

            self._console.print(Text(text, style=style), soft_wrap=True)

    def paragraph(self, prefix: str, text: str, style: str = "") -> None:
        """Write lines that all begin with ``prefix``; a terminal wraps them at its width."""
        if self._console is None:
            for line in text.split("\n"):
                self.line(prefix + line)
            return
        from rich.text import Text

        width = max(_NARROWEST_COLUMN, self._console.width - len(prefix))
        for line in printable(text).split("\n"):
            for piece in Text(line).wrap(self._console, width) or [Text()]:
                self.line(prefix + piece.plain, style)

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[str]],
        *,
        right: Collection[str] = (),
        styles: Callable[[Sequence[str]], str] | None = None,
    ) -> None:
        """Write rows under the names of their columns, nothing without rows; a cell is one line."""
        cells = [[one_line(cell) for cell in row] for row in rows]
        if not cells:
            return
        if self._console is None or self._console.width < _NARROWEST_COLUMN * len(columns):
            for line in _align_rows([list(columns), *cells], [name in right for name in columns]):
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
        """Write a share as a bar; it looks full only at 100 % or more."""
        width = 40
        if self._console is not None:
            width = max(1, min(width, self._console.width - len(f"[] {share:.0%}")))
        full = min(width - (share < 1), round(width * share))
        self.line(f"[{'#' * full}{'.' * (width - full)}] {share:.0%}", style)


def _align_rows(rows: Sequence[Sequence[str]], right: Sequence[bool]) -> Iterator[str]:
    widths = [max(map(_display_width, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        padded = (
            " " * (width - _display_width(cell)) + cell
            if is_right
            else cell + " " * (width - _display_width(cell))
            for cell, width, is_right in zip(row, widths, right, strict=True)
        )
        yield "  ".join(padded).rstrip()


_WIDTHLESS = ("Mn", "Me", "Cf")
"""The Unicode categories of characters without a width."""


def _display_width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.category(c) in _WIDTHLESS
        else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )
