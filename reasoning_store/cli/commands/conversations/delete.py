"""The command `delete`: a session, or an owner's sessions, all or by age."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from reasoning_store.cli import store_access
from reasoning_store.cli.command import Call, Command
from reasoning_store.cli.options import (
    BEFORE,
    EVERYTHING,
    OPTIONAL_SESSION,
    OWNER,
    YES,
    check_whose,
    confirm,
    sessions_before,
)
from reasoning_store.cli.output import answer_fields, local_time, plural, print_answer
from reasoning_store.cli.progress import Progress

if TYPE_CHECKING:
    from reasoning_store.ledger.records import Deleted, Erased

ANSWERS = "sessions messages thinkingBlocks profiles"


@click.command("delete", cls=Command, examples=("delete chat-42 --yes",), answers=ANSWERS)
@OPTIONAL_SESSION
@OWNER
@BEFORE
@EVERYTHING
@YES
@click.pass_obj
def delete(
    call: Call,
    session_id: str | None,
    owner: str,
    before: datetime | None,
    everything: bool,
    yes: bool,
) -> None:
    """Delete a session, or an owner's sessions, at once.

    `erase` takes longer: it also makes sure that the bytes have left the database.
    """
    check_whose(session_id, everything=everything, before=before)
    with store_access.open_existing(call) as store:
        mine = store.for_owner(owner)
        if session_id is None:
            call.if_interrupted = "run it again: each session is deleted as a whole or not at all"
            confirm(f"Delete {sessions_before(before)} of the owner {owner!r}?", yes)
            with Progress("deleting"):
                deleted = mine.delete(before=before)
        else:
            session = store_access.find_session(call, mine, session_id, whole=True)
            count = sum(branch.head - branch.first + 1 for branch in session.branches())
            last = local_time(session.updated_at)
            confirm(f"Delete {session_id!r} with its {plural(count, 'message')}, last {last}?", yes)
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
