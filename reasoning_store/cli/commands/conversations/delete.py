"""The command `delete`: a session, or an owner's sessions, all or by age."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reasoning_store.cli import store_access
from reasoning_store.cli.command import Call, Command
from reasoning_store.cli.options import YES, Whose, confirm, takes_sessions
from reasoning_store.cli.output import answer_fields, local_time, plural, print_answer
from reasoning_store.cli.progress import Progress

if TYPE_CHECKING:
    from reasoning_store.results import Deleted, Erased

ANSWERS = "sessions messages thinkingBlocks profiles"


@click.command("delete", cls=Command, examples=("delete chat-42 --yes",), answers=ANSWERS)
@takes_sessions
@YES
@click.pass_obj
def delete(call: Call, whose: Whose, yes: bool) -> None:
    """Delete a session, or an owner's sessions, at once.

    `erase` takes longer: it also makes sure that the bytes have left the database.
    """
    delete_sessions(call, whose, yes=yes)


def delete_sessions(call: Call, whose: Whose, *, yes: bool) -> None:
    """Delete the sessions that a command line names, after a question."""
    with store_access.open_existing(call) as store:
        mine = store.for_owner(whose.owner)
        if whose.session_id is None:
            call.if_interrupted = "run it again: each session is deleted as a whole or not at all"
            confirm(f"Delete {whose}?", yes)
            with Progress("deleting"):
                deleted = mine.delete(before=whose.before)
        else:
            session = store_access.find_session(call, mine, whose.session_id, whole=True)
            count = sum(branch.head - branch.first + 1 for branch in session.branches())
            last = local_time(session.updated_at)
            confirm(f"Delete {session.id!r} with its {plural(count, 'message')}, last {last}?", yes)
            deleted = session.delete()
    print_answer(
        call,
        answer_fields(deleted, ANSWERS),
        lambda page: page.line(f"deleted: {count_removed(deleted)}"),
    )


def count_removed(removed: Deleted | Erased) -> str:
    """Return the numbers of what was deleted or erased, as words."""
    counts = [
        plural(removed.sessions, "session"),
        plural(removed.messages, "message"),
        plural(removed.thinking_blocks, "thinking block"),
    ]
    if removed.profiles:
        counts.append(plural(removed.profiles, "settings profile"))
    return ", ".join(counts)
