"""The commands `set`, `get` and `unset`: a setting of a session, a profile or an owner."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from reasoning_store.cli import store_access
from reasoning_store.cli.command import Call, Command
from reasoning_store.cli.completion import complete_profile, full_key
from reasoning_store.cli.options import (
    OWNER,
    SESSION_OPTION,
    split_session,
    words_after_session,
)
from reasoning_store.cli.output import print_answer
from reasoning_store.conversation.errors import InvalidCall, NotFound

if TYPE_CHECKING:
    from reasoning_store.owner import Owner
    from reasoning_store.sessions.session import Session


def _takes_layer(command: Callable[..., Any]) -> Callable[..., Any]:
    """Let a command take a session, a profile or the owner's default, and whose they are."""
    profile = click.option(
        "--profile",
        metavar="NAME",
        shell_complete=complete_profile,
        help="The profile, in place of a session.",
    )
    return SESSION_OPTION(profile(_DEFAULT(OWNER(command))))


_DEFAULT = click.option(
    "--default", is_flag=True, help="The owner's default, in place of a session."
)


# A value may begin with a dash; whether it is allowed is for the setting to say.
@click.command(
    "set",
    cls=Command,
    examples=("set chat-42 includeInContext true", "set effort high --profile terse"),
    answers="key value session profile",
    context_settings={"ignore_unknown_options": True},
)
@words_after_session("KEY VALUE")
@_takes_layer
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
    from reasoning_store.conversation import settings

    session_id, (key, value) = split_session(
        words, "KEY VALUE", session=session_id, profile=profile, default=default
    )
    key = _checked_key(key, words)
    parsed = settings.parse(key, value)  # ERR-001: refused whole, before anything is opened
    with store_access.open_existing(call) as store:
        mine = store.for_owner(owner)
        if session_id is not None:
            session = store_access.find_session(call, mine, session_id)
            session.settings.set(key, parsed)
            session_id = session.id
        elif default:
            mine.settings.set(key, parsed)
        else:
            mine.settings.profiles.change(profile or "", {key: parsed})
    print_answer(call, {"key": key, "value": parsed, **_of(session_id, profile)})


@click.command(
    "unset", cls=Command, examples=("unset chat-42 effort",), answers="key session profile"
)
@words_after_session("KEY")
@_takes_layer
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
    session_id, (key,) = split_session(
        words, "KEY", session=session_id, profile=profile, default=default
    )
    key = _checked_key(key, words)
    with store_access.open_existing(call) as store:
        mine = store.for_owner(owner)
        if session_id is not None:
            session = store_access.find_session(call, mine, session_id)
            session.settings.unset(key)
            session_id = session.id
        elif default:
            mine.settings.unset(key)
        else:
            mine.settings.profiles.get(profile or "")
            mine.settings.profiles.change(profile or "", {}, unset={key})
    print_answer(call, {"key": key, **_of(session_id, profile)})


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
    session_id, behind = split_session(words, "[KEY]", session=session_id, default=default)
    key = _checked_key(behind[0], words) if behind else None
    with store_access.open_to_read(call) as store:
        mine = store.for_owner(owner)
        if session_id is None:
            found = mine.settings.resolved()
        else:
            found = _session_of(call, mine, session_id, key).settings.resolved()
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


def _session_of(call: Call, mine: Owner, session_id: str, key: str | None) -> Session:
    try:
        return store_access.find_session(call, mine, session_id)
    except NotFound:
        if key is None:
            _check_place(session_id)
        raise


def _checked_key(word: str, words: Sequence[str]) -> str:
    """Return the whole key that a word is; refuse one that there is not (ERR-001)."""
    from reasoning_store.conversation import settings

    key = full_key(word)
    if key not in settings.KEYS:
        _check_place(words[0])
        settings.checked({key: None})
    return key


def _check_place(word: str) -> None:
    """Refuse a setting in the place of SESSION."""
    from reasoning_store.conversation import settings

    if full_key(word) in settings.KEYS:
        raise InvalidCall(
            f"SESSION comes first, and {word} is a setting",
            hint=f"{click.get_current_context().command_path} --help",
        )


def _of(session_id: str | None, profile: str | None) -> dict[str, str | None]:
    return {"session": session_id, "profile": profile}
