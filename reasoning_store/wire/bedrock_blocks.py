"""One content block of Bedrock's Converse protocol: how it grows and stops.

Theory. Only calls, tool results and images are announced; thinking and text begin with their
first delta. A thought's signature replaces; redacted content is bytes that may come in
pieces, which are joined as bytes before they become base64, and only once they are all there:
a part of a ciphertext is no ciphertext. The names of a whole block differ from those of its
deltas (``reasoningText.text``, ``text``); both end up in the same block.

This module knows blocks. It must not know how a stream numbers them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Final, get_args

from reasoning_store.blocks import MediaBlock, MediaKind, RawBlock
from reasoning_store.chunks import BlockChunk, Chunk, ReasoningChunk, TextChunk, ToolCallChunk
from reasoning_store.wire import neutral
from reasoning_store.wire.base import without
from reasoning_store.wire.binary import as_base64, as_bytes, marked
from reasoning_store.wire.reading import Malformed, mapping, optional_string, string

Data = Mapping[str, Any]

_TEXT_SOURCE: Final[Mapping[str, Any]] = {"sourceField": "reasoningContent.reasoningText"}
_REDACTED_SOURCE: Final[Mapping[str, Any]] = {"sourceField": "reasoningContent.redactedContent"}
_REDACTED_METADATA: Final = {"block_type": "redactedContent", "encoding": "base64"}


class OpenBlock(ABC):
    """What the kinds of blocks have in common."""

    __slots__ = ("number", "provider")

    def __init__(self, number: int, provider: str) -> None:
        self.number = number
        self.provider = provider

    @abstractmethod
    def grow(self, delta: Data) -> list[Chunk]:
        """Say what a delta adds; refuse one that the block's kind does not allow."""

    def stop(self) -> list[Chunk]:
        """Say what could not be said before."""
        return []


class Reasoning(OpenBlock):
    """A thought, signed (Claude) or not (DeepSeek, gpt-oss, Nova)."""

    __slots__ = ()

    def grow(self, delta: Data) -> list[Chunk]:
        text = optional_string(delta, "text") or ""
        signature = optional_string(delta, "signature") or ""
        metadata = {**_TEXT_SOURCE, "signature": signature} if signature else _TEXT_SOURCE
        if not (text or signature):
            return []
        return [
            ReasoningChunk(
                provider=self.provider,
                text=text,
                content_index=self.number,
                metadata=metadata,
            )
        ]

    def stop(self) -> list[Chunk]:
        return [
            ReasoningChunk(
                provider=self.provider,
                phase="end",
                content_index=self.number,
                is_complete=True,
                metadata=_TEXT_SOURCE,
            )
        ]


class Redacted(OpenBlock):
    """A thought that is ciphertext."""

    __slots__ = ("_pieces",)

    def __init__(self, number: int, provider: str) -> None:
        super().__init__(number, provider)
        self._pieces: list[bytes] = []

    def grow(self, delta: Data) -> list[Chunk]:
        self._pieces.append(_bytes(delta.get("redactedContent")))
        if len(self._pieces) > 1:
            return []
        return [
            ReasoningChunk(
                provider=self.provider,
                phase="start",
                content_index=self.number,
                metadata=_REDACTED_SOURCE,
            )
        ]

    def stop(self) -> list[Chunk]:
        data = b"".join(self._pieces)
        metadata: Mapping[str, Any] = _REDACTED_SOURCE
        if data:
            metadata = {
                **metadata,
                "encrypted": as_base64(data),
                "redacted": True,
                "providerMetadata": _REDACTED_METADATA,
            }
        return [
            ReasoningChunk(
                provider=self.provider,
                phase="end",
                content_index=self.number,
                is_complete=True,
                metadata=metadata,
            )
        ]


class Text(OpenBlock):
    """What was said, and what it cites."""

    __slots__ = ("_citations",)

    def __init__(self, number: int, provider: str) -> None:
        super().__init__(number, provider)
        self._citations: list[Any] = []

    def grow(self, delta: Data) -> list[Chunk]:
        if "citation" not in delta:
            text = string(delta, "text")
            return [TextChunk(text=text, content_index=self.number)] if text else []
        self._citations.append(as_json(mapping(delta, "citation")))
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
        beside = without(data, ("toolUseId", "name", "input"))
        self._begun = False
        self._input = as_json(data.get("input"))
        call = ToolCallChunk(
            index=self.number,
            id=string(data, "toolUseId"),
            name=string(data, "name"),
            metadata=as_json(beside) or None,
        )
        return [call]

    def grow(self, delta: Data) -> list[Chunk]:
        piece = string(mapping(delta, "toolUse"), "input")
        self._begun = self._begun or bool(piece)
        return [ToolCallChunk(index=self.number, arguments=piece)] if piece else []

    def stop(self) -> list[Chunk]:
        parameters = None if self._begun else self._input
        return [ToolCallChunk(index=self.number, parameters=parameters, is_complete=True)]


class Other(OpenBlock):
    """A block of Bedrock's own tools, or an image: whole once it stops."""

    __slots__ = ("_content", "_data", "_image", "_input", "_kind")

    def open(self, kind: str, data: Data) -> list[Chunk]:
        self._kind = kind
        self._data: dict[str, Any] = as_json(data)
        self._input: list[str] = []
        self._content: list[Any] = []
        self._image: list[bytes] = []
        whole(kind, self._data)  # what could not be said at the end is refused at once
        return []

    def grow(self, delta: Data) -> list[Chunk]:
        if "toolUse" in delta:
            self._input.append(string(mapping(delta, "toolUse"), "input"))
        elif isinstance(delta.get("toolResult"), list):
            self._content += as_json(delta["toolResult"])
        elif "image" in delta:
            image = mapping(delta, "image")
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
            self._data["input"] = neutral.read(text, text)
        if self._content:
            self._data["content"] = self._content
        if self._image:
            self._data["source"] = {"bytes": marked(b"".join(self._image))}
        return [whole(self._kind, self._data)]


def whole(kind: str, data: Any) -> BlockChunk:
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
        beside = without(place, ("uri",))
        return MediaBlock(
            kind=kind, mime_type=mime, url=place["uri"], provider_metadata=beside or None
        )
    return None


def _bytes(value: Any) -> bytes:
    data = as_bytes(value)
    if data is None:
        raise Malformed
    return data


def as_json(value: Any) -> Any:
    """Return a value that JSON can hold: bytes are marked, and in base64."""
    if isinstance(value, Mapping):
        return {name: as_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, bytes | bytearray):
        return marked(value)
    return value
