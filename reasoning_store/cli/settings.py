"""The commands `set`, `get` and `unset`: a setting of a session or of a profile."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click

from reasoning_store.cli import opening
from reasoning_store.cli.call import Call
from reasoning_store.cli.options import OWNER, full_key
from reasoning_store.cli.output import Page, answer
from reasoning_store.cli.profile import found_profile
from reasoning_store.cli.tree import Leaf
from reasoning_store.errors import UsageError


def _layer(command: Callable[..., Any]) -> Callable[..., Any]:
    """Let a command take a session or a profile, and whose they are."""
    profile = click.option("--profile", metavar="NAME", help="The profile it is for.")
    session = click.option("--session", "session_id", metavar="ID", help="The session it is for.")
    return session(profile(OWNER(command)))


def _one_of(session_id: str | None, profile: str | None) -> None:
    if (session_id is None) == (profile is None):
        raise UsageError("a setting is a session's or a profile's", hint="--session ID")


# A value may begin with a dash; whether it is allowed is for the setting to say.
@click.command(
    "set",
    cls=Leaf,
    answers="key value session profile",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("key")
@click.argument("value")
@_layer
@click.pass_obj
def set_(
    call: Call, key: str, value: str, session_id: str | None, profile: str | None, owner: str
) -> None:
    """Set KEY to VALUE for a session or a profile.

    For example: set reasoning.includeInContext true --session chat-42.

    The next request reads it. A value that is not allowed changes nothing.
    """
    from reasoning_store import settings

    key = full_key(key)
    parsed = settings.parse(key, value)  # ERR-001: refused whole, before anything is opened
    _one_of(session_id, profile)
    with opening.existing(call) as store:
        mine = store.for_owner(owner)
        if session_id is not None:
            opening.find(call, mine, session_id).settings.set(key, parsed)
        else:
            mine.settings.profiles.change(profile or "", {key: parsed})
    answer(call, {"key": key, "value": parsed, **_of(session_id, profile)}, _silent)


@click.command("unset", cls=Leaf, answers="key session profile")
@click.argument("key")
@_layer
@click.pass_obj
def unset(call: Call, key: str, session_id: str | None, profile: str | None, owner: str) -> None:
    """Let weaker layers decide about KEY again.

    The profile, the environment, the default.
    """
    key = full_key(key)
    _one_of(session_id, profile)
    _check(key)
    with opening.existing(call) as store:
        mine = store.for_owner(owner)
        if session_id is not None:
            opening.find(call, mine, session_id).settings.unset(key)
        else:
            found_profile(call, mine, profile or "")
            mine.settings.profiles.change(profile or "", {}, unset={key})
    answer(call, {"key": key, **_of(session_id, profile)}, _silent)


@click.command("get", cls=Leaf, answers="key value layer")
@click.argument("key", required=False)
@click.option("--session", "session_id", metavar="ID", required=True, help="The session.")
@OWNER
@click.pass_obj
def get(call: Call, key: str | None, session_id: str, owner: str) -> None:
    """Print what settings hold for a session now.

    KEY's value, or every one and the layer it comes from.
    """
    if key is not None:
        key = full_key(key)
        _check(key)
    with opening.existing(call) as store:
        session = opening.find(call, store.for_owner(owner), session_id)
        found = session.settings.resolved()
    data = {name: {"value": item.value, "layer": item.layer} for name, item in found.items()}
    if key is not None:
        value = json.dumps(found[key].value).strip('"')
        answer(call, {"key": key, **data[key]}, lambda page: page.line(value))
    else:
        answer(
            call,
            data,
            lambda page: page.table(
                ("setting", "value", "from"),
                [(name, json.dumps(item.value), item.layer) for name, item in found.items()],
            ),
        )


def _check(key: str) -> None:
    """Refuse a key that there is not, with the nearest one (ERR-001)."""
    from reasoning_store import settings

    if key not in settings.KEYS:
        settings.checked({key: None})


def _of(session_id: str | None, profile: str | None) -> dict[str, str | None]:
    return {"session": session_id, "profile": profile}


def _silent(page: Page) -> None:
    """A change that went well has nothing to say."""
