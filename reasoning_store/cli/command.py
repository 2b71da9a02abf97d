"""A call of the program, and its commands: what click does not know of them.

A ``Command`` takes ``--json`` and ``--db``. A ``Group`` imports a command when it runs, and may
have one that needs no name.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from reasoning_store import InvalidCall
from reasoning_store.cli.configuration import check_keys
from reasoning_store.cli.exit_codes import Exit

_WHOLE = 1000
"""The length of a help that is not cut."""
HELP = {"help_option_names": ["-h", "--help"]}


@dataclass(slots=True)
class Call:
    """One call of the program: the options of every command, and how it ends."""

    db: str | None = None
    """The URL of the database, if one was given."""
    db_was_named: bool = False
    """It was given in words, so a command line that is advised has to name it too."""
    owner: str = ""
    json: bool = False
    command: str = ""
    """The words that name the command, e.g. ``sessions list``."""
    exit: Exit = Exit.DONE
    """The exit code; it stays the same when the reader of a pipe leaves early."""
    if_interrupted: str = "nothing was left half done"
    """The hint for a person who stops the command."""


def current_call(context: click.Context) -> Call:
    """Return the call that a context belongs to."""
    call = context.find_root().obj
    assert isinstance(call, Call)
    return call


def remember_option(context: click.Context, option: click.Parameter, value: Any) -> Any:
    """Remember the value of an option in the call."""
    if value and option.name is not None:
        setattr(current_call(context), option.name, value)
    return value


def _remember_database(context: click.Context, option: click.Parameter, value: Any) -> None:
    remember_option(context, option, value)
    if value:
        source = context.get_parameter_source("db")
        current_call(context).db_was_named = source is ParameterSource.COMMANDLINE


def database_option(**more: Any) -> click.Option:
    """Return the option that names the database."""
    return click.Option(
        ["--db"],
        metavar="DATABASE",
        expose_value=False,
        callback=_remember_database,
        help="The database: a file, or a URL of a server.  [env: REASONING_STORE_URL]",
        **more,
    )


def _with_help(attributes: dict[str, Any]) -> dict[str, Any]:
    given = attributes.get("context_settings") or {}
    return {**attributes, "context_settings": {**HELP, **given}}


def walk_commands(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield a command and all below it, each with the words that name it."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from walk_commands(below, (*path, name))


class Command(click.Command):
    """A command, with ``--json`` and ``--db``.

    ``examples`` are command lines without the program's name, shown in its help.
    ``answers`` are the keys of its answer in JSON, with a star before them if it is a list: what
    the documentation promises and a test holds it to.
    """

    def __init__(
        self, *args: Any, answers: str = "", examples: Sequence[str] = (), **attributes: Any
    ) -> None:
        super().__init__(*args, **_with_help(attributes))
        self.answers = answers
        self.examples = examples
        self.params += [
            click.Option(
                ["--json"],
                is_flag=True,
                expose_value=False,
                callback=remember_option,
                help="Answer in JSON.",
            ),
            database_option(),
        ]

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        context = super().make_context(info_name, args, parent, **extra)
        check_keys(context)
        return context

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            # Of an option's missing value click does not say whose option it is.
            error.ctx = error.ctx or ctx
            raise

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        program = ctx.find_root().info_name
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}{program} {example}\n")

    def invoke(self, ctx: click.Context) -> Any:
        current_call(ctx).command = ctx.command_path.partition(" ")[2]
        return super().invoke(ctx)


class Group(click.Group):
    """A group of commands.

    ``lazy`` is the place of each command, as ``module:attribute``. ``default`` is the command that
    runs if the first word names no command. ``sections`` are the parts of the help, each with the
    names of its commands. ``words`` are the names that other programs use for them.
    """

    command_class = Command

    def __init__(
        self,
        *args: Any,
        lazy: Mapping[str, str] | None = None,
        default: str | None = None,
        sections: Mapping[str, str] | None = None,
        words: Mapping[str, str] | None = None,
        **attributes: Any,
    ) -> None:
        super().__init__(*args, **_with_help(attributes))
        self._lazy = lazy or {}
        self.words = words or {}
        self.default = default
        self.sections = sections or {}
        if default is not None:
            # Its options come before its name does.
            self.ignore_unknown_options = True

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        context = super().make_context(info_name, args, parent, **extra)
        check_keys(context)
        return context

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
        if ctx.parent is None and args and args[0] not in self.list_commands(ctx):
            args = ["--db", *args] if os.path.isfile(args[0]) else args
        if self.default is not None and self._means_default(ctx, self.default, args[:1]):
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by section, those of none last."""
        names = self.list_commands(ctx)
        listed = {title: words.split() for title, words in self.sections.items()}
        others = [name for name in names if not any(name in each for each in listed.values())]
        for title, words in {**listed, "Commands": others}.items():
            found = [(name, self.get_command(ctx, name)) for name in words if name in names]
            if rows := [(name, one.get_short_help_str(_WHOLE)) for name, one in found if one]:
                with formatter.section(title):
                    formatter.write_dl(rows, col_max=max(map(len, names)))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.default is not None:
            named = f"{ctx.command_path} {self.default}"
            formatter.write_paragraph()
            formatter.write_text(f"Without a command: {named}; {named} --help has its options.")

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Offer the commands, and the words that the one without a name takes first."""
        offered = super().shell_complete(ctx, incomplete)
        if self.default is not None and (command := self.get_command(ctx, self.default)):
            below = click.Context(command, parent=ctx.parent, info_name=ctx.info_name)
            firsts = [one for one in command.params if isinstance(one, click.Argument)][:1]
            for one in (command, *(firsts if not incomplete.startswith("-") else ())):
                offered += one.shell_complete(below, incomplete)
        return list({item.value: item for item in offered}.values())

    def _means_default(self, ctx: click.Context, default: str, first: list[str]) -> bool:
        if not first and ctx.resilient_parsing:
            return False  # a shell asks for the word that stands here
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
            meant = self.words.get(word)
            near = difflib.get_close_matches(word, self.list_commands(ctx), n=3)
            names = [meant] if meant is not None else near
            raise InvalidCall(
                f"there is no command {word!r}",
                hint=f"did you mean {' or '.join(names)}?"
                if names
                else f"{ctx.command_path} --help lists them",
            )
        return super().resolve_command(ctx, args)
