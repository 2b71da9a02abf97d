"""The commands `export` and `import`: everything out as lines of JSON, and in again."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import click

from reasoning_store.cli import opening
from reasoning_store.cli.call import Call
from reasoning_store.cli.options import OPTIONAL_SESSION
from reasoning_store.cli.output import Page, answer, answer_each, note, plural, warn
from reasoning_store.cli.printable import json_shown
from reasoning_store.cli.progress import Progress
from reasoning_store.cli.tree import Leaf
from reasoning_store.errors import UsageError

if TYPE_CHECKING:
    from reasoning_store.store import Owner

_OWNER = click.option("--owner", help="Of this owner only; by default of all.")


@click.command("export", cls=Leaf)
@OPTIONAL_SESSION
@_OWNER
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write here; the file has its name only once it is whole.",
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
            opening.find(of, session_id)
        lines = (json_shown(line) for line in of.export_lines(session_id))
        if output is None:
            _to_standard_output(call, lines)
            return
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
        import json

        answer_each(call, map(json.loads, lines))
        return
    for line in lines:
        sys.stdout.buffer.write(line.encode("utf-8"))


@contextmanager
def _whole(path: Path, overwrite: bool) -> Iterator[IO[bytes]]:
    """Give a file its name once it is written to its end; until then it is not there."""
    if path.exists() and not overwrite:
        raise UsageError(f"{path} is there already", hint="name another file, or say --overwrite")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # mode 0600
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
    try:
        with open(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)


@click.command("import", cls=Leaf)
@click.argument("source", type=click.File("rb"), metavar="FILE")
@click.option("--owner", help="Who shall own it; by default whoever the lines name.")
@click.option(
    "--on-conflict",
    type=click.Choice(["refuse", "skip"]),
    default="refuse",
    show_default=True,
    help="What to do about a session that stands otherwise here.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would come in.")
@click.pass_obj
def import_(
    call: Call,
    source: IO[bytes],
    owner: str | None,
    on_conflict: Literal["refuse", "skip"],
    dry_run: bool,
) -> None:
    """Take in the lines of an export; - is standard input.

    What is there already is compared and not written again, so an import that was cut off
    is run again.
    """
    call.if_interrupted = "run it again: what came in is not written twice"
    with opening.existing(call) as store, _reading(source) as lines:
        of: Owner = store if owner is None else store.for_owner(owner)
        if dry_run:
            with _nowhere() as elsewhere:
                of = elsewhere if owner is None else elsewhere.for_owner(owner)
                done = of.import_lines(lines, on_conflict=on_conflict)
        else:
            done = of.import_lines(lines, on_conflict=on_conflict)
    data: dict[str, Any] = {
        "sessions": done.sessions,
        "messages": done.messages,
        "already": done.already,
        "skipped": list(done.skipped),
        "dryRun": dry_run,
    }

    def people(page: Page) -> None:
        would = "would come in" if dry_run else "came in"
        page.line(f"{plural(done.sessions, 'session')}, {plural(done.messages, 'message')} {would}")
        if done.already:
            page.line(f"{plural(done.already, 'message')} had been there before")

    answer(call, data, people)
    warn(f"{name} stands otherwise here and was left out" for name in done.skipped)


@contextmanager
def _reading(source: IO[bytes]) -> Iterator[Iterator[bytes]]:
    """Give a file's lines, and say how far they have been read."""
    try:
        size: int | None = os.fstat(source.fileno()).st_size or None
    except OSError:
        size = None
    with Progress("importing", size) as progress:

        def lines() -> Iterator[bytes]:
            for line in source:
                progress.advance(len(line))
                yield line

        yield lines()


@contextmanager
def _nowhere() -> Iterator[Any]:
    """Open a store that is thrown away."""
    from reasoning_store.store import Store

    with (
        tempfile.TemporaryDirectory(prefix="reasoning-store-") as folder,
        Store(f"sqlite:///{Path(folder) / 'dry-run.db'}") as store,
    ):
        yield store
