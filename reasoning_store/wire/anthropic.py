"""Anthropic's Messages protocol: a message of content blocks, and a stream of events.

Theory. A stream opens a block with what it is, grows it by deltas and stops it; blocks are
numbered by ``index`` and never merge (a message may think, speak, think again and call). A
whole message is read as a stream in which every block was complete when it opened. What
each kind of block says is in ``anthropic_blocks``.

The official SDK's ``stream()`` helper yields events of its own beside the raw ones, and puts
snapshots into some; they repeat what the raw ones say, and are passed over.

This module knows Anthropic's words; it must not know what a block becomes, nor any policy.
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
    UnknownChunk,
    UsageChunk,
)
from reasoning_store.errors import WireError
from reasoning_store.wire import contracts, thinking_events
from reasoning_store.wire.anthropic_blocks import BEGINS, DELTAS, KINDS, OpenBlock
from reasoning_store.wire.base import plain, unknown, whole_number
from reasoning_store.wire.contracts import Contract
from reasoning_store.wire.reading import (
    Malformed,
    index,
    kind_of,
    mapping,
    string,
    with_unread,
)

Event = Mapping[str, Any]

_SILENT: Final = frozenset(
    {
        "ping",
        "message_stop",
        # What the SDK's stream() helper derives from the raw events.
        "text",
        "thinking",
        "signature",
        "citation",
        "input_json",
        "compaction",
    }
)


_WHOLE: Final = ("container", "context_management", "stop_details", "stop_sequence")
"""What belongs to the message as a whole: a container, for one, is named in the next request."""


class Adapter:
    """The reader of one stream."""

    id = "anthropic.messages"

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
        """Return the blocks of Anthropic's own that the stream did not live to end."""
        left = [key for key in self._open if key[1] == "other"]
        return [chunk for key in left for chunk in self._open.pop(key).stop()]

    def parse_chunk(self, raw: Any) -> list[Chunk]:
        if kind_of(raw) in _SILENT:
            return []
        event = plain(raw)
        if not isinstance(event, Mapping):
            return unknown(raw)
        # An error that is sent in place of an event has no type.
        kind = event.get("type", "error")
        if not isinstance(kind, str):
            return unknown(raw)
        read = _EVENTS.get(kind)
        if read is None:
            return thinking_events.parse_event(event, self._provider)
        try:
            return read(self, event)
        except Malformed:
            return unknown(raw)

    def _message_start(self, event: Event) -> list[Chunk]:
        message = mapping(event, "message")
        wrong: list[Any] = []
        named = [*_origin(message, wrong), *_about(message)]
        return with_unread([*named, *_usage(message, wrong)], wrong)

    def _message_delta(self, event: Event) -> list[Chunk]:
        delta = mapping(event, "delta")
        wrong: list[Any] = []
        chunks = [*_about(delta), *_about(event), *_usage(event, wrong)]
        reason = delta.get("stop_reason")
        if isinstance(reason, str):
            chunks.append(FinishChunk(reason=reason))
        elif reason is not None:
            wrong.append(reason)
        return with_unread(chunks, wrong)

    def _error(self, event: Event) -> list[Chunk]:
        mapping(event, "error")
        return [ErrorChunk(raw=event)]

    def _block_start(self, event: Event) -> list[Chunk]:
        place = index(event, "index")
        data = mapping(event, "content_block")
        kind = string(data, "type")
        kind = kind if kind in KINDS else "other"
        block = KINDS[kind](self._units, self._provider)
        opened = block.open(data)
        # Some proxies give every block the same index: two blocks are two blocks still.
        stopped = self._stop(place)
        self._remember(place, kind, block)
        return [*stopped, *opened]

    def _block_delta(self, event: Event) -> list[Chunk]:
        place = index(event, "index")
        delta = mapping(event, "delta")
        kind = string(delta, "type")
        block = self._open.get((place, "other"))
        if block is not None:
            return block.grow(kind, delta)
        fitting = DELTAS.get(kind, "")
        block = self._open.get((place, fitting))
        if block is not None:
            return block.grow(kind, delta)
        if fitting not in BEGINS:
            raise Malformed
        # The stream was joined in the middle of this block.
        block = KINDS[fitting](self._units, self._provider)
        chunks = block.grow(kind, delta)
        self._remember(place, fitting, block)
        return chunks

    def _block_stop(self, event: Event) -> list[Chunk]:
        return self._stop(index(event, "index"))

    def _remember(self, place: int, kind: str, block: OpenBlock) -> None:
        self._open[place, kind] = block
        self._units += 1

    def _stop(self, place: int) -> list[Chunk]:
        chunks: list[Chunk] = []
        for kind in KINDS:
            block = self._open.pop((place, kind), None)
            if block is not None:
                chunks += block.stop()
        return chunks


_EVENTS: Final[Mapping[str, Callable[[Adapter, Event], list[Chunk]]]] = {
    "message_start": Adapter._message_start,
    "content_block_start": Adapter._block_start,
    "content_block_delta": Adapter._block_delta,
    "content_block_stop": Adapter._block_stop,
    "message_delta": Adapter._message_delta,
    "error": Adapter._error,
}


def _origin(message: Mapping[str, Any], wrong: list[Any]) -> list[Chunk]:
    response_id, model = message.get("id"), message.get("model")
    if not (isinstance(response_id, str | None) and isinstance(model, str | None)):
        wrong.append([response_id, model])
        return []
    return [OriginChunk(response_id=response_id, model=model)] if response_id or model else []


def _about(holder: Mapping[str, Any]) -> list[Chunk]:
    """Return what is said of the message as a whole and of none of its blocks."""
    found = {name: plain(value) for name in _WHOLE if (value := holder.get(name)) is not None}
    return [OriginChunk(metadata=found)] if found else []


def _usage(holder: Mapping[str, Any], wrong: list[Any]) -> list[Chunk]:
    """Return the counts reported so far: each report is cumulative, so the last one stands."""
    reported = plain(holder.get("usage"))
    if reported is None:
        return []
    if not isinstance(reported, Mapping):
        wrong.append(reported)
        return []
    details = reported.get("output_tokens_details")
    usage = Usage(
        input=whole_number(reported.get("input_tokens")),
        output=whole_number(reported.get("output_tokens")),
        reasoning=(
            whole_number(details.get("thinking_tokens")) if isinstance(details, Mapping) else None
        ),
        cached=whole_number(reported.get("cache_read_input_tokens")),
        raw=reported,
    )
    return [UsageChunk(usage=usage)]


def parse_response(body: Any, contract: Contract) -> list[Chunk]:
    """Return a whole message as chunks."""
    message = plain(body)
    if not isinstance(message, Mapping):
        raise WireError("anthropic.messages: the message is not an object")
    content = plain(message.get("content"))
    if not isinstance(content, list):
        raise WireError("anthropic.messages: the message has no content list")
    if message.get("role", "assistant") != "assistant":
        raise WireError("anthropic.messages: the message's role is not assistant")
    adapter = Adapter(contract)
    wrong: list[Any] = []
    chunks: list[Chunk] = []
    events: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
    for place, block in enumerate(content):
        events.append({"type": "content_block_start", "index": place, "content_block": block})
        events.append({"type": "content_block_stop", "index": place})
    events.append({"type": "message_delta", "delta": message})
    for event in events:
        for chunk in adapter.parse_chunk(event):
            if isinstance(chunk, UnknownChunk):
                wrong.append(chunk.raw)
            else:
                chunks.append(chunk)
    return with_unread(chunks, wrong)
