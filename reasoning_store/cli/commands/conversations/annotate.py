"""The command `annotate`: facts that are kept with a message."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from reasoning_store.cli import store_access
from reasoning_store.cli.command import Call, Command
from reasoning_store.cli.options import BRANCH, OWNER, position_of
from reasoning_store.cli.output import print_answer
from reasoning_store.conversation import json_values
from reasoning_store.conversation.errors import InvalidCall


@click.command(
    "annotate",
    cls=Command,
    examples=("annotate chat-42:2 rating=1",),
    answers="id position branch annotations",
)
@click.argument("message", metavar="SESSION:POSITION")
@click.argument("facts", nargs=-1, metavar="[KEY=VALUE]...")
@BRANCH
@OWNER
@click.pass_obj
def annotate(
    call: Call, message: str, facts: Sequence[str], branch: int | None, owner: str
) -> None:
    """Keep facts with a message, and print all that it has.

    For example: annotate chat-42:2 rating=1.

    The id of the message, which show --ids prints, may be in the place of its position. VALUE is
    JSON, or else text; null removes the key.
    """
    session_id, colon, place = message.rpartition(":")
    if not colon or not place:
        raise InvalidCall(
            f"{message!r} is not SESSION:POSITION", hint="for example chat-42:2, or SESSION:ID"
        )
    changes = dict(map(_fact, facts))
    with store_access.open_existing(call) as store:
        session = store_access.find_session(call, store.for_owner(owner), session_id)
        if branch is not None:
            session = session.branch(branch)
        if changes:
            session.annotate(position_of(place), changes)
        found = session.get(position_of(place))
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


def _fact(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise InvalidCall(f"{text!r} is not KEY=VALUE", hint="for example rating=1")
    try:
        return key, json_values.parse(value)
    except json_values.Malformed:
        return key, value
