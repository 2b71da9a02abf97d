"""What the command line says of itself: its commands, their options, its exit codes."""

from __future__ import annotations

import inspect
import re

import click

from reasoning_store.cli.app import app
from reasoning_store.cli.command import Command, walk_commands
from reasoning_store.cli.exit_codes import MEANING

_OF_EVERY = {"json", "db", "help"}


def commands() -> str:
    """Return a section for each command of the tree, in order."""
    return "\n\n".join(_section(path, command) for path, command in walk_commands(app) if path)


def exit_codes() -> str:
    """Return the table of exit codes."""
    rows = [f"| {code.value} | {meaning} |" for code, meaning in MEANING.items()]
    return "\n".join(["| code | |", "| --- | --- |", *rows])


def _section(path: tuple[str, ...], command: click.Command) -> str:
    level = "##" if len(path) == 1 else "###"
    name = " ".join(path)
    out = [f"{level} `{name}`", _help(command)]
    if not isinstance(command, click.Group):
        words = [one.make_metavar(click.Context(command)) for one in _arguments(command)]
        out.insert(1, f"```text\nreasoning-store {' '.join([name, '[OPTIONS]', *words])}\n```")
    if rows := [_row(one) for one in command.params if _is_its_own(one)]:
        out.append("\n".join(["| option | |", "| --- | --- |", *rows]))
    if isinstance(command, Command):
        out.append(_answers(command.answers))
    return "\n\n".join(out)


def _answers(keys: str) -> str:
    """Say what is in an answer in JSON."""
    names = ", ".join(f"`{key}`" for key in keys.split() if key != "*")
    if not names:
        return "With `--json`: a list of the lines."
    return f"With `--json`: {'a list of objects with ' if keys.startswith('*') else ''}{names}."


def _help(command: click.Command) -> str:
    return inspect.cleandoc(command.help or "")


def _arguments(command: click.Command) -> list[click.Argument]:
    return [one for one in command.params if isinstance(one, click.Argument)]


def _is_its_own(parameter: click.Parameter) -> bool:
    return isinstance(parameter, click.Option) and parameter.name not in _OF_EVERY


def _row(option: click.Parameter) -> str:
    assert isinstance(option, click.Option)
    record = option.get_help_record(click.Context(app))
    assert record is not None
    names, said = (re.sub(r"\s+", " ", part).replace("|", "\\|") for part in record)
    return f"| `{names}` | {said} |"
