"""Google's Interactions API: steps, whole or as step.start, step.delta, step.stop.

A step is a thought, a piece of the model's output, a call, or something that the server did
by itself. ``step.start`` may bring part of a step, deltas bring the rest; a whole step is
read as its own start and stop, so both ways give the same. Steps may interleave: everything
is kept by the step's index. What a step repeats of the request is not part of the answer.

``gemini`` recognises these events by their form and hands them on. This module knows steps;
it must not know what a block becomes, nor any policy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, get_args

from reasoning_store.blocks import MediaBlock, MediaKind, RawBlock, Usage
from reasoning_store.chunks import (
    BlockChunk,
    Chunk,
    ErrorChunk,
    FinishChunk,
    OriginChunk,
    Phase,
    ReasoningChunk,
    TextChunk,
    ToolCallChunk,
    UnknownChunk,
    UsageChunk,
)
from reasoning_store.errors import WireError
from reasoning_store.wire import call_ids
from reasoning_store.wire.base import Indexer, plain, unknown, whole_number, without
from reasoning_store.wire.binary import from_base64
from reasoning_store.wire.contracts import Contract
from reasoning_store.wire.gemini_parts import as_json
from reasoning_store.wire.reading import Malformed, mapping, string
from reasoning_store.wire.reading import index as at

Event: TypeAlias = Mapping[str, Any]

_SOURCE: Final[Mapping[str, Any]] = {"sourceField": "thought.summary"}
_THOUGHT: Final[Mapping[str, Any]] = {**_SOURCE, "providerMetadata": {"step_type": "thought"}}
_ECHOED: Final = frozenset({"user_input", "function_result"})
"""Steps that the application sent itself."""
_PREFIXES: Final = ("interaction.", "step.")
_OWNERS: Final[Mapping[str, str]] = {
    "thought_summary": "thought",
    "thought_signature": "thought",
    "arguments_delta": "function_call",
    **dict.fromkeys(
        ("text", "text_annotation_delta", "image", "audio", "video", "document"), "model_output"
    ),
}
"""Which kind of step a delta belongs to; a delta of any other type is named as its step."""


_CUT_OFF: Final = frozenset({"thought", "function_call"})
"""Steps that say what they have while it arrives."""


@dataclass(slots=True)
class _Step:
    """A step that has begun."""

    type: str
    body: dict[str, Any] = field(default_factory=dict)
    runs: int = 0
    text: int | None = None
    annotations: list[Any] = field(default_factory=list)
    call: int | None = None
    in_pieces: bool = False


def is_event(event: Event) -> bool:
    """Whether an object is an event of this API."""
    kind = event.get("type")
    return "event_type" in event or (isinstance(kind, str) and kind.startswith(_PREFIXES))


def is_response(body: Event) -> bool:
    """Whether an object is a whole interaction."""
    return isinstance(body.get("steps"), list) or body.get("object") == "interaction"


class Reader:
    """The state of one stream."""

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self._provider = contract.provider or ""
        self._steps: dict[int, _Step] = {}
        self._places = Indexer()
        self._calls = 0
        self._response_id: str | None = None

    def read(self, event: Event) -> list[Chunk]:
        kind = event.get("event_type", event.get("type"))
        step = _EVENTS.get(kind) if isinstance(kind, str) else None
        if step is None:
            return unknown(event)
        try:
            return step(self, event)
        except (Malformed, RecursionError):
            return unknown(event)

    def flush(self) -> list[Chunk]:
        """Return what waited for the end of its step; a thought or a call is just cut off."""
        left = [index for index, step in self._steps.items() if step.type not in _CUT_OFF]
        return [chunk for index in left for chunk in self._close(index)]

    # Events

    def _created(self, event: Event) -> list[Chunk]:
        interaction = mapping(event, "interaction")
        response_id, model = (_optional(interaction, name) for name in ("id", "model"))
        if self._response_id is not None or not (response_id or model):
            return []
        self._response_id = response_id or ""
        return [OriginChunk(response_id=response_id, model=model)]

    def _status(self, event: Event) -> list[Chunk]:
        return self._used(event.get("usage"))

    def _completed(self, event: Event) -> list[Chunk]:
        interaction = event.get("interaction")
        interaction = interaction if isinstance(interaction, Mapping) else {}
        origin = self._created({"interaction": interaction})
        reason = _optional(interaction, "status")
        left = [chunk for index in list(self._steps) for chunk in self._close(index)]
        return [*origin, *left, *self._used(interaction.get("usage")), FinishChunk(reason=reason)]

    def _failed(self, event: Event) -> list[Chunk]:
        return [ErrorChunk(raw=event)]

    def _start(self, event: Event) -> list[Chunk]:
        index, body = at(event, "index"), mapping(event, "step")
        return self._open(index, body)

    def _stop(self, event: Event) -> list[Chunk]:
        index = at(event, "index")
        return [*self._close(index), *self._used(event.get("usage"))]

    def _delta(self, event: Event) -> list[Chunk]:
        index, delta = at(event, "index"), mapping(event, "delta")
        kind = string(delta, "type")
        step = self._steps.get(index) or _Step(type=_OWNERS.get(kind, kind))
        out = _DELTAS.get(kind, Reader._other)(self, index, step, delta)
        self._steps[index] = step
        metadata = event.get("metadata")
        total = metadata.get("total_usage") if isinstance(metadata, Mapping) else None
        return [*out, *self._used(total)]

    def _open(self, index: int, body: Event) -> list[Chunk]:
        """Begin a step with what its start says of it; all of it, where it comes whole."""
        kind = string(body, "type")
        step = _Step(type=kind)
        read = _STEPS.get(kind)
        out = read(self, index, step, body) if read is not None else []
        if read is None:
            step.body = dict(body)
        before = self._close(index)
        self._steps[index] = step
        return [*before, *out]

    def _close(self, index: int) -> list[Chunk]:
        step = self._steps.pop(index, None)
        if step is None or step.type in _ECHOED:
            return []
        if step.type == "thought":
            return [self._thought(index, "end", "", _SOURCE)]
        if step.type == "function_call":
            return self._end_call(step)
        if step.type == "model_output":
            return self._end_text(step)
        return [BlockChunk(block=RawBlock(data={"type": step.type, **step.body}))]

    # Thoughts

    def _thought(self, index: int, phase: Phase, text: str, metadata: Event) -> Chunk:
        return ReasoningChunk(
            provider=self._provider,
            phase=phase,
            text=text,
            content_index=self._places[(index, 0)],
            metadata=metadata,
        )

    def _thought_step(self, index: int, step: _Step, body: Event) -> list[Chunk]:
        summary = body.get("summary")
        if not isinstance(summary, list | None):
            raise Malformed
        contents = [_mapping(content) for content in summary or ()]
        signed = self._signature(index, step, body) if body.get("signature") is not None else []
        said = [chunk for item in contents for chunk in self._summary_content(index, item)]
        return [*said, *signed]

    def _summary(self, index: int, step: _Step, delta: Event) -> list[Chunk]:
        return self._summary_content(index, mapping(delta, "content"))

    def _summary_content(self, index: int, content: Event) -> list[Chunk]:
        if content.get("type") != "text":
            return [BlockChunk(block=RawBlock(data=as_json(content)))]
        text = string(content, "text")
        return [self._thought(index, "delta", text, _THOUGHT)] if text else []

    def _signature(self, index: int, step: _Step, delta: Event) -> list[Chunk]:
        signature = string(delta, "signature")
        about = {**_THOUGHT, "signature": signature}
        return [self._thought(index, "delta", "", about)] if signature else []

    # Output

    def _output_step(self, index: int, step: _Step, body: Event) -> list[Chunk]:
        contents = body.get("content")
        if not isinstance(contents, list | None):
            raise Malformed
        out: list[Chunk] = []
        for content in contents or ():
            try:
                read = _CONTENTS.get(string(_mapping(content), "type"), Reader._other_content)
                out += read(self, index, step, content)
            except Malformed:
                out.append(UnknownChunk(raw=content))
        error = body.get("error")
        return [*out, ErrorChunk(raw=error)] if error is not None else out

    def _say(self, index: int, step: _Step, content: Event) -> list[Chunk]:
        text, annotations = string(content, "text"), content.get("annotations")
        if not isinstance(annotations, list | None):
            raise Malformed
        step.annotations += [as_json(item) for item in annotations or ()]
        if not text:
            return []
        if step.text is None:
            step.text = self._places[(index, step.runs)]
        return [TextChunk(text=text, content_index=step.text)]

    def _annotate(self, index: int, step: _Step, delta: Event) -> list[Chunk]:
        annotations = delta.get("annotations")
        if not isinstance(annotations, list):
            raise Malformed
        step.annotations += [as_json(item) for item in annotations]
        return []

    def _media(self, index: int, step: _Step, content: Event) -> list[Chunk]:
        kind: Any = content["type"] if content["type"] in get_args(MediaKind) else "file"
        data, url = _optional(content, "data"), _optional(content, "uri")
        if data is None and url is None:
            raise Malformed
        decoded = from_base64(data)
        if data is not None and decoded is None:
            raise Malformed
        block = MediaBlock(
            kind=kind,
            mime_type=_optional(content, "mime_type") or "application/octet-stream",
            data=decoded,
            url=url if data is None else None,
            provider_metadata=without(content, ("type", "data", "uri", "mime_type")) or None,
        )
        return [*self._end_text(step), BlockChunk(block=block)]

    def _other_content(self, index: int, step: _Step, content: Event) -> list[Chunk]:
        return [*self._end_text(step), BlockChunk(block=RawBlock(data=as_json(content)))]

    def _end_text(self, step: _Step) -> list[Chunk]:
        place, annotations = step.text, step.annotations
        step.text, step.annotations, step.runs = None, [], step.runs + 1
        if place is None or not annotations:
            return []
        return [TextChunk(text="", content_index=place, metadata={"annotations": annotations})]

    # Calls

    def _call_step(self, index: int, step: _Step, body: Event) -> list[Chunk]:
        name, call_id = string(body, "name"), _optional(body, "id")
        arguments = body.get("arguments")
        if not isinstance(arguments, Mapping | None):
            raise Malformed
        step.call, step.body = self._calls, {"arguments": arguments}
        self._calls += 1
        return [
            ToolCallChunk(
                index=step.call,
                id=call_id or call_ids.made(self._response_id or "", index, name),
                name=name,
                metadata=without(body, ("type", "id", "name", "arguments")) or None,
            )
        ]

    def _arguments(self, index: int, step: _Step, delta: Event) -> list[Chunk]:
        piece = string(delta, "arguments")
        if step.call is None:
            raise Malformed
        step.in_pieces = step.in_pieces or bool(piece)
        return [ToolCallChunk(index=step.call, arguments=piece)] if piece else []

    def _end_call(self, step: _Step) -> list[Chunk]:
        if step.call is None:
            return []
        whole = None if step.in_pieces else dict(step.body.get("arguments") or {})
        return [ToolCallChunk(index=step.call, parameters=whole, is_complete=True)]

    # Everything else

    def _other(self, index: int, step: _Step, delta: Event) -> list[Chunk]:
        """What the server did by itself: kept as the step that its deltas make up."""
        if step.type != delta["type"]:
            raise Malformed
        step.body |= without(as_json(delta), ("type",))
        return []

    def _used(self, reported: Any) -> list[Chunk]:
        if not isinstance(reported, Mapping):
            return []
        output = whole_number(reported.get("total_output_tokens"))
        reasoning = whole_number(reported.get("total_thought_tokens"))
        if reasoning is not None and self._contract.reasoning_beside_output:
            output = (output or 0) + reasoning
        usage = Usage(
            input=whole_number(reported.get("total_input_tokens")),
            output=output,
            reasoning=reasoning,
            cached=whole_number(reported.get("total_cached_tokens")),
            raw=as_json(reported),
        )
        return [UsageChunk(usage=usage)]


def parse_response(body: Any, contract: Contract) -> list[Chunk]:
    """Return a whole interaction as the chunks that its steps would have given."""
    interaction = plain(body)
    if not isinstance(interaction, Mapping) or not isinstance(interaction.get("steps"), list):
        raise WireError("gemini.generate_content: the interaction has no list of steps")
    reader = Reader(contract)
    out = reader.read({"event_type": "interaction.created", "interaction": interaction})
    for index, step in enumerate(interaction["steps"]):
        out += reader.read({"event_type": "step.start", "index": index, "step": step})
        out += reader.read({"event_type": "step.stop", "index": index})
    return [*out, *reader.read({"event_type": "interaction.completed", "interaction": interaction})]


_EVENTS: Final[Mapping[str, Callable[[Reader, Event], list[Chunk]]]] = {
    "interaction.created": Reader._created,
    "interaction.status_update": Reader._status,
    "interaction.in_progress": Reader._status,
    "interaction.completed": Reader._completed,
    "step.start": Reader._start,
    "step.delta": Reader._delta,
    "step.stop": Reader._stop,
    "error": Reader._failed,
}
_StepReader: TypeAlias = Callable[[Reader, int, _Step, Event], list[Chunk]]
_CONTENTS: Final[Mapping[str, _StepReader]] = {
    "text": Reader._say,
    **dict.fromkeys(("image", "audio", "video", "document"), Reader._media),
}
_DELTAS: Final[Mapping[str, _StepReader]] = {
    **_CONTENTS,
    "thought_summary": Reader._summary,
    "thought_signature": Reader._signature,
    "text_annotation_delta": Reader._annotate,
    "arguments_delta": Reader._arguments,
}
_STEPS: Final[Mapping[str, _StepReader]] = {
    "thought": Reader._thought_step,
    "model_output": Reader._output_step,
    "function_call": Reader._call_step,
}


def _mapping(value: Any) -> Event:
    if not isinstance(value, Mapping):
        raise Malformed
    return value


def _optional(data: Event, name: str) -> str | None:
    value = data.get(name)
    return value if isinstance(value, str) and value else None
