"""The commands `show` and `stop`: a conversation, and the end of its live reply."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reasoning_store import InvalidCall, ReasoningChunk, TextChunk
from reasoning_store.cli import transcript
from reasoning_store.cli.command import Call, Command
from reasoning_store.cli.options import takes_branch
from reasoning_store.cli.output import (
    Page,
    print_answer,
    print_items,
    print_page,
    print_piece,
    utc_time,
)
from reasoning_store.cli.output_files import check_output, complete_file
from reasoning_store.cli.store_access import Where
from reasoning_store.cli.terminal_text import printable
from reasoning_store.formats import message_to_json

if TYPE_CHECKING:
    from reasoning_store import Session
    from reasoning_store.results import Compaction, Stored
    from reasoning_store.server.inspector.file_page import Thinking


@click.command(
    "show",
    cls=Command,
    answers="* position branch id createdAt tokens compaction annotations message",
    examples=(
        "show chat-42",
        "show @latest --last 2",
        "show chat-42:5",
        "show ch --html chat.html",
    ),
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
    type=click.Choice(["text", "md", "json"]),
    default="text",
    show_default=True,
    help="How to write it.",
)
@click.option(
    "--html",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a page that loads nothing, with the next request if it has the whole session and "
    "its thinking in full; REASONING_STORE_LIMIT is the model's context window. - is standard "
    "output.",
)
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
@click.option("--ids", is_flag=True, help="The id of each message, too.")
@click.option("--follow", is_flag=True, help="And the reply that is being recorded, to its end.")
@click.option("--no-pager", is_flag=True, help="Write a long conversation at once.")
@click.pass_obj
def show(
    call: Call,
    where: Where,
    thinking: Thinking,
    last: int | None,
    format_: str,
    html: Path | None,
    overwrite: bool,
    ids: bool,
    follow: bool,
    no_pager: bool,
) -> None:
    """Print a conversation with its thinking.

    SESSION:POSITION prints one message. At a terminal, a long conversation is shown in $PAGER.
    """
    with where.open_place(call, writes=follow) as (session, position):
        if position is not None and last is not None:
            raise InvalidCall("--last needs a session without a position")
        if html is not None and (call.json or follow or format_ != "text"):
            raise InvalidCall(
                "--html writes a page", hint="leave out --json, --format and --follow, or --html"
            )
        if follow and (position is not None or call.json or format_ != "text"):
            raise InvalidCall(
                "--follow prints a whole session as text", hint="leave out the rest, or --follow"
            )
        items = session.history(limit=last) if position is None else [session.get(position)]
        compactions = session.compactions()
        title = session.title or session.id
        if html is not None:
            page = _html_page(session, items, thinking, is_whole=position is None and last is None)
            _write_page(call, html, page, overwrite=overwrite)
            return
        if follow:
            stored = [item for item in items if item.message.status != "streaming"]
            transcript.print_transcript(Page(), stored, compactions, thinking, ids=ids)
            _print_live_reply(session, thinking)
            return
    call.json = call.json or format_ == "json"
    if call.json:
        print_items(call, (_message_data(item, compactions) for item in items))
    elif format_ == "md":
        for text in transcript.markdown(title, items, compactions, thinking):
            sys.stdout.write(printable(text) + "\n")
    else:
        print_page(
            lambda page: transcript.print_transcript(page, items, compactions, thinking, ids=ids),
            pages=not no_pager,
        )


def _html_page(
    session: Session, items: Sequence[Stored], thinking: Thinking, *, is_whole: bool
) -> str:
    from reasoning_store.server.inspector.file_page import file_page
    from reasoning_store.server.inspector.questions import default_limit

    page = file_page(session, items, limit=default_limit(), thinking=thinking, is_whole=is_whole)
    return printable(page)


def _write_page(call: Call, path: Path, page: str, *, overwrite: bool) -> None:
    if str(path) == "-":
        sys.stdout.write(page)
        return
    check_output(call, path)
    with complete_file(path, overwrite) as file:
        file.write(page.encode("utf-8"))
    print_answer(call, {}, lambda answer: answer.line(str(path)))


def _message_data(item: Stored, compactions: Sequence[Compaction]) -> dict[str, Any]:
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


def _print_live_reply(session: Session, thinking: str) -> None:
    """Print the reply that is being recorded while it arrives."""
    margin = ""
    for chunk in session.follow():
        if isinstance(chunk, TextChunk):
            before, now = margin, "  "
        elif isinstance(chunk, ReasoningChunk) and thinking != "none":
            before, now = margin, "  | "
        else:
            continue
        if chunk.text:
            margin = now
            begin = "" if before == now else ("\n" if before else "[...] assistant\n") + now
            print_piece(begin + chunk.text.replace("\n", f"\n{now}"))
    if margin:
        print_piece("\n")


@click.command(
    "stop", cls=Command, answers="stopped", examples=("stop chat-42", "stop chat-42 --reason late")
)
@takes_branch
@click.option(
    "--reason", default="user", show_default=True, help="Stored with the reply, as stopReason."
)
@click.pass_obj
def stop(call: Call, where: Where, reason: str) -> None:
    """End the reply that is being recorded, and store it so far."""
    with where.open(call, writes=True) as session:
        stopped = session.stop(reason)
    print_answer(
        call,
        {"stopped": stopped},
        lambda page: page.line("stopped" if stopped else "no reply is being recorded"),
    )
