"""The group `sessions`: list, show, rename, tag, archive, delete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

import click

from reasoning_store.cli import hints, store_access
from reasoning_store.cli.command import Call, Group
from reasoning_store.cli.commands.conversations.branches import branch_data, branch_table
from reasoning_store.cli.completion import complete_session
from reasoning_store.cli.options import (
    BEFORE,
    DATE,
    OWNER,
    YES,
    Whose,
    confirm,
    fact_table,
    parse_fact,
    split_words,
    takes_branch,
    takes_page,
    takes_session,
    takes_sessions,
)
from reasoning_store.cli.output import (
    REMOVED,
    Page,
    answer_fields,
    local_time,
    plural,
    print_answer,
    print_list,
    print_removed,
)
from reasoning_store.cli.progress import Progress
from reasoning_store.cli.store_access import Where
from reasoning_store.cli.terminal_text import one_line
from reasoning_store.server.inspector.sub_agents import fold_sub_agents

_LISTED = "id title createdAt updatedAt archived preview metadata"
_FACTS = ("client", "model")
"""The metadata that a table shows, where a session has it: of chats of other clients."""
_PREVIEW = 60
"""The most characters of a preview in a table."""


@click.group("sessions", cls=Group, default="list")
def sessions() -> None:
    """List, show, rename, tag, archive and delete sessions.

    Without a command, list them.
    """


@sessions.command("list", examples=("sessions", "sessions list --limit 5"), answers="sessions next")
@OWNER
@click.option("--archived", is_flag=True, help="Archived sessions instead.")
@click.option("--all", "both", is_flag=True, help="Archived sessions, too.")
@click.option("--title", metavar="TEXT", help="Only titles that hold this, in any case.")
@click.option(
    "--metadata",
    metavar="KEY=VALUE",
    multiple=True,
    help="Only sessions with this in their metadata; may be repeated. A value may be JSON.",
)
@click.option("--since", type=DATE, help="Last message from this time on, in local time.")
@BEFORE
@takes_page(50)
@click.pass_obj
def list_(
    call: Call,
    owner: str,
    archived: bool,
    both: bool,
    title: str | None,
    metadata: tuple[str, ...],
    since: datetime | None,
    before: datetime | None,
    limit: int,
    after: str | None,
) -> None:
    """List the sessions, the latest first; those of sub-agents follow their chat."""
    wanted = dict(map(parse_fact, metadata))
    with store_access.open_to_read(call) as store:
        page = store.for_owner(owner).sessions(
            limit=limit,
            after=after,
            archived=None if both else archived,
            title=title,
            metadata=wanted,
            since=since,
            before=before,
        )
    facts = [name for name in _FACTS if any(one.metadata.get(name) for one in page.items)]
    owners = hints.command_line(call, "report", "--by", "owner")
    print_list(
        call,
        "sessions",
        page,
        [{**answer_fields(one, _LISTED), "messages": one.message_count} for one in page.items],
        lambda paper: paper.table(
            ("last message", "session", "title", *facts, "messages", "preview"),
            [
                (
                    local_time(one.updated_at),
                    one.id,
                    ("" if one.id == chat.id else "- ") + (one.title or ""),
                    *(one_line(str(one.metadata.get(name) or "")) for name in facts),
                    str(one.message_count),
                    one_line((one.preview or "")[:_PREVIEW]),
                )
                for chat, *others in fold_sub_agents(page.items)
                for one in (chat, *others)
            ],
            right=("messages",),
        ),
        otherwise=f"none here; {owners} lists the owners",
    )


@sessions.command(
    "show",
    examples=("sessions show chat-42",),
    answers="id owner title metadata updatedAt effective raw exactness encoding branches settings",
)
@takes_branch
@click.pass_obj
def show(call: Call, where: Where) -> None:
    """Print a session's branches, its settings and the tokens of its next request."""
    with where.open(call) as session:
        usage, branches = session.usage(), session.branches()
        settings = session.settings.resolved()

    def write_page(page: Page) -> None:
        page.line(session.id, "bold")
        if session.title:
            page.line(session.title)
        page.line(f"last message {local_time(session.updated_at)}")
        page.line(
            f"next request {usage.mark}{usage} tokens,"
            f" {usage.mark}{usage.raw} with all thinking ({usage.exactness})"
        )
        page.line()
        branch_table(page, branches)

    print_answer(
        call,
        {
            **answer_fields(session, "id owner title metadata updatedAt"),
            **answer_fields(usage, "effective raw exactness encoding"),
            "branches": [branch_data(branch) for branch in branches],
            "settings": {key: asdict(item) for key, item in settings.items()},
        },
        write_page,
    )


@sessions.command("rename", examples=("sessions rename chat-42 Weather",), answers="id title")
@takes_session
@click.argument("title")
@click.pass_obj
def rename(call: Call, where: Where, title: str) -> None:
    """Set a session's title; an empty one removes it."""
    with where.open(call, writes=True) as session:
        session.rename(title or None)
    print_answer(call, {"id": session.id, "title": title or None})


@sessions.command(
    "tag",
    examples=("sessions tag chat-42 project=north", "sessions --metadata project=north"),
    answers="id metadata",
)
@click.argument(
    "words", nargs=-1, metavar="[SESSION] [KEY=VALUE]...", shell_complete=complete_session
)
@OWNER
@click.pass_obj
def tag(call: Call, words: Sequence[str], owner: str) -> None:
    """Set metadata of a session, and print all of it.

    VALUE is JSON, or else text; null removes the key.
    """
    session_id, facts = split_words(words, lambda word: "=" in word)
    changes = dict(map(parse_fact, facts))
    with Where(session_id, owner).open(call, writes=bool(changes)) as session:
        if changes:
            session.update_metadata(changes)
        metadata = session.metadata
    print_answer(
        call, {"id": session.id, "metadata": metadata}, lambda page: fact_table(page, metadata)
    )


@sessions.command("archive", examples=("sessions archive chat-42",), answers="id archived")
@takes_session
@click.option("--undo", is_flag=True, help="List the session again.")
@click.pass_obj
def archive(call: Call, where: Where, undo: bool) -> None:
    """Hide a session from the list; nothing is deleted."""
    with where.open(call, writes=True) as session:
        session.archive(archived=not undo)
    print_answer(call, {"id": session.id, "archived": not undo})


@sessions.command("delete", examples=("sessions delete chat-42 --yes",), answers=REMOVED)
@takes_sessions
@YES
@click.pass_obj
def delete(call: Call, whose: Whose, yes: bool) -> None:
    """Delete a session, or an owner's sessions, at once.

    `erase` takes longer: it also makes sure that the bytes have left the database.
    """
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
    print_removed(call, "deleted", deleted, REMOVED)
