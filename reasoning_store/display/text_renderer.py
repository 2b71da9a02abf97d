r"""Reasoning for surfaces that can only show text.

Two states. Thinking opens the section if it is closed, with exactly ``"\n\n---\n"``; anything
else closes it if it is open, with exactly ``"\n---\n\n"``. The output is only ever added to: each
call returns the text to emit now, nothing is held back, and nothing is taken back.

A thought opens at its first character that is not white space. White space before it can neither
be shown (it may be all there is, and then nothing opens) nor kept for later (that would be a
buffer), so it is dropped; once a section is open every character is emitted as it came. An empty
text changes nothing. So the output depends on the text of each stretch alone, and not on how it
was cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from reasoning_store.conversation.chunks import (
    BlockChunk,
    Chunk,
    ErrorChunk,
    FinishChunk,
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
)
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.conversation.reasoning_settings import ReasoningSettings

# Other programs search for these delimiters, to the character.
OPENING: Final = "\n\n---\n"
CLOSING: Final = "\n---\n\n"


class ReasoningRenderer:
    """Thinking between two rules, in a stream of plain text. One instance a stream."""

    __slots__ = ("_is_open",)

    def __init__(self) -> None:
        self._is_open = False

    def thinking(self, text: str) -> str:
        """Return the text to emit for the next piece of a thought."""
        if not _has_text(text):
            return ""
        if self._is_open:
            return text
        begun = text.lstrip()
        if not begun:
            return ""
        self._is_open = True
        return OPENING + begun

    def progress(self, text: str) -> str:
        """Return the text to emit for a piece of progress: an update, a header, a summary."""
        return self.close() + text if _has_text(text) else ""

    def answer(self, text: str) -> str:
        """Return the text to emit for the next piece of the answer."""
        return self.close() + text if _has_text(text) else ""

    def chunk(self, chunk: Chunk, settings: ReasoningSettings | None = None) -> str:
        """Return the text to emit for one normalised chunk.

        Each thinking block has a section of its own, closed with its end. The first choice is
        rendered; the others are conversations of their own.
        """
        if chunk.choice:
            return ""
        match chunk:
            case TextChunk():
                return self.answer(chunk.text)
            case ReasoningChunk():
                # BR-003: includeInResponse decides here as everywhere a reader looks.
                if settings is not None and not settings.include_in_response:
                    return ""
                # The text of an end repeats the whole block; it is no further piece.
                return self.close() if chunk.phase == "end" else self.thinking(chunk.text)
            case BlockChunk() | ErrorChunk() | FinishChunk() | ToolCallChunk():
                return self.close()  # not shown as text, but no thought continues after it
            case _:
                return ""

    def close(self) -> str:
        """Return the end of an open section, at the end of a turn or of the stream.

        A second time it is empty; the next thought opens a section of its own.
        """
        if not self._is_open:
            return ""
        self._is_open = False
        return CLOSING


def answers_without_sections(text: str) -> list[str]:
    """Return the answers that a rendered text may have been made of, the likeliest first.

    A thought, too, may hold a separator, so the first section may end at any of them. The caller
    compares the answers with those that it has. A text without a section gives no answer.
    """
    whole = f"\n\n{text.strip()}\n\n"
    found: list[str] = []
    begin = whole.find(OPENING)
    end = whole.find(CLOSING, begin + len(OPENING) - 1) if begin >= 0 else -1
    while end >= 0 and len(found) < _MOST_ENDS:
        found.append(whole[:begin] + "".join(_outside(whole[end + len(CLOSING) :])))
        end = whole.find(CLOSING, end + 1)
    return [answer.strip() for answer in found]


_MOST_ENDS: Final = 8


def _outside(text: str) -> Iterator[str]:
    """Yield the texts around the sections, each of which ends at its first separator."""
    at = 0
    while (begin := text.find(OPENING, at)) >= 0:
        end = text.find(CLOSING, begin + len(OPENING) - 1)
        if end < 0:
            break
        yield text[at:begin]
        at = end + len(CLOSING)
    yield text[at:]


def _has_text(text: Any) -> bool:
    """Whether there is anything to emit; an empty delta may be None as well."""
    if text and not isinstance(text, str):
        raise InvalidCall(f"the renderer takes a string, not {type(text).__name__}")
    return bool(text)
