"""The command `search`: messages of an owner's sessions by words, or their thoughts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from reasoning_store import InvalidCall
from reasoning_store.cli import store_access
from reasoning_store.cli.command import Call, Command
from reasoning_store.cli.options import OWNER, SINCE, UNTIL, takes_page
from reasoning_store.cli.output import Page, answer_fields, local_time, print_list
from reasoning_store.cli.progress import Progress

if TYPE_CHECKING:
    from reasoning_store import Store, results

_HIT = "session title kind branch isCurrent position id role createdAt snippet marks"
"""The keys of a hit."""
_THOUGHT = "session title branch position id createdAt provider model text tokens"
"""The keys of a thought."""


@click.command(
    "search",
    cls=Command,
    examples=("search weather", "search --thoughts --model 'deepseek*'"),
    answers="hits next",
)
@click.argument("words", nargs=-1, metavar="WORDS...")
@click.option(
    "--within",
    type=click.Choice(["answers", "thinking", "all"]),
    default="answers",
    show_default=True,
    help="Answers and titles, thoughts, or both.",
)
@click.option("--all-branches", is_flag=True, help="Search all branches, not only the current one.")
@click.option("--thoughts", is_flag=True, help="Print whole thoughts, without WORDS.")
@click.option("--provider", help="Only thoughts of this provider.")
@click.option("--model", metavar="PATTERN", help="Only thoughts of this model, e.g. '*claude*'.")
@SINCE
@UNTIL
@OWNER
@takes_page(20)
@click.pass_obj
def search(
    call: Call,
    /,
    words: tuple[str, ...],
    within: Any,
    all_branches: bool,
    thoughts: bool,
    owner: str,
    limit: int,
    after: str | None,
    **which: Any,
) -> None:
    """Find messages by words, the latest first; with --thoughts, print all thoughts.

    A message must contain all WORDS; '"words in quotes"' must follow one another. To exclude a
    word, write -word after --. --provider, --model, --since and --until choose thoughts.
    """
    chosen = [name for name, value in which.items() if value is not None]
    if bool(words) is thoughts or (words and chosen):
        raise InvalidCall(
            "search takes WORDS, or --thoughts with --provider, --model, --since and --until",
            hint="--within thinking finds thoughts by words",
        )
    with _open_for_search(call) as store, Progress("searching"):
        mine = store.for_owner(owner)
        if thoughts:
            _print_thoughts(call, mine.thoughts(limit=limit, after=after, **which))
            return
        page = mine.search(
            " ".join(words),
            within=within,
            branches="all" if all_branches else "current",
            limit=limit,
            after=after,
        )
    print_list(
        call,
        "hits",
        page,
        [answer_fields(hit, _HIT) for hit in page.items],
        lambda paper: paper.table(
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
        ),
        otherwise="nothing was found",
    )


def _print_thoughts(call: Call, page: results.Page[results.Thought]) -> None:
    def write_page(paper: Page) -> None:
        for number, one in enumerate(page.items):
            head = f"{local_time(one.created_at)}  {one.session} {one.position}  {one.model or '-'}"
            paper.line(f"\n{head}" if number else head, "bold")
            paper.line(one.text.rstrip("\n"))

    print_list(
        call,
        "hits",
        page,
        [answer_fields(one, _THOUGHT) for one in page.items],
        write_page,
        otherwise="nothing was thought that can be read",
    )


def _open_for_search(call: Call) -> Store:
    """Open the store so that the index can be brought up to date, where that can be written."""
    try:
        return store_access.open_existing(call)
    except InvalidCall:
        return store_access.open_to_read(call)
