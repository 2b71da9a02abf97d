"""Valid text in the deltas of one stream: a half character waits for its other half.

A server that cuts its text by UTF-16 units sends the two halves of an emoji in two deltas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from reasoning_store.conversation.chunks import (
    Chunk,
    Delta,
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
    text_of,
    with_text,
)
from reasoning_store.conversation.json_values import valid_text


class HalfCharacters:
    """Mends the text of chunks; keeps the first half of a character at the end of a delta."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[Delta, str]] = {}
        """By choice: a delta that ended with a half, and that half."""

    def join_halves(self, chunk: Chunk) -> list[Chunk]:
        """Return a chunk with valid text; before it, what was held of another block."""
        if not isinstance(chunk, TextChunk | ReasoningChunk | ToolCallChunk):
            return [chunk]
        text = text_of(chunk)
        if text.isascii() and not self._held:
            return [chunk]
        out: list[Chunk] = []
        held = self._held.pop(chunk.choice, None)
        grows = not isinstance(chunk, ReasoningChunk) or chunk.phase != "end"
        if held is not None:
            if grows and _block_of(held[0]) == _block_of(chunk):
                text = held[1] + text
            else:
                out.append(_delta_of_half(*held))
        if grows and "\ud800" <= text[-1:] <= "\udbff":
            self._held[chunk.choice] = (chunk, text[-1])
            text = text[:-1]
        out.append(with_text(chunk, valid_text(text)))
        return out

    def release(self) -> list[Chunk]:
        """Return the held halves at the end of the stream, each as U+FFFD."""
        out: list[Chunk] = [_delta_of_half(*held) for held in self._held.values()]
        self._held.clear()
        return out


def _delta_of_half(chunk: Delta, half: str) -> Delta:
    """Return a further delta of a block, for a half whose other half did not come."""
    return replace(with_text(chunk, valid_text(half)), **_OF_DELTA.get(chunk.type, {}))


_OF_DELTA: Final[Mapping[str, Mapping[str, Any]]] = {
    "tool_call": {"parameters": None, "is_complete": False},
    "reasoning": {"phase": "delta"},
}
"""The fields of a chunk that only adds to its block."""


def _block_of(chunk: Delta) -> tuple[object, ...]:
    """Return what two deltas of one block have in common."""
    if isinstance(chunk, ToolCallChunk):
        return ("tool_call", chunk.index)
    source = chunk.metadata.get("sourceField") if isinstance(chunk, ReasoningChunk) else None
    return (chunk.type, chunk.content_index, source)
