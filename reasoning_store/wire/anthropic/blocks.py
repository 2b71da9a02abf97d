"""One content block of the Messages protocol: how it opens, grows and stops.

A block opens with the fields known at its start, which in a whole message are all of them;
deltas add to it; its stop gives the chunks that had to wait. ``open`` checks before it
remembers, so that a malformed block leaves no trace. Thinking, redacted thinking, text and
tool use are blocks of ours; every other is stored whole, its deltas put in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from reasoning_store.conversation.blocks import RawBlock
from reasoning_store.conversation.chunks import (
    BlockChunk,
    Chunk,
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
)
from reasoning_store.wire.event_fields import (
    mapping_field,
    optional_string_field,
    other_fields,
    plain_value,
    string_field,
)
from reasoning_store.wire.tools import parse_arguments

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


class BlockReader(ABC):
    """Reads one content block that has begun."""

    __slots__ = ("number", "provider")

    def __init__(self, number: int, provider: str) -> None:
        self.number = number
        self.provider = provider

    @abstractmethod
    def open(self, data: Data) -> list[Chunk]:
        """Return the chunks of its beginning; refuse fields that its kind does not allow."""

    @abstractmethod
    def add_delta(self, kind: str, delta: Data) -> list[Chunk]:
        """Return the chunks of a delta."""

    def stop(self) -> list[Chunk]:
        """Return the chunks that had to wait for the end."""
        return []


class ThinkingReader(BlockReader):
    """A thought and its signature; either may be empty, and the block is real (EC-002)."""

    __slots__ = ()
    _source: ClassVar[Mapping[str, Any]] = {"sourceField": "thinking"}

    def open(self, data: Data) -> list[Chunk]:
        text = optional_string_field(data, "thinking") or ""
        signature = optional_string_field(data, "signature") or ""
        extra = other_fields(data, ("type", "thinking", "signature"))
        metadata = {**self._source, "providerMetadata": extra} if extra else self._source
        chunks: list[Chunk] = [self._thinking_chunk("start", "", metadata)]
        if text or signature or extra:
            signed = {**metadata, "signature": signature} if signature else metadata
            chunks.append(self._thinking_chunk("delta", text, signed))
        return chunks

    def add_delta(self, kind: str, delta: Data) -> list[Chunk]:
        if kind == "thinking_delta":
            text = string_field(delta, "thinking")
            return [self._thinking_chunk("delta", text, self._source)] if text else []
        signature = string_field(delta, "signature")
        # Signatures replace; they are never pieces of one another.
        metadata = {**self._source, "signature": signature}
        return [self._thinking_chunk("delta", "", metadata)] if signature else []

    def stop(self) -> list[Chunk]:
        return [self._thinking_chunk("end", "", self._source)]

    def _thinking_chunk(self, phase: Any, text: str, metadata: Mapping[str, Any]) -> ReasoningChunk:
        return ReasoningChunk(
            provider=self.provider,
            phase=phase,
            text=text,
            content_index=self.number,
            is_complete=phase == "end",
            metadata=metadata,
        )


class RedactedReader(ThinkingReader):
    """Thinking that arrives whole, as ciphertext, in the event that opens it."""

    __slots__ = ()
    _source: ClassVar[Mapping[str, Any]] = {"sourceField": "redacted_thinking"}

    def open(self, data: Data) -> list[Chunk]:
        metadata = {
            **self._source,
            "encrypted": string_field(data, "data"),
            "redacted": True,
            "providerMetadata": {
                "block_type": "redacted_thinking",
                **other_fields(data, ("type", "data")),
            },
        }
        return [self._thinking_chunk("start", "", metadata)]


class TextReader(BlockReader):
    """Visible text, and its citations."""

    __slots__ = ("_citations",)

    def __init__(self, number: int, provider: str) -> None:
        super().__init__(number, provider)
        self._citations: list[Any] = []

    def open(self, data: Data) -> list[Chunk]:
        text = string_field(data, "text")
        extra = other_fields(data, ("type", "text", "citations", "parsed_output"))
        citations = data.get("citations")
        if isinstance(citations, list) and citations:
            extra["citations"] = self._citations = list(citations)
        if not (text or extra):
            return []
        return [TextChunk(text=text, content_index=self.number, metadata=extra or None)]

    def add_delta(self, kind: str, delta: Data) -> list[Chunk]:
        if kind == "text_delta":
            text = string_field(delta, "text")
            return [TextChunk(text=text, content_index=self.number)] if text else []
        self._citations.append(dict(mapping_field(delta, "citation")))
        if len(self._citations) > 1:
            return []
        # The list itself is handed out, and grows: so a stream that dies keeps what came, and
        # a thousand citations are not a thousand lists.
        metadata = {"citations": self._citations}
        return [TextChunk(text="", content_index=self.number, metadata=metadata)]


class ToolUseReader(BlockReader):
    """A call of the application's tools."""

    __slots__ = ("_begun", "_input")

    def open(self, data: Data) -> list[Chunk]:
        extra = other_fields(data, ("type", "id", "name", "input"))
        self._begun = False
        self._input = plain_value(data.get("input"))
        call = ToolCallChunk(
            index=self.number,
            id=string_field(data, "id"),
            name=string_field(data, "name"),
            metadata=extra or None,
        )
        return [call]

    def add_delta(self, kind: str, delta: Data) -> list[Chunk]:
        piece = string_field(delta, "partial_json")
        self._begun = self._begun or bool(piece)
        return [ToolCallChunk(index=self.number, arguments=piece)] if piece else []

    def stop(self) -> list[Chunk]:
        # Where no piece came, the input that the block opened with is all of it.
        parameters = None if self._begun else self._input
        return [ToolCallChunk(index=self.number, parameters=parameters, is_complete=True)]


class OtherReader(BlockReader):
    """A block of Anthropic's own tools, or of a kind that is newer than this code."""

    __slots__ = ("_citations", "_data", "_deltas", "_input")

    def open(self, data: Data) -> list[Chunk]:
        self._data = dict(data)
        self._input: list[str] = []
        self._citations: list[Any] = []
        self._deltas: list[Any] = []
        return []

    def add_delta(self, kind: str, delta: Data) -> list[Chunk]:
        if kind == "input_json_delta":
            self._input.append(string_field(delta, "partial_json"))
        elif kind == "citations_delta":
            self._citations.append(dict(mapping_field(delta, "citation")))
        elif kind == "compaction_delta":
            self._data.update(other_fields(delta, ("type",)))
        else:
            self._deltas.append(dict(delta))
        return []

    def stop(self) -> list[Chunk]:
        text = "".join(self._input)
        if text:
            if (value := parse_arguments(text)) is not None:
                self._data["input"] = value
            else:
                self._deltas.append({"type": "input_json_delta", "partial_json": text})
        if self._citations:
            self._data["citations"] = self._citations
        extra = {"deltas": self._deltas} if self._deltas else None
        return [BlockChunk(block=RawBlock(data=self._data, provider_metadata=extra))]


KINDS: Final[Mapping[str, type[BlockReader]]] = {
    "thinking": ThinkingReader,
    "redacted_thinking": RedactedReader,
    "text": TextReader,
    "tool_use": ToolUseReader,
    "other": OtherReader,
}
