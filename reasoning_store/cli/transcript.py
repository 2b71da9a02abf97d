"""A conversation for a person to read: as lines of a terminal, as Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from reasoning_store import (
    Block,
    MediaBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResponseBlock,
)
from reasoning_store.cli.output import Page, is_for_person, local_time
from reasoning_store.cli.terminal_text import one_line, shorten
from reasoning_store.formats import describe_result

if TYPE_CHECKING:
    from reasoning_store.results import Compaction, Stored

_SHORT = 72
_COLOUR_OF_ROLE = {"user": "bold cyan", "assistant": "bold green", "tool": "bold yellow"}
_FENCE = "```"


def compactions_of(item: Stored, compactions: Sequence[Compaction]) -> list[Compaction]:
    """Return the compactions that a message, or the tool results in it, is left out for."""
    found = [one for one in compactions if one.first <= item.position <= one.last]
    answers = any(isinstance(block, ToolResponseBlock) for block in item.message.blocks)
    summaries = [one for one in found if one.kind == "summary"]
    return summaries or [one for one in found if answers]


def print_transcript(
    page: Page,
    items: Iterable[Stored],
    compactions: Sequence[Compaction],
    thinking: str,
    *,
    ids: bool,
) -> None:
    """Print the messages, wrapped and coloured at a terminal."""
    for item in items:
        style = _COLOUR_OF_ROLE.get(item.message.role, "bold")
        # A pipe gets what does not depend on the clock.
        head = _heading(item, compactions, is_short=not is_for_person(), has_id=ids)
        page.line(f"[{item.position}] {head}", style)
        for block in item.message.blocks:
            print_block(page, block, thinking)


def print_block(page: Page, block: Block, thinking: str = "full") -> None:
    """Print the text of a block, its thinking as far as it is asked for."""
    if not isinstance(block, ThinkingBlock):
        page.paragraph("  ", _block_text(block))
    elif thinking != "none":
        text = _shorten_thought(block.thought or "(not readable)", thinking)
        page.paragraph("  | ", text, "dim")


def markdown(
    title: str, items: Iterable[Stored], compactions: Sequence[Compaction], thinking: str
) -> Iterator[str]:
    """Yield a conversation as lines of Markdown: thoughts are quoted, tools are code."""
    yield f"# {one_line(title)}"
    for item in items:
        yield f"\n## {item.position}. {one_line(_heading(item, compactions))}"
        for block in item.message.blocks:
            yield ""
            if isinstance(block, ThinkingBlock):
                if thinking != "none":
                    text = _shorten_thought(block.thought or "(not readable)", thinking)
                    yield from (f"> {line}".rstrip() for line in text.split("\n"))
            elif isinstance(block, TextBlock):
                yield block.text
            else:
                yield from (_FENCE, _block_text(block), _FENCE)


def _heading(
    item: Stored, compactions: Sequence[Compaction], *, is_short: bool = False, has_id: bool = False
) -> str:
    """Return the role of a message, its model and time, and what is unusual about it."""
    message = item.message
    parts: list[str] = [message.role]
    if not is_short:
        model = message.origin.model if message.origin is not None else None
        parts = [" ".join(filter(None, (message.role, model, local_time(item.created_at))))]
    if has_id:
        parts.append(item.id)
    if message.status != "complete":
        parts.append(f"({message.status})")
    for one in compactions_of(item, compactions):
        is_summary = one.kind == "summary"
        parts.append(f"(summary {one.id} is sent instead)" if is_summary else "(result left out)")
    return " ".join(parts)


def _block_text(block: Block) -> str:
    if isinstance(block, TextBlock):
        return block.text
    if isinstance(block, ToolCallBlock):
        return f"-> {block.name}({argument_text(block)})"
    if isinstance(block, ToolResponseBlock):
        return f"<- {describe_result(block)}"
    if isinstance(block, MediaBlock):
        return f"({block.kind}: {block.name or block.mime_type})"
    return f"({block.type})"


def _shorten_thought(text: str, thinking: str) -> str:
    return shorten(text, _SHORT) if thinking == "short" else text


def argument_text(call: ToolCallBlock) -> str:
    """Return a call's arguments as they came, or as JSON where they came as an object."""
    if call.arguments is not None:
        return call.arguments
    return json.dumps(call.parameters or {}, ensure_ascii=False, separators=(",", ":"))
