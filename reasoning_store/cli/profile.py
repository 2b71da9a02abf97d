"""The group `profile`: settings under a name, for the sessions that use it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from reasoning_store.cli import opening
from reasoning_store.cli.call import Call
from reasoning_store.cli.options import (
    OWNER,
    SESSION_OPTION,
    session_first,
    words_behind_session,
)
from reasoning_store.cli.output import answer, silent, stamp, when
from reasoning_store.cli.tree import Group

if TYPE_CHECKING:
    from reasoning_store.layers import Profile


@click.group("profile", cls=Group)
def profile() -> None:
    """Settings under a name. `set KEY VALUE --profile NAME` makes or changes one."""


@profile.command("list", answers="* name settings updatedAt")
@OWNER
@click.pass_obj
def list_(call: Call, owner: str) -> None:
    """List the profiles, by name."""
    with opening.existing(call) as store:
        profiles = store.for_owner(owner).settings.profiles.all()
    answer(
        call,
        [_data(one) for one in profiles],
        lambda page: (
            page.table(
                ("profile", "changed", "settings"),
                [(one.name, when(one.updated_at), str(len(one.settings))) for one in profiles],
                right=("settings",),
            )
            if profiles
            else None
        ),
    )


@profile.command("show", answers="name settings updatedAt")
@click.argument("name")
@OWNER
@click.pass_obj
def show(call: Call, name: str, owner: str) -> None:
    """Print what a profile sets."""
    with opening.existing(call) as store:
        found = store.for_owner(owner).settings.profiles.get(name)
    answer(
        call,
        _data(found),
        lambda page: page.table(
            ("setting", "value"),
            [(key, json.dumps(value)) for key, value in found.settings.items()],
        ),
    )


@profile.command("use", answers="session profile")
@words_behind_session("[NAME]")
@SESSION_OPTION
@click.option("--none", is_flag=True, help="Let the session use no profile any more.")
@OWNER
@click.pass_obj
def use(call: Call, words: Sequence[str], session_id: str | None, none: bool, owner: str) -> None:
    """Let a session take what it does not set itself from the profile NAME."""
    session_id, behind = session_first(words, "[NAME]", session=session_id)
    assert session_id is not None
    name = behind[0] if behind else None
    if (name is None) != none:
        raise click.UsageError("SESSION NAME is wanted, or SESSION and --none")
    with opening.existing(call) as store:
        mine = store.for_owner(owner)
        session = opening.find(call, mine, session_id)
        if name is not None:
            mine.settings.profiles.get(name)
        session.settings.use(name)
    answer(call, {"session": session_id, "profile": name}, silent)


@profile.command("delete", answers="profile")
@click.argument("name")
@OWNER
@click.pass_obj
def delete(call: Call, name: str, owner: str) -> None:
    """Remove a profile. Sessions that use it take nothing from it any more."""
    with opening.existing(call) as store:
        mine = store.for_owner(owner)
        mine.settings.profiles.get(name)  # which tells the name that may be meant
        mine.settings.profiles.drop(name)
    answer(call, {"profile": name}, silent)


def _data(found: Profile) -> dict[str, Any]:
    return {"name": found.name, "settings": found.settings, "updatedAt": stamp(found.updated_at)}
