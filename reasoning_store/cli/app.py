"""The tree of commands: names, and where each one lives.

A command's module is imported when the command is run, or listed in help.
"""

from __future__ import annotations

from importlib import import_module

import click

from reasoning_store import __version__

COMMANDS = {
    "context": "reasoning_store.cli.inspect",
    "current": "reasoning_store.cli.database",
    "demo": "reasoning_store.cli.demo",
    "sessions": "reasoning_store.cli.inspect",
    "set": "reasoning_store.cli.change",
    "show": "reasoning_store.cli.inspect",
    "unset": "reasoning_store.cli.change",
    "upgrade": "reasoning_store.cli.database",
    "usage": "reasoning_store.cli.inspect",
}


class LazyGroup(click.Group):
    """A group that imports a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = COMMANDS.get(cmd_name)
        if module is None:
            return None
        command = getattr(import_module(module), f"{cmd_name}_command")
        assert isinstance(command, click.Command)
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="reasoning-store")
@click.option(
    "--db",
    metavar="URL",
    envvar="REASONING_STORE_URL",
    help="The database, e.g. sqlite:///chat.db [or: REASONING_STORE_URL]",
)
@click.pass_context
def app(context: click.Context, db: str | None) -> None:
    """Keep every thought, send only what you choose, and see it before you send it."""
    context.obj = db
