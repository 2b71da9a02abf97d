"""The commands `replay` and `render`: a captured stream, through the door and on to a reader."""

from __future__ import annotations

import random
import secrets
import sys
from dataclasses import asdict
from typing import IO, TYPE_CHECKING, Any

import click

from reasoning_store.cli import captures
from reasoning_store.cli.call import Call
from reasoning_store.cli.exits import Exit
from reasoning_store.cli.options import a_target, content
from reasoning_store.cli.output import Page, answer, note, plural, silent
from reasoning_store.cli.printable import printable
from reasoning_store.cli.show import lines_of
from reasoning_store.cli.tree import Command
from reasoning_store.errors import UsageError

if TYPE_CHECKING:
    from reasoning_store.blocks import Message
    from reasoning_store.chunks import Chunk

_CAPTURE = click.argument("capture", type=click.File("rb"), metavar="CAPTURE")


@click.command("replay", cls=Command, answers="message chunks same seed")
@_CAPTURE
@click.option("--split", is_flag=True, help="Cut it at random too, and compare what comes out.")
@click.option("--seed", type=int, metavar="N", help="Cut it as this number says; implies --split.")
@click.option("--chunks", is_flag=True, help="Print each chunk instead of the message.")
@a_target
@click.pass_obj
def replay(
    call: Call,
    capture: IO[bytes],
    split: bool,
    seed: int | None,
    chunks: bool,
    target: dict[str, Any],
) -> None:
    """Read a captured stream and print what it says.

    It is read like a reply that arrives now, and stored nowhere.

    CAPTURE holds server-sent events, JSON lines or a JSON list; - is standard input.
    """
    call.if_interrupted = "nothing was stored"
    data = content(capture)
    found = captures.events(data, capture.name)
    target["api"] = target["api"] or _guessed(target, found)
    said, message = _read(found, target)
    same = None
    if split or seed is not None:
        seed = secrets.randbelow(1 << 31) if seed is None else seed
        pieces = random.Random(seed)
        cut = captures.recut(captures.events(data, capture.name, pieces), target, pieces)
        same = _read(cut, target)[1].blocks == message.blocks
        if not same:
            call.exit = Exit.FAILED
    _say_replayed(call, message, said, whole=not chunks, same=same, seed=seed)
    _say_unread(found)
    if same is not None:
        note(f"cut with --seed {seed}: {'the same' if same else 'ANOTHER MESSAGE'}")


def _guessed(target: dict[str, Any], found: list[Any]) -> str | None:
    """Try whose protocol it is where nobody said."""
    if target["provider"] or target["model"] or target["base_url"]:
        return None
    return captures.api_of(found)


def _read(found: list[Any], target: dict[str, Any]) -> tuple[list[Chunk], Message]:
    """Return what a stream says, piece by piece and as one message."""
    from reasoning_store.ingress.normalizer import StreamNormalizer

    normalizer = StreamNormalizer(**target)
    chunks = [chunk for event in found for chunk in normalizer.feed(event)]
    chunks += normalizer.close()
    return chunks, normalizer.finish()


def _say_replayed(
    call: Call,
    message: Message,
    chunks: list[Chunk],
    *,
    whole: bool,
    same: bool | None,
    seed: int | None,
) -> None:
    from reasoning_store.codec import message_to_json
    from reasoning_store.ingress.jsonable import jsonable

    said = [jsonable(asdict(chunk)) for chunk in chunks]

    def people(page: Page) -> None:
        if not whole:
            page.table(("chunk", "what"), [(str(chunk["type"]), _gist(chunk)) for chunk in said])
            return
        for block in message.blocks:
            for line, style in lines_of(block, "full"):
                page.line(line, style)
        if message.metadata:
            page.line()
            for name, value in message.metadata.items():
                page.line(f"{name}: {value}", "dim")

    answer(
        call,
        {
            "message": message_to_json(message),
            "chunks": len(said) if whole else said,
            "same": same,
            "seed": seed,
        },
        people,
    )


def _gist(chunk: dict[str, Any]) -> str:
    for name in ("text", "arguments", "reason", "name"):
        if chunk.get(name):
            phase = chunk.get("phase")
            return f"{phase}: {chunk[name]}" if phase else str(chunk[name])
    return str(chunk.get("phase") or "")


def _say_unread(found: list[Any]) -> None:
    if bad := captures.unread(found):
        note(f"warning: {plural(bad, 'event')} could not be read and changed nothing")


@click.command("render", cls=Command, answers="text")
@_CAPTURE
@click.option("--hide", is_flag=True, help="Without the thinking (reasoning.includeInResponse).")
@a_target
@click.pass_obj
def render(call: Call, capture: IO[bytes], hide: bool, target: dict[str, Any]) -> None:
    """Write a captured stream as text, thinking marked.

    The thinking stands between two horizontal rules.

    CAPTURE holds server-sent events, JSON lines or a JSON list; - is standard input.
    """
    from reasoning_store.egress.headend import ReasoningRenderer
    from reasoning_store.egress.headend import render as rendered
    from reasoning_store.settings import ReasoningSettings

    call.if_interrupted = "nothing was stored"
    found = captures.events(content(capture), capture.name)
    target["api"] = target["api"] or _guessed(target, found)
    chunks, message = _read(found, target)
    if not chunks and "unknownChunks" in (message.metadata or ()):
        raise UsageError(
            f"{capture.name} holds no event of a protocol that is known",
            hint="--api names another one; reasoning-store replay shows the events",
        )
    renderer = ReasoningRenderer()
    settings = ReasoningSettings(include_in_response=not hide)
    texts = [rendered(chunk, renderer, settings) for chunk in chunks]
    texts.append(renderer.close())
    text = "".join(texts)
    if call.json:
        answer(call, {"text": text}, silent)
    else:
        # Exactly the renderer's text: no line end is added.
        sys.stdout.write(printable(text))
    if not text:
        note("nothing to show; reasoning-store replay tells what else it says")
    _say_unread(found)
