"""The command `erase`: a session, a message, an owner's all, or only the thinking."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from reasoning_store import InvalidCall, NotFound
from reasoning_store.cli import store_access
from reasoning_store.cli.command import Call, Command
from reasoning_store.cli.options import POSITION, YES, Whose, confirm, takes_sessions
from reasoning_store.cli.output import REMOVED, print_removed, print_warnings
from reasoning_store.cli.progress import Progress

_ANSWERS = f"{REMOVED} copies"


@click.command(
    "erase",
    cls=Command,
    examples=("erase chat-42 --position 3 --yes", "erase chat-42 --only reasoning --yes"),
    answers=_ANSWERS,
)
@takes_sessions
@click.option("--branch", type=click.IntRange(1), help="The branch that --position is on.")
@click.option("--position", type=POSITION, metavar="POSITION|ID", help="Only this message.")
@click.option(
    "--only",
    type=click.Choice(["reasoning", "messages"]),
    help="Only the thinking, or only the messages: title and settings stay.",
)
@YES
@click.pass_obj
def erase(
    call: Call,
    whose: Whose,
    branch: int | None,
    position: int | str | None,
    only: Any,
    yes: bool,
) -> None:
    """Erase a session, a message or only thinking, for good.

    With `--only reasoning`, `--before` takes the thoughts that are older, of all sessions of the
    owner, also of those in use.

    The bytes leave the database, its log and its free pages. Files that may still hold them are
    printed: copies made before upgrades, and the database if it could not be rewritten now. If it
    names the database, run `erase` again or `db doctor`: both finish the erasure.
    """
    if whose.session_id is None and position is not None:
        raise InvalidCall("--position needs a session", hint="name the session")
    what = f"the {only} of " if only else ""
    if whose.session_id is None:
        call.if_interrupted = "run it again: each session is erased as a whole or not at all"
    with store_access.open_existing(call) as store:
        mine = store.for_owner(whose.owner)
        if whose.session_id is None:
            target = f"{what}{whose}"
            if only == "reasoning" and whose.before is not None:
                target = f"the reasoning before {whose.before} of the owner {whose.owner!r}"
            confirm(f"Erase {target} for good?", yes)
            with Progress("erasing"):
                erased = mine.erase(only=only, before=whose.before)
        else:
            try:
                session = store_access.find_session(call, mine, whose.session_id, whole=True)
            except NotFound:
                _warn(store.scrub())  # it may have been erased, and its bytes not be gone
                raise
            if branch is not None:
                session = session.branch(branch)
            at = "" if position is None else f"message {position} of "
            confirm(f"Erase {what}{at}{session.id!r} for good?", yes)
            with Progress("erasing"):
                erased = session.erase(position, only=only)
    print_removed(call, "erased", erased, _ANSWERS)
    _warn(erased.copies)


def _warn(files: Iterable[str]) -> None:
    print_warnings(f"erased data may still be in {name}" for name in files)
