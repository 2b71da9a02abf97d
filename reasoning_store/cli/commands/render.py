"""The command `render`: a captured stream as text, its thinking marked."""

from __future__ import annotations

import sys
from typing import IO, Any

import click

from reasoning_store import InvalidCall
from reasoning_store.cli import captures
from reasoning_store.cli.command import Call, Command
from reasoning_store.cli.options import read_file, takes_target
from reasoning_store.cli.output import print_answer, print_note
from reasoning_store.cli.terminal_text import printable


@click.command("render", cls=Command, examples=("render stream.jsonl",), answers="text")
@captures.CAPTURE
@click.option("--hide", is_flag=True, help="Leave the thinking out (reasoning.includeInResponse).")
@takes_target
@click.pass_obj
def render(call: Call, capture: IO[bytes], hide: bool, target: dict[str, Any]) -> None:
    """Write a captured stream as text, its thinking between two lines of ---.

    CAPTURE holds server-sent events, JSON lines or a JSON list; - is standard input.
    """
    from reasoning_store import ReasoningRenderer, ReasoningSettings
    from reasoning_store.ingress.normalizer import UNREAD

    call.if_interrupted = "nothing was stored"
    found = captures.read_events(read_file(capture), capture.name)
    chunks, message, _ = captures.read_reply(found, target)
    if message.finish_reason == UNREAD:
        raise InvalidCall(
            f"{capture.name} holds no event of a known protocol",
            hint="name the protocol with --api; reasoning-store replay shows the events",
        )
    renderer = ReasoningRenderer()
    settings = ReasoningSettings(include_in_response=not hide)
    texts = [renderer.chunk(chunk, settings) for chunk in chunks]
    texts.append(renderer.close())
    text = "".join(texts)
    if call.json:
        print_answer(call, {"text": text})
    else:
        sys.stdout.write(printable(text if text.endswith("\n") or not text else text + "\n"))
    if not text:
        print_note("no text; reasoning-store replay shows the other events")
    captures.warn_of_unread(found)
