"""The command `export`: everything stored, or one session, as lines of JSON."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from reasoning_store import files
from reasoning_store.cli import opening
from reasoning_store.cli.call import Call
from reasoning_store.cli.options import OPTIONAL_SESSION, naming, note_owner
from reasoning_store.cli.output import answer, answer_each, note, plural
from reasoning_store.cli.printable import json_shown
from reasoning_store.cli.progress import Progress
from reasoning_store.cli.tree import Command
from reasoning_store.errors import UsageError

if TYPE_CHECKING:
    from reasoning_store.store import Owner

_OWNER = click.option("--owner", callback=note_owner, help="Of this owner only; by default of all.")


@click.command("export", cls=Command, answers="*")
@OPTIONAL_SESSION
@_OWNER
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write here; the file has its name only once it is whole. - is standard output.",
)
@click.option("--overwrite", is_flag=True, help="Replace a file that is there.")
@click.pass_obj
def export(
    call: Call, session_id: str | None, owner: str | None, output: Path | None, overwrite: bool
) -> None:
    """Write everything stored as lines of JSON.

    Or one session; `import` takes them in.
    """
    with opening.existing(call) as store:
        of: Owner = store if owner is None else store.for_owner(owner)
        if session_id is not None:
            opening.find(call, of, session_id)
        lines = (json_shown(line) for line in of.export_lines(session_id))
        if output is None or str(output) == "-":
            _to_standard_output(call, lines)
            return
        _check(call, output)
        with _whole(output, overwrite) as file, Progress("exporting") as progress:
            written = 0
            for line in lines:
                file.write(line.encode("utf-8"))
                written += 1
                progress.advance()
    answer(call, {"path": str(output), "lines": written}, lambda page: page.line(str(output)))
    note(plural(written, "line"))


def _to_standard_output(call: Call, lines: Iterable[str]) -> None:
    if call.json:
        answer_each(call, map(json.loads, lines))
        return
    for line in lines:
        sys.stdout.buffer.write(line.encode("utf-8"))


def _check(call: Call, path: Path) -> None:
    """Refuse a place where no file can be, and the database's own."""
    from reasoning_store.ledger.copies import check_target

    check_target(path.absolute(), opening.file(call), replace=True)


@contextmanager
def _whole(path: Path, overwrite: bool) -> Iterator[IO[bytes]]:
    """Give a file its name once it is written to its end; until then it is not there."""
    if path.exists() and not overwrite:
        raise UsageError(f"{path} is there already", hint="name another file, or say --overwrite")
    with files.telling(f"{path} cannot be written"):
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # mode 0600
    try:
        with naming(str(path)), open(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)
