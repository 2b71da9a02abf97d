"""The command `show`: a conversation with its thinking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from reasoning_store.cli.command import Call, Command
from reasoning_store.cli.options import Where, takes_branch
from reasoning_store.cli.output import Page, print_items, utc_time
from reasoning_store.conversation.blocks import (
    Block,
    MediaBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
)
from reasoning_store.conversation.codec import (
    argument_text,
    message_to_json,
    result_text,
)

if TYPE_CHECKING:
    from reasoning_store.stored import Compaction, Stored

_SHORT = 72


@click.command(
    "show",
    cls=Command,
    answers="* position branch id createdAt tokens compaction annotations message",
)
@takes_branch
@click.option(
    "--thinking",
    type=click.Choice(["full", "short", "none"]),
    default="full",
    show_default=True,
    help="How much of each thought; short is one line.",
)
@click.option("--last", type=click.IntRange(1), metavar="N", help="The last N messages only.")
@click.option("--ids", is_flag=True, help="The id of each message, too.")
@click.pass_obj
def show(call: Call, where: Where, thinking: str, last: int | None, ids: bool) -> None:
    """Print a conversation with its thinking."""
    with where.open(call) as session:
        items = session.history(limit=last)
        replaced = session.compactions()
    if call.json:
        print_items(
            call,
            (
                {
                    "position": item.position,
                    "branch": item.branch,
                    "id": item.id,
                    "createdAt": utc_time(item.created_at),
                    "tokens": item.tokens,
                    "compaction": next((one.id for one in _instead(item, replaced)), None),
                    "annotations": item.annotations,
                    "message": message_to_json(item.message),
                }
                for item in items
            ),
        )
        return
    page = Page()
    for item in items:
        status = "" if item.message.status == "complete" else f" ({item.message.status})"
        for one in _instead(item, replaced):
            is_summary = one.kind == "summary"
            sent = f"summary {one.id} is sent instead" if is_summary else "result left out"
            status += f" ({sent})"
        id = f" {item.id}" if ids else ""
        page.line(f"[{item.position}] {item.message.role}{id}{status}", "bold")
        for block in item.message.blocks:
            for line, style in lines_of(block, thinking):
                page.line(line, style)


def _instead(item: Stored, replaced: Sequence[Compaction]) -> list[Compaction]:
    """Return what is sent in the place of a message, or of the tool results in it."""
    found = [one for one in replaced if one.first <= item.position <= one.last]
    answers = any(isinstance(block, ToolResponseBlock) for block in item.message.blocks)
    summaries = [one for one in found if one.kind == "summary"]
    return summaries or [one for one in found if answers]


def lines_of(block: Block, thinking: str) -> list[tuple[str, str]]:
    """Return a block's lines, each with its style at a terminal."""
    if isinstance(block, ThinkingBlock):
        text = block.thought or "(not readable)"
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
