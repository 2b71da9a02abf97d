"""Commands about the database itself: init, upgrade, downgrade, current."""

from __future__ import annotations

import click

from reasoning_store.cli import store_access
from reasoning_store.cli.command import Call, Command
from reasoning_store.cli.options import YES, confirm
from reasoning_store.cli.output import Page, print_answer, print_note
from reasoning_store.cli.progress import Progress


@click.command("init", cls=Command, examples=("init", "init --db chat.db"), answers="revision")
@click.pass_obj
def init(call: Call) -> None:
    """Create the database, with its schema.

    An existing one stays as it is.
    """
    path = store_access.database_file(call)
    is_new = path is not None and not store_access.file_exists(path)
    _upgraded(call, "revision {}")
    if path is not None:
        print_note(f"{path} {'was created' if is_new else 'exists already'}")


@click.command("upgrade", cls=Command, examples=("upgrade",), answers="revision")
@click.pass_obj
def upgrade(call: Call) -> None:
    """Upgrade the database's schema.

    A missing SQLite file is created. A program that opens an SQLite file upgrades it by itself; a
    PostgreSQL database is upgraded by this command only.
    """
    _upgraded(call)


def _upgraded(call: Call, says: str = "{}") -> None:
    from reasoning_store.store import upgrade

    address = store_access.database_url(call)
    store_access.make_folder(call)
    with Progress("upgrading"):
        revision = upgrade(address)
    _say_revision(call, revision, says)


@click.command("downgrade", cls=Command, examples=("downgrade base --yes",), answers="revision")
@click.argument("revision")
@YES
@click.pass_obj
def downgrade(call: Call, revision: str, yes: bool) -> None:
    """Downgrade the schema to REVISION, for an older version of this program.

    Data that REVISION has no place for is lost; `base` drops everything. A copy of an SQLite file
    is kept first. A program of this version upgrades the file again when it opens it.
    """
    from reasoning_store.cli import schema

    schema.check_revision(revision)
    store_access.require_file(call)
    confirm(f"Downgrade the schema to {revision}?", yes)
    with Progress("downgrading"):
        copy = schema.downgrade(store_access.database_url(call), revision)
    if copy is not None:
        print_note(f"a copy of the database before: {copy}")
    _say_revision(call, revision)


@click.command("current", cls=Command, examples=("current",), answers="revision")
@click.pass_obj
def current(call: Call) -> None:
    """Print the schema's revision, without upgrading anything."""
    from reasoning_store.cli import schema

    store_access.require_file(call)
    _say_revision(call, schema.read_revision(store_access.database_url(call)))


def _say_revision(call: Call, revision: str, says: str = "{}") -> None:
    def people(page: Page) -> None:
        page.line(says.format(revision))

    print_answer(call, {"revision": revision}, people)
