"""The group `sessions`: list, show, rename, fork, archive, delete."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from reasoning_store.cli import advice, opening
from reasoning_store.cli.call import Call
from reasoning_store.cli.options import OWNER, YES, Where, a_session, confirm, on_a_branch
from reasoning_store.cli.output import Page, answer, note, plural, silent, stamp, when
from reasoning_store.cli.progress import Progress
from reasoning_store.cli.tree import Group

if TYPE_CHECKING:
    from reasoning_store.stored import Branch


@click.group("sessions", cls=Group, default="list")
def sessions() -> None:
    """List sessions; show, rename, fork, archive, delete.

    Without a command they are listed.
    """


@sessions.command("list", answers="sessions next")
@OWNER
@click.option("--archived", is_flag=True, help="Those that are archived.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 1000))
@click.option("--after", metavar="MARK", help="Go on behind an earlier page's mark.")
@click.pass_obj
def list_(call: Call, owner: str, archived: bool, limit: int, after: str | None) -> None:
    """List the sessions, the latest first."""
    with opening.existing(call) as store:
        page = store.for_owner(owner).sessions(limit=limit, after=after, archived=archived)
    answer(
        call,
        {
            "sessions": [
                {"id": one.id, "title": one.title, "updatedAt": stamp(one.updated_at)}
                for one in page.items
            ],
            "next": page.next,
        },
        lambda paper: (
            paper.table(
                ("last message", "session", "title"),
                [(when(one.updated_at), one.id, one.title or "") for one in page.items],
            )
            if page.items
            else None
        ),
    )
    if not page.items and not call.json:
        note(f"none here; {advice.line(call, 'report', '--by', 'owner')} tells whose there are")
    if page.next is not None and not call.json:
        note(f"there are more than {limit}; --after {page.next} goes on, --limit shows more")


@sessions.command(
    "show",
    answers="id owner title metadata updatedAt effective raw exactness encoding branches settings",
)
@on_a_branch
@click.pass_obj
def show(call: Call, where: Where) -> None:
    """Say what is known of a session: branches, settings, what its next request counts."""
    with where.open(call) as session:
        usage, branches = session.usage(), session.branches()
        settings = session.settings.resolved()

    def people(page: Page) -> None:
        page.line(session.id, "bold")
        if session.title:
            page.line(session.title)
        page.line(f"last message {when(session.updated_at)}")
        page.line(f"next request {usage.effective} tokens of {usage.raw} ({usage.exactness})")
        page.line()
        page.table(
            ("branch", "from", "first", "last", ""),
            [
                (
                    str(branch.id),
                    str(branch.parent or "-"),
                    str(branch.first),
                    str(branch.head),
                    "current" if branch.is_current else "",
                )
                for branch in branches
            ],
            right=("branch", "from", "first", "last"),
        )

    answer(
        call,
        {
            "id": session.id,
            "owner": session.owner,
            "title": session.title,
            "metadata": session.metadata,
            "updatedAt": stamp(session.updated_at),
            "effective": usage.effective,
            "raw": usage.raw,
            "exactness": usage.exactness,
            "encoding": usage.encoding,
            "branches": [_branch(branch) for branch in branches],
            "settings": {key: asdict(item) for key, item in settings.items()},
        },
        people,
    )


def _branch(branch: Branch) -> dict[str, Any]:
    return {
        "id": branch.id,
        "parent": branch.parent,
        "first": branch.first,
        "head": branch.head,
        "createdAt": stamp(branch.created_at),
        "current": branch.is_current,
    }


@sessions.command("rename", answers="id title")
@a_session
@click.argument("title")
@click.pass_obj
def rename(call: Call, where: Where, title: str) -> None:
    """Give a session a title; an empty one takes it away."""
    with where.open(call) as session:
        session.rename(title or None)
    answer(call, {"id": where.session, "title": title or None}, silent)


@sessions.command("fork", answers="id branch at current")
@on_a_branch
@click.option(
    "--at",
    "position",
    required=True,
    type=click.IntRange(1),
    help="The first position that shall differ.",
)
@click.option("--activate", is_flag=True, help="Make it the session's current branch.")
@click.pass_obj
def fork(call: Call, where: Where, position: int, activate: bool) -> None:
    """Make a branch that shares the messages before a position; print its number."""
    with where.open(call) as session:
        number = session.fork(at=position).branch_id
        if activate:
            session.activate(number)
    answer(
        call,
        {"id": where.session, "branch": number, "at": position, "current": activate},
        lambda page: page.line(str(number)),
    )


@sessions.command("archive", answers="id archived")
@a_session
@click.option("--undo", is_flag=True, help="Bring it back among the others.")
@click.pass_obj
def archive(call: Call, where: Where, undo: bool) -> None:
    """Put a session out of the way; nothing of it is deleted."""
    with where.open(call) as session:
        session.archive(archived=not undo)
    answer(call, {"id": where.session, "archived": not undo}, silent)


@sessions.command("delete", answers="sessions messages thinkingBlocks profiles copies")
@a_session
@YES
@click.pass_obj
def delete(call: Call, where: Where, yes: bool) -> None:
    """Erase a session for good: its bytes leave the database."""
    from reasoning_store.cli.erasing import say_erased

    with opening.existing(call) as store:
        session = opening.find(call, store.for_owner(where.owner), where.session)
        count = sum(branch.head - branch.first + 1 for branch in session.branches())
        confirm(f"Erase {where.session!r} with its {plural(count, 'message')} for good?", yes)
        with Progress("erasing"):
            erased = session.erase()
    say_erased(call, erased)
