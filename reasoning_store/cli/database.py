"""Commands about the database itself: init, upgrade, downgrade, current."""

from __future__ import annotations

import click

from reasoning_store import files
from reasoning_store.cli import opening
from reasoning_store.cli.call import Call
from reasoning_store.cli.options import YES, confirm
from reasoning_store.cli.output import Page, answer, note
from reasoning_store.cli.progress import Progress
from reasoning_store.cli.tree import Command


@click.command("init", cls=Command, answers="revision")
@click.pass_obj
def init(call: Call) -> None:
    """Make the database, with its schema.

    One that is there already stays as it is.
    """
    path = opening.file(call)
    is_new = path is not None and not opening.is_there(path)
    _upgraded(call)
    if path is not None:
        note(f"{path} {'was made' if is_new else 'is there already'}")


@click.command("upgrade", cls=Command, answers="revision")
@click.pass_obj
def upgrade(call: Call) -> None:
    """Bring the database's schema up to date.

    An SQLite file is made if there is none. A program that opens an SQLite file does this by
    itself. A PostgreSQL database waits for this command.
    """
    _upgraded(call)


def _upgraded(call: Call) -> None:
    from reasoning_store.store import upgrade

    address = opening.url(call)
    if call.db is None:
        folder = opening.default_path().parent
        with files.telling(f"{folder} cannot be made"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with Progress("upgrading"):
        revision = upgrade(address)
    _say_revision(call, revision)


@click.command("downgrade", cls=Command, answers="revision")
@click.argument("revision")
@YES
@click.pass_obj
def downgrade(call: Call, revision: str, yes: bool) -> None:
    """Take the schema back to REVISION.

    For an older version of this program. What REVISION has no place for is lost; `base` drops
    everything. A copy is kept of an SQLite file. A program of this version upgrades that
    again when it opens it.
    """
    from reasoning_store.cli import schema

    schema.check(revision)
    opening.require(call)
    confirm(f"Take the schema back to {revision}?", yes)
    with Progress("downgrading"):
        copy = schema.downgrade(opening.url(call), revision)
    if copy is not None:
        note(f"a copy of what was there: {copy}")
    _say_revision(call, revision)


@click.command("current", cls=Command, answers="revision")
@click.pass_obj
def current(call: Call) -> None:
    """Print the schema's revision, without upgrading anything."""
    from reasoning_store.cli import schema

    opening.require(call)
    _say_revision(call, schema.revision(opening.url(call)))


def _say_revision(call: Call, revision: str) -> None:
    def people(page: Page) -> None:
        page.line(revision)

    answer(call, {"revision": revision}, people)
