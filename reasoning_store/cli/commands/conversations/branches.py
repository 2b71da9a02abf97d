"""The group `branches`: list, fork, edit, regenerate, activate."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from reasoning_store import InvalidCall, Message, TextBlock
from reasoning_store.cli.command import Call, Group
from reasoning_store.cli.options import read_text, takes_latest, takes_message, takes_session
from reasoning_store.cli.output import Page, answer_fields, print_answer
from reasoning_store.cli.store_access import Where

if TYPE_CHECKING:
    from reasoning_store.results import Branch

_ROLES = ("user", "assistant", "system")
"""The roles of messages that a text alone can replace."""


@click.group("branches", cls=Group, default="list")
def branches() -> None:
    """List, fork, edit, regenerate and activate branches.

    Nothing is deleted: a change makes a branch, and the messages stay on theirs. The id of a
    message, which show --ids prints, may be in the place of its position.
    """


@branches.command(
    "list",
    examples=("branches chat-42",),
    answers="* id parent first head createdAt current",
)
@takes_latest
@click.pass_obj
def list_(call: Call, where: Where) -> None:
    """List the branches of a session, the oldest first."""
    with where.open(call) as session:
        found = session.branches()
    print_answer(call, list(map(branch_data, found)), lambda page: branch_table(page, found))


@branches.command(
    "fork",
    examples=("branches fork chat-42:5", "branches fork chat-42:5 --activate"),
    answers="id branch at current",
)
@takes_message
@click.option("--activate", is_flag=True, help="Make it the session's current branch.")
@click.pass_obj
def fork(call: Call, where: Where, activate: bool) -> None:
    """Make a branch that ends before a message, and print its number."""
    with where.open_message(call) as (session, position):
        number = session.fork(at=position).branch_id
        if activate:
            session.activate(number)
    _print_branch(call, session.id, number, position, is_current=activate)


@branches.command(
    "edit",
    examples=("branches edit chat-42:1 'Is 97 prime?'",),
    answers="id branch at current",
)
@takes_message
@click.argument("text")
@click.pass_obj
def edit(call: Call, where: Where, text: str) -> None:
    """Replace a message by TEXT, on a new branch.

    It becomes the current branch, and its number is printed. TEXT - is read from standard input.
    """
    if text == "-":
        text = read_text(sys.stdin.buffer, "standard input")
    with where.open_message(call) as (session, position):
        message = session.get(position).message
        if message.role not in _ROLES:
            raise InvalidCall(
                f"a message of the role {message.role} cannot be replaced by a text",
                hint="edit the message before it",
            )
        edited = Message(role=message.role, blocks=(TextBlock(text=text),))
        number = session.edit(position, edited).branch
    _print_branch(call, session.id, number, position, is_current=True)


@branches.command(
    "regenerate", examples=("branches regenerate chat-42:2",), answers="id branch at current"
)
@takes_message
@click.pass_obj
def regenerate(call: Call, where: Where) -> None:
    """Make a branch for another reply, and print its number.

    It ends before the reply, and becomes the current branch when a message arrives there. No model
    is called.
    """
    with where.open_message(call) as (session, position):
        number = session.regenerate(position).branch_id
    _print_branch(call, session.id, number, position, is_current=False)


@branches.command("activate", examples=("branches activate chat-42 1",), answers="id branch")
@takes_session
@click.argument("branch", type=click.IntRange(1))
@click.pass_obj
def activate(call: Call, where: Where, branch: int) -> None:
    """Make a branch the session's current one."""
    with where.open(call, writes=True) as session:
        session.activate(branch)
    print_answer(call, {"id": session.id, "branch": branch}, lambda page: page.line(str(branch)))


def branch_data(branch: Branch) -> dict[str, Any]:
    """Return a branch for a program."""
    fields = answer_fields(branch, "id parent first head createdAt")
    return {**fields, "current": branch.is_current}


def branch_table(page: Page, found: Sequence[Branch]) -> None:
    """Write branches as a table."""
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
            for branch in found
        ],
        right=("branch", "from", "first", "last"),
    )


def _print_branch(
    call: Call, session: str, number: int, position: int | str, *, is_current: bool
) -> None:
    print_answer(
        call,
        {"id": session, "branch": number, "at": position, "current": is_current},
        lambda page: page.line(str(number)),
    )
