"""Command lines that people are told to run: to be copied into a shell as they stand.

They work on what the call itself worked on: what it was told of a database and an owner,
they are told too, while what it found in the environment the next one finds there as well.
A password is never said again.

It knows a call and the options of commands. It must not know what any of them does.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import click

from reasoning_store.cli.call import Call
from reasoning_store.cli.tree import Group, walked

PROGRAM = "reasoning-store"
_LIBRARY = f"run: {PROGRAM} "
"""How a hint of the library begins that is a command line."""
_VERBS: Final[Mapping[str, tuple[str, ...]]] = {
    "history()": ("show", "SESSION"),
    "branches()": ("sessions", "show", "SESSION"),
    "compactions()": ("compact", "list", "SESSION"),
    "profiles.all()": ("profile", "list"),
}
"""The commands that do what verbs of the library do, which its hints name."""
_OPTIONS: Final[Mapping[str, str]] = {
    "say overwrite": "say --overwrite",
    "on_conflict skip": "--on-conflict skip",
    "sessions(after=page.next)": "leave --after out for the first page, which tells the next mark",
}
"""How what the library calls a parameter is said on the command line."""
_HIDDEN = "***"
_PASSWORD = re.compile(r"(?<=://)([^:/@]*:)[^@]*(?=@)|([?&]\w*password=)[^&]*", re.IGNORECASE)


def line(call: Call, *words: str, of_owner: bool = False, hide: bool = False) -> str:
    """Return a command line on the database of a call, and on the sessions of its owner.

    With ``hide`` the database is left for the reader to fill in: its place is nobody's
    business.
    """
    more: list[str] = []
    if of_owner and call.owner:
        more += ["--owner", call.owner]
    if call.db_was_said and call.db is not None:
        more += ["--db", "URL" if hide else call.db]
    return _joined([*words, *more])


def of_library(call: Call, hint: str | None, *, hide: bool = False) -> str | None:
    """Return a hint of the library's as it is said here: on the call's database, no Python."""
    if hint is None:
        return None
    if hint.startswith(_LIBRARY):
        return f"run: {line(call, *hint.removeprefix(_LIBRARY).split(), hide=hide)}"
    for word, option in _OPTIONS.items():
        hint = hint.replace(word, option)
    for verb, words in _VERBS.items():
        if verb in hint:
            hint = hint.replace(verb, line(call, *words, of_owner=True, hide=hide))
    return hint


def once_more(
    call: Call, context: click.Context, more: Sequence[str], *, without: Collection[str] = ()
) -> str:
    """Return the command line of the call itself, with other options than it had."""
    with_values = _with_values(context)
    given = list(call.words)
    kept: list[str] = []
    at = 0
    while at < len(given) and given[at] != "--":
        end = at + 1 + (given[at] in with_values)
        if given[at] not in without:
            kept += given[at:end]
        at = end
    return _joined([*kept, *more, *given[at:]])  # behind a -- nothing is an option


def of_words(call: Call, app: Group, error: click.UsageError) -> tuple[str, str]:
    """Return what is wrong with the words of a call, and what helps."""
    for line in _in_order(app, [], call.words):
        if line != [*call.words]:
            return "the options of a command stand behind its name", _joined(line)
    context = error.ctx or click.Context(app, info_name=PROGRAM)
    told = error.format_message()
    if isinstance(error, click.NoSuchOption):
        name, below = error.option_name, (one for _, one in walked(context.command))
        if any(name in option.opts for command in below for option in command.params):
            told = f"{name} stands behind the name of a command that has it"
    return told, f"{context.command_path} --help"


def _in_order(group: Group, moved: Sequence[str], words: Sequence[str]) -> Iterator[list[str]]:
    """Yield the words with options behind their command, for each command that they may name.

    ``moved`` are options that stood before the group, and are none of its parents'.
    """
    for at, name in enumerate(words):
        command, before, behind = _below(group, name), words[:at], words[at + 1 :]
        own = _are_options(before, group)
        there, options = ([*before, name], moved) if own else ([name], [*moved, *before])
        if isinstance(command, Group):
            yield from ([*there, *rest] for rest in _in_order(command, options, behind))
        elif command is not None and _fit(command, options, behind):
            yield [*there, *options, *behind]
    default = None if group.default is None else _below(group, group.default)
    if default is not None and _fit(default, moved, words):
        yield [*moved, *words]


def _below(group: click.Group, name: str) -> click.Command | None:
    return group.get_command(click.Context(group), name)


def _fit(command: click.Command, options: Sequence[str], behind: Sequence[str]) -> bool:
    """Whether a command has these options, and takes with them the words behind its name."""
    return _are_options(options, command) and _left_over(command, [*options, *behind]) == []


def _are_options(words: Sequence[str], command: click.Command) -> bool:
    options: list[click.Parameter] = [
        one for one in command.params if isinstance(one, click.Option)
    ]
    return _left_over(click.Command(None, params=options), [*words]) == []


def _left_over(command: click.Command, words: list[str]) -> list[str] | None:
    """Return the words that nothing of a command takes, None where an option is wrong."""
    context = click.Context(command, **command.context_settings)
    try:
        return command.make_parser(context).parse_args(words)[1]
    except click.UsageError:
        return None


def _with_values(context: click.Context) -> set[str]:
    """Return the names of options whose value is the next word."""
    names: set[str] = set()
    within: click.Context | None = context
    while within is not None:
        for option in within.command.params:
            if isinstance(option, click.Option) and not option.is_flag:
                names.update(option.opts)
        within = within.parent
    return names


def _joined(words: Sequence[str]) -> str:
    return shlex.join([PROGRAM, *map(_without_password, words)])


def _without_password(word: str) -> str:
    return _PASSWORD.sub(lambda found: f"{found[1] or found[2]}{_HIDDEN}", word)
