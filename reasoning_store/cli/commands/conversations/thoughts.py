"""The command `thoughts`: what was thought in an owner's sessions."""

from __future__ import annotations

from datetime import datetime

import click

from reasoning_store.cli import store_access
from reasoning_store.cli.command import Call, Command
from reasoning_store.cli.options import OWNER, SINCE, UNTIL, takes_page
from reasoning_store.cli.output import (
    Page,
    answer_fields,
    local_time,
    note_more,
    print_answer,
    print_note,
)
from reasoning_store.cli.progress import Progress

_THOUGHT = "session title branch position id createdAt provider model text tokens"
"""The keys of a thought."""


@click.command("thoughts", cls=Command, examples=("thoughts --limit 5",), answers="thoughts next")
@click.option("--provider", help="Only of this provider.")
@click.option("--model", metavar="PATTERN", help="Only of this model; a pattern as '*claude*'.")
@SINCE
@UNTIL
@OWNER
@takes_page(20)
@click.pass_obj
def thoughts(
    call: Call,
    provider: str | None,
    model: str | None,
    since: datetime | None,
    until: datetime | None,
    owner: str,
    limit: int,
    after: str | None,
) -> None:
    """Print the thoughts of all sessions, the latest first."""
    with store_access.open_to_read(call) as store, Progress("reading"):
        page = store.for_owner(owner).thoughts(
            provider=provider, model=model, since=since, until=until, limit=limit, after=after
        )

    def write_page(paper: Page) -> None:
        for number, one in enumerate(page.items):
            if number:
                paper.line()
            where = f"{one.session} {one.position}"
            paper.line(f"{local_time(one.created_at)}  {where}  {one.model or '-'}", "bold")
            for line in one.text.splitlines():
                paper.line(line)

    print_answer(
        call,
        {
            "thoughts": [answer_fields(one, _THOUGHT) for one in page.items],
            "next": page.next,
        },
        write_page,
    )
    if not page.items and not call.json:
        print_note("nothing was thought that can be read")
    note_more(call, page.next)
