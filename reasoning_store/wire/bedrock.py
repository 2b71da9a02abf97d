"""Amazon Bedrock's Converse protocol: a message of content blocks, and a stream of events.

Theory. Every event is an object with one member, whose name says what it is; so is every
content block and every delta. A stream numbers its blocks (``contentBlockIndex``) but
announces only some of them: thinking and text open with the first delta of a new index.
Usage comes after the end. An exception is an event too. Models of many makers speak this
protocol: Claude signs its thoughts, others do not. What each kind of block says is in
``bedrock_blocks``.

This module knows Bedrock's words; it must not know what a block becomes, nor any policy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from reasoning_store.blocks import Usage
from reasoning_store.chunks import (
    Chunk,
    ErrorChunk,
    FinishChunk,
    OriginChunk,
    TextChunk,
    UsageChunk,
)
from reasoning_store.errors import WireError
from reasoning_store.wire import contracts, thinking_events
from reasoning_store.wire.base import plain, unknown, whole_number, without
from reasoning_store.wire.bedrock_blocks import (
    OpenBlock,
    Other,
    Reasoning,
    Redacted,
    Text,
    ToolUse,
    as_json,
    whole,
)
from reasoning_store.wire.contracts import Contract
from reasoning_store.wire.reading import Malformed, index, kept, mapping, string, with_unread

Event = Mapping[str, Any]

_KINDS: Final[Mapping[str, type[OpenBlock]]] = {
    "text": Text,
    "reasoning": Reasoning,
    "redacted": Redacted,
    "call": ToolUse,
    "other": Other,
}
_REASONING: Final[Mapping[str, str]] = {
    "text": "reasoning",
    "signature": "reasoning",
    "redactedContent": "redacted",
}
"""Which kind of block each member of a thought's delta adds to."""


_WHOLE: Final = ("additionalModelResponseFields", "performanceConfig", "serviceTier", "trace")
"""What belongs to the response as a whole, e.g. what a guardrail found in it."""


class Adapter:
    """The reader of one stream."""

    id = "bedrock.converse"

    def __init__(self, contract: Contract) -> None:
        self._provider = contract.provider or ""
        self.reset()

    def can_handle(self, model: str | None, provider: str | None) -> bool:
        return contracts.speaks(provider, model, self.id)

    def reset(self) -> None:
        # By index and kind: a delta that does not fit the block at its index is no part of it.
        self._open: dict[tuple[int, str], OpenBlock] = {}
        self._units = 0

    def flush(self) -> list[Chunk]:
        """Return the blocks of Bedrock's own that the stream did not live to end."""
        left = [key for key in self._open if key[1] == "other"]
        return [chunk for key in left for chunk in self._open.pop(key).stop()]

    def parse_chunk(self, raw: Any) -> list[Chunk]:
        event = plain(raw)
        if not isinstance(event, Mapping):
            return unknown(raw)
        if isinstance(event.get("type"), str):
            return thinking_events.parse_event(event, self._provider)
        try:
            name, _ = _member(event)
            read = Adapter._failed if name.endswith("Exception") else _EVENTS.get(name)
            return read(self, event) if read is not None else unknown(raw)
        except (Malformed, RecursionError):
            return unknown(raw)

    def _message_start(self, event: Event) -> list[Chunk]:
        string(mapping(event, "messageStart"), "role")
        return []

    def _block_start(self, event: Event) -> list[Chunk]:
        data = mapping(event, "contentBlockStart")
        place = index(data, "contentBlockIndex")
        kind, start = _member(mapping(data, "start"))
        if not isinstance(start, Mapping):
            raise Malformed
        return self._announce(place, kind, start)

    def _announce(self, place: int, kind: str, start: Event) -> list[Chunk]:
        block: OpenBlock
        # A call of a server's tool is not the application's to answer.
        if kind == "toolUse" and start.get("type") is None:
            name, block = "call", ToolUse(self._units, self._provider)
            opened = block.open(start)
        else:
            name, block = "other", Other(self._units, self._provider)
            opened = block.open(kind, start)
        stopped = self._stop(place)
        self._remember(place, name, block)
        return [*stopped, *opened]

    def _block_delta(self, event: Event) -> list[Chunk]:
        data = mapping(event, "contentBlockDelta")
        place = index(data, "contentBlockIndex")
        delta = mapping(data, "delta")
        kind, value = _member(delta)
        if kind == "reasoningContent":
            kinds = {_REASONING.get(name, "") for name in _members(value)}
            if len(kinds) != 1:
                raise Malformed
            return self._grow(place, kinds.pop(), value)
        if kind in ("text", "citation"):
            return self._grow(place, "text", delta)
        if kind == "toolUse" and (place, "call") in self._open:
            return self._open[place, "call"].grow(delta)
        if (place, "other") in self._open:
            return self._open[place, "other"].grow(delta)
        raise Malformed  # what is announced cannot be read from its middle

    def _grow(self, place: int, kind: str, delta: Event) -> list[Chunk]:
        """Add to the block at this index, which its first delta opens."""
        block = self._open.get((place, kind))
        if block is not None:
            return block.grow(delta)
        if kind not in _KINDS:
            raise Malformed
        block = _KINDS[kind](self._units, self._provider)
        chunks = block.grow(delta)
        self._remember(place, kind, block)
        return chunks

    def _block_stop(self, event: Event) -> list[Chunk]:
        return self._stop(index(mapping(event, "contentBlockStop"), "contentBlockIndex"))

    def _remember(self, place: int, kind: str, block: OpenBlock) -> None:
        self._open[place, kind] = block
        self._units += 1

    def _stop(self, place: int) -> list[Chunk]:
        chunks: list[Chunk] = []
        for kind in _KINDS:
            block = self._open.pop((place, kind), None)
            if block is not None:
                chunks += block.stop()
        return chunks

    def _message_stop(self, event: Event) -> list[Chunk]:
        stop = mapping(event, "messageStop")
        reason = string(stop, "stopReason")
        wrong: list[Any] = []
        chunks = _about(stop, wrong)
        for place in sorted({place for place, _ in self._open}):
            chunks += self._stop(place)
        return with_unread([*chunks, FinishChunk(reason=reason)], wrong)

    def _metadata(self, event: Event) -> list[Chunk]:
        wrong: list[Any] = []
        data = mapping(event, "metadata")
        return with_unread([*_about(data, wrong), *_usage(data, wrong)], wrong)

    def _failed(self, event: Event) -> list[Chunk]:
        _, error = _member(event)
        if not isinstance(error, Mapping):
            raise Malformed
        return [ErrorChunk(raw=as_json(event))]

    def read_block(self, place: int, data: Any) -> list[Chunk]:
        """Return a whole content block as its stream would have told it."""
        kind, value = _member(data)
        if kind == "text":
            return [*self._grow(place, "text", data), *self._stop(place)]
        if kind == "reasoningContent":
            if "reasoningText" in _members(value):
                string(mapping(value, "reasoningText"), "text")
                grown = self._grow(place, "reasoning", value["reasoningText"])
            else:
                grown = self._grow(place, "redacted", value)
            return [*grown, *self._stop(place)]
        if kind == "toolUse" and isinstance(value, Mapping) and value.get("type") is None:
            return [*self._announce(place, kind, value), *self._stop(place)]
        if kind == "citationsContent" and isinstance(value, Mapping):
            return self._cited(value)
        return [whole(kind, as_json(value))]

    def _cited(self, data: Event) -> list[Chunk]:
        content, citations = data.get("content"), data.get("citations")
        if not isinstance(content, list) or not isinstance(citations, list | None):
            raise Malformed
        text = "".join(string(_members(part), "text") for part in content)
        metadata = {"citations": as_json(citations)} if citations else None
        self._units += 1
        return [TextChunk(text=text, content_index=self._units - 1, metadata=metadata)]


_EVENTS: Final[Mapping[str, Callable[[Adapter, Event], list[Chunk]]]] = {
    "messageStart": Adapter._message_start,
    "contentBlockStart": Adapter._block_start,
    "contentBlockDelta": Adapter._block_delta,
    "contentBlockStop": Adapter._block_stop,
    "messageStop": Adapter._message_stop,
    "metadata": Adapter._metadata,
}


def _members(data: Any) -> dict[str, Any]:
    """Return the members that are set."""
    if not isinstance(data, Mapping):
        raise Malformed
    return {str(name): value for name, value in data.items() if value is not None}


def _member(data: Any) -> tuple[str, Any]:
    """Return the one member that is set."""
    members = _members(data)
    if len(members) != 1:
        raise Malformed
    return members.popitem()


def _about(holder: Mapping[str, Any], wrong: list[Any]) -> list[Chunk]:
    """Return what is said of the response as a whole and of none of its blocks."""
    said = {name: kept(holder.get(name), as_json, wrong) for name in _WHOLE}
    found = without(said, ())
    return [OriginChunk(metadata=found)] if found else []


def _usage(holder: Mapping[str, Any], wrong: list[Any]) -> list[Chunk]:
    reported = holder.get("usage")
    if reported is None:
        return []
    if not isinstance(reported, Mapping):
        wrong.append(reported)
        return []
    usage = Usage(
        input=whole_number(reported.get("inputTokens")),
        output=whole_number(reported.get("outputTokens")),
        cached=whole_number(reported.get("cacheReadInputTokens")),
        raw=reported,
    )
    return [UsageChunk(usage=usage)]


def parse_response(body: Any, contract: Contract) -> list[Chunk]:
    """Return a whole response as chunks."""
    response = plain(body)
    if not isinstance(response, Mapping):
        raise WireError("bedrock.converse: the response is not an object")
    output = response.get("output")
    message = output.get("message") if isinstance(output, Mapping) else None
    content = message.get("content") if isinstance(message, Mapping) else None
    if not isinstance(content, list):
        raise WireError("bedrock.converse: the response has no output.message.content list")
    adapter = Adapter(contract)
    wrong: list[Any] = []
    chunks: list[Chunk] = []
    for place, block in enumerate(content):
        try:
            chunks += adapter.read_block(place, block)
        except (Malformed, RecursionError):
            wrong.append(block)
    chunks += [*_about(response, wrong), *_usage(response, wrong)]
    reason = response.get("stopReason")
    if isinstance(reason, str):
        chunks.append(FinishChunk(reason=reason))
    elif reason is not None:
        wrong.append(reason)
    return with_unread(chunks, wrong)
