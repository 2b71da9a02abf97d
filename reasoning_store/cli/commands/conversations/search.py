"""The command `search`: messages of an owner's sessions, by words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reasoning_store import InvalidCall
from reasoning_store.cli import store_access
from reasoning_store.cli.command import Call, Command
from reasoning_store.cli.options import OWNER, takes_page
from reasoning_store.cli.output import (
    Page,
    answer_fields,
    local_time,
    note_more,
    print_answer,
    print_note,
)
from reasoning_store.cli.progress import Progress

if TYPE_CHECKING:
    from reasoning_store import Store
    from reasoning_store.ledger.searching.search import Within


_HIT = "session title kind branch isCurrent position id role createdAt snippet marks"
"""The keys of a hit."""


@click.command("search", cls=Command, examples=("search weather",), answers="hits next")
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--within",
    type=click.Choice(["answers", "thinking", "all"]),
    default="answers",
    show_default=True,
    help="Answers and titles, thoughts, or both.",
)
@click.option("--all-branches", is_flag=True, help="Search all branches, not only the current one.")
@OWNER
@takes_page(20)
@click.pass_obj
def search(
    call: Call,
    words: tuple[str, ...],
    within: Within,
    all_branches: bool,
    owner: str,
    limit: int,
    after: str | None,
) -> None:
    """Find messages by words, the latest first.

    A message must contain all WORDS; '"words in quotes"' must follow one another. To exclude a
    word, write -word after --.
    """
    with _open_for_search(call) as store, Progress("searching"):
        page = store.for_owner(owner).search(
            " ".join(words),
            within=within,
            branches="all" if all_branches else "current",
            limit=limit,
            after=after,
        )

    def write_page(paper: Page) -> None:
        paper.table(
            ("time", "session", "position", "", "text"),
            [
                (
                    local_time(hit.created_at),
                    hit.session,
                    "-" if hit.position is None else str(hit.position),
                    hit.kind if hit.is_current else f"{hit.kind}, branch {hit.branch}",
                    hit.marked(),
                )
                for hit in page.items
            ],
            right=("position",),
        )

    print_answer(
        call,
        {
            "hits": [answer_fields(hit, _HIT) for hit in page.items],
            "next": page.next,
        },
        write_page,
    )
    if not page.items and not call.json:
        print_note("nothing was found")
    note_more(call, page.next)


def _open_for_search(call: Call) -> Store:
    """Open the store so that the index can be brought up to date, where that can be written."""
    try:
        return store_access.open_existing(call)
    except InvalidCall:
        return store_access.open_to_read(call)
