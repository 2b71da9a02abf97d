"""Command lines that an error or a note advises: ready to be copied into a shell.

They name the database and the owner that the call named; a password is never repeated.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from reasoning_store.cli.command import Call, Group, walk_commands
from reasoning_store.cli.configuration import configuration_path
from reasoning_store.cli.program import PROGRAM

if TYPE_CHECKING:
    from reasoning_store.results import RequestWarning

_COMMAND_IN_HINT = re.compile(rf"run: {PROGRAM} ([^;(]*\w)")
"""A command line in a hint of the library."""
_COMMAND_OF_VERB: Final[Mapping[str, tuple[str, ...]]] = {
    "history()": ("show", "SESSION"),
    "branches()": ("branches", "SESSION"),
    "compactions()": ("compact", "list", "SESSION"),
    "profiles.all()": ("settings", "profiles"),
}
"""The commands for the library's verbs that its hints name."""
_OPTION_OF_PARAMETER: Final[Mapping[str, str]] = {
    "pass overwrite": "pass --overwrite",
    "on_conflict skip": "--on-conflict skip",
    "after=page.next": "leave --after out for the first page, which prints the next mark",
}
"""The options for the library's parameters that its hints name."""
_TARGET_NAMES = ("provider", "model", "api", "base_url")
_PASSWORD = re.compile(r"(?<=://)([^:/@]*:)[^@]*(?=@)|([?&]\w*password=)[^&]*", re.IGNORECASE)


def command_line(call: Call, *words: str, of_owner: bool = False, hide: bool = False) -> str:
    """Return a command line on the call's database and, with ``of_owner``, of its owner.

    With ``hide`` it has the word URL instead of the database's own.
    """
    more: list[str] = []
    if of_owner and call.owner:
        more += ["--owner", call.owner]
    if call.db_was_named and call.db is not None:
        more += ["--db", "URL" if hide else call.db]
    return shlex.join([PROGRAM, *map(_hide_password, [*words, *more])])


def for_command_line(call: Call, hint: str | None, *, hide: bool = False) -> str | None:
    """Return a hint of the library with commands and options in place of Python."""
    if hint is None:
        return None
    hint = _COMMAND_IN_HINT.sub(
        lambda found: f"run: {command_line(call, *found[1].split(), hide=hide)}", hint
    )
    for parameter, option in _OPTION_OF_PARAMETER.items():
        hint = hint.replace(parameter, option)
    for verb, words in _COMMAND_OF_VERB.items():
        if verb in hint:
            hint = hint.replace(verb, command_line(call, *words, of_owner=True, hide=hide))
    return hint


def warning_texts(warnings: Iterable[RequestWarning], asked: Mapping[str, Any]) -> Iterator[str]:
    """Return the texts of a request's warnings, without the one that its options gave already."""
    for one in warnings:
        if one.code != "unknown_provider" or not any(map(asked.get, _TARGET_NAMES)):
            yield one.text


def explain_usage_error(app: Group, error: click.UsageError) -> tuple[str, str]:
    """Return what is wrong with the words of a call, and a hint."""
    context = error.ctx or click.Context(app, info_name=PROGRAM)
    text = _about_default(error) or error.format_message()
    hint = f"{context.command_path} --help"
    if isinstance(error, click.NoSuchOption):
        name, params = error.option_name, context.command.params
        below = (one for _, command in walk_commands(context.command) for one in command.params)
        if any(name in option.opts for option in below):
            text = f"{name} belongs after the name of its command"
        elif name[:2] != "--" and any(one.name in ("session_id", "words") for one in params):
            hint += "; put -- before a session whose name begins with a dash"
    return text, hint


def _about_default(error: click.UsageError) -> str | None:
    """Return what is wrong with a value that a variable or the configuration file gave."""
    if isinstance(error, click.BadParameter) and error.ctx is not None and error.param is not None:
        source = error.ctx.get_parameter_source(error.param.name or "")
        if source is ParameterSource.ENVIRONMENT:
            return f"the variable {error.param.envvar}: {error.message}"
        if source is ParameterSource.DEFAULT_MAP:
            return f"{configuration_path()}: {error.param.name}: {error.message}"
    return None


def _hide_password(word: str) -> str:
    return _PASSWORD.sub(lambda found: f"{found[1] or found[2]}***", word)
