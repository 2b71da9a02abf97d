"""The group `profile`: settings under a name, for the sessions that use it."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from reasoning_store.cli import store_access
from reasoning_store.cli.command import Call, Group
from reasoning_store.cli.commands.settings import SESSION_OPTION, split_words, words_after_session
from reasoning_store.cli.completion import complete_profile
from reasoning_store.cli.options import OWNER
from reasoning_store.cli.output import answer_fields, local_time, print_answer

_PROFILE = "name settings updatedAt"


@click.group("profile", cls=Group)
def profile() -> None:
    """Keep settings under a name, for many sessions.

    `set KEY VALUE --profile NAME` makes or changes a profile.
    """


@profile.command("list", examples=("profile list",), answers=f"* {_PROFILE}")
@OWNER
@click.pass_obj
def list_(call: Call, owner: str) -> None:
    """List the profiles, by name."""
    with store_access.open_to_read(call) as store:
        profiles = store.for_owner(owner).settings.profiles.all()
    print_answer(
        call,
        [answer_fields(one, _PROFILE) for one in profiles],
        lambda page: page.table(
            ("profile", "changed", "settings"),
            [(one.name, local_time(one.updated_at), str(len(one.settings))) for one in profiles],
            right=("settings",),
        ),
    )


@profile.command("show", examples=("profile show terse",), answers=_PROFILE)
@click.argument("name", shell_complete=complete_profile)
@OWNER
@click.pass_obj
def show(call: Call, name: str, owner: str) -> None:
    """Print what a profile sets."""
    with store_access.open_to_read(call) as store:
        found = store.for_owner(owner).settings.profiles.get(name)
    print_answer(
        call,
        answer_fields(found, _PROFILE),
        lambda page: page.table(
            ("setting", "value"),
            [(key, json.dumps(value)) for key, value in found.settings.items()],
        ),
    )


@profile.command("use", examples=("profile use chat-42 terse",), answers="session profile")
@words_after_session("[NAME]")
@SESSION_OPTION
@click.option("--none", is_flag=True, help="Let the session use no profile.")
@OWNER
@click.pass_obj
def use(call: Call, words: Sequence[str], session_id: str | None, none: bool, owner: str) -> None:
    """Let a session use the profile NAME for the settings that it does not set itself."""
    named, names = split_words(words, "[NAME]", session=session_id)
    if bool(names) == none:
        raise click.UsageError("pass SESSION NAME, or SESSION --none")
    name = names[0] if names else None
    with store_access.open_existing(call) as store:
        mine = store.for_owner(owner)
        session = store_access.find_session(call, mine, named or "")
        if name is not None:
            mine.settings.profiles.get(name)
        session.settings.use(name)
    print_answer(call, {"session": session.id, "profile": name})


@profile.command("delete", examples=("profile delete terse",), answers="profile")
@click.argument("name", shell_complete=complete_profile)
@OWNER
@click.pass_obj
def delete(call: Call, name: str, owner: str) -> None:
    """Delete a profile; sessions that use it lose its settings."""
    with store_access.open_existing(call) as store:
        mine = store.for_owner(owner)
        mine.settings.profiles.get(name)  # its error has the names that may be meant
        mine.settings.profiles.drop(name)
    print_answer(call, {"profile": name})
