"""The command `erase`: a session, a message, an owner, or only what was thought there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reasoning_store.cli import opening
from reasoning_store.cli.call import Call
from reasoning_store.cli.options import OPTIONAL_SESSION, OWNER, YES, confirm
from reasoning_store.cli.output import answer, plural, warn
from reasoning_store.cli.progress import Progress
from reasoning_store.cli.tree import Command
from reasoning_store.errors import UsageError

if TYPE_CHECKING:
    from reasoning_store.ledger.values import Erased
    from reasoning_store.ledger.verbs.erasing import Only


@click.command("erase", cls=Command, answers="sessions messages thinkingBlocks profiles copies")
@OPTIONAL_SESSION
@OWNER
@click.option("--branch", type=click.IntRange(1), help="The branch that --position is on.")
@click.option("--position", type=click.IntRange(1), help="Only this message.")
@click.option("--only", type=click.Choice(["reasoning"]), help="Only the thinking; the chat stays.")
@click.option("--everything", is_flag=True, help="All sessions and profiles of the owner.")
@YES
@click.pass_obj
def erase(
    call: Call,
    session_id: str | None,
    owner: str,
    branch: int | None,
    position: int | None,
    only: Only,
    everything: bool,
    yes: bool,
) -> None:
    """Erase for good: a session, a message, only thinking.

    The bytes leave the database, its log and its free pages. Files that may still hold them
    are named: copies made before upgrades.
    """
    if everything == (session_id is not None):
        raise UsageError("erase what?", hint="name a session, or say --everything")
    if everything and position is not None:
        raise UsageError("--position is a message of one session", hint="name the session")
    what = "the reasoning of " if only else ""
    if everything:
        call.if_interrupted = "run it again: each session is erased whole or not at all"
    with opening.existing(call) as store:
        mine = store.for_owner(owner)
        if session_id is None:
            confirm(f"Erase {what}everything of the owner {owner!r} for good?", yes)
            with Progress("erasing"):
                erased = mine.erase(only=only)
        else:
            session = opening.find(call, mine, session_id)
            if branch is not None:
                session = session.branch(branch)
            at = "" if position is None else f"message {position} of "
            confirm(f"Erase {what}{at}{session_id!r} for good?", yes)
            with Progress("erasing"):
                erased = session.erase(position, only=only)
    say_erased(call, erased)


def say_erased(call: Call, erased: Erased) -> None:
    """Say what is gone, and where it may still be."""
    answer(
        call,
        {
            "sessions": erased.sessions,
            "messages": erased.messages,
            "thinkingBlocks": erased.thinking_blocks,
            "profiles": erased.profiles,
            "copies": list(erased.copies),
        },
        lambda page: page.line(
            f"erased: {plural(erased.sessions, 'session')},"
            f" {plural(erased.messages, 'message')},"
            f" {plural(erased.thinking_blocks, 'thinking block')}"
            + (f", {plural(erased.profiles, 'settings profile')}" if erased.profiles else "")
        ),
    )
    warn(f"it may still be in {name}" for name in erased.copies)
