"""Commands and groups of them, as this program has them.

Every ``Command`` takes the options that hold for all of them, before or behind its own. A
``Group`` imports a command when that is run or listed, and may have one that is meant when
none is named.

It knows click. It must not know any command.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import click
from click.core import ParameterSource

from reasoning_store.cli.call import Call
from reasoning_store.errors import UsageError

HELP = {"help_option_names": ["-h", "--help"]}


def call_of(context: click.Context) -> Call:
    """Return the call that a context belongs to."""
    call = context.find_root().obj
    assert isinstance(call, Call)
    return call


def _remember(context: click.Context, option: click.Parameter, value: Any) -> None:
    if value and option.name is not None:
        setattr(call_of(context), option.name, value)


def _remember_database(context: click.Context, option: click.Parameter, value: Any) -> None:
    _remember(context, option, value)
    if value:
        source = context.get_parameter_source("db")
        call_of(context).db_was_said = source is ParameterSource.COMMANDLINE


def database_option(**more: Any) -> click.Option:
    """Return the option that names the database."""
    return click.Option(
        ["--db"],
        metavar="URL",
        expose_value=False,
        callback=_remember_database,
        help="The database, e.g. sqlite:///chat.db.",
        **more,
    )


def _with_help(attributes: dict[str, Any]) -> dict[str, Any]:
    given = attributes.get("context_settings") or {}
    return {**attributes, "context_settings": {**HELP, **given}}


def walked(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield a command and all below it, each with the words that name it."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from walked(below, (*path, name))


class Command(click.Command):
    """A command, with ``--json`` and ``--db``.

    ``answers`` are the keys of its answer in JSON, behind a star where that is a list: what
    the documentation promises and a test holds it to.
    """

    def __init__(self, *args: Any, answers: str = "", **attributes: Any) -> None:
        super().__init__(*args, **_with_help(attributes))
        self.answers = answers
        self.params += [
            click.Option(
                ["--json"],
                is_flag=True,
                expose_value=False,
                callback=_remember,
                help="Answer in JSON.",
            ),
            database_option(),
        ]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            # Of an option's missing value click does not say whose option it is.
            error.ctx = error.ctx or ctx
            raise

    def invoke(self, ctx: click.Context) -> Any:
        call_of(ctx).command = " ".join(ctx.command_path.split()[1:])
        return super().invoke(ctx)


class Group(click.Group):
    """A group of commands.

    ``lazy`` says where commands live, as ``module:attribute``. ``default`` is the command
    that is meant where the first word names none.
    """

    command_class = Command

    def __init__(
        self,
        *args: Any,
        lazy: Mapping[str, str] | None = None,
        default: str | None = None,
        **attributes: Any,
    ) -> None:
        super().__init__(*args, **_with_help(attributes))
        self._lazy = lazy or {}
        self.default = default
        if default is not None:
            # Its options come before its name does.
            self.ignore_unknown_options = True

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*self.commands, *self._lazy})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = self._lazy.get(cmd_name)
        if place is None:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = place.partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if self.default is not None and self._means_default(ctx, self.default, args[:1]):
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def _means_default(self, ctx: click.Context, default: str, first: list[str]) -> bool:
        if set(first) & {*self.list_commands(ctx), *HELP["help_option_names"]}:
            return False
        command = self.get_command(ctx, default)
        assert command is not None
        takes_words = any(isinstance(one, click.Argument) for one in command.params)
        return takes_words or not first or first[0].startswith("-")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; of an unknown one, offer the nearest names."""
        word = args[0]
        if self.get_command(ctx, word) is None and not ctx.resilient_parsing:
            near = difflib.get_close_matches(word, self.list_commands(ctx), n=3)
            raise UsageError(
                f"there is no command {word!r}",
                hint=f"did you mean {' or '.join(near)}?"
                if near
                else f"{ctx.command_path} --help lists them",
            )
        return super().resolve_command(ctx, args)
