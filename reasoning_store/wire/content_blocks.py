"""Content blocks that a stream opens, grows and stops: Anthropic's and Bedrock's.

An object reads one block. Both protocols give blocks a place, and some proxies give all of them
the same one: so blocks are held by place and kind, and a delta that does not fit the block at its
place is no part of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from reasoning_store.conversation.chunks import (
    Chunk,
    Phase,
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
)

Data = Mapping[str, Any]


class BlockReader(ABC):
    """Reads one content block that has begun; a malformed delta is refused and changes nothing."""

    def __init__(self, number: int, provider: str) -> None:
        self.number = number
        self.provider = provider

    @abstractmethod
    def add_delta(self, delta: Data) -> list[Chunk]:
        """Return the chunks of a delta."""

    def stop(self) -> list[Chunk]:
        """Return the chunks that had to wait for the end."""
        return []


class ThoughtReader(BlockReader):
    """A thought, in the clear or not."""

    source: ClassVar[str]

    def stop(self) -> list[Chunk]:
        return [self.thought("end")]

    def thought(self, phase: Phase, text: str = "", **metadata: Any) -> ReasoningChunk:
        """Return a piece of it; a signature replaces the one before."""
        return ReasoningChunk(
            provider=self.provider,
            phase=phase,
            text=text,
            content_index=self.number,
            is_complete=phase == "end",
            metadata={"sourceField": self.source, **metadata},
        )


class TextReader(BlockReader):
    """Visible text, and its citations."""

    def __init__(self, number: int, provider: str) -> None:
        super().__init__(number, provider)
        self.citations: list[Any] = []

    def add_text(self, text: str) -> list[Chunk]:
        """Return the chunks of a piece of the text."""
        return [TextChunk(text=text, content_index=self.number)] if text else []

    def add_citation(self, citation: Any) -> list[Chunk]:
        """Return the chunks of a citation.

        The list itself is handed out, and grows: so a stream that dies keeps what came, and a
        thousand citations are not a thousand lists.
        """
        self.citations.append(citation)
        if len(self.citations) > 1:
            return []
        metadata = {"citations": self.citations}
        return [TextChunk(text="", content_index=self.number, metadata=metadata)]


class CallReader(BlockReader):
    """A call of the application's tools."""

    def open_call(self, call_id: str, name: str, whole: Any, metadata: Any) -> list[Chunk]:
        """Return the chunks of its beginning; ``whole`` is its input where no piece comes."""
        self._begun = False
        self._input = whole
        return [ToolCallChunk(index=self.number, id=call_id, name=name, metadata=metadata or None)]

    def add_input(self, piece: str) -> list[Chunk]:
        """Return the chunks of a piece of its input."""
        self._begun = self._begun or bool(piece)
        return [ToolCallChunk(index=self.number, arguments=piece)] if piece else []

    def stop(self) -> list[Chunk]:
        parameters = None if self._begun else self._input
        return [ToolCallChunk(index=self.number, parameters=parameters, is_complete=True)]


class OpenBlocks:
    """The blocks that have begun and not stopped, by their place and kind."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, str], BlockReader] = {}
        self.begun = 0
        """The number of the next block."""

    def find(self, place: int, kind: str) -> BlockReader | None:
        """Return the block of this kind at a place."""
        return self._open.get((place, kind))

    def hold(self, place: int, kind: str, block: BlockReader) -> None:
        """Hold a block that has begun."""
        self._open[place, kind] = block
        self.begun += 1

    def stop(self, place: int | None = None, kind: str | None = None) -> list[Chunk]:
        """Return the chunks of the end of every block: of one place, of one kind, or of all."""
        ended = [key for key in self._open if place in (None, key[0]) and kind in (None, key[1])]
        return [chunk for key in ended for chunk in self._open.pop(key).stop()]
