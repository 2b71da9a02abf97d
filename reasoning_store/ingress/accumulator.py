"""Builds one message out of one choice's chunks, in the order in which its blocks began.

``channels`` made the chunks well formed, so that pieces are only collected here: text by block,
metadata in which a later value replaces an earlier one, usage in which a later report fills in
absent numbers. Blocks are never merged and never re-sorted, except that the entries of one array
(``group``) stay together where the first of them began.

The message has everything that arrived (BR-002). A thinking block is left out only when thought,
signature and ciphertext are all empty (EC-002), a text block only when it is empty and carries
nothing opaque.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, TypeVar

from reasoning_store.conversation.blocks import (
    Block,
    Message,
    Origin,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Usage,
)
from reasoning_store.conversation.chunks import (
    BlockChunk,
    Chunk,
    ErrorChunk,
    FinishChunk,
    OriginChunk,
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
    UsageChunk,
)
from reasoning_store.conversation.json_values import make_json
from reasoning_store.ingress.duplicates import find_copies
from reasoning_store.ingress.reply_counters import Counters
from reasoning_store.ingress.text_channel import TAG_SOURCE
from reasoning_store.wire.tools import parse_arguments

_STILL_RUNNING: Final = ("in_progress",)
"""The finish reasons of a reply that was read before its end, e.g. an agent's at Google."""


@dataclass(slots=True)
class _Unfinished:
    """A block that is arriving; of its pieces, however many, none is cut off (ERR-003)."""

    type: ClassVar[str]
    pieces: list[str] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)

    def build(self) -> Block | None:
        """Return the block so far, or None while it is empty."""
        raise NotImplementedError


_B = TypeVar("_B", bound=_Unfinished)


class Accumulator:
    """The message of one choice, as far as it has come."""

    def __init__(self) -> None:
        self._blocks: dict[int, _Unfinished] = {}
        self._usage: Usage | None = None
        self._finish_reason: str | None = None
        self._response_id: str | None = None
        self._model: str | None = None
        self._metadata: dict[str, Any] = {}
        self._error: Any = None

    def add(self, chunk: Chunk) -> None:
        """Add one chunk."""
        match chunk:
            case ReasoningChunk():
                self._block(chunk.content_index, _Thought).add(chunk)
            case TextChunk():
                self._block(chunk.content_index, _Text).add(chunk)
            case ToolCallChunk():
                self._block(chunk.content_index, _Call).add(chunk)
            case BlockChunk():
                self._block(chunk.content_index, _Whole).block = chunk.block
            case UsageChunk():
                self._usage = merge_usage(self._usage, chunk.usage)
            case FinishChunk():
                self._finish_reason = self._finish_reason or chunk.reason
            case OriginChunk():
                self._response_id = self._response_id or chunk.response_id
                self._model = chunk.model or self._model
                _merge(self._metadata, chunk.metadata)
            case ErrorChunk():
                self._error = chunk.raw
            case _:
                pass  # an event that was not understood is no part of a block

    def _block(self, index: int | None, kind: type[_B]) -> _B:
        place = len(self._blocks) if index is None else index
        block = self._blocks.get(place)
        if not isinstance(block, kind):
            block = self._blocks[place] = kind()
        return block

    @property
    def usage(self) -> Usage | None:
        return self._usage

    @property
    def finish_reason(self) -> str | None:
        return self._finish_reason

    @property
    def has_block_or_end(self) -> bool:
        """Whether a block, an end or an error came: more than the origin and the usage."""
        return bool(self._blocks or self._finish_reason or self._error is not None)

    def build(
        self,
        *,
        origin: Origin,
        interrupted: bool,
        counters: Counters,
        metadata: Mapping[str, Any],
    ) -> Message:
        """Return the message so far."""
        suppressed = counters.suppressed_duplicates + len(self._find_copies())
        notes = {**replace(counters, suppressed_duplicates=suppressed).to_metadata(), **metadata}
        if self._metadata:
            notes["providerMetadata"] = make_json(self._metadata)
        if self._error is not None:
            notes["error"] = make_json(self._error)
        is_partial = interrupted or self._error is not None or self._finish_reason in _STILL_RUNNING
        known = replace(origin, model=origin.model or self._model, response_id=self._response_id)
        usage = self._usage
        return Message(
            role="assistant",
            blocks=tuple([block for _, _, block in self.indexed() if block is not None]),
            status="interrupted" if is_partial else "complete",
            origin=None if known == Origin() else known,
            usage=None if usage is None else replace(usage, raw=make_json(usage.raw)),
            finish_reason=self._finish_reason,
            metadata=notes or None,
        )

    def indexed(self) -> list[tuple[int, str, Block | None]]:
        """Return the blocks that began: the ``content_index`` of their chunks, type and content."""
        copies = self._find_copies()
        return [
            (index, unfinished.type, unfinished.build())
            for index, unfinished in self._in_order()
            if index not in copies
        ]

    def _find_copies(self) -> set[int]:
        """Return the indices of thoughts of the text that a native field repeats."""
        tagged: dict[int, list[str]] = {}
        native: list[list[str]] = []
        for index, block in self._blocks.items():
            if not isinstance(block, _Thought):
                continue
            if block.metadata.get("sourceField") == TAG_SOURCE:
                tagged[index] = block.pieces
            else:
                native.append(block.pieces)
        if not tagged or not native:
            return set()
        copies = find_copies([*tagged.values()], native)
        return {index for index, is_copy in zip(tagged, copies, strict=True) if is_copy}

    def _in_order(self) -> Iterator[tuple[int, _Unfinished]]:
        """The blocks as they began, the entries of one array together."""
        numbered = sorted(self._blocks.items())
        first: dict[str, int] = {}
        for index, block in numbered:
            if group := block.metadata.get("group"):
                first.setdefault(group, index)
        yield from sorted(
            numbered, key=lambda item: first.get(item[1].metadata.get("group", ""), item[0])
        )


@dataclass(slots=True)
class _Text(_Unfinished):
    type: ClassVar = "text"

    def add(self, chunk: TextChunk) -> None:
        if chunk.text:
            self.pieces.append(chunk.text)
        _merge(self.metadata, chunk.metadata)

    def build(self) -> Block | None:
        text = "".join(self.pieces)
        if not text and not self.metadata:
            return None
        return TextBlock(text=text, provider_metadata=make_json(self.metadata) or None)


@dataclass(slots=True)
class _Thought(_Unfinished):
    type: ClassVar = "thinking"
    interrupted: bool = False

    def add(self, chunk: ReasoningChunk) -> None:
        if chunk.text and chunk.phase == "end":
            self.pieces.clear()  # the end states the whole
        if chunk.text:
            self.pieces.append(chunk.text)
        _merge(self.metadata, chunk.metadata)
        if chunk.phase == "end":
            self.interrupted = not chunk.is_complete

    def build(self) -> Block | None:
        thought = "".join(self.pieces)
        metadata = self.metadata
        signature = metadata.get("signature") or None
        encrypted = metadata.get("encrypted") or None
        # EC-002: empty reasoning is no block; a signature or ciphertext makes it a real one.
        if not thought and signature is None and encrypted is None:
            return None
        return ThinkingBlock(
            thought=thought,
            source_field=metadata.get("sourceField"),
            is_hidden=not thought,
            signature=signature,
            encrypted=encrypted,
            redacted=bool(metadata.get("redacted")),
            interrupted=self.interrupted,
            provider_metadata=make_json(metadata.get("providerMetadata")) or None,
        )


@dataclass(slots=True)
class _Call(_Unfinished):
    type: ClassVar = "tool_call"
    id: str | None = None
    name: str | None = None
    parameters: Any = None
    complete: bool = False

    def add(self, chunk: ToolCallChunk) -> None:
        self.id = self.id or chunk.id
        self.name = self.name or chunk.name
        if chunk.arguments:
            self.pieces.append(chunk.arguments)
        if chunk.parameters is not None:
            self.parameters = chunk.parameters
        self.complete = self.complete or chunk.is_complete
        _merge(self.metadata, chunk.metadata)

    def build(self) -> Block | None:
        arguments = "".join(self.pieces) if self.pieces else None
        parameters = make_json(self.parameters)
        if arguments is not None:
            parameters = parse_arguments(arguments, parameters)
        elif parameters is None and self.complete:
            parameters = {}  # a complete call without arguments; a cut off one has None
        return ToolCallBlock(
            id=self.id or "",
            name=self.name or "",
            parameters=parameters,
            arguments=arguments,
            provider_metadata=make_json(self.metadata) or None,
        )


@dataclass(slots=True)
class _Whole(_Unfinished):
    type: ClassVar = "raw"
    block: Block | None = None

    def build(self) -> Block | None:
        block = self.block
        if block is None:
            return None
        if isinstance(block, RawBlock):
            block = replace(block, data=make_json(block.data))
        return replace(block, provider_metadata=make_json(block.provider_metadata) or None)


def merge_usage(before: Usage | None, report: Usage) -> Usage:
    """Return a report on top of an earlier one, whose numbers fill in absent ones."""
    if before is None:
        return report
    raw = report.raw
    if isinstance(before.raw, Mapping) and isinstance(report.raw, Mapping):
        raw = {**before.raw, **{k: v for k, v in report.raw.items() if v is not None}}
    return Usage(
        input=report.input if report.input is not None else before.input,
        output=report.output if report.output is not None else before.output,
        reasoning=report.reasoning if report.reasoning is not None else before.reasoning,
        cached=report.cached if report.cached is not None else before.cached,
        cache_write=(report.cache_write if report.cache_write is not None else before.cache_write),
        raw=raw if raw is not None else before.raw,
    )


def _merge(into: dict[str, Any], more: Mapping[str, Any] | None) -> None:
    """Replace earlier values by later ones; ``providerMetadata`` and its objects grow."""
    for name, value in (more or {}).items():
        before = into.get(name)
        if isinstance(before, dict) and isinstance(value, Mapping):
            grown = dict(before)
            if name == "providerMetadata":
                _merge(grown, value)
            else:
                grown.update(value)
            into[name] = grown
        else:
            into[name] = value
