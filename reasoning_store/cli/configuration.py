"""The configuration file: defaults of options, in TOML, by the names of their commands."""

from __future__ import annotations

import os
from typing import Any

import click

from reasoning_store import InvalidCall, NotFound

VARIABLE = "REASONING_STORE_CONFIG"
"""The variable that names the file; an empty one means no file."""
_WORDS_ONLY = ("before", "everything", "overwrite", "yes")  # they delete or replace data


def configuration_path() -> str:
    """Return the path of the file that the variable names, or of the user's own."""
    own = os.path.join(click.get_app_dir("reasoning-store"), "config.toml")
    return os.environ.get(VARIABLE, own if os.path.isfile(own) else "")


def read_configuration() -> dict[str, Any]:
    """Return the tables of the file; empty without a file."""
    if not (path := configuration_path()):
        return {}
    import tomllib

    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        raise NotFound(
            f"there is no file {path}", hint=f"the variable {VARIABLE} names it"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidCall(f"{path} is not TOML: {error}") from None


def check_keys(context: click.Context) -> None:
    """Refuse a key in the table of a command that names no option or command there."""
    command = context.command
    below = command.list_commands(context) if isinstance(command, click.Group) else []
    options = [
        one.name
        for one in command.params
        if isinstance(one, click.Option) and one.name and one.name not in _WORDS_ONLY
    ]
    for key, value in (context.default_map or {}).items():
        if key not in (below if isinstance(value, dict) else options):
            words = ".".join((*context.command_path.split()[1:], key))
            raise InvalidCall(
                f"{configuration_path()}: {words} is no {'table' if key in below else 'key'} here",
                hint=f"options: {', '.join(options)}; tables: {', '.join(below) or 'none'}",
            )
