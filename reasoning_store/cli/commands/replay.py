"""The command `replay`: the message that a captured stream becomes."""

from __future__ import annotations

import random
import secrets
from dataclasses import asdict
from typing import IO, TYPE_CHECKING, Any

import click

from reasoning_store.cli import captures
from reasoning_store.cli.command import Call, Command
from reasoning_store.cli.exit_codes import Exit
from reasoning_store.cli.options import read_file, takes_target
from reasoning_store.cli.output import Page, print_answer, print_note
from reasoning_store.cli.transcript import print_block

if TYPE_CHECKING:
    from reasoning_store import Chunk, Message


@click.command(
    "replay",
    cls=Command,
    examples=("replay stream.jsonl --split",),
    answers="message chunks same seed",
)
@captures.CAPTURE
@click.option(
    "--split", is_flag=True, help="Cut it at random as well, and compare the two messages."
)
@click.option("--seed", type=int, metavar="N", help="The seed of the cuts; implies --split.")
@click.option("--chunks", is_flag=True, help="Print each chunk instead of the message.")
@takes_target
@click.pass_obj
def replay(
    call: Call,
    capture: IO[bytes],
    split: bool,
    seed: int | None,
    chunks: bool,
    target: dict[str, Any],
) -> None:
    """Read a captured stream and print the message.

    It is read like a reply that is arriving, and not stored.

    CAPTURE holds server-sent events, JSON lines or a JSON list; - is standard input.
    """
    call.if_interrupted = "nothing was stored"
    data = read_file(capture)
    found = captures.read_events(data, capture.name)
    said, message, target["api"] = captures.read_reply(found, target)
    same = None
    if split or seed is not None:
        seed = secrets.randbelow(1 << 31) if seed is None else seed
        pieces = random.Random(seed)
        cut = captures.recut_events(
            captures.read_events(data, capture.name, pieces), target, pieces
        )
        same = captures.read_reply(cut, target)[1].blocks == message.blocks
        if not same:
            call.exit = Exit.FAILED
    _say_replayed(call, message, said, whole=not chunks, same=same, seed=seed)
    captures.warn_of_unread(found)
    if same is not None:
        print_note(f"cut with --seed {seed}: {'the same' if same else 'ANOTHER MESSAGE'}")


def _say_replayed(
    call: Call,
    message: Message,
    chunks: list[Chunk],
    *,
    whole: bool,
    same: bool | None,
    seed: int | None,
) -> None:
    from reasoning_store.conversation.codec import message_to_json
    from reasoning_store.conversation.json_values import make_json

    said = [make_json(asdict(chunk)) for chunk in chunks]

    def write_page(page: Page) -> None:
        if not whole:
            page.table(("chunk", "what"), [(str(chunk["type"]), _gist(chunk)) for chunk in said])
            return
        for block in message.blocks:
            print_block(page, block)
        if message.metadata:
            page.line()
            for name, value in message.metadata.items():
                page.line(f"{name}: {value}", "dim")

    print_answer(
        call,
        {
            "message": message_to_json(message),
            "chunks": len(said) if whole else said,
            "same": same,
            "seed": seed,
        },
        write_page,
    )


def _gist(chunk: dict[str, Any]) -> str:
    for name in ("text", "arguments", "reason", "name"):
        if chunk.get(name):
            phase = chunk.get("phase")
            return f"{phase}: {chunk[name]}" if phase else str(chunk[name])
    return str(chunk.get("phase") or "")
