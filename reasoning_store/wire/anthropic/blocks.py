"""One content block of the Messages protocol: how it opens, grows and stops.

A block opens with the fields known at its start, which in a whole message are all of them;
deltas add to it; its stop gives the chunks that had to wait. ``open`` checks before it
remembers, so that a malformed block leaves no trace. Thinking, redacted thinking, text and
tool use are blocks of ours; every other is stored whole, its deltas put in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from reasoning_store.conversation.blocks import RawBlock
from reasoning_store.conversation.chunks import (
    BlockChunk,
    Chunk,
    TextChunk,
)
from reasoning_store.wire.content_blocks import (
    BlockReader,
    CallReader,
    Data,
    TextReader,
    ThoughtReader,
)
from reasoning_store.wire.event_fields import (
    mapping_field,
    optional_string_field,
    other_fields,
    plain_value,
    string_field,
)
from reasoning_store.wire.tools import parse_arguments

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


class ThinkingReader(ThoughtReader):
    """A thought and its signature; either may be empty, and the block is real (EC-002)."""

    source = "thinking"

    def open(self, data: Data) -> list[Chunk]:
        text = optional_string_field(data, "thinking") or ""
        signature = optional_string_field(data, "signature") or ""
        extra = other_fields(data, ("type", "thinking", "signature"))
        about: dict[str, Any] = {"providerMetadata": extra} if extra else {}
        chunks: list[Chunk] = [self.thought("start", **about)]
        if text or signature or extra:
            signed = {"signature": signature} if signature else {}
            chunks.append(self.thought("delta", text, **about, **signed))
        return chunks

    def add_delta(self, delta: Data) -> list[Chunk]:
        if delta["type"] == "thinking_delta":
            text = string_field(delta, "thinking")
            return [self.thought("delta", text)] if text else []
        signature = string_field(delta, "signature")
        return [self.thought("delta", signature=signature)] if signature else []


class RedactedReader(ThinkingReader):
    """Thinking that arrives whole, as ciphertext, in the event that opens it."""

    source = "redacted_thinking"

    def open(self, data: Data) -> list[Chunk]:
        extra = {"block_type": "redacted_thinking", **other_fields(data, ("type", "data"))}
        ciphertext = string_field(data, "data")
        return [self.thought("start", encrypted=ciphertext, redacted=True, providerMetadata=extra)]


class CitedTextReader(TextReader):
    """Visible text, and its citations."""

    def open(self, data: Data) -> list[Chunk]:
        text = string_field(data, "text")
        extra = other_fields(data, ("type", "text", "citations", "parsed_output"))
        citations = data.get("citations")
        if isinstance(citations, list) and citations:
            extra["citations"] = self.citations = list(citations)
        if not (text or extra):
            return []
        return [TextChunk(text=text, content_index=self.number, metadata=extra or None)]

    def add_delta(self, delta: Data) -> list[Chunk]:
        if delta["type"] == "text_delta":
            return self.add_text(string_field(delta, "text"))
        return self.add_citation(dict(mapping_field(delta, "citation")))


class ToolUseReader(CallReader):
    """A call of the application's tools."""

    def open(self, data: Data) -> list[Chunk]:
        extra = other_fields(data, ("type", "id", "name", "input"))
        whole = plain_value(data.get("input"))
        return self.open_call(string_field(data, "id"), string_field(data, "name"), whole, extra)

    def add_delta(self, delta: Data) -> list[Chunk]:
        return self.add_input(string_field(delta, "partial_json"))


class OtherReader(BlockReader):
    """A block of Anthropic's own tools, or of a kind that is newer than this code."""

    def open(self, data: Data) -> list[Chunk]:
        self._data = dict(data)
        self._input: list[str] = []
        self._citations: list[Any] = []
        self._deltas: list[Any] = []
        return []

    def add_delta(self, delta: Data) -> list[Chunk]:
        kind = delta["type"]
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


AnthropicBlock: TypeAlias = ThinkingReader | CitedTextReader | ToolUseReader | OtherReader
KINDS: Final[Mapping[str, type[AnthropicBlock]]] = {
    "thinking": ThinkingReader,
    "redacted_thinking": RedactedReader,
    "text": CitedTextReader,
    "tool_use": ToolUseReader,
    "other": OtherReader,
}
