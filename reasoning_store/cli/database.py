"""Commands about the database itself: upgrade, current."""

from __future__ import annotations

import click

from reasoning_store.cli.opening import default_path, existing, url
from reasoning_store.store import upgrade


@click.command("upgrade")
@click.pass_context
def upgrade_command(context: click.Context) -> None:
    """Bring the database's schema up to date; an SQLite file is made if there is none.

    A program that opens an SQLite file does this by itself. A PostgreSQL database waits
    for this command.
    """
    address = url(context)
    if context.obj is None:
        default_path().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    click.echo(upgrade(address))


@click.command("current")
@click.pass_context
def current_command(context: click.Context) -> None:
    """Print the schema's revision."""
    with existing(context) as store:
        click.echo(store.revision)
