"""The commands by name; a command's module is imported when it runs or is listed in help."""

from __future__ import annotations

import click

from reasoning_store import __version__
from reasoning_store.cli.command import Group, current_call, database_option

_ROOM = "reasoning_store.cli.commands"
COMMANDS = {
    "annotate": f"{_ROOM}.conversations.annotate:annotate",
    "backup": f"{_ROOM}.backup:backup",
    "branches": f"{_ROOM}.conversations.branches:branches",
    "compact": f"{_ROOM}.compact:compact",
    "context": f"{_ROOM}.context:context",
    "current": f"{_ROOM}.database:current",
    "delete": f"{_ROOM}.conversations.delete:delete",
    "demo": f"{_ROOM}.demo:demo",
    "distribute": f"{_ROOM}.database:distribute",
    "doctor": f"{_ROOM}.doctor:doctor",
    "downgrade": f"{_ROOM}.database:downgrade",
    "erase": f"{_ROOM}.conversations.erase:erase",
    "export": f"{_ROOM}.export:export",
    "get": f"{_ROOM}.settings:get",
    "import": f"{_ROOM}.import_:import_",
    "init": f"{_ROOM}.database:init",
    "profile": f"{_ROOM}.profile:profile",
    "report": f"{_ROOM}.report:report",
    "search": f"{_ROOM}.conversations.search:search",
    "serve": f"{_ROOM}.serve:serve",
    "sessions": f"{_ROOM}.conversations.sessions:sessions",
    "set": f"{_ROOM}.settings:set_",
    "show": f"{_ROOM}.conversations.show:show",
    "stop": f"{_ROOM}.conversations.show:stop",
    "thoughts": f"{_ROOM}.conversations.thoughts:thoughts",
    "ui": f"{_ROOM}.serve:ui",
    "unset": f"{_ROOM}.settings:unset",
    "upgrade": f"{_ROOM}.database:upgrade",
    "usage": f"{_ROOM}.usage:usage",
    "verify": f"{_ROOM}.verify:verify",
    "what-if": f"{_ROOM}.what_if:what_if",
}
SECTIONS = {
    "Conversations": "sessions show branches search thoughts annotate stop delete erase",
    "Next request": "usage context what-if compact",
    "Settings": "get set unset profile",
    "Data": "import export backup report",
    "Server": "serve ui",
    "Database": "init upgrade downgrade current distribute verify doctor",
}
"""The commands as the help shows them; the others follow."""

WORDS = {
    "cat": "show",
    "find": "search",
    "grep": "search",
    "help": "--help",
    "list": "sessions",
    "ls": "sessions",
    "restore": "import",
    "rm": "delete",
    "tail": "show --follow",
    "tag": "sessions tag",
    "version": "--version",
}
"""Words of other programs, with the commands here."""


@click.command(
    cls=Group, lazy=COMMANDS, sections=SECTIONS, words=WORDS, invoke_without_command=True
)
@click.version_option(__version__, prog_name="reasoning-store")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
@click.pass_context
def app(context: click.Context, as_json: bool) -> None:
    """Keep every thought, send only what you choose, and see it before you send it.

    Without a command, show what is in the database.

    A file gives options their defaults: ~/.config/reasoning-store/config.toml, or the one that
    REASONING_STORE_CONFIG names. A variable gives a setting its value for all sessions:
    REASONING_STORE_EFFORT=high.
    """
    call = current_call(context)
    call.json = call.json or as_json
    if context.invoked_subcommand is None:
        from reasoning_store.cli.commands.status import print_status

        print_status(call)


app.params.append(database_option(envvar="REASONING_STORE_URL"))
