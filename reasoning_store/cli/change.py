"""Commands that change a setting: set, unset."""

from __future__ import annotations

import click

from reasoning_store import settings
from reasoning_store.cli.inspect import OWNER
from reasoning_store.cli.opening import existing


# A value may begin with a dash; whether it is allowed is for the setting to say.
@click.command("set", context_settings={"ignore_unknown_options": True})
@click.argument("key")
@click.argument("value")
@click.option("--session", "session_id", required=True, help="The session to set it for.")
@OWNER
@click.pass_context
def set_command(context: click.Context, key: str, value: str, session_id: str, owner: str) -> None:
    """Set KEY to VALUE, e.g. set reasoning.includeInContext true --session chat-42.

    The next request reads it. A value that is not allowed changes nothing.
    """
    parsed = settings.parse(key, value)
    with existing(context) as store:
        store.for_owner(owner).session(session_id).settings.set(key, parsed)


@click.command("unset")
@click.argument("key")
@click.option("--session", "session_id", required=True, help="The session to unset it for.")
@OWNER
@click.pass_context
def unset_command(context: click.Context, key: str, session_id: str, owner: str) -> None:
    """Let the profile, the environment or the default decide about KEY again."""
    with existing(context) as store:
        store.for_owner(owner).session(session_id).settings.unset(key)
