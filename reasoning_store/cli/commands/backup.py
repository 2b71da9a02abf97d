"""The command `backup`: a copy of an SQLite database, compared with it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from reasoning_store.cli import store_access
from reasoning_store.cli.command import Call, Command
from reasoning_store.cli.output import plural, print_answer, print_note
from reasoning_store.cli.progress import Progress


@click.command(
    "backup", cls=Command, examples=("backup copy.db",), answers="path sessions messages size"
)
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--overwrite", is_flag=True, help="Replace an existing file, once the copy is complete."
)
@click.pass_obj
def backup(call: Call, path: Path, overwrite: bool) -> None:
    """Copy the database to PATH, and compare the copy.

    The database may be in use meanwhile. For SQLite; PostgreSQL has tools of its own.
    """
    with store_access.open_to_read(call) as store, Progress("copying"):
        made = store.backup(path, overwrite=overwrite)
    print_answer(call, asdict(made), lambda page: page.line(made.path))
    print_note(f"{plural(made.sessions, 'session')}, {plural(made.messages, 'message')}: compared")
