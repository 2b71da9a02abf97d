"""The group `profile`: settings under a name, for the sessions that use it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from reasoning_store.cli import advice, opening
from reasoning_store.cli.call import Call
from reasoning_store.cli.options import (
    OWNER,
    SESSION_OPTION,
    session_first,
    words_behind_session,
)
from reasoning_store.cli.output import Page, answer, stamp, when
from reasoning_store.cli.tree import Branch
from reasoning_store.errors import NotFound

if TYPE_CHECKING:
    from reasoning_store.layers import Profile
    from reasoning_store.store import Owner


def found_profile(call: Call, owner: Owner, name: str) -> Profile:
    """Return a profile; where there is none of this name, tell the nearest one."""
    try:
        return owner.settings.profiles.get(name)
    except NotFound as error:
        near = error.hint if error.hint and error.hint.startswith("did you mean") else None
        raise NotFound(
            f"there is no settings profile {name!r}",
            hint=near or f"{advice.line(call, 'profile', 'list', of_owner=True)} names them",
        ) from None


@click.group("profile", cls=Branch)
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
        found = found_profile(call, store.for_owner(owner), name)
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
            found_profile(call, mine, name)
        session.settings.use(name)
    answer(call, {"session": session_id, "profile": name}, _silent)


@profile.command("delete", answers="profile")
@click.argument("name")
@OWNER
@click.pass_obj
def delete(call: Call, name: str, owner: str) -> None:
    """Remove a profile. Sessions that use it take nothing from it any more."""
    with opening.existing(call) as store:
        mine = store.for_owner(owner)
        found_profile(call, mine, name)
        mine.settings.profiles.drop(name)
    answer(call, {"profile": name}, _silent)


def _data(found: Profile) -> dict[str, Any]:
    return {"name": found.name, "settings": found.settings, "updatedAt": stamp(found.updated_at)}


def _silent(page: Page) -> None:
    """A change that went well has nothing to say."""
