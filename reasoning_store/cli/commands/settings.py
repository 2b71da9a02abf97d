"""The commands `set`, `get` and `unset`: a setting of a session, a profile or an owner."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from reasoning_store import InvalidCall, NotFound
from reasoning_store.cli import store_access
from reasoning_store.cli.command import Call, Command
from reasoning_store.cli.completion import (
    complete_key,
    complete_profile,
    complete_session,
    complete_value,
    full_key,
)
from reasoning_store.cli.options import OWNER
from reasoning_store.cli.output import print_answer
from reasoning_store.conversation import settings

if TYPE_CHECKING:
    from reasoning_store import Session
    from reasoning_store.results import Owner

SESSION_OPTION = click.option(
    "--session",
    "session_id",
    metavar="ID",
    shell_complete=complete_session,
    help="The session, if it is not the first word.",
)
_PROFILE = click.option(
    "--profile",
    metavar="NAME",
    shell_complete=complete_profile,
    help="The profile, in place of a session.",
)
_DEFAULT = click.option(
    "--default", is_flag=True, help="The owner's default, in place of a session."
)


def words_after_session(takes: str) -> Callable[[Any], Any]:
    """Give a command ``words``: SESSION, unless an option names it or a layer, and ``takes``."""

    def complete(
        context: click.Context, parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Offer a shell the words for this position."""
        is_named = any(map(context.params.get, ("session_id", "profile", "default")))
        places = [*([] if is_named else ["SESSION"]), *takes.strip("[]").split()]
        before: Sequence[str] = context.params.get("words") or ()
        match places[len(before) : len(before) + 1]:
            case ["SESSION"]:
                return complete_session(context, parameter, incomplete)
            case ["KEY"]:
                return complete_key(incomplete)
            case ["VALUE"]:
                return complete_value(before[-1], incomplete)
            case ["NAME"]:
                return complete_profile(context, parameter, incomplete)
        return []

    return click.argument("words", nargs=-1, metavar=f"[SESSION] {takes}", shell_complete=complete)


def split_words(
    words: Sequence[str],
    takes: str,
    *,
    session: str | None,
    profile: str | None = None,
    default: bool = False,
) -> tuple[str | None, Sequence[str]]:
    """Return the session, unless another layer is named, and the words after it."""
    options = {"--session": session is not None, "--profile": profile is not None}
    given = [name for name, is_given in {**options, "--default": default}.items() if is_given]
    if len(given) > 1:
        raise InvalidCall(f"{' and '.join(given)} exclude each other", hint="leave one of them out")
    layer = given[0] if given else None
    names = [*([] if layer else ["SESSION"]), *takes.split()]
    least = sum(not name.startswith("[") for name in names)
    if not least <= len(words) <= len(names):
        raise click.UsageError(
            f"{f'with {layer}, ' if layer else ''}{' '.join(names)} is wanted,"
            f" not {shlex.join(words) or 'nothing'}",
            click.get_current_context(),
        )
    return (session, words) if layer else (words[0], words[1:])


# A value may begin with a dash; whether it is allowed is for the setting to say.
@click.command(
    "set",
    cls=Command,
    examples=("set chat-42 includeInContext true", "set effort high --profile terse"),
    answers="key value session profile",
    context_settings={"ignore_unknown_options": True},
)
@words_after_session("KEY VALUE")
@SESSION_OPTION
@_PROFILE
@_DEFAULT
@OWNER
@click.pass_obj
def set_(
    call: Call,
    words: Sequence[str],
    session_id: str | None,
    profile: str | None,
    default: bool,
    owner: str,
) -> None:
    """Set KEY to VALUE for a session, a profile or an owner.

    The next request uses it. A value that is not allowed changes nothing. --default sets KEY for
    all sessions of the owner, and a variable for all owners: REASONING_STORE_EFFORT=high.
    """
    session_id, (key, value) = split_words(
        words, "KEY VALUE", session=session_id, profile=profile, default=default
    )
    key = _known_key(key, words)
    parsed = settings.parse(key, value)  # ERR-001: refused whole, before anything is opened
    session_id = _change_layer(call, owner, session_id, profile, key, {key: parsed})
    print_answer(call, {"key": key, "value": parsed, "session": session_id, "profile": profile})


@click.command(
    "unset", cls=Command, examples=("unset chat-42 effort",), answers="key session profile"
)
@words_after_session("KEY")
@SESSION_OPTION
@_PROFILE
@_DEFAULT
@OWNER
@click.pass_obj
def unset(
    call: Call,
    words: Sequence[str],
    session_id: str | None,
    profile: str | None,
    default: bool,
    owner: str,
) -> None:
    """Remove KEY from a session, a profile or the owner's default.

    The next layer then decides: profile, owner, environment, default.
    """
    session_id, (key,) = split_words(
        words, "KEY", session=session_id, profile=profile, default=default
    )
    key = _known_key(key, words)
    session_id = _change_layer(call, owner, session_id, profile, key, {})
    print_answer(call, {"key": key, "session": session_id, "profile": profile})


def _change_layer(
    call: Call,
    owner: str,
    session_id: str | None,
    profile: str | None,
    key: str,
    value: Mapping[str, Any],
) -> str | None:
    """Set or unset a key of a session, a profile or the owner's default; return the session."""
    with store_access.open_existing(call) as store:
        mine = store.for_owner(owner)
        if profile is not None:
            if not value:
                mine.settings.profiles.get(profile)
            mine.settings.profiles.change(profile, value, unset=() if value else {key})
            return None
        session = None if session_id is None else store_access.find_session(call, mine, session_id)
        layer = mine.settings if session is None else session.settings
        if value:
            layer.set(key, value[key])
        else:
            layer.unset(key)
    return None if session is None else session.id


@click.command(
    "get", cls=Command, examples=("get chat-42", "get chat-42 effort"), answers="key value layer"
)
@words_after_session("[KEY]")
@SESSION_OPTION
@_DEFAULT
@OWNER
@click.pass_obj
def get(
    call: Call, words: Sequence[str], session_id: str | None, default: bool, owner: str
) -> None:
    """Print the settings of a session, or an owner's default.

    The value of KEY, or every value with the layer that sets it.
    """
    session_id, keys = split_words(words, "[KEY]", session=session_id, default=default)
    key = _known_key(keys[0], words) if keys else None
    with store_access.open_to_read(call) as store:
        mine = store.for_owner(owner)
        if session_id is None:
            found = mine.settings.resolved()
        else:
            found = _find_session(call, mine, session_id, is_first=not keys).settings.resolved()
    if key is not None:
        value = json.dumps(found[key].value).strip('"')
        print_answer(call, {"key": key, **asdict(found[key])}, lambda page: page.line(value))
    else:
        print_answer(
            call,
            {name: asdict(item) for name, item in found.items()},
            lambda page: page.table(
                ("setting", "value", "from"),
                [(name, json.dumps(item.value), item.layer) for name, item in found.items()],
            ),
        )


def _known_key(word: str, words: Sequence[str]) -> str:
    """Return the whole key that a word is; refuse one that there is not (ERR-001)."""
    key = full_key(word)
    if key not in settings.KEYS:
        _check_first_word(words[0])
        settings.checked({key: None})
    return key


def _find_session(call: Call, mine: Owner, session_id: str, *, is_first: bool) -> Session:
    """Return the session; refuse a setting in its place by what comes first."""
    try:
        return store_access.find_session(call, mine, session_id)
    except NotFound:
        if is_first:
            _check_first_word(session_id)
        raise


def _check_first_word(word: str) -> None:
    """Refuse a setting in the place of SESSION."""
    if full_key(word) in settings.KEYS:
        raise InvalidCall(
            f"SESSION comes first, and {word} is a setting",
            hint=f"{click.get_current_context().command_path} --help",
        )
