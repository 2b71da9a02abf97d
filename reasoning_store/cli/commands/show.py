"""The command `show`: a conversation with its thinking."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from reasoning_store.cli import transcript
from reasoning_store.cli.command import Call, Command
from reasoning_store.cli.options import Where, takes_branch
from reasoning_store.cli.output import print_items, print_page, utc_time
from reasoning_store.cli.terminal_text import printable
from reasoning_store.conversation.codec import message_to_json
from reasoning_store.conversation.errors import InvalidCall

if TYPE_CHECKING:
    from reasoning_store.stored import Compaction, Stored

_PAGES: dict[str, Callable[..., Iterator[str]]] = {
    "md": transcript.markdown,
    "html": transcript.html_page,
}


@click.command(
    "show",
    cls=Command,
    answers="* position branch id createdAt tokens compaction annotations message",
    examples=("show chat-42", "show @latest --last 2", "show chat-42:5", "show ch --format html"),
)
@takes_branch
@click.option(
    "--thinking",
    type=click.Choice(["full", "short", "none"]),
    default="full",
    show_default=True,
    help="How much of each thought; short is one line.",
)
@click.option("--last", type=click.IntRange(1), metavar="N", help="The last N messages only.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "md", "html", "json"]),
    default="text",
    show_default=True,
    help="How to write it; html is one page that loads nothing.",
)
@click.option("--ids", is_flag=True, help="The id of each message, too.")
@click.option("--no-pager", is_flag=True, help="Write a long conversation at once.")
@click.pass_obj
def show(
    call: Call,
    where: Where,
    thinking: str,
    last: int | None,
    format_: str,
    ids: bool,
    no_pager: bool,
) -> None:
    """Print a conversation with its thinking.

    SESSION:POSITION prints one message. At a terminal, a long conversation is shown in $PAGER.
    """
    with where.open_place(call) as (session, position):
        if position is not None and last is not None:
            raise InvalidCall("--last needs a session without a position")
        items = session.history(limit=last) if position is None else [session.get(position)]
        compactions = session.compactions()
        title = session.title or session.id
    call.json = call.json or format_ == "json"
    if call.json:
        print_items(call, (_data(item, compactions) for item in items))
    elif format_ in _PAGES:
        for text in _PAGES[format_](title, items, compactions, thinking):
            sys.stdout.write(printable(text) + "\n")
    else:
        print_page(
            lambda page: transcript.print_transcript(page, items, compactions, thinking, ids=ids),
            pages=not no_pager,
        )


def _data(item: Stored, compactions: Sequence[Compaction]) -> dict[str, Any]:
    found = transcript.compactions_of(item, compactions)
    return {
        "position": item.position,
        "branch": item.branch,
        "id": item.id,
        "createdAt": utc_time(item.created_at),
        "tokens": item.tokens,
        "compaction": found[0].id if found else None,
        "annotations": item.annotations,
        "message": message_to_json(item.message),
    }
