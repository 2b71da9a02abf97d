"""The command `show`: a conversation, its thinking beside its answers."""

from __future__ import annotations

import click

from reasoning_store.blocks import (
    Block,
    MediaBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
)
from reasoning_store.cli.call import Call
from reasoning_store.cli.options import Where, on_a_branch
from reasoning_store.cli.output import Page, answer_each, stamp
from reasoning_store.cli.tree import Command
from reasoning_store.codec import argument_text, message_to_json, result_text

_SHORT = 72


@click.command("show", cls=Command, answers="* position branch id createdAt tokens message")
@on_a_branch
@click.option(
    "--thinking",
    type=click.Choice(["full", "short", "none"]),
    default="full",
    show_default=True,
    help="How much of the thoughts; short is a line of each.",
)
@click.option("--last", type=click.IntRange(1), metavar="N", help="The last N messages only.")
@click.pass_obj
def show(call: Call, where: Where, thinking: str, last: int | None) -> None:
    """Print a conversation, its thinking beside its answers."""
    with where.open(call) as session:
        items = session.history(limit=last)
    if call.json:
        answer_each(
            call,
            (
                {
                    "position": item.position,
                    "branch": item.branch,
                    "id": item.id,
                    "createdAt": stamp(item.created_at),
                    "tokens": item.tokens,
                    "message": message_to_json(item.message),
                }
                for item in items
            ),
        )
        return
    page = Page()
    for item in items:
        status = "" if item.message.status == "complete" else f" ({item.message.status})"
        page.line(f"[{item.position}] {item.message.role}{status}", "bold")
        for block in item.message.blocks:
            for line, style in lines_of(block, thinking):
                page.line(line, style)


def lines_of(block: Block, thinking: str) -> list[tuple[str, str]]:
    """Return a block's lines, each with its style at a terminal."""
    if isinstance(block, ThinkingBlock):
        text = block.thought or "(cannot be read)"
        if thinking == "none":
            return []
        if thinking == "short":
            text = _short(text)
        return [(f"  | {line}", "dim") for line in text.split("\n")]
    return [(f"  {line}", "") for line in _text(block).split("\n")]


def _text(block: Block) -> str:
    if isinstance(block, TextBlock):
        return block.text
    if isinstance(block, ToolCallBlock):
        return f"-> {block.name}({argument_text(block)})"
    if isinstance(block, ToolResponseBlock):
        return f"<- {result_text(block)}"
    if isinstance(block, MediaBlock):
        return f"({block.kind}: {block.name or block.mime_type})"
    return f"({block.type})"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHORT else line[: _SHORT - 3] + "..."
