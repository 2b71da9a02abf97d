"""One content block of the Messages protocol: how it opens, grows and stops.

Theory. A block opens with what is known of it, which in a whole message is all of it; deltas
add to it; at its stop it says what could not be said before. ``open`` checks before anything
is remembered, so that a malformed block leaves no trace.

What has a block of ours is one: thinking, redacted thinking, text, tool use. Every other is
kept whole, its deltas put in, a delta of an unknown kind beside it.

This module knows blocks. It must not know how a stream numbers them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from reasoning_store.blocks import RawBlock
from reasoning_store.chunks import BlockChunk, Chunk, ReasoningChunk, TextChunk, ToolCallChunk
from reasoning_store.wire import neutral
from reasoning_store.wire.base import plain, without
from reasoning_store.wire.reading import mapping, optional_string, string

Data = Mapping[str, Any]

DELTAS: Final[Mapping[str, str]] = {
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
    "text_delta": "text",
    "citations_delta": "text",
    "input_json_delta": "tool_use",
}
"""The kind of block that each kind of delta adds to."""

BEGINS: Final = frozenset({"thinking", "text"})
"""The kinds that a delta alone can begin; a call needs the name that it opened with."""


class OpenBlock(ABC):
    """What the kinds of blocks have in common."""

    __slots__ = ("number", "provider")

    def __init__(self, number: int, provider: str) -> None:
        self.number = number
        self.provider = provider

    @abstractmethod
    def open(self, data: Data) -> list[Chunk]:
        """Say what is known when the block opens; refuse what its kind does not allow."""

    @abstractmethod
    def grow(self, kind: str, delta: Data) -> list[Chunk]:
        """Say what a delta adds."""

    def stop(self) -> list[Chunk]:
        """Say what could not be said before."""
        return []


class Thinking(OpenBlock):
    """A thought and its signature; either may be empty, and the block is real (EC-002)."""

    __slots__ = ()
    _source: ClassVar[Mapping[str, Any]] = {"sourceField": "thinking"}

    def open(self, data: Data) -> list[Chunk]:
        text = optional_string(data, "thinking") or ""
        signature = optional_string(data, "signature") or ""
        beside = without(data, ("type", "thinking", "signature"))
        metadata = {**self._source, "providerMetadata": beside} if beside else self._source
        chunks: list[Chunk] = [self._chunk("start", "", metadata)]
        if text or signature or beside:
            signed = {**metadata, "signature": signature} if signature else metadata
            chunks.append(self._chunk("delta", text, signed))
        return chunks

    def grow(self, kind: str, delta: Data) -> list[Chunk]:
        if kind == "thinking_delta":
            text = string(delta, "thinking")
            return [self._chunk("delta", text, self._source)] if text else []
        signature = string(delta, "signature")
        # Signatures replace; they are never pieces of one another.
        metadata = {**self._source, "signature": signature}
        return [self._chunk("delta", "", metadata)] if signature else []

    def stop(self) -> list[Chunk]:
        return [self._chunk("end", "", self._source)]

    def _chunk(self, phase: Any, text: str, metadata: Mapping[str, Any]) -> ReasoningChunk:
        return ReasoningChunk(
            provider=self.provider,
            phase=phase,
            text=text,
            content_index=self.number,
            is_complete=phase == "end",
            metadata=metadata,
        )


class Redacted(Thinking):
    """Thinking that arrives whole, as ciphertext, in the event that opens it."""

    __slots__ = ()
    _source: ClassVar[Mapping[str, Any]] = {"sourceField": "redacted_thinking"}

    def open(self, data: Data) -> list[Chunk]:
        metadata = {
            **self._source,
            "encrypted": string(data, "data"),
            "redacted": True,
            "providerMetadata": {
                "block_type": "redacted_thinking",
                **without(data, ("type", "data")),
            },
        }
        return [self._chunk("start", "", metadata)]


class Text(OpenBlock):
    """What was said, and what it cites."""

    __slots__ = ("_citations",)

    def __init__(self, number: int, provider: str) -> None:
        super().__init__(number, provider)
        self._citations: list[Any] = []

    def open(self, data: Data) -> list[Chunk]:
        text = string(data, "text")
        beside = without(data, ("type", "text", "citations", "parsed_output"))
        citations = data.get("citations")
        if isinstance(citations, list) and citations:
            beside["citations"] = self._citations = list(citations)
        if not (text or beside):
            return []
        return [TextChunk(text=text, content_index=self.number, metadata=beside or None)]

    def grow(self, kind: str, delta: Data) -> list[Chunk]:
        if kind == "text_delta":
            text = string(delta, "text")
            return [TextChunk(text=text, content_index=self.number)] if text else []
        self._citations.append(dict(mapping(delta, "citation")))
        if len(self._citations) > 1:
            return []
        # The list itself is handed out, and grows: so a stream that dies keeps what came, and
        # a thousand citations are not a thousand lists.
        metadata = {"citations": self._citations}
        return [TextChunk(text="", content_index=self.number, metadata=metadata)]


class ToolUse(OpenBlock):
    """A call of the application's tools."""

    __slots__ = ("_begun", "_input")

    def open(self, data: Data) -> list[Chunk]:
        beside = without(data, ("type", "id", "name", "input"))
        self._begun = False
        self._input = plain(data.get("input"))
        call = ToolCallChunk(
            index=self.number,
            id=string(data, "id"),
            name=string(data, "name"),
            metadata=beside or None,
        )
        return [call]

    def grow(self, kind: str, delta: Data) -> list[Chunk]:
        piece = string(delta, "partial_json")
        self._begun = self._begun or bool(piece)
        return [ToolCallChunk(index=self.number, arguments=piece)] if piece else []

    def stop(self) -> list[Chunk]:
        # Where no piece came, the input that the block opened with is all of it.
        parameters = None if self._begun else self._input
        return [ToolCallChunk(index=self.number, parameters=parameters, is_complete=True)]


class Other(OpenBlock):
    """A block of Anthropic's own tools, or of a kind that is newer than this code."""

    __slots__ = ("_citations", "_data", "_deltas", "_input")

    def open(self, data: Data) -> list[Chunk]:
        self._data = dict(data)
        self._input: list[str] = []
        self._citations: list[Any] = []
        self._deltas: list[Any] = []
        return []

    def grow(self, kind: str, delta: Data) -> list[Chunk]:
        if kind == "input_json_delta":
            self._input.append(string(delta, "partial_json"))
        elif kind == "citations_delta":
            self._citations.append(dict(mapping(delta, "citation")))
        elif kind == "compaction_delta":
            self._data.update(without(delta, ("type",)))
        else:
            self._deltas.append(dict(delta))
        return []

    def stop(self) -> list[Chunk]:
        text = "".join(self._input)
        if text:
            if (value := neutral.read(text)) is not None:
                self._data["input"] = value
            else:
                self._deltas.append({"type": "input_json_delta", "partial_json": text})
        if self._citations:
            self._data["citations"] = self._citations
        beside = {"deltas": self._deltas} if self._deltas else None
        return [BlockChunk(block=RawBlock(data=self._data, provider_metadata=beside))]


KINDS: Final[Mapping[str, type[OpenBlock]]] = {
    "thinking": Thinking,
    "redacted_thinking": Redacted,
    "text": Text,
    "tool_use": ToolUse,
    "other": Other,
}
