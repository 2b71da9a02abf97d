"""The group `db`: the database itself, its schema and its copies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from reasoning_store.cli import store_access
from reasoning_store.cli.command import Call, Group
from reasoning_store.cli.exit_codes import Exit
from reasoning_store.cli.output import Page, plural, print_answer, print_note
from reasoning_store.cli.progress import Progress


@click.group(
    "db",
    cls=Group,
    default="current",
    lazy={"doctor": "reasoning_store.cli.commands.doctor:doctor"},
)
def db() -> None:
    """Create, upgrade, copy and check the database.

    Without a command, print the schema's revision.
    """


@db.command("create", examples=("db create", "db create --db chat.db"), answers="revision")
@click.pass_obj
def create(call: Call) -> None:
    """Create the database, with its schema.

    An existing one is upgraded.
    """
    _upgrade(call)


@db.command("upgrade", examples=("db upgrade",), answers="revision")
@click.pass_obj
def upgrade(call: Call) -> None:
    """Upgrade the database's schema.

    A missing SQLite file is created. A program that opens an SQLite file upgrades it by itself; a
    PostgreSQL database is upgraded by this command only.
    """
    _upgrade(call)


def _upgrade(call: Call) -> None:
    from reasoning_store import Store

    path = store_access.database_file(call)
    is_new = path is not None and not store_access.file_exists(path)
    store_access.make_folder(call)
    with Progress("upgrading"):
        revision = Store.upgrade(store_access.database_url(call))
    _print_revision(call, revision)
    if is_new:
        print_note(f"{path} was created")


@db.command("distribute", examples=("db distribute --check",), answers="nodes steps missing")
@click.option("--check", is_flag=True, help="Print the statements, and run none of them.")
@click.pass_obj
def distribute(call: Call, check: bool) -> None:
    """Distribute the tables over the nodes of a Citus cluster.

    Name the coordinator in the URL, and the role that owns the tables. Tables that are distributed
    stay as they are: run it again after each upgrade. The rows from before leave the coordinator.
    With `--check`, it exits with 1 if there is something to do.
    """
    from reasoning_store.ledger.database import distribution

    store_access.require_file(call)
    address = store_access.database_url(call)
    with Progress("distributing"):
        found = distribution.plan(address) if check else distribution.distribute(address)
    if check and found.steps:
        call.exit = Exit.FAILED

    def write_page(page: Page) -> None:
        for statement in found.statements:
            page.line(f"{statement};")

    print_answer(
        call,
        {
            "nodes": list(found.nodes),
            "steps": [asdict(step) for step in found.steps],
            "missing": found.missing,
        },
        write_page,
    )
    if found.missing is not None:
        print_note("; ".join(filter(None, (found.missing, found.help))))
    elif found.steps:
        ran = "would run" if check else "ran"
        print_note(f"{plural(len(found.steps), 'statement')} {ran}, on {_nodes(found.nodes)}")
    else:
        print_note(f"everything is distributed, on {_nodes(found.nodes)}")


def _nodes(names: Sequence[str]) -> str:
    return f"{plural(len(names), 'node')}: {', '.join(names)}"


@db.command("current", examples=("db", "db current"), answers="revision")
@click.pass_obj
def current(call: Call) -> None:
    """Print the schema's revision, without upgrading anything."""
    from reasoning_store import Store

    store_access.require_file(call)
    _print_revision(call, Store.revision_of(store_access.database_url(call)))


def _print_revision(call: Call, revision: str) -> None:
    print_answer(call, {"revision": revision}, lambda page: page.line(revision))


@db.command("backup", examples=("db backup copy.db",), answers="path sessions messages size")
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
