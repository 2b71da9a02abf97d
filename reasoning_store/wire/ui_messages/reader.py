"""Reads streams that a host has normalised already: events of thinking, text, tool calls.

There are two vocabularies, which differ in spelling: the hosts' own ``thinking_start``,
``thinking_delta``, ``thinking_end`` with the same three for ``text`` and ``toolcall``, which
are read here; and the AI SDK's ``reasoning-start`` and its kin, which ``messages`` reads. A
host's event may carry ``partial``, a snapshot of the message so far; only the entry that the
event is about is read, for its id, name and signature. Every protocol's reader hands such
events to ``parse_event``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from reasoning_store.conversation.chunks import (
    Chunk,
    ErrorChunk,
    FinishChunk,
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
    UnknownChunk,
)
from reasoning_store.conversation.errors import WireError
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.event_fields import Malformed, is_index, plain_value, unknown_event
from reasoning_store.wire.protocol import ProtocolReader
from reasoning_store.wire.ui_messages import messages as ui_messages
from reasoning_store.wire.ui_messages.messages import (
    Event,
    PartReader,
    Reader,
    call_metadata,
    first_string,
    no_chunks,
    number_of,
    origin_chunks,
    raw_chunks,
    thought_chunks,
    tool_part,
    usage_chunks,
    whole_thought,
)

_FIELD_NAMES: Final = frozenset({"reasoning_content", "reasoning", "reasoning_text", "thinking"})
"""Values of ``thinkingSignature`` where a thought has no signature: the field it came in."""

_STEP: Final = 1 << 48
"""More than any number made from an id: ids are only unique within one step of a message."""


class UIMessageReader(ProtocolReader):
    """The reader of a stream that holds nothing but such events."""

    id = "thinking_events"

    def parse_chunk(self, raw: Any) -> list[Chunk]:
        event = plain_value(raw)
        chunks = parse_event(event, self._provider)
        if isinstance(event, Mapping) and event.get("type") == "start-step":
            self._steps += 1
        return [self._in_step(chunk) for chunk in chunks] if self._steps > 1 else chunks

    def reset(self) -> None:
        self._steps = 0

    def _in_step(self, chunk: Chunk) -> Chunk:
        if isinstance(chunk, ReasoningChunk | TextChunk) and chunk.content_index is not None:
            return replace(chunk, content_index=chunk.content_index + self._steps * _STEP)
        return chunk


def parse_event(raw: Any, provider: str) -> list[Chunk]:
    """Return the chunks of one normalised event; any other event is one ``UnknownChunk``."""
    event = plain_value(raw)
    kind = event.get("type") if isinstance(event, Mapping) else None
    if not isinstance(kind, str):
        return unknown_event(raw)
    read = _READERS.get(kind) or (raw_chunks if kind.startswith("data-") else None)
    if read is None:
        return unknown_event(raw)
    try:
        return read(event, provider)
    except Malformed:
        return unknown_event(raw)


def parse_response(body: Any, contract: Contract) -> list[Chunk]:
    """Return a whole message as chunks: a UI message (``parts``) or a ``content`` list."""
    message = plain_value(body)
    if not isinstance(message, Mapping):
        raise WireError("thinking_events: the message is not an object")
    parts = message.get("parts", message.get("content"))
    if not isinstance(parts, list):
        raise WireError("thinking_events: the message has neither parts nor a content list")
    if message.get("role", "assistant") != "assistant":
        raise WireError("thinking_events: the message's role is not assistant")
    reason = message.get("stopReason")
    return [
        *origin_chunks(message.get("responseId", message.get("id")), message.get("model")),
        *(chunk for place, part in enumerate(parts) for chunk in _read_part(part, place, contract)),
        *usage_chunks(message.get("usage")),
        FinishChunk(reason=reason if isinstance(reason, str) else None),
    ]


# Events


def _content_index(event: Event) -> int | None:
    value = event.get("contentIndex", event.get("content_index"))
    if value is not None and not is_index(value):
        raise Malformed
    return value


def _own_entry(event: Event) -> Event:
    """Return the entry of the snapshot that the event is about."""
    partial = plain_value(event.get("partial"))
    content = partial.get("content") if isinstance(partial, Mapping) else None
    place = _content_index(event)
    if isinstance(content, list) and place is not None and place < len(content):
        entry = plain_value(content[place])
        if isinstance(entry, Mapping):
            return entry
    return {}


def _thinking_metadata(entry: Event) -> dict[str, Any]:
    metadata: dict[str, Any] = {"sourceField": "thinking"}
    signature = first_string(entry, "thinkingSignature", "signature", default="")
    if entry.get("redacted") is True:
        metadata["redacted"] = True
        if signature:
            metadata["encrypted"] = signature
    elif signature and signature not in _FIELD_NAMES:
        metadata["signature"] = signature
    return metadata


def _thinking(event: Event, provider: str) -> list[Chunk]:
    phase: Any = event["type"].removeprefix("thinking_")
    metadata, text = _thinking_metadata(event), ""
    if phase == "delta":
        text = first_string(event, "delta", "text")
    elif phase == "end":
        # The end repeats the whole thought; ingress takes from it what deltas lacked.
        text = first_string(event, "content", "text", default="")
        metadata |= _thinking_metadata(_own_entry(event))
    return thought_chunks(provider, phase, text, _content_index(event), metadata)


def _text_delta(event: Event, provider: str) -> list[Chunk]:
    text = first_string(event, "delta", "text")
    return [TextChunk(text=text, content_index=_content_index(event))] if text else []


def _text_end(event: Event, provider: str) -> list[Chunk]:
    """The end repeats the text; only a signature can be new."""
    signature = first_string(_own_entry(event), "textSignature", default="")
    place = _content_index(event)
    if not signature:
        return []
    return [TextChunk(text="", content_index=place, metadata={"textSignature": signature})]


def _read_toolcall(event: Event, provider: str) -> list[Chunk]:
    named = plain_value(event.get("toolCall"))
    if named is not None and not isinstance(named, Mapping):
        raise Malformed
    call: Event = named if named is not None else _own_entry(event)
    call_id = first_string(call, "id", default="") or None
    index = _content_index(event)
    if index is None:
        if call_id is None:
            raise Malformed
        index = number_of("call", call_id)
    ended = event["type"] == "toolcall_end"
    if ended and not call:
        raise Malformed
    if not ended and call_id is None and not event.get("delta"):
        return []
    chunk = ToolCallChunk(
        index=index,
        id=call_id,
        name=first_string(call, "name", default="") or None,
        arguments=first_string(event, "delta", default=""),
        parameters=call.get("arguments") if ended else None,
        is_complete=ended,
        metadata=call_metadata(call) if ended else None,
    )
    return [chunk]


def _read_start(event: Event, provider: str) -> list[Chunk]:
    partial = plain_value(event.get("partial"))
    if isinstance(partial, Mapping):
        return origin_chunks(partial.get("responseId"), partial.get("model"))
    return ui_messages.EVENTS["start"](event, provider)


def _read_done(event: Event, provider: str) -> list[Chunk]:
    reason = first_string(event, "reason", default="") or None
    message = plain_value(event.get("message"))
    if not isinstance(message, Mapping):
        message = {}
    return [
        *origin_chunks(message.get("responseId"), message.get("model")),
        *usage_chunks(message.get("usage")),
        FinishChunk(reason=reason),
    ]


def _read_error(event: Event, provider: str) -> list[Chunk]:
    """The error without the message that it repeats; what it used up is still counted."""
    message = plain_value(event.get("error"))
    if not (isinstance(message, Mapping) and "content" in message):
        return [ErrorChunk(raw={name: event[name] for name in event if name != "partial"})]
    raw = {name: event.get(name) for name in ("type", "reason")}
    raw["errorMessage"] = message.get("errorMessage")
    return [*usage_chunks(message.get("usage")), ErrorChunk(raw=raw)]


_READERS: Final[Mapping[str, Reader]] = {
    **ui_messages.EVENTS,
    "start": _read_start,
    "thinking_start": _thinking,
    "thinking_delta": _thinking,
    "thinking_end": _thinking,
    "text_start": no_chunks,
    "text_delta": _text_delta,
    "text_end": _text_end,
    "toolcall_start": _read_toolcall,
    "toolcall_delta": _read_toolcall,
    "toolcall_end": _read_toolcall,
    "done": _read_done,
    "error": _read_error,
}
EVENTS: Final = frozenset(_READERS)
"""The types of both vocabularies; in addition to every type that begins with ``data-``."""


# Whole messages


def _read_part(raw: Any, place: int, contract: Contract) -> list[Chunk]:
    part = plain_value(raw)
    kind = part.get("type") if isinstance(part, Mapping) else None
    if not isinstance(kind, str):
        return [UnknownChunk(raw=raw)]
    read = _PARTS.get(kind, tool_part if kind.startswith("tool-") else raw_chunks)
    try:
        return read(part, contract.provider or "", place)
    except Malformed:
        return [UnknownChunk(raw=raw)]


def _thinking_part(part: Event, provider: str, place: int) -> list[Chunk]:
    return [
        whole_thought(first_string(part, "thinking"), place, provider, _thinking_metadata(part))
    ]


_PARTS: Final[Mapping[str, PartReader]] = {
    **ui_messages.PARTS,
    "thinking": _thinking_part,
    "toolCall": ui_messages.PARTS["tool-call"],
}
