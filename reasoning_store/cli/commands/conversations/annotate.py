"""The command `annotate`: facts that are kept with a message."""

from __future__ import annotations

from collections.abc import Sequence

import click

from reasoning_store.cli.command import Call, Command
from reasoning_store.cli.options import FACTS, fact_table, parse_fact, takes_message
from reasoning_store.cli.output import answer_fields, print_answer
from reasoning_store.cli.store_access import Where


@click.command(
    "annotate",
    cls=Command,
    examples=("annotate chat-42:2 rating=1",),
    answers="id position branch annotations",
)
@takes_message
@FACTS
@click.pass_obj
def annotate(call: Call, where: Where, facts: Sequence[str]) -> None:
    """Store facts with a message, and print them all.

    The id of the message, which show --ids prints, may be in the place of its position. VALUE is
    JSON, or else text; null removes the key.
    """
    changes = dict(map(parse_fact, facts))
    with where.open_message(call) as (session, position):
        if changes:
            session.annotate(position, changes)
        found = session.get(position)
    print_answer(
        call,
        answer_fields(found, "id position branch annotations"),
        lambda page: fact_table(page, found.annotations),
    )
