"""Reads Amazon Bedrock's Converse protocol: a message of content blocks, and a stream of events.

Every event, content block and delta is an object with one member, whose name is its type. A
stream numbers its blocks (``contentBlockIndex``) and announces only some of them: thinking and
text open with the first delta of a new index. Usage comes after the end. An exception is an
event too. Models of many makers speak this protocol: Claude signs its thoughts, others do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from reasoning_store.conversation.chunks import (
    Chunk,
    ErrorChunk,
    FinishChunk,
    TextChunk,
)
from reasoning_store.conversation.errors import WireError
from reasoning_store.wire.bedrock.blocks import (
    CitedTextReader,
    OtherReader,
    ReasoningReader,
    RedactedReader,
    ToolUseReader,
    as_json,
    whole_block,
)
from reasoning_store.wire.content_blocks import BlockReader, OpenBlocks
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.event_fields import (
    Malformed,
    index_field,
    mapping_field,
    plain_value,
    string_field,
    with_unknown_part,
)
from reasoning_store.wire.event_reader import EventReader
from reasoning_store.wire.protocol import Event

_KINDS: Final[Mapping[str, type[BlockReader]]] = {
    "text": CitedTextReader,
    "reasoning": ReasoningReader,
    "redacted": RedactedReader,
}
_REASONING: Final[Mapping[str, str]] = {
    "text": "reasoning",
    "signature": "reasoning",
    "redactedContent": "redacted",
}
"""Which kind of block each member of a thought's delta adds to."""


_OWN_CALLS: Final = (None, "tool_use")
"""The types of the calls that the application answers: Claude 4.5 and later name theirs."""

_WHOLE: Final = ("additionalModelResponseFields", "performanceConfig", "serviceTier", "trace")
"""Fields of the response as a whole, e.g. a guardrail's findings."""

_COUNTS: Final = {
    "input": ("inputTokens",),
    "output": ("outputTokens",),
    "cached": ("cacheReadInputTokens",),
    "cache_write": ("cacheWriteInputTokens",),
}


class BedrockReader(EventReader):
    """The reader of one stream."""

    id = "bedrock.converse"

    def reset(self) -> None:
        self._open = OpenBlocks()

    def flush(self) -> list[Chunk]:
        """Return the blocks of Bedrock's own that the stream did not live to end."""
        return self._open.stop(kind="other")

    def type_of(self, event: Event) -> Any:
        if isinstance(event.get("type"), str):
            return event["type"]
        name, _ = _member(event)
        return "exception" if name.endswith("Exception") else name

    def _block_start(self, event: Event) -> list[Chunk]:
        data = mapping_field(event, "contentBlockStart")
        place = index_field(data, "contentBlockIndex")
        announced = mapping_field(data, "start")
        if not _members(announced):
            return []  # e.g. of a text, which its first delta opens
        kind, start = _member(announced)
        if not isinstance(start, Mapping):
            raise Malformed
        return self._announce_block(place, kind, start)

    def _announce_block(self, place: int, kind: str, start: Event) -> list[Chunk]:
        block: BlockReader
        if _is_call(kind, start):
            name, block = "call", ToolUseReader(self._open.begun, self._provider)
            opened = block.open(start)
        else:
            name, block = "other", OtherReader(self._open.begun, self._provider)
            opened = block.open(kind, start)
        stopped = self._open.stop(place)
        self._open.hold(place, name, block)
        return [*stopped, *opened]

    def _block_delta(self, event: Event) -> list[Chunk]:
        data = mapping_field(event, "contentBlockDelta")
        place = index_field(data, "contentBlockIndex")
        delta = mapping_field(data, "delta")
        kind, value = _member(delta)
        if kind == "reasoningContent":
            if not _members(value):
                return []
            kinds = {_REASONING.get(name, "") for name in _members(value)}
            if len(kinds) != 1:
                raise Malformed
            return self._grow(place, kinds.pop(), value)
        if kind in ("text", "citation"):
            return self._grow(place, "text", delta)
        known = self._open.find(place, "call") if kind == "toolUse" else None
        known = known or self._open.find(place, "other")
        if known is None:
            raise Malformed  # an announced block cannot be read from its middle
        return known.add_delta(delta)

    def _grow(self, place: int, kind: str, delta: Event) -> list[Chunk]:
        """Add to the block at this index, which its first delta opens."""
        block = self._open.find(place, kind)
        if block is not None:
            return block.add_delta(delta)
        if kind not in _KINDS:
            raise Malformed
        block = _KINDS[kind](self._open.begun, self._provider)
        chunks = block.add_delta(delta)
        self._open.hold(place, kind, block)
        return chunks

    def _block_stop(self, event: Event) -> list[Chunk]:
        return self._open.stop(
            index_field(mapping_field(event, "contentBlockStop"), "contentBlockIndex")
        )

    def _message_stop(self, event: Event) -> list[Chunk]:
        stop = mapping_field(event, "messageStop")
        reason = string_field(stop, "stopReason")
        return [*self._whole(stop), *self._open.stop(), FinishChunk(reason=reason)]

    def _read_metadata(self, event: Event) -> list[Chunk]:
        data = mapping_field(event, "metadata")
        return [*self._whole(data), *self._usage(data)]

    def _whole(self, holder: Event) -> list[Chunk]:
        """Return the metadata of the response as a whole."""
        return self.read_metadata({name: as_json(holder.get(name)) for name in _WHOLE}, _WHOLE)

    def _usage(self, holder: Event) -> list[Chunk]:
        return self.read_usage(holder.get("usage"), _COUNTS, cache_apart=True)

    def _read_error(self, event: Event) -> list[Chunk]:
        _, error = _member(event)
        if not isinstance(error, Mapping):
            raise Malformed
        return [ErrorChunk(raw=as_json(event))]

    def read_whole(self, response: Event, content: list[Any]) -> list[Chunk]:
        """Return a whole response as the chunks of its stream."""
        chunks: list[Chunk] = []
        for place, block in enumerate(content):
            try:
                chunks += self._read_block(place, block)
            except (Malformed, RecursionError):
                self.wrong.append(block)
        chunks += [*self._whole(response), *self._usage(response)]
        chunks += self.read_finish(response.get("stopReason"))
        return with_unknown_part(chunks, self.wrong)

    def _read_block(self, place: int, data: Any) -> list[Chunk]:
        kind, value = _member(data)
        if kind == "text":
            return [*self._grow(place, "text", data), *self._open.stop(place)]
        if kind == "reasoningContent":
            if not _members(value):
                return []
            if "reasoningText" in _members(value):
                string_field(mapping_field(value, "reasoningText"), "text")
                grown = self._grow(place, "reasoning", value["reasoningText"])
            else:
                grown = self._grow(place, "redacted", value)
            return [*grown, *self._open.stop(place)]
        if _is_call(kind, value):
            return [*self._announce_block(place, kind, value), *self._open.stop(place)]
        if kind == "citationsContent" and isinstance(value, Mapping):
            return self._read_citations(value)
        return [whole_block(kind, as_json(value))]

    def _read_citations(self, data: Event) -> list[Chunk]:
        content, citations = data.get("content"), data.get("citations")
        if not isinstance(content, list | None) or not isinstance(citations, list | None):
            raise Malformed
        text = "".join(string_field(_members(part), "text") for part in content or ())
        metadata = {"citations": as_json(citations)} if citations else None
        self._open.begun += 1
        return [TextChunk(text=text, content_index=self._open.begun - 1, metadata=metadata)]

    events: ClassVar = {
        "messageStart": EventReader.read_nothing,
        "contentBlockStart": _block_start,
        "contentBlockDelta": _block_delta,
        "contentBlockStop": _block_stop,
        "messageStop": _message_stop,
        "metadata": _read_metadata,
        "exception": _read_error,
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


def _is_call(kind: str, value: Any) -> bool:
    """Whether a block is a call that the application answers, and no server tool's."""
    return kind == "toolUse" and isinstance(value, Mapping) and value.get("type") in _OWN_CALLS


def has_mark(event: Mapping[str, Any]) -> bool:
    """Whether an event, or a whole response, carries a mark that no other protocol has."""
    members = {name for name, value in event.items() if value is not None}
    is_event = len(members) == 1 and members <= BedrockReader.events.keys()
    return is_event or {"output", "stopReason"} <= members


def parse_response(body: Any, contract: Contract) -> list[Chunk]:
    """Return a whole response as chunks."""
    response = plain_value(body)
    if not isinstance(response, Mapping):
        raise WireError("bedrock.converse: the response is not an object")
    output = response.get("output")
    message = output.get("message") if isinstance(output, Mapping) else None
    content = message.get("content") if isinstance(message, Mapping) else None
    if not isinstance(content, list):
        raise WireError("bedrock.converse: the response has no output.message.content list")
    return BedrockReader(contract).read_whole(response, content)
