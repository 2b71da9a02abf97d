"""The command `annotate`: facts that are kept with a message."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from reasoning_store.cli.command import Call, Command
from reasoning_store.cli.options import Where, takes_message
from reasoning_store.cli.output import print_answer
from reasoning_store.conversation import json_values
from reasoning_store.conversation.errors import InvalidCall


@click.command(
    "annotate",
    cls=Command,
    examples=("annotate chat-42:2 rating=1",),
    answers="id position branch annotations",
)
@takes_message
@click.argument("facts", nargs=-1, metavar="[KEY=VALUE]...")
@click.pass_obj
def annotate(call: Call, place: tuple[Where, int | str], facts: Sequence[str]) -> None:
    """Keep facts with a message, and print all that it has.

    The id of the message, which show --ids prints, may be in the place of its position. VALUE is
    JSON, or else text; null removes the key.
    """
    where, position = place
    changes = dict(map(_parse_fact, facts))
    with where.open(call, writes=True) as session:
        if changes:
            session.annotate(position, changes)
        found = session.get(position)
    print_answer(
        call,
        {
            "id": found.id,
            "position": found.position,
            "branch": found.branch,
            "annotations": found.annotations,
        },
        lambda page: page.table(
            ("key", "value"),
            [
                (key, json.dumps(value, ensure_ascii=False))
                for key, value in found.annotations.items()
            ],
        ),
    )


def _parse_fact(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise InvalidCall(f"{text!r} is not KEY=VALUE", hint="for example rating=1")
    try:
        return key, json_values.parse(value)
    except json_values.Malformed:
        return key, value
