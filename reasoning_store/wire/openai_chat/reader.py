"""Reads OpenAI Chat Completions and its kin: events and responses.

An event holds choices, each with a delta, and the response's id, usage or error. Hosts differ
in where they put reasoning and in how they count it; the contract has the differences. Usage
comes in an event of its own, in the last one, in every one, or inside a choice; its reasoning
is part of the output count or apart from it, and a total that settles this wins over the
contract. The official SDK's ``stream()`` helper wraps each chunk in an event of its own and
adds derived ones; they repeat the chunks and are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from reasoning_store.conversation.blocks import Usage
from reasoning_store.conversation.chunks import (
    Chunk,
    ErrorChunk,
    OriginChunk,
    UnknownChunk,
    UsageChunk,
)
from reasoning_store.conversation.errors import WireError
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.event_fields import (
    DONE,
    is_index,
    other_fields,
    plain_value,
    shallow_dict,
    unknown_event,
    whole_number,
)
from reasoning_store.wire.openai_chat.choice import ChoiceReader
from reasoning_store.wire.protocol import ProtocolReader
from reasoning_store.wire.ui_messages import reader as thinking_events
from reasoning_store.wire.usage_counts import make_usage, read_counts

_MOST_CHOICES: Final = 128
"""The most that the API gives; more would only use memory."""
_SILENT: Final = frozenset({"content_filter_results", "content_filter_offsets"})
"""Fields that Azure sends in a choice without a delta."""
_DERIVED: Final = ("content.", "refusal.", "tool_calls.", "logprobs.")
"""How the types of events begin that the official SDK's stream() helper makes of the chunks,
which it yields too."""
_WHOLE: Final = (
    "citations",
    "prompt_filter_results",
    "provider",
    "search_results",
    "service_tier",
    "system_fingerprint",
)
"""Fields of the response as a whole; most hosts repeat them in every event."""

_COUNTS: Final = {
    "input": ("prompt_tokens", "input_tokens"),
    "output": ("completion_tokens", "output_tokens"),
    "reasoning": (
        "completion_tokens_details.reasoning_tokens",
        "output_tokens_details.reasoning_tokens",
        "reasoning_tokens",
    ),
    "cached": (
        "prompt_tokens_details.cached_tokens",
        "input_tokens_details.cached_tokens",
        "prompt_cache_hit_tokens",
        "cached_tokens",
        "cache_read_input_tokens",
    ),
    "cache_write": (
        "prompt_tokens_details.cache_write_tokens",
        "prompt_tokens_details.cache_creation_input_tokens",
        "prompt_tokens_details.cache_creation_tokens",
        "input_tokens_details.cache_write_tokens",
        "cache_creation_input_tokens",
    ),
}


class ChatReader(ProtocolReader):
    """The reader of one stream."""

    id = "openai.chat"

    def __init__(self, contract: Contract, *, is_whole: bool = False) -> None:
        self._is_whole = is_whole
        super().__init__(contract)

    def reset(self) -> None:
        self._choices: dict[int, ChoiceReader] = {}
        self._has_read_metadata = False
        """Whether an event with choices has come, which has the fields of the response."""

    def parse_chunk(self, raw: Any) -> list[Chunk]:
        event = shallow_dict(raw)
        if not isinstance(event, dict):
            return [] if event == DONE else unknown_event(raw)
        choices = event.get("choices")
        if not isinstance(choices, list):
            return self._read_without_choices(event, raw)
        out: list[Chunk] = []
        wrong: list[Any] = []
        for place, choice in enumerate(choices):
            self._read_choice(choice, place, event, out, wrong)
        if event.get("usage") is not None or "x_groq" in event or "error" in event:
            self._read_usage_and_error(event, out, wrong)
        elif not (wrong or (choices and self._has_read_metadata)):
            out += _response_metadata(event)
        self._has_read_metadata = self._has_read_metadata or not wrong
        if wrong:
            out.append(UnknownChunk(raw=_part_to_store(wrong, out, raw)))
        return out

    def flush(self) -> list[Chunk]:
        """Return what waited for more of its kind: the stream has ended without a finish."""
        out: list[Chunk] = []
        for choice in self._choices.values():
            choice.finish(None, out)
        return out

    def _read_choice(
        self, raw: Any, place: int, event: Mapping[str, Any], out: list[Chunk], wrong: list[Any]
    ) -> None:
        item = shallow_dict(raw)
        if not isinstance(item, dict):
            wrong.append(raw)
            return
        index = _index(item, place)
        choice = known = self._choices.get(index)
        if choice is None:
            choice = ChoiceReader(self._contract, index, whole=self._is_whole)
        start, wrong_before = len(out), len(wrong)
        origin_before = choice.response_id, choice.model
        origin = None if None not in origin_before else _new_origin(choice, event)
        self._read_fields(choice, item, raw, out, wrong)
        if len(wrong) > wrong_before and len(out) == start:
            # Nothing of it was good, so nothing is remembered of it.
            choice.set_response(*origin_before)
            return
        if origin is not None:
            out.insert(start, origin)
        if known is None:
            if len(self._choices) < _MOST_CHOICES:
                self._choices[index] = choice
            else:
                del out[start:]
                wrong.append(raw)

    def _read_fields(
        self,
        choice: ChoiceReader,
        item: Mapping[str, Any],
        raw: Any,
        out: list[Chunk],
        wrong: list[Any],
    ) -> None:
        start = len(out)
        reason = item.get("finish_reason")
        choice.read_metadata(item, out)
        if isinstance(delta := shallow_dict(item.get("delta")), dict):
            if delta:
                choice.read(delta, out, wrong)
                choice.spoke = choice.spoke or len(out) > start
        elif delta is None and isinstance(message := shallow_dict(item.get("message")), dict):
            if not choice.spoke:
                choice.read(message, out, wrong)
        elif delta is not None or not (isinstance(reason, str) or _SILENT & item.keys()):
            wrong.append(raw)
            return
        if reason:
            if isinstance(reason, str):
                choice.finish(reason, out)
            else:
                wrong.append({"finish_reason": reason})
        if "usage" in item or "error" in item:
            # Moonshot reports the usage of a stream here, OpenRouter an error.
            _read_usage(item.get("usage"), self._contract, out, wrong)
            _read_error(item.get("error"), choice.index, out, wrong)

    def _read_without_choices(self, event: dict[str, Any], raw: Any) -> list[Chunk]:
        """Read an event without choices: a host's, an error, or usage alone."""
        kind = event.get("type")
        if kind == "chunk" and event.get("chunk") is not None:
            return self.parse_chunk(event["chunk"])
        out: list[Chunk] = []
        if isinstance(kind, str):
            if kind.startswith(_DERIVED) or kind == "ping":
                return []
            out = thinking_events.parse_event(event, self._provider)
            if not (out and isinstance(out[0], UnknownChunk)):
                return out
            out = []
        wrong: list[Any] = []
        self._read_usage_and_error(event, out, wrong)
        if not out and event.get("object") == "error":
            out.append(ErrorChunk(raw=event))
        if event.get("choices") is not None:
            wrong.append({"choices": event["choices"]})
        if wrong or not out:
            out.append(UnknownChunk(raw=_part_to_store(wrong, out, raw)))
        return out

    def _read_usage_and_error(
        self, event: Mapping[str, Any], out: list[Chunk], wrong: list[Any]
    ) -> None:
        """Read usage and an error, which are not in the choices; Groq has a place of its own."""
        out += _response_metadata(event)
        groq = shallow_dict(event.get("x_groq"))
        for holder in (event, groq if isinstance(groq, dict) else {}):
            _read_usage(holder.get("usage"), self._contract, out, wrong)
            _read_error(holder.get("error"), 0, out, wrong)


def has_mark(event: Mapping[str, Any]) -> bool:
    """Whether an event, or a whole response, carries a mark that no other protocol has."""
    choices = event.get("choices")
    if event.get("object") == "chat.completion.chunk":
        return True
    first = plain_value(choices[0]) if isinstance(choices, list) and choices else None
    return isinstance(first, Mapping) and not first.keys().isdisjoint({"delta", "message"})


def parse_response(body: Any, contract: Contract) -> list[Chunk]:
    """Return a whole response as the chunks that a stream of it would have given."""
    response = shallow_dict(body)
    if not isinstance(response, dict):
        raise WireError(f"{contract.api}: the response is not an object")
    choices = response.get("choices")
    if not isinstance(choices, list) or not choices:
        what = "is an error" if response.get("error") else "has no choices"
        raise WireError(f"{contract.api}: the response {what}")
    for place, raw in enumerate(choices):
        item = shallow_dict(raw)
        said = shallow_dict(item.get("message")) if isinstance(item, dict) else None
        if not isinstance(said, dict) and not (isinstance(item, dict) and _SILENT & item.keys()):
            raise WireError(f"{contract.api}: choices[{place}] has no message")
    reader = ChatReader(contract, is_whole=True)
    return [*reader.parse_chunk(response), *reader.flush()]


def usage(report: Mapping[str, Any], contract: Contract) -> Usage | None:
    """Return the usage of a report, ``None`` where it counts nothing."""
    counts = read_counts(report, _COUNTS)
    if set(counts.values()) == {None}:
        return None
    return make_usage(counts, report, reasoning_apart=_excludes_reasoning(report, counts, contract))


def _excludes_reasoning(
    report: Mapping[str, Any], counts: Mapping[str, int | None], contract: Contract
) -> bool:
    """Whether the output count leaves the reasoning out; a total decides it."""
    total = whole_number(report.get("total_tokens"))
    spent = (counts["input"] or 0) + (counts["output"] or 0)
    if total is not None and total in (spent, spent + (counts["reasoning"] or 0)):
        return total != spent
    return contract.reading.output_excludes_reasoning


def _response_metadata(event: Mapping[str, Any]) -> list[Chunk]:
    """Return the metadata of the response as a whole."""
    metadata = {name: plain_value(value) for name in _WHOLE if (value := event.get(name))}
    groq = plain_value(event.get("x_groq"))
    if isinstance(groq, dict) and (details := other_fields(groq, ("usage", "error"))):
        metadata["x_groq"] = details
    return [OriginChunk(metadata=metadata)] if metadata else []


def _read_usage(raw: Any, contract: Contract, out: list[Chunk], wrong: list[Any]) -> None:
    report = plain_value(raw)
    if isinstance(report, dict):
        if (read := usage(report, contract)) is not None:
            out.append(UsageChunk(usage=read))
    elif report is not None:
        wrong.append({"usage": raw})


def _read_error(raw: Any, choice: int, out: list[Chunk], wrong: list[Any]) -> None:
    error = plain_value(raw)
    if not error:
        return
    if isinstance(error, str | dict):
        out.append(ErrorChunk(raw=error, choice=choice))
    else:
        wrong.append({"error": raw})


def _index(item: Mapping[str, Any], place: int) -> int:
    """Return a choice's number; where it has none, its place among the others is as good."""
    index = item.get("index")
    return index if is_index(index) else place


def _new_origin(choice: ChoiceReader, event: Mapping[str, Any]) -> OriginChunk | None:
    """Return the id and the model of a response, where one of them is not yet reported."""
    response_id, model = (
        text if isinstance(text := event.get(name), str) and text else None
        for name in ("id", "model")
    )
    if not ((response_id and not choice.response_id) or (model and not choice.model)):
        return None
    choice.set_response(choice.response_id or response_id, choice.model or model)
    return OriginChunk(response_id=choice.response_id, model=choice.model, choice=choice.index)


def _part_to_store(wrong: list[Any], out: list[Chunk], raw: Any) -> Any:
    """Return the part of a malformed event to store: all of it, or its malformed values."""
    if not out:
        return raw
    return wrong[0] if len(wrong) == 1 else wrong
