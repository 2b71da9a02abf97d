"""Reads Google's Interactions API: steps, whole or as step.start, step.delta, step.stop.

A step is a thought, a piece of the model's output, a call, or the server's own work.
``step.start`` may bring part of a step, deltas bring the rest; a whole step is read as its own
start and stop, so both ways give the same. Steps may interleave, so everything is held by the
step's index. Steps that repeat the request are not part of the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, TypeAlias, get_args

from reasoning_store.conversation.blocks import (
    MediaBlock,
    MediaKind,
    RawBlock,
)
from reasoning_store.conversation.chunks import (
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
)
from reasoning_store.conversation.errors import WireError
from reasoning_store.wire import call_ids
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.event_fields import (
    Malformed,
    index_field,
    mapping_field,
    other_fields,
    plain_value,
    string_field,
)
from reasoning_store.wire.event_reader import EventReader
from reasoning_store.wire.gemini.spellings import as_json, text_of
from reasoning_store.wire.media import from_base64
from reasoning_store.wire.protocol import Event

_SOURCE: Final[Mapping[str, Any]] = {"sourceField": "thought.summary"}
_THOUGHT: Final[Mapping[str, Any]] = {**_SOURCE, "providerMetadata": {"step_type": "thought"}}
_COUNTS: Final = {
    "input": ("total_input_tokens",),
    "output": ("total_output_tokens",),
    "reasoning": ("total_thought_tokens",),
    "cached": ("total_cached_tokens",),
}
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
"""Steps whose chunks are given while they arrive."""


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
    is_listed = isinstance(body.get("steps", body.get("outputs")), list)
    return body.get("object") == "interaction" or is_listed


class InteractionsReader(EventReader):
    """The reader of one stream."""

    def reset(self) -> None:
        self._steps: dict[int, _Step] = {}
        self._numbers: dict[tuple[int, int], int] = {}
        self._calls = 0
        self._response_id: str | None = None

    def type_of(self, event: Event) -> Any:
        return event.get("event_type", event.get("type"))

    def flush(self) -> list[Chunk]:
        """Return what waited for the end of its step; a thought or a call is just cut off."""
        left = [index for index, step in self._steps.items() if step.type not in _CUT_OFF]
        return [chunk for index in left for chunk in self._close(index)]

    # Events

    def _read_created(self, event: Event) -> list[Chunk]:
        interaction = mapping_field(event, "interaction")
        response_id, model = (text_of(interaction.get(name)) for name in ("id", "model"))
        if self._response_id is not None or not (response_id or model):
            return []
        self._response_id = response_id or ""
        return [OriginChunk(response_id=response_id, model=model)]

    def _read_status(self, event: Event) -> list[Chunk]:
        return self._usage(event.get("usage"))

    def _read_completed(self, event: Event) -> list[Chunk]:
        interaction = event.get("interaction")
        interaction = interaction if isinstance(interaction, Mapping) else {}
        origin = self._read_created({"interaction": interaction})
        reason = text_of(interaction.get("status"))
        left = [chunk for index in list(self._steps) for chunk in self._close(index)]
        return [
            *origin,
            *left,
            *self._usage(interaction.get("usage")),
            FinishChunk(reason=reason),
        ]

    def _read_error(self, event: Event) -> list[Chunk]:
        return [ErrorChunk(raw=event)]

    def _read_step_start(self, event: Event) -> list[Chunk]:
        index, body = index_field(event, "index"), mapping_field(event, "step")
        return self._open(index, body)

    def _read_stop(self, event: Event) -> list[Chunk]:
        index = index_field(event, "index")
        return [*self._close(index), *self._usage(event.get("usage"))]

    def _read_delta(self, event: Event) -> list[Chunk]:
        index, delta = index_field(event, "index"), mapping_field(event, "delta")
        kind = string_field(delta, "type")
        step = self._steps.get(index) or _Step(type=_OWNERS.get(kind, kind))
        out = _DELTAS.get(kind, InteractionsReader._other)(self, index, step, delta)
        self._steps[index] = step
        metadata = event.get("metadata")
        total = metadata.get("total_usage") if isinstance(metadata, Mapping) else None
        return [*out, *self._usage(total)]

    def _open(self, index: int, body: Event) -> list[Chunk]:
        """Begin a step with the fields of its start, which are all where it comes whole."""
        kind = string_field(body, "type")
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

    def _number(self, index: int, run: int) -> int:
        """Return the number of one of a step's blocks, counted as they begin."""
        return self._numbers.setdefault((index, run), len(self._numbers))

    # Thoughts

    def _thought(self, index: int, phase: Phase, text: str, metadata: Event) -> Chunk:
        return ReasoningChunk(
            provider=self._provider,
            phase=phase,
            text=text,
            content_index=self._number(index, 0),
            metadata=metadata,
        )

    def _thought_step(self, index: int, step: _Step, body: Event) -> list[Chunk]:
        summary = body.get("summary")
        if not isinstance(summary, list | None):
            raise Malformed
        contents = [_mapping_or_empty(content) for content in summary or ()]
        signed = self._add_signature(index, step, body) if body.get("signature") is not None else []
        chunks = [chunk for item in contents for chunk in self._summary_content(index, item)]
        return [*chunks, *signed]

    def _add_summary(self, index: int, step: _Step, delta: Event) -> list[Chunk]:
        return self._summary_content(index, mapping_field(delta, "content"))

    def _summary_content(self, index: int, content: Event) -> list[Chunk]:
        if content.get("type") != "text":
            return [BlockChunk(block=RawBlock(data=as_json(content)))]
        text = string_field(content, "text")
        return [self._thought(index, "delta", text, _THOUGHT)] if text else []

    def _add_signature(self, index: int, step: _Step, delta: Event) -> list[Chunk]:
        signature = string_field(delta, "signature")
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
                read = _CONTENTS.get(
                    string_field(_mapping_or_empty(content), "type"),
                    InteractionsReader._other_content,
                )
                out += read(self, index, step, content)
            except Malformed:
                out.append(UnknownChunk(raw=content))
        error = body.get("error")
        return [*out, ErrorChunk(raw=error)] if error is not None else out

    def _add_text(self, index: int, step: _Step, content: Event) -> list[Chunk]:
        text, annotations = string_field(content, "text"), content.get("annotations")
        if not isinstance(annotations, list | None):
            raise Malformed
        step.annotations += [as_json(item) for item in annotations or ()]
        if not text:
            return []
        if step.text is None:
            step.text = self._number(index, step.runs)
        return [TextChunk(text=text, content_index=step.text)]

    def _add_annotation(self, index: int, step: _Step, delta: Event) -> list[Chunk]:
        annotations = delta.get("annotations")
        if not isinstance(annotations, list):
            raise Malformed
        step.annotations += [as_json(item) for item in annotations]
        return []

    def _media(self, index: int, step: _Step, content: Event) -> list[Chunk]:
        kind: Any = content["type"] if content["type"] in get_args(MediaKind) else "file"
        data, url = text_of(content.get("data")), text_of(content.get("uri"))
        if data is None and url is None:
            raise Malformed
        decoded = from_base64(data)
        if data is not None and decoded is None:
            raise Malformed
        block = MediaBlock(
            kind=kind,
            mime_type=text_of(content.get("mime_type")) or "application/octet-stream",
            data=decoded,
            url=url if data is None else None,
            provider_metadata=other_fields(content, ("type", "data", "uri", "mime_type")) or None,
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
        name, call_id = string_field(body, "name"), text_of(body.get("id"))
        arguments = body.get("arguments")
        if not isinstance(arguments, Mapping | None):
            raise Malformed
        step.call, step.body = self._calls, {"arguments": arguments}
        self._calls += 1
        return [
            ToolCallChunk(
                index=step.call,
                id=call_id or call_ids.make_call_id(self._response_id or "", index, name),
                name=name,
                metadata=other_fields(body, ("type", "id", "name", "arguments")) or None,
            )
        ]

    def _add_arguments(self, index: int, step: _Step, delta: Event) -> list[Chunk]:
        piece = string_field(delta, "arguments")
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
        """A step of the server's own: stored as the step that its deltas make up."""
        if step.type != delta["type"]:
            raise Malformed
        step.body |= other_fields(as_json(delta), ("type",))
        return []

    def _usage(self, reported: Any) -> list[Chunk]:
        return self.read_usage(as_json(reported), _COUNTS)

    events: ClassVar = {
        "interaction.created": _read_created,
        "interaction.status_update": _read_status,
        "interaction.in_progress": _read_status,
        "interaction.completed": _read_completed,
        "step.start": _read_step_start,
        "step.delta": _read_delta,
        "step.stop": _read_stop,
        "error": _read_error,
    }


def parse_response(body: Any, contract: Contract) -> list[Chunk]:
    """Return a whole interaction as the chunks that its steps would have given."""
    interaction = plain_value(body)
    steps = _steps(interaction) if isinstance(interaction, Mapping) else None
    if steps is None:
        raise WireError("gemini.generate_content: the interaction has no list of steps")
    reader = InteractionsReader(contract)
    out = reader.parse_chunk({"event_type": "interaction.created", "interaction": interaction})
    for index, step in enumerate(steps):
        out += reader.parse_chunk({"event_type": "step.start", "index": index, "step": step})
        out += reader.parse_chunk({"event_type": "step.stop", "index": index})
    return [
        *out,
        *reader.parse_chunk({"event_type": "interaction.completed", "interaction": interaction}),
    ]


def _steps(interaction: Event) -> list[Any] | None:
    """Return the steps of an interaction; one that still runs may have none yet."""
    steps, outputs = interaction.get("steps"), interaction.get("outputs")
    if steps is None and isinstance(outputs, list):
        # Until May 2026 an interaction had its contents and its other steps in one list.
        steps = [_as_step(item) for item in outputs]
    if steps is None and interaction.get("status") == "in_progress":
        return []
    return steps if isinstance(steps, list) else None


def _as_step(item: Any) -> Any:
    is_content = isinstance(item, Mapping) and item.get("type") in _CONTENTS
    return {"type": "model_output", "content": [item]} if is_content else item


_StepReader: TypeAlias = Callable[[InteractionsReader, int, _Step, Event], list[Chunk]]
_CONTENTS: Final[Mapping[str, _StepReader]] = {
    "text": InteractionsReader._add_text,
    **dict.fromkeys(("image", "audio", "video", "document"), InteractionsReader._media),
}
_DELTAS: Final[Mapping[str, _StepReader]] = {
    **_CONTENTS,
    "thought_summary": InteractionsReader._add_summary,
    "thought_signature": InteractionsReader._add_signature,
    "text_annotation_delta": InteractionsReader._add_annotation,
    "arguments_delta": InteractionsReader._add_arguments,
}
_STEPS: Final[Mapping[str, _StepReader]] = {
    "thought": InteractionsReader._thought_step,
    "model_output": InteractionsReader._output_step,
    "function_call": InteractionsReader._call_step,
}


def _mapping_or_empty(value: Any) -> Event:
    if not isinstance(value, Mapping):
        raise Malformed
    return value
