"""Thoughts that a model writes into its text, between ``<think>`` and ``</think>``.

What a server without a reasoning parser sends. The delimiters are part of the string, so
they are cut into pieces with it. MiniMax puts a line end behind the one and before the
other. Knows text blocks and thoughts; it must not know which protocol has the string.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reasoning_store.blocks import Message, TextBlock, ThinkingBlock
from reasoning_store.testing.carriage import TAGS
from reasoning_store.testing.script import Script


def written(block: TextBlock | ThinkingBlock, script: Script) -> str:
    """Return what stands in the text for a block of it."""
    if isinstance(block, TextBlock):
        return block.text
    line = "\n" if script.contract.padded_tags else ""
    opened = f"<think>{line}{block.thought}"
    return opened if script.breaks_in(block) else f"{opened}{line}</think>{line}"


def joined(script: Script) -> str:
    """Return the whole text of a message, its tagged thoughts in it."""
    return "".join(
        written(block, script)
        for block in script.message.blocks
        if isinstance(block, TextBlock)
        or (isinstance(block, ThinkingBlock) and block.source_field == TAGS)
    )


def losses(
    message: Message, fields: Sequence[str | None], *, padded: bool = False
) -> Iterator[str]:
    """Say what of a message does not survive whose thoughts are in these fields."""
    if TAGS not in fields:
        return
    if {*fields} != {TAGS}:
        yield "thoughts between tags beside others"
    texts = [block.text for block in message.blocks if isinstance(block, TextBlock)]
    thoughts = [block.thought for block in message.thinking]
    # A character of a delimiter may make another one with what stands beside it.
    if any(set(text) & set("<>[]|\u25c1\u25b7") for text in (*texts, *thoughts)):
        yield "delimiters beside tagged thoughts"
    if not all(thought.strip() for thought in thoughts):
        yield "a thought of white space between tags"
    if padded and any(text != text.strip() for text in (*texts, *thoughts)):
        yield "white space beside padded tags"
