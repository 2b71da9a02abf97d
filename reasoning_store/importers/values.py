"""The counts of a message that was read, and the beginning of a text as a title."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from reasoning_store import Message, RawBlock, TextBlock, ToolResponseBlock
from reasoning_store.results import Report

_LONGEST_TITLE = 60
TAG_SOURCE: Final = "think_tags"
"""The source field of a thought that was found in tags."""


def count_message(message: Message, *, texts: Sequence[str] | None, thoughts: int) -> Report:
    """Return the counts of one message, whose source had these texts and native thoughts.

    Whether a text was changed is found by comparing it with the source, not by asking its reader.
    """
    notes = message.metadata or {}
    is_now = "".join(_visible_texts(message))
    was = is_now if texts is None else "".join(texts)
    tagged = sum(block.source_field == TAG_SOURCE for block in message.thinking)
    raw = sum(isinstance(block, RawBlock) for block in message.blocks)
    parts = notes.get("source", {}).get("parts")
    left = len(parts) if isinstance(parts, list) else 0
    return Report(
        messages=1,
        reasoning_in=thoughts + max(tagged, notes.get("extractedBlocks", 0)),
        reasoning_stored=len(message.thinking),
        copies=notes.get("suppressedDuplicates", 0),
        texts_unchanged=int(bool(was) and was == is_now),
        texts_cleaned=int(was != is_now),
        delimiters=notes.get("strippedDelimiters", 0),
        kept_raw=raw + left + notes.get("unknownChunks", 0),
    )


def _visible_texts(message: Message) -> Iterator[str]:
    """Yield the texts of a message, and those of its tool responses."""
    for block in message.blocks:
        if isinstance(block, TextBlock):
            yield block.text
        elif isinstance(block, ToolResponseBlock) and isinstance(block.result, str):
            yield block.result


def first_words(text: str) -> str | None:
    """Return the beginning of a text as a title."""
    line = " ".join(text.split())
    return (line if len(line) <= _LONGEST_TITLE else line[: _LONGEST_TITLE - 3] + "...") or None
