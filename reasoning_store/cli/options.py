"""The options that several commands share: which session, and what the request would be.

A decorator adds the options and hands the command one value made of them. Files that are
named on the command line are read here, so that what is wrong with one is told with its name.
"""

from __future__ import annotations

import functools
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from reasoning_store import files, strict
from reasoning_store.cli import opening
from reasoning_store.cli.call import Call
from reasoning_store.cli.printable import one_line
from reasoning_store.cli.tree import call_of
from reasoning_store.errors import ReasoningStoreError, UsageError
from reasoning_store.wire.contracts import APIS

if TYPE_CHECKING:
    from reasoning_store.session import Session

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Where:
    """A session, as the command line names it."""

    session: str
    owner: str
    branch: int | None = None

    def open(self, call: Call) -> AbstractContextManager[Session]:
        return opening.opened(call, self.owner, self.session, self.branch)


def _complete_session(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer a shell the sessions that a word could become."""
    try:
        with opening.existing(call_of(context)) as store:
            mine = store.for_owner(context.params.get("owner") or "")
            return [
                CompletionItem(name)
                for name in opening.names(mine)
                # A shell takes an answer for a line, and shows it to a terminal as it is.
                if name.startswith(incomplete) and one_line(name) == name
            ]
    except ReasoningStoreError:
        return []  # a shell has no place for what went wrong


def note_owner(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """Let the call know whose sessions it is about."""
    call_of(context).owner = value or ""
    return value


OWNER = click.option(
    "--owner",
    default="",
    callback=note_owner,
    help="Whose sessions; by default the nameless owner's.",
)
SESSION = click.argument("session_id", metavar="SESSION", shell_complete=_complete_session)
OPTIONAL_SESSION = click.argument(
    "session_id", metavar="[SESSION]", required=False, shell_complete=_complete_session
)
SESSION_OPTION = click.option(
    "--session", "session_id", metavar="ID", help="The session, where it is not the first word."
)
BRANCH = click.option("--branch", type=click.IntRange(1), help="Another branch than the current.")
YES = click.option("--yes", is_flag=True, help="Do not ask.")


def _complete_first_word(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer a shell the sessions where SESSION stands."""
    behind = context.params.get("words") or any(map(context.params.get, ("session_id", "profile")))
    return [] if behind else _complete_session(context, parameter, incomplete)


def words_behind_session(takes: str) -> Callable[[Function], Function]:
    """Give a command ``words``: SESSION, where no option names it, and what it takes."""
    return click.argument(
        "words", nargs=-1, metavar=f"[SESSION] {takes}", shell_complete=_complete_first_word
    )


def session_first(
    words: Sequence[str], takes: str, *, session: str | None, profile: str | None = None
) -> tuple[str | None, Sequence[str]]:
    """Return the session, and the words behind it.

    SESSION is the first word, as of every command, but where --session or --profile says
    whose it is. ``takes`` names the words behind it; those in brackets may be left out.
    """
    if session is not None and profile is not None:
        raise UsageError(
            "a setting is a session's or a profile's", hint="leave --session or --profile out"
        )
    said = "--session" if session is not None else "--profile" if profile is not None else None
    names = takes.split() if said else ["SESSION", *takes.split()]
    least = sum(not name.startswith("[") for name in names)
    if not least <= len(words) <= len(names):
        raise click.UsageError(
            f"{f'with {said}, ' if said else ''}{' '.join(names)} is wanted,"
            f" not {shlex.join(words) or 'nothing'}",
            click.get_current_context(),
        )
    return (session, words) if said else (words[0], words[1:])


def a_session(command: Function) -> Function:
    """Give a command ``where``: SESSION, --owner."""
    return _folded(command, "where", _where, (OWNER, SESSION))


def on_a_branch(command: Function) -> Function:
    """Give a command ``where``: SESSION, --owner, --branch."""
    return _folded(command, "where", _where, (BRANCH, OWNER, SESSION), ("branch",))


def _where(session_id: str, owner: str, branch: int | None = None) -> Where:
    return Where(session_id, owner, branch)


def a_target(command: Function) -> Function:
    """Give a command ``target``: whom a request is for, or whose stream it is."""
    return _folded(command, "target", dict, _TARGET, _TARGET_NAMES)


def a_request(command: Function) -> Function:
    """Give a command ``asked``: the keywords by which a session's verbs know a request."""
    return _folded(command, "asked", _asked, (*_TARGET, *_REQUEST), (*_TARGET_NAMES, *_WITH))


_TARGET = (
    click.option("--base-url", metavar="URL", help="The address of the provider's API."),
    click.option(
        "--as",
        "--api",
        "api",
        type=click.Choice(APIS),
        metavar="PROTOCOL",
        help="The protocol, e.g. anthropic.messages.",
    ),
    click.option("--model", help="The model."),
    click.option("--provider", help="The provider, e.g. deepseek."),
)
_TARGET_NAMES = ("provider", "model", "api", "base_url")
_REQUEST = (
    click.option("--tools", type=click.File("rb"), metavar="FILE", help="Tools, a JSON list."),
    click.option("--system", metavar="TEXT", help="A system prompt, for this request only."),
    click.option(
        "--with",
        "changes",
        multiple=True,
        metavar="KEY=VALUE",
        help="A setting for this request only; may be repeated.",
    ),
)
_WITH = ("changes", "system", "tools")


def _asked(
    changes: Sequence[str], system: str | None, tools: IO[bytes] | None, **target: str | None
) -> dict[str, Any]:
    return {
        **target,
        "settings": settings(changes),
        "system": system,
        "tools": None if tools is None else _tools(tools),
    }


def settings(changes: Sequence[str]) -> dict[str, Any]:
    """Return the settings that a person wrote as KEY=VALUE; refuse a bad one (ERR-001)."""
    from reasoning_store import settings as _settings

    made: dict[str, Any] = {}
    for change in changes:
        key, equals, value = change.partition("=")
        if not equals:
            raise UsageError(
                f"{change!r} is no setting with a value", hint="reasoning.includeInContext=true"
            )
        key = full_key(key)
        made[key] = _settings.parse(key, value)
    return made


def full_key(key: str) -> str:
    """Return a setting's whole key; a person may leave ``reasoning.`` out."""
    return key if "." in key else f"reasoning.{key}"


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Let what the system refuses say of which file that is."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or name
        raise


def content(file: IO[bytes]) -> bytes:
    """Return what is in a file that was named on the command line."""
    with naming(file.name):
        if file is not getattr(sys.stdin, "buffer", None):
            files.check_ends(os.fstat(file.fileno()), f"{file.name} cannot be read")
        return file.read()


def _tools(file: IO[bytes]) -> list[dict[str, Any]]:
    text = strict.decoded(content(file), file.name)
    try:
        tools = json.loads(text)
    except (ValueError, RecursionError):
        raise UsageError(f"{file.name} is not JSON", hint="a list of tools is wanted") from None
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        raise UsageError(f"{file.name} holds no list of tools")
    return tools


def _folded(
    command: Function,
    name: str,
    make: Callable[..., Any],
    options: Sequence[Callable[[Any], Any]],
    takes: Sequence[str] = (),
) -> Function:
    taken = (*takes, "session_id", "owner") if make is _where else takes

    @functools.wraps(command)
    def folded(*arguments: Any, **values: Any) -> Any:
        made = make(**{key: values.pop(key) for key in taken})
        return command(*arguments, **values, **{name: made})

    for option in options:
        folded = option(folded)
    return folded  # type: ignore[return-value]


def confirm(question: str, yes: bool) -> None:
    """Ask before something that cannot be taken back; nobody to ask is a no."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("this cannot be taken back, and there is nobody to ask", hint="say --yes")
    if not click.confirm(question, err=True):
        raise click.ClickException("nothing was changed")
