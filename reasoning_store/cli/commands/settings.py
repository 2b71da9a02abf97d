"""The group `settings`: those of a session, those of an owner's default, and profiles."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from reasoning_store import InvalidCall
from reasoning_store.cli import store_access
from reasoning_store.cli.command import Call, Group
from reasoning_store.cli.completion import (
    complete_profile,
    complete_setting,
    full_key,
)
from reasoning_store.cli.options import OWNER, gives, parse_settings, split_words
from reasoning_store.cli.output import Page, answer_fields, local_time, print_answer
from reasoning_store.conversation import settings as keys_of_settings

_PROFILE = "name settings updatedAt"
_CHANGED = "settings session profile"


@dataclass(frozen=True, slots=True)
class Layer:
    """The layer that a command line names, and the words after it."""

    owner: str
    session: str | None
    profile: str | None
    words: Sequence[str]


def _layer_of(words: Sequence[str], profile: str | None, default: bool, owner: str) -> Layer:
    if profile is not None and default:
        raise InvalidCall("--profile and --default exclude each other", hint="leave one out")
    if profile is not None or default:
        return Layer(owner, None, profile, words)
    session, words = split_words(words, _is_setting)
    return Layer(owner, session, None, words)


def _is_setting(word: str) -> bool:
    return "=" in word or full_key(word) in keys_of_settings.KEYS or word.startswith("reasoning.")


def _takes_layer(takes: str) -> Callable[[Any], Any]:
    """Give a command ``layer``: [SESSION] and ``takes``, --profile, --default, --owner."""
    return gives(
        "layer",
        _layer_of,
        ("words", "profile", "default", "owner"),
        click.argument(
            "words", nargs=-1, metavar=f"[SESSION] {takes}", shell_complete=complete_setting
        ),
        click.option(
            "--profile",
            metavar="NAME",
            shell_complete=complete_profile,
            help="The profile, in place of a session.",
        ),
        click.option("--default", is_flag=True, help="The owner's default, in place of a session."),
        OWNER,
    )


@click.group("settings", cls=Group, default="get")
def settings() -> None:
    """Print, set and unset settings of a session, an owner or a profile.

    Without a command, print them. A profile keeps settings under a name, for many sessions.
    """


@settings.command(
    "get",
    examples=("settings chat-42", "settings chat-42 effort", "settings --profile terse"),
    answers="* key value layer",
)
@_takes_layer("[KEY]...")
@click.pass_obj
def get(call: Call, layer: Layer) -> None:
    """Print the settings of a session, a profile, or an owner's default.

    Every value with the layer that sets it, or the value of KEY alone.
    """
    keys = list(map(_known_key, layer.words))
    with store_access.open_to_read(call) as store:
        mine = store.for_owner(layer.owner)
        if layer.profile is not None:
            profile = mine.settings.profiles.get(layer.profile)
            rows = [(key, value, "profile") for key, value in profile.settings.items()]
        else:
            of = store_access.find_session(call, mine, layer.session) if layer.session else mine
            rows = [(key, one.value, one.layer) for key, one in of.settings.resolved().items()]
    rows = [row for row in rows if row[0] in keys or not keys]
    print_answer(
        call,
        [dict(zip(("key", "value", "layer"), row, strict=True)) for row in rows],
        lambda page: (
            page.line(json.dumps(rows[0][1]).strip('"'))
            if len(keys) == len(rows) == 1
            else page.table(
                ("setting", "value", "from"),
                [(key, json.dumps(value), layer) for key, value, layer in rows],
            )
        ),
    )


@settings.command(
    "set",
    examples=("settings set chat-42 effort=high", "settings set effort=high --profile terse"),
    answers=_CHANGED,
)
@_takes_layer("KEY=VALUE...")
@click.pass_obj
def set_(call: Call, layer: Layer) -> None:
    """Set KEY to VALUE for a session, a profile or an owner.

    The next request uses it. A value that is not allowed changes nothing. --default sets KEY for
    all sessions of the owner, and a variable for all owners: REASONING_STORE_EFFORT=high.
    """
    _change(call, layer, parse_settings(layer.words))


@settings.command("unset", examples=("settings unset chat-42 effort",), answers=_CHANGED)
@_takes_layer("KEY...")
@click.pass_obj
def unset(call: Call, layer: Layer) -> None:
    """Remove KEY from a session, a profile or the owner's default.

    The next layer then decides: profile, owner, environment, default.
    """
    _change(call, layer, dict.fromkeys(map(_known_key, layer.words)))


def _change(call: Call, layer: Layer, changes: Mapping[str, Any]) -> None:
    """Set the keys that have a value, and unset the others."""
    if not changes:
        raise click.UsageError("no KEY is named", click.get_current_context())
    session = None
    with store_access.open_existing(call) as store:
        mine = store.for_owner(layer.owner)
        if layer.profile is not None:
            values = {key: value for key, value in changes.items() if value is not None}
            if not values:
                mine.settings.profiles.get(layer.profile)
            mine.settings.profiles.change(layer.profile, values, unset={*changes} - {*values})
        else:
            if layer.session is not None:
                session = store_access.find_session(call, mine, layer.session)
            of = mine.settings if session is None else session.settings
            for key, value in changes.items():
                of.unset(key) if value is None else of.set(key, value)
    name = None if session is None else session.id

    def write_page(page: Page) -> None:
        for key, value in changes.items():
            now = "is unset" if value is None else f"= {json.dumps(value)}"
            page.line(f"{name or layer.profile or 'default'}: {key} {now}")

    print_answer(call, {"settings": changes, "session": name, "profile": layer.profile}, write_page)


def _known_key(word: str) -> str:
    """Return the whole key that a word is; refuse one that there is not (ERR-001)."""
    key = full_key(word)
    if key not in keys_of_settings.KEYS:
        keys_of_settings.checked({key: None})
    return key


@settings.command("profiles", examples=("settings profiles",), answers=f"* {_PROFILE}")
@OWNER
@click.pass_obj
def profiles(call: Call, owner: str) -> None:
    """List the profiles, by name."""
    with store_access.open_to_read(call) as store:
        found = store.for_owner(owner).settings.profiles.all()
    print_answer(
        call,
        [answer_fields(one, _PROFILE) for one in found],
        lambda page: page.table(
            ("profile", "changed", "settings"),
            [(one.name, local_time(one.updated_at), str(len(one.settings))) for one in found],
            right=("settings",),
        ),
    )


@settings.command(
    "use", examples=("settings use chat-42 terse", "settings use --none"), answers="session profile"
)
@click.argument("words", nargs=-1, metavar="[SESSION] [NAME]", shell_complete=complete_setting)
@click.option("--none", is_flag=True, help="Let the session use no profile.")
@OWNER
@click.pass_obj
def use(call: Call, words: Sequence[str], none: bool, owner: str) -> None:
    """Let a session use the profile NAME for the settings that it does not set itself."""
    *named, name = (*words, *([None] if none else [])) or [None]
    if len(named) > 1 or (name is None) is not none:
        raise click.UsageError("pass [SESSION] NAME, or [SESSION] --none")
    with store_access.open_existing(call) as store:
        mine = store.for_owner(owner)
        session = store_access.find_session(call, mine, *named or [store_access.LATEST])
        if name is not None:
            mine.settings.profiles.get(name)
        session.settings.use(name)
    print_answer(call, {"session": session.id, "profile": name})


@settings.command("drop", examples=("settings drop terse",), answers="profile")
@click.argument("name", shell_complete=complete_profile)
@OWNER
@click.pass_obj
def drop(call: Call, name: str, owner: str) -> None:
    """Delete a profile; sessions that use it lose its settings."""
    with store_access.open_existing(call) as store:
        mine = store.for_owner(owner)
        mine.settings.profiles.get(name)  # its error has the names that may be meant
        mine.settings.profiles.drop(name)
    print_answer(call, {"profile": name})
