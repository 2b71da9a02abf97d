"""The command `export`: everything stored, or one session, as lines of JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reasoning_store.cli import store_access
from reasoning_store.cli.command import Call, Command, remember_option
from reasoning_store.cli.options import OPTIONAL_SESSION
from reasoning_store.cli.output import plural, print_answer, print_items, print_note
from reasoning_store.cli.output_files import check_output, complete_file
from reasoning_store.cli.progress import SHARES, Progress
from reasoning_store.cli.terminal_text import printable_json

if TYPE_CHECKING:
    from reasoning_store.results import Owner

_OWNER = click.option("--owner", callback=remember_option, help="Only this owner; by default all.")


@click.command(
    "export", cls=Command, examples=("export -o copy.jsonl", "export chat-42"), answers="*"
)
@OPTIONAL_SESSION
@_OWNER
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The file to write; it gets its name once it is complete. - is standard output.",
)
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
@click.pass_obj
def export(
    call: Call, session_id: str | None, owner: str | None, output: Path | None, overwrite: bool
) -> None:
    """Write everything stored, or one session, as lines of JSON.

    `import` reads them.
    """
    with store_access.open_to_read(call) as store:
        of: Owner = store if owner is None else store.for_owner(owner)
        if session_id is not None:
            session_id = store_access.find_session(call, of, session_id).id
        progress = Progress("exporting", SHARES if session_id is None else None)
        exported = of.export_lines(session_id, progress=progress.reach)
        lines = map(printable_json, exported)
        if output is None or str(output) == "-":
            _to_standard_output(call, lines)
            return
        check_output(call, output)
        with complete_file(output, overwrite) as file, progress:
            written = 0
            for line in lines:
                file.write(line.encode("utf-8"))
                written += 1
    print_answer(call, {"path": str(output), "lines": written}, lambda page: page.line(str(output)))
    print_note(plural(written, "line"))


def _to_standard_output(call: Call, lines: Iterable[str]) -> None:
    if call.json:
        print_items(call, map(json.loads, lines))
        return
    for line in lines:
        sys.stdout.buffer.write(line.encode("utf-8"))
