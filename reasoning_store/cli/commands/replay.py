"""The command `replay`: the message that a captured stream becomes."""

from __future__ import annotations

from dataclasses import asdict
from typing import IO, Any

import click

from reasoning_store.cli import captures
from reasoning_store.cli.command import Call, Command
from reasoning_store.cli.options import read_file, takes_target
from reasoning_store.cli.output import Page, print_answer
from reasoning_store.cli.transcript import print_block


@click.command("replay", cls=Command, examples=("replay stream.jsonl",), answers="message chunks")
@captures.CAPTURE
@click.option("--chunks", is_flag=True, help="Print each chunk instead of the message.")
@takes_target
@click.pass_obj
def replay(call: Call, capture: IO[bytes], chunks: bool, target: dict[str, Any]) -> None:
    """Read a captured stream and print the message.

    It is read like a reply that is arriving, and not stored.

    CAPTURE holds server-sent events, JSON lines or a JSON list; - is standard input.
    """
    from reasoning_store.conversation.codec import message_to_json
    from reasoning_store.conversation.json_values import make_json

    call.if_interrupted = "nothing was stored"
    found = captures.read_events(read_file(capture), capture.name)
    read, message = captures.read_reply(found, target)
    shown = [make_json(asdict(chunk)) for chunk in read]

    def write_page(page: Page) -> None:
        if chunks:
            page.table(("chunk", "what"), [(str(chunk["type"]), _gist(chunk)) for chunk in shown])
            return
        for block in message.blocks:
            print_block(page, block)
        if message.metadata:
            page.line()
            for name, value in message.metadata.items():
                page.line(f"{name}: {value}", "dim")

    data = {"message": message_to_json(message), "chunks": shown if chunks else len(shown)}
    print_answer(call, data, write_page)
    captures.warn_of_unread(found)


def _gist(chunk: dict[str, Any]) -> str:
    for name in ("text", "arguments", "reason", "name"):
        if chunk.get(name):
            phase = chunk.get("phase")
            return f"{phase}: {chunk[name]}" if phase else str(chunk[name])
    return str(chunk.get("phase") or "")
