r"""Reasoning for surfaces that can only show text.

Two states. Thinking opens the section if it is closed, with exactly ``"\n\n---\n"``;
anything else closes it if it is open, with exactly ``"\n---\n\n"``. What goes out is only
ever added to: each call returns what to emit now, nothing is held back, and nothing that
went out is taken back.

A thought opens at its first character that is not white space. White space before it can
neither be shown (it may be all there is, and then nothing opens) nor kept for later (that
would be a buffer), so it is dropped; once a section is open every character goes out as it
came. An empty text changes nothing, whatever kind it is. So the output depends on the text
of each stretch alone, and not on how it was cut.

Knows text and normalised chunks. It must not know a provider, tokens or SQL, and it never
decides what is stored or sent to a model (BR-003).
"""

from __future__ import annotations

from typing import Any

from reasoning_store.chunks import (
    BlockChunk,
    Chunk,
    ErrorChunk,
    FinishChunk,
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
)
from reasoning_store.errors import UsageError
from reasoning_store.settings import ReasoningSettings

OPENING = "\n\n---\n"
CLOSING = "\n---\n\n"

_ENDS = (BlockChunk, ErrorChunk, FinishChunk, ToolCallChunk)
"""What a reader is not shown as text, but what no thought goes on behind."""


class ReasoningRenderer:
    """Thinking between two rules, in a stream of plain text. One instance a stream."""

    __slots__ = ("_is_open",)

    def __init__(self) -> None:
        self._is_open = False

    def thinking(self, text: str) -> str:
        """Return what to emit for the next piece of a thought."""
        if not _says(text):
            return ""
        if self._is_open:
            return text
        begun = text.lstrip()
        if not begun:
            return ""
        self._is_open = True
        return OPENING + begun

    def progress(self, text: str) -> str:
        """Return what to emit for a piece of progress: an update, a header, a summary."""
        return self.close() + text if _says(text) else ""

    def answer(self, text: str) -> str:
        """Return what to emit for the next piece of the answer."""
        return self.close() + text if _says(text) else ""

    def close(self) -> str:
        """Return what ends an open section, at the end of a turn or of the stream.

        A second time it is nothing; the next thought opens a section of its own.
        """
        if not self._is_open:
            return ""
        self._is_open = False
        return CLOSING


def _says(text: Any) -> bool:
    """Whether there is anything to emit; a delta that says nothing may be None, too."""
    if text and not isinstance(text, str):
        raise UsageError(f"a text is shown, not {type(text).__name__}")
    return bool(text)


def render(
    chunk: Chunk, renderer: ReasoningRenderer, settings: ReasoningSettings | None = None
) -> str:
    """Return what one normalised chunk adds to the text that a reader is shown.

    Each thinking block has a section of its own, closed with its end. ``settings`` say
    whether reasoning is shown at all (``includeInResponse``). The first choice is rendered;
    the others are conversations of their own.
    """
    if chunk.choice:
        return ""
    if isinstance(chunk, TextChunk):
        return renderer.answer(chunk.text)
    if isinstance(chunk, ReasoningChunk):
        if settings is not None and not settings.include_in_response:
            return ""
        if chunk.phase == "end":
            # The text of an end repeats the whole block and is not a further piece.
            return renderer.close()
        return renderer.thinking(chunk.text)
    return renderer.close() if isinstance(chunk, _ENDS) else ""
