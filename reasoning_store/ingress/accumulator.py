"""Builds one message out of one choice's chunks, in the order in which its blocks began.

What it is given is well formed (``channels`` saw to that), so it only collects: pieces of
text by block, metadata where a later value replaces an earlier one, usage where a later
report fills in what an earlier one lacked. Blocks are never merged and never re-sorted,
but for a ``group``: the entries of one array stand together where its first one began.

Everything that arrived is in the message (BR-002). A thinking block is dropped only when
thought, signature and ciphertext are all empty (EC-002), a text block only when it is
empty and carries nothing opaque.

It knows blocks and chunks. It must not know providers, tags, policy or SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reasoning_store.blocks import (
    Block,
    Message,
    Origin,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Usage,
)
from reasoning_store.chunks import (
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
from reasoning_store.ingress.copies import Copies
from reasoning_store.ingress.jsonable import jsonable
from reasoning_store.wire import neutral


@dataclass(slots=True)
class _Draft:
    """One block under construction."""

    kind: type
    pieces: list[str] = field(default_factory=list)
    """As many as come: nothing is cut (ERR-003)."""
    metadata: dict[str, Any] = field(default_factory=dict)
    interrupted: bool = False
    id: str | None = None
    name: str | None = None
    parameters: Any = None
    complete: bool = False
    whole: Block | None = None


class Accumulator:
    """The message of one choice, as far as it has come."""

    __slots__ = (
        "_about",
        "_drafts",
        "_error",
        "_finish_reason",
        "_model",
        "_response_id",
        "_usage",
    )

    def __init__(self) -> None:
        self._drafts: dict[int, _Draft] = {}
        self._usage: Usage | None = None
        self._finish_reason: str | None = None
        self._response_id: str | None = None
        self._model: str | None = None
        self._about: dict[str, Any] = {}
        self._error: Any = None

    def add(self, chunk: Chunk) -> None:
        """Take in one chunk."""
        step = _STEPS.get(type(chunk))
        if step is not None:
            step(self, chunk)

    def message(
        self,
        *,
        origin: Origin,
        interrupted: bool,
        tag_source: str,
        counters: Mapping[str, int],
        metadata: Mapping[str, Any],
    ) -> Message:
        """Return the message as it stands; ``counters`` that are zero are left out of it."""
        copies = self._copies(tag_source)
        count = dict(counters)
        count["suppressedDuplicates"] = count.get("suppressedDuplicates", 0) + len(copies)
        notes = {**{name: n for name, n in count.items() if n}, **metadata}
        if self._about:
            notes["providerMetadata"] = jsonable(self._about)
        if self._error is not None:
            notes["error"] = jsonable(self._error)
        known = replace(origin, model=origin.model or self._model, response_id=self._response_id)
        return Message(
            role="assistant",
            blocks=tuple(
                block
                for draft in self._in_order()
                if id(draft) not in copies and (block := _finished(draft)) is not None
            ),
            status="interrupted" if interrupted or self._error is not None else "complete",
            origin=None if known == Origin() else known,
            usage=None
            if self._usage is None
            else replace(self._usage, raw=jsonable(self._usage.raw)),
            finish_reason=self._finish_reason,
            metadata=notes or None,
        )

    def _draft(self, number: int | None, kind: type) -> _Draft:
        place = len(self._drafts) if number is None else number
        draft = self._drafts.get(place)
        if draft is None:
            draft = self._drafts[place] = _Draft(kind)
        return draft

    def _text(self, chunk: TextChunk) -> None:
        draft = self._draft(chunk.content_index, TextBlock)
        if chunk.text:
            draft.pieces.append(chunk.text)
        if chunk.metadata:
            _merge(draft.metadata, chunk.metadata)

    def _reasoning(self, chunk: ReasoningChunk) -> None:
        draft = self._draft(chunk.content_index, ThinkingBlock)
        if chunk.text:
            draft.pieces.append(chunk.text)
        if chunk.metadata:
            _merge(draft.metadata, chunk.metadata)
        if chunk.phase == "end":
            draft.interrupted = not chunk.is_complete

    def _tool_call(self, chunk: ToolCallChunk) -> None:
        draft = self._draft(chunk.content_index, ToolCallBlock)
        draft.id = draft.id or chunk.id
        draft.name = draft.name or chunk.name
        if chunk.arguments:
            draft.pieces.append(chunk.arguments)
        if chunk.parameters is not None:
            draft.parameters = chunk.parameters
        draft.complete = draft.complete or chunk.is_complete
        if chunk.metadata:
            _merge(draft.metadata, chunk.metadata)

    def _whole(self, chunk: BlockChunk) -> None:
        self._draft(chunk.content_index, type(chunk.block)).whole = chunk.block

    def _reported(self, chunk: UsageChunk) -> None:
        self._usage = merged_usage(self._usage, chunk.usage)

    def _finish(self, chunk: FinishChunk) -> None:
        self._finish_reason = self._finish_reason or chunk.reason

    def _origin(self, chunk: OriginChunk) -> None:
        self._response_id = self._response_id or chunk.response_id
        self._model = chunk.model or self._model
        if chunk.metadata:
            _merge(self._about, chunk.metadata)

    def _failed(self, chunk: ErrorChunk) -> None:
        self._error = chunk.raw

    def _copies(self, tag_source: str) -> set[int]:
        """Return which thoughts of the text a native field repeats."""
        tagged: list[_Draft] = []
        native: list[_Draft] = []
        for draft in self._drafts.values():
            if draft.kind is ThinkingBlock:
                is_tagged = draft.metadata.get("sourceField") == tag_source
                (tagged if is_tagged else native).append(draft)
        if not tagged or not native:
            return set()
        copies = Copies(draft.pieces for draft in native)
        return {id(draft) for draft in tagged if draft.pieces in copies}

    def _in_order(self) -> Iterator[_Draft]:
        """The blocks as they began, but the entries of one array together."""
        numbered = sorted(self._drafts.items())
        first: dict[str, int] = {}
        for number, draft in numbered:
            if group := draft.metadata.get("group"):
                first.setdefault(group, number)
        order = sorted(
            numbered, key=lambda item: first.get(item[1].metadata.get("group", ""), item[0])
        )
        return (draft for _, draft in order)


_STEPS: dict[type, Callable[[Accumulator, Any], None]] = {
    TextChunk: Accumulator._text,
    ReasoningChunk: Accumulator._reasoning,
    ToolCallChunk: Accumulator._tool_call,
    BlockChunk: Accumulator._whole,
    UsageChunk: Accumulator._reported,
    FinishChunk: Accumulator._finish,
    OriginChunk: Accumulator._origin,
    ErrorChunk: Accumulator._failed,
}


def merged_usage(before: Usage | None, report: Usage) -> Usage:
    """Return a report on top of an earlier one: what is absent in it stays as it was."""
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
        raw=raw if raw is not None else before.raw,
    )


def _merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Later values replace earlier ones; ``providerMetadata`` and its objects grow."""
    for name, value in more.items():
        before = into.get(name)
        if isinstance(before, dict) and isinstance(value, Mapping):
            into[name] = (
                {**before, **value} if name != "providerMetadata" else _grown(before, value)
            )
        else:
            into[name] = value


def _grown(before: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    grown = dict(before)
    _merge(grown, more)
    return grown


def _finished(draft: _Draft) -> Block | None:
    return _BUILDERS.get(draft.kind, _whole_block)(draft)


def _whole_block(draft: _Draft) -> Block | None:
    block = draft.whole
    if block is None:
        return None
    if isinstance(block, RawBlock):
        block = replace(block, data=jsonable(block.data))
    return replace(block, provider_metadata=jsonable(block.provider_metadata) or None)


def _text_block(draft: _Draft) -> Block | None:
    text = "".join(draft.pieces)
    if not text and not draft.metadata:
        return None
    return TextBlock(text=text, provider_metadata=jsonable(draft.metadata) or None)


def _thinking_block(draft: _Draft) -> Block | None:
    thought = "".join(draft.pieces)
    about = draft.metadata
    signature, encrypted = about.get("signature") or None, about.get("encrypted") or None
    # EC-002: empty reasoning is no block; a signature or ciphertext makes it a real one.
    if not thought and signature is None and encrypted is None:
        return None
    return ThinkingBlock(
        thought=thought,
        source_field=about.get("sourceField"),
        is_hidden=not thought,
        signature=signature,
        encrypted=encrypted,
        redacted=bool(about.get("redacted")),
        interrupted=draft.interrupted,
        provider_metadata=jsonable(about.get("providerMetadata")) or None,
    )


def _tool_call_block(draft: _Draft) -> Block | None:
    arguments = "".join(draft.pieces) if draft.pieces else None
    parameters = jsonable(draft.parameters)
    if arguments is not None:
        parameters = neutral.read(arguments, parameters)
    elif parameters is None and draft.complete:
        parameters = {}  # a call of nothing; one that was cut off before it spoke has None
    return ToolCallBlock(
        id=draft.id or "",
        name=draft.name or "",
        parameters=parameters,
        arguments=arguments,
        provider_metadata=jsonable(draft.metadata) or None,
    )


_BUILDERS: dict[type, Callable[[_Draft], Block | None]] = {
    TextBlock: _text_block,
    ThinkingBlock: _thinking_block,
    ToolCallBlock: _tool_call_block,
}
