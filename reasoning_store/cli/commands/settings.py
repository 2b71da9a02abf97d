"""The commands `set`, `get` and `unset`: a setting of a session, a profile or an owner."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click
from click.shell_completion import CompletionItem

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
from reasoning_store.conversation.errors import InvalidCall

_PROFILE = click.option(
    "--profile",
    metavar="NAME",
    shell_complete=complete_profile,
    help="The profile, in place of a session.",
)
_DEFAULT = click.option(
    "--default", is_flag=True, help="The owner's default, in place of a session."
)


def _words_after_session(takes: str) -> Callable[[Any], Any]:
    """Give a command ``words``: SESSION, unless an option names another layer, and ``takes``."""

    def complete(
        context: click.Context, parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Offer a shell the words for this position."""
        has_layer = any(map(context.params.get, ("profile", "default")))
        places = [*([] if has_layer else ["SESSION"]), *takes.strip("[]").split()]
        before: Sequence[str] = context.params.get("words") or ()
        match places[len(before) : len(before) + 1]:
            case ["SESSION"]:
                return complete_session(context, parameter, incomplete)
            case ["KEY"]:
                return complete_key(incomplete)
            case ["VALUE"]:
                return complete_value(before[-1], incomplete)
        return []

    return click.argument("words", nargs=-1, metavar=f"[SESSION] {takes}", shell_complete=complete)


def _split_words(
    words: Sequence[str], takes: str, *, profile: str | None = None, default: bool
) -> tuple[str | None, Sequence[str]]:
    """Return the session, unless another layer is named, and the words after it."""
    if profile is not None and default:
        raise InvalidCall(
            "--profile and --default exclude each other", hint="leave one of them out"
        )
    layer = "--profile" if profile is not None else "--default" if default else None
    names = [*([] if layer else ["SESSION"]), *takes.split()]
    least = sum(not name.startswith("[") for name in names)
    if not least <= len(words) <= len(names):
        raise click.UsageError(
            f"{f'with {layer}, ' if layer else ''}{' '.join(names)} is wanted,"
            f" not {shlex.join(words) or 'nothing'}",
            click.get_current_context(),
        )
    return (None, words) if layer else (words[0], words[1:])


# A value may begin with a dash; whether it is allowed is for the setting to say.
@click.command(
    "set",
    cls=Command,
    examples=("set chat-42 includeInContext true", "set effort high --profile terse"),
    answers="key value session profile",
    context_settings={"ignore_unknown_options": True},
)
@_words_after_session("KEY VALUE")
@_PROFILE
@_DEFAULT
@OWNER
@click.pass_obj
def set_(call: Call, words: Sequence[str], profile: str | None, default: bool, owner: str) -> None:
    """Set KEY to VALUE for a session, a profile or an owner.

    The next request uses it. A value that is not allowed changes nothing. --default sets KEY for
    all sessions of the owner, and a variable for all owners: REASONING_STORE_EFFORT=high.
    """
    session_id, (key, value) = _split_words(words, "KEY VALUE", profile=profile, default=default)
    key = full_key(key)
    parsed = settings.parse(key, value)  # ERR-001: refused whole, before anything is opened
    session_id = _change_layer(call, owner, session_id, profile, key, {key: parsed})
    print_answer(call, {"key": key, "value": parsed, "session": session_id, "profile": profile})


@click.command(
    "unset", cls=Command, examples=("unset chat-42 effort",), answers="key session profile"
)
@_words_after_session("KEY")
@_PROFILE
@_DEFAULT
@OWNER
@click.pass_obj
def unset(call: Call, words: Sequence[str], profile: str | None, default: bool, owner: str) -> None:
    """Remove KEY from a session, a profile or the owner's default.

    The next layer then decides: profile, owner, environment, default.
    """
    session_id, (key,) = _split_words(words, "KEY", profile=profile, default=default)
    key = _known_key(key)
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
@_words_after_session("[KEY]")
@_DEFAULT
@OWNER
@click.pass_obj
def get(call: Call, words: Sequence[str], default: bool, owner: str) -> None:
    """Print the settings of a session, or an owner's default.

    The value of KEY, or every value with the layer that sets it.
    """
    session_id, keys = _split_words(words, "[KEY]", default=default)
    key = _known_key(keys[0]) if keys else None
    with store_access.open_to_read(call) as store:
        mine = store.for_owner(owner)
        if session_id is None:
            found = mine.settings.resolved()
        else:
            found = store_access.find_session(call, mine, session_id).settings.resolved()
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


def _known_key(word: str) -> str:
    """Return the whole key that a word is; refuse one that there is not (ERR-001)."""
    key = full_key(word)
    if key not in settings.KEYS:
        settings.checked({key: None})
    return key
