"""One content block of Bedrock's Converse protocol: how it grows and stops.

Only calls, tool results and images are announced; thinking and text begin with their first
delta. A thought's signature replaces the one before. Redacted content is bytes that may come
in pieces, joined before they become base64: a part of a ciphertext is no ciphertext. A whole
block's names differ from its deltas' (``reasoningText.text``, ``text``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, get_args

from reasoning_store.conversation.blocks import (
    MediaBlock,
    MediaKind,
    RawBlock,
)
from reasoning_store.conversation.chunks import (
    BlockChunk,
    Chunk,
)
from reasoning_store.conversation.json_values import make_json
from reasoning_store.wire.content_blocks import (
    BlockReader,
    CallReader,
    Data,
    TextReader,
    ThoughtReader,
)
from reasoning_store.wire.event_fields import (
    Malformed,
    mapping_field,
    optional_string_field,
    other_fields,
    string_field,
)
from reasoning_store.wire.media import (
    as_bytes,
    in_base64,
)
from reasoning_store.wire.tools import parse_arguments

_REDACTED_METADATA: Final = {"block_type": "redactedContent", "encoding": "base64"}


class ReasoningReader(ThoughtReader):
    """A thought, signed (Claude) or not (DeepSeek, gpt-oss, Nova)."""

    source = "reasoningContent.reasoningText"

    def add_delta(self, delta: Data) -> list[Chunk]:
        text = optional_string_field(delta, "text") or ""
        signature = optional_string_field(delta, "signature") or ""
        if not (text or signature):
            return []
        return [self.thought("delta", text, **({"signature": signature} if signature else {}))]


class RedactedReader(ThoughtReader):
    """A thought that is ciphertext."""

    source = "reasoningContent.redactedContent"

    def __init__(self, number: int, provider: str) -> None:
        super().__init__(number, provider)
        self._pieces: list[bytes] = []

    def add_delta(self, delta: Data) -> list[Chunk]:
        self._pieces.append(_bytes(delta.get("redactedContent")))
        return [self.thought("start")] if len(self._pieces) == 1 else []

    def stop(self) -> list[Chunk]:
        data = b"".join(self._pieces)
        if not data:
            return [self.thought("end")]
        return [
            self.thought(
                "end",
                encrypted=in_base64(data),
                redacted=True,
                providerMetadata=_REDACTED_METADATA,
            )
        ]


class CitedTextReader(TextReader):
    """Visible text, and its citations."""

    def add_delta(self, delta: Data) -> list[Chunk]:
        if "citation" in delta:
            return self.add_citation(as_json(mapping_field(delta, "citation")))
        return self.add_text(string_field(delta, "text"))


class ToolUseReader(CallReader):
    """A call of the application's tools."""

    def open(self, data: Data) -> list[Chunk]:
        extra = as_json(other_fields(data, ("toolUseId", "name", "input", "type")))
        call_id, name = string_field(data, "toolUseId"), string_field(data, "name")
        return self.open_call(call_id, name, as_json(data.get("input")), extra)

    def add_delta(self, delta: Data) -> list[Chunk]:
        return self.add_input(string_field(mapping_field(delta, "toolUse"), "input"))


class OtherReader(BlockReader):
    """A block of Bedrock's own tools, or an image: whole once it stops."""

    def open(self, kind: str, data: Data) -> list[Chunk]:
        self._kind = kind
        self._data: dict[str, Any] = as_json(data)
        self._input: list[str] = []
        self._content: list[Any] = []
        self._image: list[bytes] = []
        whole_block(kind, self._data)  # a block that cannot be stored is refused at once
        return []

    def add_delta(self, delta: Data) -> list[Chunk]:
        if "toolUse" in delta:
            self._input.append(string_field(mapping_field(delta, "toolUse"), "input"))
        elif isinstance(delta.get("toolResult"), list):
            self._content += as_json(delta["toolResult"])
        elif "image" in delta:
            image = mapping_field(delta, "image")
            source = image.get("source")
            if isinstance(source, Mapping) and "bytes" in source:
                self._image.append(_bytes(source["bytes"]))
            else:
                self._data.update(as_json(image))
        else:
            raise Malformed
        return []

    def stop(self) -> list[Chunk]:
        if self._input:
            text = "".join(self._input)
            self._data["input"] = parse_arguments(text, text)
        if self._content:
            self._data["content"] = self._content
        if self._image:
            self._data["source"] = {"bytes": make_json(b"".join(self._image))}
        return [whole_block(self._kind, self._data)]


def whole_block(kind: str, data: Any) -> BlockChunk:
    """Return the block of JSON that is there at once: media where we have a block for it."""
    if kind in get_args(MediaKind) and isinstance(data, Mapping):
        media = _media(kind, data)
        if media is not None:
            return BlockChunk(block=media)
    return BlockChunk(block=RawBlock(data={kind: data}))


def _media(kind: Any, data: Data) -> MediaBlock | None:
    source, form = data.get("source"), data.get("format")
    held = source.get("bytes") if isinstance(source, Mapping) else None
    held = None if held is None else _bytes(held)
    if not (isinstance(source, Mapping) and isinstance(form, str)) or data.get("error"):
        return None
    mime = f"{kind}/{form}"
    if held is not None:
        return MediaBlock(kind=kind, mime_type=mime, data=held)
    place = source.get("s3Location")
    if isinstance(place, Mapping) and isinstance(place.get("uri"), str):
        extra = other_fields(place, ("uri",))
        return MediaBlock(
            kind=kind, mime_type=mime, url=place["uri"], provider_metadata=extra or None
        )
    return None


def _bytes(value: Any) -> bytes:
    data = as_bytes(value)
    if data is None:
        raise Malformed
    return data


def as_json(value: Any) -> Any:
    """Return a value with its bytes in base64; one that is too deep raises."""
    if isinstance(value, Mapping):
        return {name: as_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    return make_json(value) if isinstance(value, bytes | bytearray) else value
