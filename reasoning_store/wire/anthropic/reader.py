"""Reads Anthropic's Messages protocol: a message of content blocks, and a stream of events.

A stream opens a block, grows it by deltas and stops it; blocks are numbered by ``index`` and
never merge (a message may think, speak, think again and call). A whole message is read as a
stream in which every block was complete when it opened. The official SDK's ``stream()`` helper
yields events of its own that repeat the raw ones; they are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from reasoning_store.conversation.chunks import (
    Chunk,
    ErrorChunk,
    UsageChunk,
)
from reasoning_store.conversation.errors import WireError
from reasoning_store.wire.anthropic.blocks import BEGINS, DELTAS, KINDS
from reasoning_store.wire.content_blocks import OpenBlocks
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.event_fields import (
    Malformed,
    index_field,
    mapping_field,
    optional_mapping,
    other_fields,
    plain_value,
    string_field,
)
from reasoning_store.wire.event_reader import EventReader
from reasoning_store.wire.protocol import Event
from reasoning_store.wire.usage_counts import make_usage, read_counts

_WHOLE: Final = (
    "container",
    "context_management",
    "input_transformations",
    "stop_details",
    "stop_sequence",
)
"""Fields of the message as a whole: a container is named in the next request, and the input's
transformations name the thoughts that were dropped from this one."""

_COUNTS: Final = {
    "input": ("input_tokens",),
    "output": ("output_tokens",),
    "reasoning": ("output_tokens_details.thinking_tokens",),
    "cached": ("cache_read_input_tokens",),
    "cache_write": ("cache_creation_input_tokens",),
}


class AnthropicReader(EventReader):
    """The reader of one stream."""

    id = "anthropic.messages"

    def reset(self) -> None:
        self._open = OpenBlocks()
        self._reported: dict[str, Any] = {}

    def flush(self) -> list[Chunk]:
        """Return the blocks of Anthropic's own that the stream did not live to end."""
        return self._open.stop(kind="other")

    def type_of(self, event: Event) -> Any:
        # An error that is sent in place of an event has no type.
        return event.get("type", "error")

    def _message_start(self, event: Event) -> list[Chunk]:
        message = mapping_field(event, "message")
        named = [*self.read_origin(message), *self.read_metadata(message, _WHOLE)]
        return [*named, *self._usage(message)]

    def _message_delta(self, event: Event) -> list[Chunk]:
        delta = mapping_field(event, "delta")
        return [
            *self.read_metadata(delta, _WHOLE),
            *self.read_metadata(event, _WHOLE),
            *self._usage(event),
            *self.read_finish(delta.get("stop_reason")),
        ]

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

    def _usage(self, holder: Mapping[str, Any]) -> list[Chunk]:
        """Return the counts reported so far: each report is cumulative, and may leave some out."""
        report = optional_mapping(holder.get("usage"), "usage", self.wrong)
        if report is None:
            return []
        self._reported |= other_fields(report, ())
        counts = read_counts(self._reported, _COUNTS)
        return [UsageChunk(usage=make_usage(counts, report, cache_apart=True))]

    events: ClassVar = {
        "message_start": _message_start,
        "content_block_start": _block_start,
        "content_block_delta": _block_delta,
        "content_block_stop": _block_stop,
        "message_delta": _message_delta,
        "error": _read_error,
        **dict.fromkeys(
            # The last six are of the SDK's stream() helper, which derives them from the others.
            (
                "ping",
                "message_stop",
                "text",
                "thinking",
                "signature",
                "citation",
                "input_json",
                "compaction",
            ),
            EventReader.read_nothing,
        ),
    }


def has_mark(event: Mapping[str, Any]) -> bool:
    """Whether an event, or a whole message, carries a mark that no other protocol has."""
    kind = event.get("type")
    if kind == "message_start":
        message = plain_value(event.get("message"))
        return isinstance(message, Mapping) and message.get("type") == "message"
    if kind == "message":  # so are the items of Responses named, which give no reason
        return "stop_reason" in event
    return kind == "content_block_start" and "content_block" in event


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
    events: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
    for place, block in enumerate(content):
        events.append({"type": "content_block_start", "index": place, "content_block": block})
        events.append({"type": "content_block_stop", "index": place})
    events.append({"type": "message_delta", "delta": message})
    return [chunk for event in events for chunk in adapter.parse_chunk(event)]
