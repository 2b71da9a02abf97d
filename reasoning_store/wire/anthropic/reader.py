"""Reads Anthropic's Messages protocol: a message of content blocks, and a stream of events.

A stream opens a block, grows it by deltas and stops it; blocks are numbered by ``index`` and
never merge (a message may think, speak, think again and call). A whole message is read as a
stream in which every block was complete when it opened. The official SDK's ``stream()`` helper
yields events of its own that repeat the raw ones; they are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from reasoning_store.conversation.chunks import (
    Chunk,
    ErrorChunk,
    FinishChunk,
    OriginChunk,
    UnknownChunk,
    UsageChunk,
)
from reasoning_store.conversation.errors import WireError
from reasoning_store.wire.anthropic.blocks import BEGINS, DELTAS, KINDS
from reasoning_store.wire.content_blocks import OpenBlocks
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.event_fields import (
    Malformed,
    event_type,
    index_field,
    mapping_field,
    optional_mapping,
    other_fields,
    plain_value,
    string_field,
    unknown_event,
    with_unknown_part,
)
from reasoning_store.wire.protocol import StreamAdapter
from reasoning_store.wire.ui_messages import reader as thinking_events
from reasoning_store.wire.usage_counts import make_usage, read_counts

Event = Mapping[str, Any]

_SILENT: Final = frozenset(
    {
        "ping",
        "message_stop",
        # Events that the SDK's stream() helper derives from the raw ones.
        "text",
        "thinking",
        "signature",
        "citation",
        "input_json",
        "compaction",
    }
)


_WHOLE: Final = ("container", "context_management", "stop_details", "stop_sequence")
"""Fields of the message as a whole; a container, for one, is named in the next request."""

_COUNTS: Final = {
    "input": ("input_tokens",),
    "output": ("output_tokens",),
    "reasoning": ("output_tokens_details.thinking_tokens",),
    "cached": ("cache_read_input_tokens",),
    "cache_write": ("cache_creation_input_tokens",),
}


class AnthropicReader(StreamAdapter):
    """The reader of one stream."""

    id = "anthropic.messages"

    def reset(self) -> None:
        self._open = OpenBlocks()
        self._reported: dict[str, Any] = {}

    def flush(self) -> list[Chunk]:
        """Return the blocks of Anthropic's own that the stream did not live to end."""
        return self._open.stop_kind("other")

    def parse_chunk(self, raw: Any) -> list[Chunk]:
        if event_type(raw) in _SILENT:
            return []
        event = plain_value(raw)
        if not isinstance(event, Mapping):
            return unknown_event(raw)
        # An error that is sent in place of an event has no type.
        kind = event.get("type", "error")
        if not isinstance(kind, str):
            return unknown_event(raw)
        read = _EVENTS.get(kind)
        if read is None:
            return thinking_events.parse_event(event, self._provider)
        try:
            return read(self, event)
        except Malformed:
            return unknown_event(raw)

    def _message_start(self, event: Event) -> list[Chunk]:
        message = mapping_field(event, "message")
        wrong: list[Any] = []
        named = [*_read_origin(message, wrong), *_message_metadata(message)]
        return with_unknown_part([*named, *self._usage(message, wrong)], wrong)

    def _message_delta(self, event: Event) -> list[Chunk]:
        delta = mapping_field(event, "delta")
        wrong: list[Any] = []
        chunks = [*_message_metadata(delta), *_message_metadata(event), *self._usage(event, wrong)]
        reason = delta.get("stop_reason")
        if isinstance(reason, str):
            chunks.append(FinishChunk(reason=reason))
        elif reason is not None:
            wrong.append(reason)
        return with_unknown_part(chunks, wrong)

    def _read_error(self, event: Event) -> list[Chunk]:
        mapping_field(event, "error")
        return [ErrorChunk(raw=event)]

    def _block_start(self, event: Event) -> list[Chunk]:
        place = index_field(event, "index")
        data = mapping_field(event, "content_block")
        kind = string_field(data, "type")
        kind = kind if kind in KINDS else "other"
        block = KINDS[kind](self._open.begun, self._provider)
        opened = block.open(data)
        # Some proxies give every block the same index: two blocks are two blocks still.
        stopped = self._open.stop(place)
        self._open.hold(place, kind, block)
        return [*stopped, *opened]

    def _block_delta(self, event: Event) -> list[Chunk]:
        place = index_field(event, "index")
        delta = mapping_field(event, "delta")
        fitting = DELTAS.get(string_field(delta, "type"), "")
        known = self._open.find(place, "other") or self._open.find(place, fitting)
        if known is not None:
            return known.add_delta(delta)
        if fitting not in BEGINS:
            raise Malformed
        # The stream was joined in the middle of this block.
        block = KINDS[fitting](self._open.begun, self._provider)
        chunks = block.add_delta(delta)
        self._open.hold(place, fitting, block)
        return chunks

    def _block_stop(self, event: Event) -> list[Chunk]:
        return self._open.stop(index_field(event, "index"))

    def _usage(self, holder: Mapping[str, Any], wrong: list[Any]) -> list[Chunk]:
        """Return the counts reported so far: each report is cumulative, and may leave some out."""
        report = optional_mapping(holder.get("usage"), "usage", wrong)
        if report is None:
            return []
        self._reported |= other_fields(report, ())
        counts = read_counts(self._reported, _COUNTS)
        return [UsageChunk(usage=make_usage(counts, report, cache_apart=True))]


_EVENTS: Final[Mapping[str, Callable[[AnthropicReader, Event], list[Chunk]]]] = {
    "message_start": AnthropicReader._message_start,
    "content_block_start": AnthropicReader._block_start,
    "content_block_delta": AnthropicReader._block_delta,
    "content_block_stop": AnthropicReader._block_stop,
    "message_delta": AnthropicReader._message_delta,
    "error": AnthropicReader._read_error,
}


def _read_origin(message: Mapping[str, Any], wrong: list[Any]) -> list[Chunk]:
    response_id, model = message.get("id"), message.get("model")
    if not (isinstance(response_id, str | None) and isinstance(model, str | None)):
        wrong.append([response_id, model])
        return []
    return [OriginChunk(response_id=response_id, model=model)] if response_id or model else []


def _message_metadata(holder: Mapping[str, Any]) -> list[Chunk]:
    """Return the metadata of the message as a whole."""
    found = {name: plain_value(value) for name in _WHOLE if (value := holder.get(name)) is not None}
    return [OriginChunk(metadata=found)] if found else []


def has_mark(event: Mapping[str, Any]) -> bool:
    """Whether an event carries a mark that no other protocol has."""
    if event.get("type") == "message_start":
        message = plain_value(event.get("message"))
        return isinstance(message, Mapping) and message.get("type") == "message"
    return event.get("type") == "content_block_start" and "content_block" in event


def parse_response(body: Any, contract: Contract) -> list[Chunk]:
    """Return a whole message as chunks."""
    message = plain_value(body)
    if not isinstance(message, Mapping):
        raise WireError("anthropic.messages: the message is not an object")
    content = plain_value(message.get("content"))
    if not isinstance(content, list):
        raise WireError("anthropic.messages: the message has no content list")
    if message.get("role", "assistant") != "assistant":
        raise WireError("anthropic.messages: the message's role is not assistant")
    adapter = AnthropicReader(contract)
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
    return with_unknown_part(chunks, wrong)
