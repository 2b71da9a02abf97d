"""Reads events by their type: the part that most readers of streams have in common.

An event of another type may be one that a host has normalised. A fault in an event makes all of it
one ``UnknownChunk``; where the rest is worth having, a reader puts the faulty parts into ``wrong``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from reasoning_store.conversation.chunks import Chunk, FinishChunk, OriginChunk, UsageChunk
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.event_fields import (
    DONE,
    Malformed,
    optional_mapping,
    plain_value,
    unknown_event,
    with_unknown_part,
)
from reasoning_store.wire.protocol import Event, ProtocolReader
from reasoning_store.wire.ui_messages import reader as thinking_events
from reasoning_store.wire.usage_counts import Places, make_usage, read_counts


class EventReader(ProtocolReader):
    """A reader with a method for each type of event."""

    events: ClassVar[Mapping[str, Callable[[Any, Event], list[Chunk]]]] = {}

    def __init__(self, contract: Contract) -> None:
        self.wrong: list[Any] = []
        """The parts of the event that cannot be read."""
        super().__init__(contract)

    def parse_chunk(self, raw: Any) -> list[Chunk]:
        event = plain_value(raw)
        if not isinstance(event, Mapping):
            return [] if event == DONE else unknown_event(raw)
        self.wrong = []
        try:
            chunks = self.read_event(event)
        except (Malformed, RecursionError):
            return unknown_event(raw)
        return with_unknown_part(chunks, self.wrong)

    def read_event(self, event: Event) -> list[Chunk]:
        """Return the chunks of an event, with its faulty parts in ``wrong``."""
        kind = self.type_of(event)
        read = self.events.get(kind) if isinstance(kind, str) else None
        if read is None:
            return thinking_events.parse_event(event, self._provider)
        return read(self, event)

    def type_of(self, event: Event) -> Any:
        """Return the name under which ``events`` has an event's type."""
        return event.get("type")

    def read_nothing(self, event: Event) -> list[Chunk]:
        """Read an event without content of its own."""
        return []

    # Parts of an event

    def read_origin(self, response: Mapping[str, Any]) -> list[Chunk]:
        """Return the id and the model of a response."""
        response_id, model = response.get("id"), response.get("model")
        if not (isinstance(response_id, str | None) and isinstance(model, str | None)):
            self.wrong.append([response_id, model])
            return []
        return [OriginChunk(response_id=response_id, model=model)] if response_id or model else []

    def read_metadata(self, holder: Mapping[str, Any], names: Iterable[str]) -> list[Chunk]:
        """Return the fields of the response as a whole."""
        metadata = {name: plain_value(value) for name in names if (value := holder.get(name))}
        return [OriginChunk(metadata=metadata)] if metadata else []

    def read_usage(
        self, value: Any, places: Places, *, name: str = "usage", cache_apart: bool = False
    ) -> list[Chunk]:
        """Return the usage of a report, which has this name."""
        report = optional_mapping(value, name, self.wrong)
        if report is None:
            return []
        counts = read_counts(report, places)
        apart = self._contract.reading.output_excludes_reasoning
        usage = make_usage(counts, report, cache_apart=cache_apart, reasoning_apart=apart)
        return [UsageChunk(usage=usage)]

    def read_finish(self, reason: Any) -> list[Chunk]:
        """Return the end, where there is a reason for it."""
        if isinstance(reason, str):
            return [FinishChunk(reason=reason)]
        self.wrong += [] if reason is None else [reason]
        return []
