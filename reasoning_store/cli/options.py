"""The options that several commands share: the session, the model, the request.

A decorator adds the options and gives the command one value made of them.
"""

from __future__ import annotations

import functools
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from math import isfinite, nan
from typing import IO, Any, TypeAlias, TypeVar

import click

from reasoning_store import InvalidCall
from reasoning_store.cli.command import remember_option
from reasoning_store.cli.completion import (
    complete_api,
    complete_change,
    complete_provider,
    complete_session,
    full_key,
)
from reasoning_store.cli.exit_codes import Exit
from reasoning_store.cli.output import Page, print_note, print_warnings
from reasoning_store.cli.store_access import LATEST, Where
from reasoning_store.ledger.database import files

Function = TypeVar("Function", bound=Callable[..., Any])


OWNER = click.option(
    "--owner",
    default="",
    envvar="REASONING_STORE_OWNER",
    callback=remember_option,
    help="The owner of the sessions; default: the unnamed owner.  [env: REASONING_STORE_OWNER]",
)
SESSION = click.argument("session_id", metavar="SESSION", shell_complete=complete_session)
OPTIONAL_SESSION = click.argument(
    "session_id", metavar="[SESSION]", required=False, shell_complete=complete_session
)
_OR_LATEST = click.argument(
    "session_id", metavar="[SESSION]", default=LATEST, shell_complete=complete_session
)
BRANCH = click.option(
    "--branch", type=click.IntRange(1), help="A branch other than the current one."
)
YES = click.option("--yes", is_flag=True, help="Do not ask.")
DATE = click.DateTime(("%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"))
SINCE = click.option("--since", type=DATE, help="From this time on, in local time.")
UNTIL = click.option("--until", type=DATE, help="Before this time, in local time.")
BEFORE = click.option(
    "--before",
    type=DATE,
    help="Only sessions whose last message is older, in local time.",
)
_EVERYTHING = click.option(
    "--everything", is_flag=True, help="All sessions and profiles of the owner."
)


Decorator: TypeAlias = Callable[[Function], Function]


def gives(
    name: str, make: Callable[..., Any], takes: Sequence[str], *options: Decorator[Any]
) -> Decorator[Any]:
    """Return a decorator that adds options and gives a command ``name``, made of their values."""

    def decorate(command: Function) -> Function:
        @functools.wraps(command)
        def folded(*arguments: Any, **values: Any) -> Any:
            made = make(**{key: values.pop(key) for key in takes})
            return command(*arguments, **values, **{name: made})

        for option in reversed(options):
            folded = option(folded)
        return folded  # type: ignore[return-value]

    return decorate


def _where(*options: Decorator[Any]) -> Decorator[Any]:
    names = ("session_id", "owner", "branch")[: len(options)]
    return gives("where", Where, names, *options)


takes_session = _where(SESSION, OWNER)
"""Gives a command ``where``: SESSION, --owner."""
takes_place = _where(SESSION, OWNER, BRANCH)
"""Gives a command ``where``: SESSION, --owner, --branch."""
takes_message = _where(
    click.argument("session_id", metavar="SESSION:POSITION", shell_complete=complete_session),
    OWNER,
    BRANCH,
)
"""Gives a command ``where``: SESSION:POSITION, --owner, --branch."""
takes_latest = _where(_OR_LATEST, OWNER)
"""Gives a command ``where``: [SESSION], by default the latest, --owner."""
takes_branch = _where(_OR_LATEST, OWNER, BRANCH)
"""Gives a command ``where``: [SESSION], by default the latest, --owner, --branch."""


def split_words(words: Sequence[str], is_own: Callable[[str], bool]) -> tuple[str, Sequence[str]]:
    """Return the session, by default the latest, and the words that are the command's own."""
    if words and not is_own(words[0]):
        return words[0], words[1:]
    return LATEST, words


@dataclass(frozen=True, slots=True)
class Whose:
    """One session that the command line names, or an owner's, all or by age."""

    session_id: str | None
    owner: str
    before: datetime | None

    def __str__(self) -> str:
        if self.before is None:
            return f"everything of the owner {self.owner!r}"
        return f"sessions without a message since {self.before} of the owner {self.owner!r}"


def _sessions_of(
    session_id: str | None, owner: str, before: datetime | None, everything: bool
) -> Whose:
    """Refuse a command that names no session, or more than it can mean."""
    if session_id is None and not everything and before is None:
        raise InvalidCall("no session is named", hint="name a session, or pass --everything")
    if [session_id is not None, everything, before is not None].count(True) > 1:
        raise InvalidCall(
            "a session, --everything and --before exclude each other", hint="pass one of them"
        )
    return Whose(session_id, owner, before)


takes_sessions = gives(
    "whose",
    _sessions_of,
    ("session_id", "owner", "before", "everything"),
    *(OPTIONAL_SESSION, OWNER, BEFORE, _EVERYTHING),
)
"""Gives a command ``whose``: [SESSION], --owner, --before, --everything."""


def takes_page(size: int) -> Decorator[Any]:
    """Return a decorator that gives a command ``limit`` and ``after``."""
    limit = click.option("--limit", default=size, show_default=True, type=click.IntRange(1, 1000))
    after = click.option(
        "--after", metavar="MARK", help="Continue after the mark that an earlier page printed."
    )
    return lambda command: limit(after(command))


def _target_options(**target: Any) -> dict[str, Any]:
    """Return the target; warn of an unknown provider, which may be misspelt."""
    if any(target.values()):
        from reasoning_store import select

        warnings = select([], **target).warnings
        print_warnings(one.text for one in warnings if one.code == "unknown_provider")
    return target


def _tokens(value: object) -> int:
    found = re.fullmatch(r"(\d+)([km]?)", str(value).lower(), re.ASCII)
    if found is None:
        raise click.BadParameter(f"{value!r} is not a number of tokens, e.g. 128000 or 128k")
    return int(found[1]) * {"": 1, "k": 1_000, "m": 1_000_000}[found[2]]


def _share(value: object) -> float:
    text = str(value)
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = nan
    if not isfinite(share) or share < 0:
        raise click.BadParameter(f"{value!r} is not a share, e.g. 85% or 0.85")
    return share


TOKENS = click.types.FuncParamType(_tokens)
"""A number of tokens; 128k is 128000."""
SHARE = click.types.FuncParamType(_share)
"""A share of a whole: 85% is 0.85."""


def limit_option(**more: Any) -> Decorator[Any]:
    """Return the option that names the model's context window."""
    return click.option(
        "--limit",
        type=TOKENS,
        metavar="TOKENS",
        envvar="REASONING_STORE_LIMIT",
        help="The model's context window, e.g. 128k.  [env: REASONING_STORE_LIMIT]",
        **more,
    )


def position_of(word: object) -> int | str:
    """Return the position or the id that a word is."""
    text = str(word)
    return int(text) if re.fullmatch(r"[-+]?\d+", text, re.ASCII) else text


POSITION = click.types.FuncParamType(position_of)


_TARGET = (
    click.option(
        "--provider", shell_complete=complete_provider, help="The provider, e.g. deepseek."
    ),
    click.option("--model", help="The model."),
    click.option(
        "--as",
        "--api",
        "api",
        shell_complete=complete_api,
        metavar="PROTOCOL",
        help="The protocol, e.g. anthropic.messages.",
    ),
    click.option("--base-url", metavar="URL", help="The address of the provider's API."),
)
_TARGET_NAMES = ("provider", "model", "api", "base_url")


def _request_options(system: str | None, tools: IO[bytes] | None, **more: Any) -> dict[str, Any]:
    changes = more.pop("with")
    return {
        **_target_options(**more),
        "settings": parse_settings(changes),
        "system": system,
        "tools": None if tools is None else _read_tools(tools),
    }


takes_request = gives(
    "asked",
    _request_options,
    (*_TARGET_NAMES, "with", "system", "tools"),
    click.option(
        "--with",
        multiple=True,
        metavar="KEY=VALUE",
        shell_complete=complete_change,
        help="A setting for this request only; may be repeated.",
    ),
    click.option("--system", metavar="TEXT", help="A system prompt, for this request only."),
    click.option("--tools", type=click.File("rb"), metavar="FILE", help="Tools, a JSON list."),
    *_TARGET,
)
"""Gives a command ``asked``: the keywords of a session's request."""


def parse_settings(changes: Sequence[str]) -> dict[str, Any]:
    """Return the settings written as KEY=VALUE; refuse a bad one (ERR-001)."""
    from reasoning_store.conversation import settings as _settings

    pairs = (_split_pair(change, "includeInContext=true") for change in changes)
    words = {full_key(key): value for key, value in pairs}
    return {key: _settings.parse(key, value) for key, value in words.items()}


def _split_pair(text: str, example: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise InvalidCall(f"{text!r} is not KEY=VALUE", hint=f"for example {example}")
    return key, value


def parse_fact(text: str) -> tuple[str, Any]:
    """Return the key and the value of KEY=VALUE; a value that is no JSON is a text."""
    key, value = _split_pair(text, "rating=1")
    try:
        return key, json.loads(value)
    except (ValueError, RecursionError):
        return key, value


FACTS = click.argument("facts", nargs=-1, metavar="[KEY=VALUE]...")


def fact_table(page: Page, facts: Mapping[str, Any]) -> None:
    """Write facts as a table."""
    rows = [(key, json.dumps(value, ensure_ascii=False)) for key, value in facts.items()]
    page.table(("key", "value"), rows)


@contextmanager
def name_in_error(name: str) -> Iterator[None]:
    """Name the file in an error of the system."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or name
        raise


def read_file(file: IO[bytes]) -> bytes:
    """Return the content of a file that the command line names."""
    with name_in_error(file.name):
        if file is not getattr(sys.stdin, "buffer", None):
            files.check_ends(os.fstat(file.fileno()), f"{file.name} cannot be read")
        return file.read()


def read_text(file: IO[bytes], name: str) -> str:
    """Return the text of a file in UTF-8, without a byte order mark."""
    from reasoning_store.formats import check_encoding

    data = read_file(file)
    check_encoding(data, name)
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise InvalidCall(f"{name} is not UTF-8 at byte {error.start + 1}") from None


def _read_tools(file: IO[bytes]) -> list[dict[str, Any]]:
    text = read_text(file, file.name)
    try:
        tools = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidCall(f"{file.name} is not JSON", hint="pass a JSON list of tools") from None
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        raise InvalidCall(f"{file.name} is not a list of tools")
    return tools


def confirm(question: str, yes: bool) -> None:
    """Ask before a change that cannot be undone; refuse it without a terminal."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidCall(
            "this cannot be undone, and there is no terminal to ask at", hint="pass --yes"
        )
    if not click.confirm(question, err=True):
        print_note("nothing was changed")
        raise click.exceptions.Exit(Exit.FAILED)
