"""The arrays of reasoning that some Chat Completions hosts send, entry by entry.

``reasoning_details`` (OpenRouter, MiniMax and others) has entries of text, summary and
ciphertext; ``thinking_blocks`` (LiteLLM) has Anthropic's blocks. Streamed, an entry comes in
fragments that repeat its type and index; its signature is in a fragment of its own.

Knows entries, but not the deltas that they are in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any, Final

from reasoning_store.conversation.blocks import Message, ThinkingBlock
from reasoning_store.testing.capabilities import form

FORMS: Final[Mapping[str, tuple[str, ...]]] = {
    "reasoning_details": ("plain", "signed", "encrypted"),
    "thinking_blocks": ("plain", "signed", "redacted"),
}
"""Which thoughts an array has entries for."""
ARRAYS: Final = frozenset(FORMS)

_TEXT: Final = {"reasoning.text": "text", "reasoning.summary": "summary", "thinking": "thinking"}
"""The field of an entry's text, by its type."""


def fragments(
    block: ThinkingBlock, array: str, number: int, cut: Callable[[str], list[str]]
) -> Iterator[tuple[dict[str, Any], str]]:
    """Return the fragments of an entry, each with the text that is in it."""
    whole = entry(block, array, number)
    name = _TEXT.get(whole["type"])
    if name is None:
        yield whole, ""
        return
    about = {key: value for key, value in whole.items() if key not in (name, "signature")}
    for piece in cut(block.thought):
        yield {**about, name: piece}, piece
    if block.signature:
        empty = {name: ""} if array == "thinking_blocks" else {}
        yield {**about, **empty, "signature": block.signature}, ""


def entry(block: ThinkingBlock, array: str, number: int) -> dict[str, Any]:
    """Return the entry of one thought, the ``number``-th of its array."""
    if array == "thinking_blocks":
        if form(block) == "redacted":
            return {"type": "redacted_thinking", "data": block.encrypted}
        signed = {"signature": block.signature} if block.signature else {}
        return {"type": "thinking", "thinking": block.thought, **signed}
    detail = _detail(block)
    kind = "reasoning.encrypted" if form(block) == "encrypted" else "reasoning.text"
    about = {"type": kind, "format": "unknown", "index": number, **detail}
    if about["type"] == "reasoning.encrypted":
        return {**about, "data": block.encrypted}
    text = {_TEXT.get(about["type"], "text"): block.thought}
    return {**about, **text, **({"signature": block.signature} if block.signature else {})}


def losses(message: Message, array: str) -> Iterator[str]:
    """Name the parts of a message that do not survive if its thoughts are entries of an array."""
    kinds = [isinstance(block, ThinkingBlock) for block in message.blocks]
    first = kinds.index(True)
    if not all(kinds[first : first + sum(kinds)]):
        yield "the blocks between its thoughts"
    keys = set()
    for number, block in enumerate(message.thinking):
        detail = _detail(block)
        if detail:
            kind = detail.get("type", "reasoning.text")
            fits = {
                "reasoning.text": ("plain", "signed"),
                "reasoning.summary": ("plain",),
                "reasoning.encrypted": ("encrypted",),
            }
            if form(block) not in fits.get(kind, ()) or array == "thinking_blocks":
                yield "an entry that its detail does not describe"
        keys.add((detail.get("type"), detail.get("index", number)))
    if len(keys) < len(message.thinking):
        yield "two entries of one type and index"
    if array == "thinking_blocks":
        yield from _merging(message.thinking)


def _merging(thoughts: tuple[ThinkingBlock, ...]) -> Iterator[str]:
    """Blocks without an index: only their own fields separate one from the one before it."""
    readable = [block for block in thoughts if form(block) != "redacted"]
    for before, after in pairwise(readable):
        plain = form(before) == "plain" and form(after) in ("plain", "signed")
        # Without a text of its own a signature seems to be once more the one before it.
        if plain or (form(before) == "signed" and not after.thought and after.signature):
            yield "where one thought ends and the next begins"


def _detail(block: ThinkingBlock) -> Mapping[str, Any]:
    detail = (block.provider_metadata or {}).get("detail")
    return detail if isinstance(detail, Mapping) else {}
