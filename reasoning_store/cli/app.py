"""The commands by name; a command's module is imported when it runs or is listed in help."""

from __future__ import annotations

import click

from reasoning_store import __version__
from reasoning_store.cli.command import Group, current_call, database_option

_ROOM = "reasoning_store.cli.commands"
COMMANDS = {
    "annotate": f"{_ROOM}.conversations.annotate:annotate",
    "branches": f"{_ROOM}.conversations.branches:branches",
    "compact": f"{_ROOM}.compact:compact",
    "contracts": f"{_ROOM}.explain:contracts",
    "db": f"{_ROOM}.database:db",
    "demo": f"{_ROOM}.demo:demo",
    "erase": f"{_ROOM}.conversations.erase:erase",
    "explain": f"{_ROOM}.explain:explain",
    "export": f"{_ROOM}.export:export",
    "import": f"{_ROOM}.import_:import_",
    "report": f"{_ROOM}.report:report",
    "request": f"{_ROOM}.request:request",
    "search": f"{_ROOM}.conversations.search:search",
    "serve": f"{_ROOM}.serve:serve",
    "sessions": f"{_ROOM}.conversations.sessions:sessions",
    "settings": f"{_ROOM}.settings:settings",
    "show": f"{_ROOM}.conversations.show:show",
    "stop": f"{_ROOM}.conversations.show:stop",
    "ui": f"{_ROOM}.serve:ui",
    "verify": f"{_ROOM}.verify:verify",
}
SECTIONS = {
    "Conversations": "sessions show search branches annotate stop erase",
    "Next request": "request compact settings",
    "Providers": "explain contracts",
    "Server": "serve ui",
    "Data": "import export report db verify",
    "First steps": "demo",
}
"""The commands as the help shows them; the others follow."""

WORDS = {
    "backup": "db backup",
    "cat": "show",
    "context": "request",
    "delete": "sessions delete",
    "doctor": "db doctor",
    "find": "search",
    "get": "settings",
    "grep": "search",
    "help": "--help",
    "init": "db create",
    "list": "sessions",
    "ls": "sessions",
    "next": "request",
    "restore": "import",
    "rm": "sessions delete",
    "set": "settings set",
    "tail": "show --follow",
    "tag": "sessions tag",
    "thoughts": "search --thoughts",
    "unset": "settings unset",
    "upgrade": "db upgrade",
    "usage": "request --tokens",
    "version": "--version",
    "what-if": "request --every",
}
"""Words of other programs, with the commands here."""


@click.command(
    cls=Group, lazy=COMMANDS, sections=SECTIONS, words=WORDS, invoke_without_command=True
)
@click.version_option(__version__, prog_name="reasoning-store")
@click.option("--json", is_flag=True, help="Answer in JSON.")
@click.pass_context
def app(context: click.Context, json: bool) -> None:
    """Keep every thought, send only what you choose, and see it before you send it.

    Without a command, show what is in the database; FILE in front of a command names it. To
    explain a refused request, no database is needed: reasoning-store explain TEXT.

    A file gives options their defaults: ~/.config/reasoning-store/config.toml, or the one that
    REASONING_STORE_CONFIG names. A variable gives a setting its value for all sessions:
    REASONING_STORE_EFFORT=high.
    """
    call = current_call(context)
    call.json = call.json or json
    if context.invoked_subcommand is None:
        from reasoning_store.cli.commands.status import print_status

        print_status(call)


app.params.append(database_option(envvar="REASONING_STORE_URL"))
