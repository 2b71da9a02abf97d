"""Chunks: the pieces of a normalised stream.

Adapters in ``wire`` make chunks out of a provider's events; ``ingress`` puts them in order, so that
an application receives well-formed chunks of any stream: each reasoning block has one start before
its deltas and one end, blocks stay apart by ``content_index``, and the finish comes last. A seal
may follow the end of its block, as a delta without text.

``content_index`` is an adapter's own count of the units that its protocol keeps apart; after
ingress it is the block's place in the message. ``None`` from an adapter means that the protocol has
no such count: consecutive pieces of one kind are one block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias, TypeVar

from reasoning_store.conversation.blocks import (
    MediaBlock,
    Metadata,
    RawBlock,
    Usage,
)

Phase: TypeAlias = Literal["start", "delta", "end"]
_NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningChunk:
    """A piece of thinking.

    ``metadata`` holds what belongs to the block and is not its text, under the names of
    ``ThinkingBlock`` in JSON: ``sourceField``, ``signature``, ``encrypted``,
    ``redacted``, ``providerMetadata``. A later value replaces an earlier one. An end with
    ``is_complete`` and a ``text`` states the block's whole text; it is not a further delta.
    """

    provider: str = ""
    phase: Phase = "delta"
    text: str = ""
    content_index: int | None = None
    is_complete: bool = False
    metadata: Metadata = field(default_factory=lambda: _NOTHING)
    choice: int = 0
    type: Literal["reasoning"] = "reasoning"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextChunk:
    """A piece of the visible answer; ``metadata`` becomes its block's ``provider_metadata``."""

    text: str
    content_index: int | None = None
    metadata: Metadata | None = None
    choice: int = 0
    type: Literal["text"] = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallChunk:
    """A piece of a tool call: ``arguments`` is the next piece of the string.

    ``parameters`` is set if the protocol sends arguments as an object. ``is_complete`` is true if
    nothing more of this call comes.
    """

    index: int
    id: str | None = None
    name: str | None = None
    arguments: str = ""
    parameters: Any = None
    is_complete: bool = False
    content_index: int | None = None
    metadata: Metadata | None = None
    choice: int = 0
    type: Literal["tool_call"] = "tool_call"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockChunk:
    """A block that arrives whole: media, or something we have no name for."""

    block: MediaBlock | RawBlock
    content_index: int | None = None
    choice: int = 0
    type: Literal["block"] = "block"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageChunk:
    """The usage reported so far; a later report fills in or replaces fields."""

    usage: Usage
    choice: int = 0
    type: Literal["usage"] = "usage"


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishChunk:
    """The end of one choice, with the provider's own reason."""

    reason: str | None
    choice: int = 0
    type: Literal["finish"] = "finish"


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginChunk:
    """Which response this is: its id and the model that answered.

    ``metadata`` has the provider's other fields of the whole response; it becomes the message's
    ``providerMetadata``, a later value in place of an earlier one.
    """

    response_id: str | None = None
    model: str | None = None
    metadata: Metadata | None = None
    choice: int = 0
    type: Literal["origin"] = "origin"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorChunk:
    """An error that the provider sent inside its stream; the message is interrupted by it."""

    raw: Any
    choice: int = 0
    type: Literal["error"] = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownChunk:
    """An event that an adapter does not know, or that lacks what its kind needs."""

    raw: Any
    choice: int = 0
    type: Literal["unknown"] = "unknown"


Chunk: TypeAlias = (
    ReasoningChunk
    | TextChunk
    | ToolCallChunk
    | BlockChunk
    | UsageChunk
    | FinishChunk
    | OriginChunk
    | ErrorChunk
    | UnknownChunk
)

Delta: TypeAlias = TextChunk | ReasoningChunk | ToolCallChunk
_D = TypeVar("_D", bound=Delta)
TEXT_OF: Final = {"text": "text", "reasoning": "text", "tool_call": "arguments"}
"""The field of each delta that is a piece of a text."""


def text_of(chunk: Chunk) -> str:
    """Return the piece of a text that a chunk holds."""
    text: str = getattr(chunk, TEXT_OF.get(chunk.type, ""), "")
    return text


def with_text(chunk: _D, text: str) -> _D:
    """Return a delta with another piece of text; the same one if it is that already."""
    changed: dict[str, Any] = {TEXT_OF[chunk.type]: text}
    return chunk if text == text_of(chunk) else replace(chunk, **changed)
