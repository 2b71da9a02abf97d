"""Reads OpenAI's Responses protocol: typed output items, and a stream of events about them.

A response is a list of items: reasoning, messages, calls, and the work of hosted tools. A
stream has everything up to four times: as deltas, when a part is done, when its item is done,
and in the last event, which repeats the whole response. So an item has a state (``items``) to
which each repetition adds only its new text, and a whole response is read as a stream of which
only the last event arrived. ``output`` finds the item of an event.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from reasoning_store.conversation.chunks import (
    Chunk,
    ErrorChunk,
    FinishChunk,
)
from reasoning_store.conversation.errors import WireError
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.event_fields import (
    Malformed,
    event_type,
    mapping_field,
    optional_index_field,
    plain_value,
    string_field,
    with_unknown_part,
)
from reasoning_store.wire.event_reader import EventReader
from reasoning_store.wire.openai_responses.items import (
    CALLS,
    Item,
    text_of,
)
from reasoning_store.wire.openai_responses.output import (
    Address,
    Output,
    address,
)
from reasoning_store.wire.protocol import Event

_SUMMARY: Final = ("reasoning", "summary")
_CONTENT: Final = ("reasoning", "content")
_TEXT: Final = ("message", "text")
_REFUSAL: Final = ("message", "refusal")

_TEXTS: Final[Mapping[str, tuple[str, str]]] = {
    "response.reasoning_summary_text": _SUMMARY,
    "response.reasoning_text": _CONTENT,
    "response.output_text": _TEXT,
    "response.refusal": _REFUSAL,
    # The names of the Open Responses specification, of early previews, and of gateways.
    "response.reasoning": _CONTENT,
    "response.reasoning_content": _CONTENT,
    "response.reasoning_summary": _SUMMARY,
}
"""The texts that events are about; each name has a ``.delta`` and a ``.done``."""

_PARTS: Final[Mapping[str, tuple[str, str]]] = {
    "summary_text": _SUMMARY,
    "reasoning_text": _CONTENT,
    "output_text": _TEXT,
    "text": _TEXT,
    "refusal": _REFUSAL,
}

_RESPONSE: Final[Mapping[str, type]] = {"id": str, "status": str, "output": list}
"""Any of these makes an object a response, and its event the end of the stream."""

_ERROR: Final[Mapping[str, type]] = {"message": str, "code": str, "error": dict}
"""Any of these makes an object an error."""

_WHOLE: Final = ("conversation", "metadata", "previous_response_id")
"""Fields of the response as a whole."""

_SILENT: Final = (
    "keepalive",
    "response.apply_patch_call_",
    "response.audio.",
    "response.code_interpreter_call",
    "response.compaction.",
    "response.file_search_call.",
    "response.image_generation_call.",
    "response.mcp_call",
    "response.mcp_list_tools.",
    "response.shell_call_",
    "response.steer.",
    "response.web_search_call.",
)
"""How the events begin that are the progress of an item: it repeats all of it when it is done."""

_COUNTS: Final = {
    "input": ("input_tokens",),
    "output": ("output_tokens",),
    "reasoning": ("output_tokens_details.reasoning_tokens",),
    "cached": ("input_tokens_details.cached_tokens",),
    "cache_write": ("input_tokens_details.cache_write_tokens",),
}


class ResponsesReader(EventReader):
    """The reader of one stream."""

    id = "openai.responses"

    def reset(self) -> None:
        self._output = Output(self._provider)
        self._named = False

    def read_event(self, event: Event) -> list[Chunk]:
        if (event_type(event) or "").startswith(_SILENT):
            return []
        chunks = super().read_event(event)
        return [*self._output.starts(), *chunks]

    def type_of(self, event: Event) -> Any:
        # An error that is sent in place of an event has no type.
        return event.get("type", "error" if "error" in event else None)

    # --- texts, in pieces and repeated ------------------------------------------------------

    def _read_delta(self, event: Event) -> list[Chunk]:
        kind, name = _TEXTS[event["type"].rpartition(".")[0]]
        text = text_of(event.get("delta"))
        names, place = address(event), _output_index(event, name)
        if text is None:
            raise Malformed
        if not text:
            return []
        item = self._output.open(kind, names)
        return item.add_text(item.part_of(name, place, self._output.unit), text)

    def _read_done(self, event: Event) -> list[Chunk]:
        kind, name = _TEXTS[event["type"].rpartition(".")[0]]
        return self._read_whole_text(event, kind, name, event)

    def _part_done(self, event: Event) -> list[Chunk]:
        part = mapping_field(event, "part")
        kind, name = _PARTS.get(string_field(part, "type"), ("", ""))
        if event["type"] == "response.reasoning_part.done":
            kind, name = _CONTENT
        if not kind:
            return []  # kept as it is when its item is done
        names = address(event)
        if kind == "message" and not self._output.find(kind, names):
            # vLLM gives the parts of a reasoning item the type output_text.
            kind, name = _CONTENT if self._output.find("reasoning", names) else (kind, name)
        return self._read_whole_text(event, kind, name, part)

    def _read_whole_text(self, event: Event, kind: str, name: str, holder: Event) -> list[Chunk]:
        text = text_of(holder.get("refusal" if name == "refusal" else "text"))
        names, place = address(event), _output_index(event, name)
        if text is None:
            raise Malformed
        output = self._output
        if not text or (output.find(kind, names) is None and output.was_done(kind, names)):
            return []
        item = output.open(kind, names)
        return item.add_rest_of_text(item.part_of(name, place, output.unit), text)

    def _read_annotation(self, event: Event) -> list[Chunk]:
        annotation = mapping_field(event, "annotation")
        names, place = address(event), _output_index(event, "text")
        item = self._output.open("message", names)
        return item.add_annotation(item.part_of("text", place, self._output.unit), dict(annotation))

    # --- calls -----------------------------------------------------------------------------

    def _arguments_delta(self, event: Event) -> list[Chunk]:
        piece = string_field(event, "delta")
        item = self._announced_call(event)
        return item.add_arguments(piece) if item is not None else []

    def _arguments_done(self, event: Event) -> list[Chunk]:
        whole = string_field(event, "input" if "custom" in event["type"] else "arguments")
        item = self._announced_call(event)
        return item.add_arguments(item.arguments.rest(whole)) if item is not None else []

    def _announced_call(self, event: Event) -> Item | None:
        """Return an announced call; the other items have their fields when they are done."""
        kind = "custom_tool_call" if "custom" in event["type"] else "function_call"
        item = self._output.find(kind, address(event))
        return item if item is not None and item.announced else None

    # --- items -----------------------------------------------------------------------------

    def _item_added(self, event: Event) -> list[Chunk]:
        if event.get("item") is None:
            return []  # allowed by the Open Responses specification
        kind, names, data = _item_of(event)
        item = self._output.find_item(kind, names[0])
        if item is None or item.done:
            item = self._output.begin(kind, names)
        return item.begin_call(data)

    def _item_done(self, event: Event) -> list[Chunk]:
        if event.get("item") is None:
            return []
        kind, names, data = _item_of(event)
        item = self._output.find(kind, names)
        if item is None:
            if self._output.find_item(kind, names[0]) is not None:
                return []  # the same item, done twice
            item = self._output.begin(kind, names)
        return item.complete(data, self.wrong, self._output.unit)

    # --- the response ----------------------------------------------------------------------

    def _response_begun(self, event: Event) -> list[Chunk]:
        return self._name(mapping_field(event, "response"))

    def _response_ended(self, event: Event) -> list[Chunk]:
        response = mapping_field(event, "response")
        if not any(isinstance(response.get(name), kind) for name, kind in _RESPONSE.items()):
            raise Malformed
        return self._read_response(response, event["type"].removeprefix("response."))

    def _read_error(self, event: Event) -> list[Chunk]:
        if not any(isinstance(event.get(name), kind) for name, kind in _ERROR.items()):
            raise Malformed
        return [ErrorChunk(raw=event)]

    def read_whole(self, response: Mapping[str, Any]) -> list[Chunk]:
        """Return the chunks of a response of which no event came."""
        return with_unknown_part(self._read_response(response), self.wrong)

    def _read_response(self, response: Event, ended: str | None = None) -> list[Chunk]:
        """Return the chunks of a response that its stream, if there was one, did not give."""
        chunks = self._name(response)
        output = response.get("output")
        if isinstance(output, list):
            chunks += self._fill_reserved(output)
        elif output is not None:
            self.wrong.append(output)
        chunks += self.read_metadata(response, _WHOLE)
        chunks += self.read_usage(response.get("usage"), _COUNTS)
        error = plain_value(response.get("error"))
        if isinstance(error, Mapping) or ended == "failed":
            chunks.append(ErrorChunk(raw=error or {"status": "failed"}))
        if reason := _finish_reason(response, ended):
            chunks.append(FinishChunk(reason=reason))
        return chunks

    def _name(self, response: Event) -> list[Chunk]:
        """Return, once, which response this is."""
        named = [] if self._named else self.read_origin(response)
        self._named = self._named or bool(named)
        return named

    def _fill_reserved(self, listed: list[Any]) -> list[Chunk]:
        items: dict[int, Mapping[str, Any]] = {}
        for place, entry in enumerate(listed):
            data = plain_value(entry)
            if _is_item(data):
                items[place] = data
            else:
                self.wrong.append(entry)
        streamed = self._output.match_items(items)
        chunks: list[Chunk] = []
        for place, data in items.items():
            item = streamed.get(place)
            if item is None:
                item = self._output.begin(data["type"], (data.get("id"), place))
            if item.done:
                chunks += item.seal(data)
            else:
                chunks += item.complete(data, self.wrong, self._output.unit)
        return chunks

    events: ClassVar = {
        "response.created": _response_begun,
        "response.queued": _response_begun,
        "response.in_progress": _response_begun,
        **dict.fromkeys((f"{name}.delta" for name in _TEXTS), _read_delta),
        **dict.fromkeys((f"{name}.done" for name in _TEXTS), _read_done),
        "response.reasoning_summary_part.added": EventReader.read_nothing,
        "response.reasoning_summary_part.done": _part_done,
        "response.reasoning_part.added": EventReader.read_nothing,
        "response.reasoning_part.done": _part_done,
        "response.content_part.added": EventReader.read_nothing,
        "response.content_part.done": _part_done,
        "response.output_text.annotation.added": _read_annotation,
        "response.output_text_annotation.added": _read_annotation,
        "response.function_call_arguments.delta": _arguments_delta,
        "response.function_call_arguments.done": _arguments_done,
        "response.custom_tool_call_input.delta": _arguments_delta,
        "response.custom_tool_call_input.done": _arguments_done,
        "response.output_item.added": _item_added,
        "response.output_item.done": _item_done,
        "response.completed": _response_ended,
        "response.incomplete": _response_ended,
        "response.failed": _response_ended,
        "response.cancelled": _response_ended,
        "error": _read_error,
    }


def _output_index(event: Event, name: str) -> int:
    """Return which of an item's texts an event is about."""
    return (
        optional_index_field(event, "summary_index" if name == "summary" else "content_index") or 0
    )


def _item_of(event: Event) -> tuple[str, Address, Mapping[str, Any]]:
    data = mapping_field(event, "item")
    if not _is_item(data):
        raise Malformed
    return data["type"], (data.get("id"), optional_index_field(event, "output_index")), data


def _is_item(data: Any) -> bool:
    kind = data.get("type") if isinstance(data, Mapping) else None
    return (
        isinstance(kind, str)
        and isinstance(data.get("id"), str | None)
        and (kind not in CALLS or isinstance(data.get("name"), str))
    )


def _finish_reason(response: Mapping[str, Any], ended: str | None) -> str | None:
    details = plain_value(response.get("incomplete_details"))
    reason = details.get("reason") if isinstance(details, Mapping) else None
    for value in (reason, response.get("status"), ended):
        if isinstance(value, str) and value:
            return value
    return None


def has_mark(event: Mapping[str, Any]) -> bool:
    """Whether an event carries a mark that no other protocol has."""
    return (event_type(event) or "").startswith("response.") or event.get("object") == "response"


def parse_response(body: Any, contract: Contract) -> list[Chunk]:
    """Return a whole response as chunks: the object, or only its list of output items."""
    response = plain_value(body)
    if isinstance(response, list):
        items = [plain_value(entry) for entry in response]
        if items and not any(_is_item(data) for data in items):
            raise WireError("openai.responses: the list holds no output item")
        return ResponsesReader(contract).read_whole({"output": items})
    if not isinstance(response, Mapping):
        raise WireError("openai.responses: the response is neither an object nor a list of items")
    if not isinstance(response.get("output"), list):
        raise WireError("openai.responses: the response has no output list")
    return ResponsesReader(contract).read_whole(response)
