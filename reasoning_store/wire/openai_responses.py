"""OpenAI's Responses protocol: typed output items, and a stream of events about them.

Theory. A response is a list of items: reasoning, messages, calls, and what hosted tools did.
A stream says everything up to four times: as deltas, when a part is done, when its item is
done, and in the last event, which repeats the whole response. So an item has a state
(``openai_responses_items``), each telling adds to it only what was not yet said, and a whole
response is read as a stream of which nothing but the last event was seen. Which item an event
is about is found in ``openai_responses_output``, the words are in ``openai_responses_names``.

This module knows the events; it must not know what a block becomes, nor any policy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from reasoning_store.blocks import Usage
from reasoning_store.chunks import Chunk, ErrorChunk, FinishChunk, OriginChunk, UsageChunk
from reasoning_store.errors import WireError
from reasoning_store.wire import contracts, thinking_events
from reasoning_store.wire.base import plain, unknown, whole_number
from reasoning_store.wire.contracts import Contract
from reasoning_store.wire.openai_responses_items import CALLS, Item, text_of
from reasoning_store.wire.openai_responses_names import (
    CONTENT,
    ERROR,
    PARTS,
    RESPONSE,
    SILENT,
    TEXTS,
    WHOLE,
)
from reasoning_store.wire.openai_responses_output import Address, Output, address
from reasoning_store.wire.reading import (
    Malformed,
    kind_of,
    mapping,
    optional_index,
    string,
    with_unread,
)

Event = Mapping[str, Any]


class Adapter:
    """The reader of one stream."""

    id = "openai.responses"

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self._provider = contract.provider or ""
        self.reset()

    def can_handle(self, model: str | None, provider: str | None) -> bool:
        return contracts.speaks(provider, model, self.id)

    def reset(self) -> None:
        self._output = Output(self._provider)
        self._named = False

    def parse_chunk(self, raw: Any) -> list[Chunk]:
        if kind_of(raw) in SILENT:
            return []
        event = plain(raw)
        if not isinstance(event, Mapping):
            return unknown(raw)
        # An error that is sent in place of an event has no type.
        kind = event.get("type", "error" if "error" in event else None)
        if not isinstance(kind, str):
            return unknown(raw)
        read = _EVENTS.get(kind)
        if read is None:
            return thinking_events.parse_event(event, self._provider)
        try:
            chunks = read(self, event)
        except Malformed:
            return unknown(raw)
        starts = self._output.starts()
        return [*starts, *chunks] if starts else chunks

    # --- texts, in pieces and repeated ------------------------------------------------------

    def _delta(self, event: Event) -> list[Chunk]:
        kind, name = TEXTS[event["type"].rpartition(".")[0]]
        text = text_of(event.get("delta"))
        names, place = address(event), _place(event, name)
        if text is None:
            raise Malformed
        if not text:
            return []
        item = self._output.open(kind, names)
        return item.say(item.part(name, place, self._output.unit), text)

    def _done(self, event: Event) -> list[Chunk]:
        kind, name = TEXTS[event["type"].rpartition(".")[0]]
        return self._repeat(event, kind, name, event)

    def _part_added(self, event: Event) -> list[Chunk]:
        string(mapping(event, "part"), "type")
        return []

    def _part_done(self, event: Event) -> list[Chunk]:
        part = mapping(event, "part")
        kind, name = PARTS.get(string(part, "type"), ("", ""))
        if not kind:
            return []  # kept as it is when its item is done
        names = address(event)
        if kind == "message" and not self._output.find(kind, names):
            # vLLM says output_text of the parts of a reasoning item.
            kind, name = CONTENT if self._output.find("reasoning", names) else (kind, name)
        return self._repeat(event, kind, name, part)

    def _repeat(self, event: Event, kind: str, name: str, holder: Event) -> list[Chunk]:
        text = text_of(holder.get("refusal" if name == "refusal" else "text"))
        names, place = address(event), _place(event, name)
        if text is None:
            raise Malformed
        output = self._output
        if not text or (output.find(kind, names) is None and output.was_done(kind, names)):
            return []
        item = output.open(kind, names)
        return item.repeat(item.part(name, place, output.unit), text)

    def _annotation(self, event: Event) -> list[Chunk]:
        annotation = mapping(event, "annotation")
        names, place = address(event), _place(event, "text")
        item = self._output.open("message", names)
        return item.annotate(item.part("text", place, self._output.unit), dict(annotation))

    # --- calls -----------------------------------------------------------------------------

    def _arguments_delta(self, event: Event) -> list[Chunk]:
        piece = string(event, "delta")
        item = self._call(event)
        return item.argue(piece) if item is not None else []

    def _arguments_done(self, event: Event) -> list[Chunk]:
        whole = string(event, "input" if "custom" in event["type"] else "arguments")
        item = self._call(event)
        return item.argue(item.arguments.rest(whole)) if item is not None else []

    def _call(self, event: Event) -> Item | None:
        """Return an announced call. What is said of others is in their item when it is done."""
        kind = "custom_tool_call" if "custom" in event["type"] else "function_call"
        item = self._output.find(kind, address(event))
        return item if item is not None and item.announced else None

    # --- items -----------------------------------------------------------------------------

    def _item_added(self, event: Event) -> list[Chunk]:
        if event.get("item") is None:
            return []  # allowed by the Open Responses specification
        kind, names, data = _item(event)
        item = self._output.named(kind, names[0])
        if item is None or item.done:
            item = self._output.begin(kind, names)
        return item.announce(data)

    def _item_done(self, event: Event) -> list[Chunk]:
        if event.get("item") is None:
            return []
        kind, names, data = _item(event)
        item = self._output.find(kind, names)
        if item is None:
            if self._output.named(kind, names[0]) is not None:
                return []  # the same item, done twice
            item = self._output.begin(kind, names)
        wrong: list[Any] = []
        return with_unread(item.complete(data, wrong, self._output.unit), wrong)

    # --- the response ----------------------------------------------------------------------

    def _response_begun(self, event: Event) -> list[Chunk]:
        wrong: list[Any] = []
        return with_unread(self._origin(mapping(event, "response"), wrong), wrong)

    def _response_ended(self, event: Event) -> list[Chunk]:
        response = mapping(event, "response")
        if not any(isinstance(response.get(name), kind) for name, kind in RESPONSE.items()):
            raise Malformed
        return self.read_whole(response, event["type"].removeprefix("response."))

    def _failed(self, event: Event) -> list[Chunk]:
        if not any(isinstance(event.get(name), kind) for name, kind in ERROR.items()):
            raise Malformed
        return [ErrorChunk(raw=event)]

    def read_whole(self, response: Mapping[str, Any], ended: str | None = None) -> list[Chunk]:
        """Return what a response says that its stream, if there was one, did not."""
        wrong: list[Any] = []
        chunks = self._origin(response, wrong)
        output = response.get("output")
        if isinstance(output, list):
            chunks += self._fill(output, wrong)
        elif output is not None:
            wrong.append(output)
        chunks += [*self._about(response), *self._usage(response.get("usage"), wrong)]
        error = plain(response.get("error"))
        if isinstance(error, Mapping) or ended == "failed":
            chunks.append(ErrorChunk(raw=error or {"status": "failed"}))
        if reason := _reason(response, ended):
            chunks.append(FinishChunk(reason=reason))
        return with_unread(chunks, wrong)

    def _origin(self, response: Mapping[str, Any], wrong: list[Any]) -> list[Chunk]:
        response_id, model = response.get("id"), response.get("model")
        if not (isinstance(response_id, str | None) and isinstance(model, str | None)):
            wrong.append([response_id, model])
            return []
        if self._named or not (response_id or model):
            return []
        self._named = True
        return [OriginChunk(response_id=response_id, model=model)]

    def _about(self, response: Mapping[str, Any]) -> list[Chunk]:
        """Return what is said of the response as a whole and of none of its items."""
        found = {name: plain(value) for name in WHOLE if (value := response.get(name))}
        return [OriginChunk(metadata=found)] if found else []

    def _fill(self, listed: list[Any], wrong: list[Any]) -> list[Chunk]:
        items: dict[int, Mapping[str, Any]] = {}
        for place, entry in enumerate(listed):
            data = plain(entry)
            if _is_item(data):
                items[place] = data
            else:
                wrong.append(entry)
        streamed = self._output.matched(items)
        chunks: list[Chunk] = []
        for place, data in items.items():
            item = streamed.get(place)
            if item is None:
                item = self._output.begin(data["type"], (data.get("id"), place))
            if item.done:
                chunks += item.seal(data)
            else:
                chunks += item.complete(data, wrong, self._output.unit)
        return chunks

    def _usage(self, reported: Any, wrong: list[Any]) -> list[Chunk]:
        reported = plain(reported)
        if reported is None:
            return []
        if not isinstance(reported, Mapping):
            wrong.append(reported)
            return []
        output = whole_number(reported.get("output_tokens"))
        reasoning = _detail(reported, "output_tokens_details", "reasoning_tokens")
        if self._contract.reasoning_beside_output and output is not None and reasoning is not None:
            output += reasoning
        usage = Usage(
            input=whole_number(reported.get("input_tokens")),
            output=output,
            reasoning=reasoning,
            cached=_detail(reported, "input_tokens_details", "cached_tokens"),
            raw=reported,
        )
        return [UsageChunk(usage=usage)]


def _place(event: Event, name: str) -> int:
    """Return which of an item's texts an event is about."""
    return optional_index(event, "summary_index" if name == "summary" else "content_index") or 0


def _item(event: Event) -> tuple[str, Address, Mapping[str, Any]]:
    data = mapping(event, "item")
    if not _is_item(data):
        raise Malformed
    return data["type"], (data.get("id"), optional_index(event, "output_index")), data


def _is_item(data: Any) -> bool:
    kind = data.get("type") if isinstance(data, Mapping) else None
    return (
        isinstance(kind, str)
        and isinstance(data.get("id"), str | None)
        and (kind not in CALLS or isinstance(data.get("name"), str))
    )


def _reason(response: Mapping[str, Any], ended: str | None) -> str | None:
    details = plain(response.get("incomplete_details"))
    reason = details.get("reason") if isinstance(details, Mapping) else None
    for value in (reason, response.get("status"), ended):
        if isinstance(value, str) and value:
            return value
    return None


def _detail(reported: Mapping[str, Any], group: str, name: str) -> int | None:
    details = reported.get(group)
    return whole_number(details.get(name)) if isinstance(details, Mapping) else None


_EVENTS: Final[Mapping[str, Callable[[Adapter, Event], list[Chunk]]]] = {
    "response.created": Adapter._response_begun,
    "response.queued": Adapter._response_begun,
    "response.in_progress": Adapter._response_begun,
    **{f"{name}.delta": Adapter._delta for name in TEXTS},
    **{f"{name}.done": Adapter._done for name in TEXTS},
    "response.reasoning_summary_part.added": Adapter._part_added,
    "response.reasoning_summary_part.done": Adapter._part_done,
    "response.content_part.added": Adapter._part_added,
    "response.content_part.done": Adapter._part_done,
    "response.output_text.annotation.added": Adapter._annotation,
    "response.function_call_arguments.delta": Adapter._arguments_delta,
    "response.function_call_arguments.done": Adapter._arguments_done,
    "response.custom_tool_call_input.delta": Adapter._arguments_delta,
    "response.custom_tool_call_input.done": Adapter._arguments_done,
    "response.output_item.added": Adapter._item_added,
    "response.output_item.done": Adapter._item_done,
    "response.completed": Adapter._response_ended,
    "response.incomplete": Adapter._response_ended,
    "response.failed": Adapter._response_ended,
    "response.cancelled": Adapter._response_ended,
    "error": Adapter._failed,
}


def parse_response(body: Any, contract: Contract) -> list[Chunk]:
    """Return a whole response as chunks: the object, or only its list of output items."""
    response = plain(body)
    if isinstance(response, list):
        items = [plain(entry) for entry in response]
        if items and not any(_is_item(data) for data in items):
            raise WireError("openai.responses: the list holds no output item")
        return Adapter(contract).read_whole({"output": items})
    if not isinstance(response, Mapping):
        raise WireError("openai.responses: the response is neither an object nor a list of items")
    if not isinstance(response.get("output"), list):
        raise WireError("openai.responses: the response has no output list")
    return Adapter(contract).read_whole(response)
