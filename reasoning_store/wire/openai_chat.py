"""OpenAI Chat Completions and its kin, the reading direction: events and responses.

An event holds choices, each with a delta, and beside them which response this is, what it
used, or an error. Hosts differ in where they put reasoning and in how they count it; that
is what the contract says. Here is the frame; ``openai_chat_choice`` reads the deltas.

Usage comes in an event of its own, in the last one, in every one, or inside a choice; the
reasoning in it is part of the output count or stands beside it. Where the total tells which,
it is believed before the contract.

The official SDK's ``stream()`` helper yields each chunk inside an event of its own, and what
it makes of the chunks beside them; that repeats them, and is passed over.

This module must not know tags, which of several aliases counts, or any policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from reasoning_store.blocks import Usage
from reasoning_store.chunks import Chunk, ErrorChunk, OriginChunk, UnknownChunk, UsageChunk
from reasoning_store.errors import WireError
from reasoning_store.wire import contracts, thinking_events
from reasoning_store.wire.base import is_index, plain, unknown, whole_number
from reasoning_store.wire.contracts import Contract
from reasoning_store.wire.openai_chat_choice import Choice, Fields
from reasoning_store.wire.sdk_objects import opened

_DONE: Final = "[DONE]"
_MOST_CHOICES: Final = 128
"""As many as the API gives; more would be memory that nobody asked for."""
_SILENT: Final = frozenset({"content_filter_results", "content_filter_offsets"})
"""What Azure sends in a choice without a delta."""
_DERIVED: Final = ("content.", "refusal.", "tool_calls.", "logprobs.")
"""How the types of events begin that the official SDK's stream() helper makes of the chunks,
which it yields too."""
_WHOLE: Final = ("citations", "provider", "search_results")
"""What hosts say of the response as a whole; they repeat it in every event, the last included."""

_COUNTS: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "input": (("prompt_tokens",), ("input_tokens",)),
    "output": (("completion_tokens",), ("output_tokens",)),
    "reasoning": (
        ("completion_tokens_details", "reasoning_tokens"),
        ("output_tokens_details", "reasoning_tokens"),
        ("reasoning_tokens",),
    ),
    "cached": (
        ("prompt_tokens_details", "cached_tokens"),
        ("input_tokens_details", "cached_tokens"),
        ("prompt_cache_hit_tokens",),
        ("cached_tokens",),
        ("cache_read_input_tokens",),
    ),
}
"""Where a count may be, the first that is a number counts."""


class Adapter:
    """The reader of one stream."""

    id = "openai.chat"

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self._fields = Fields(contract)
        self.reset()

    def can_handle(self, model: str | None, provider: str | None) -> bool:
        return contracts.speaks(provider, model, self.id)

    def reset(self) -> None:
        self._choices: dict[int, Choice] = {}

    def parse_chunk(self, raw: Any) -> list[Chunk]:
        event = opened(raw)
        if not isinstance(event, dict):
            return [] if event == _DONE else unknown(raw)
        choices = event.get("choices")
        if not isinstance(choices, list):
            return self._without_choices(event, raw)
        out: list[Chunk] = []
        bad: list[Any] = []
        for place, choice in enumerate(choices):
            self._choice(choice, place, event, out, bad)
        if event.get("usage") is not None or "x_groq" in event or "error" in event:
            self._beside(event, out, bad)
        if bad:
            out.append(UnknownChunk(raw=_kept(bad, out, raw)))
        return out

    def flush(self) -> list[Chunk]:
        """Return what waited for more of its kind: the stream has ended without a finish."""
        out: list[Chunk] = []
        for choice in self._choices.values():
            choice.finish(None, out)
        return out

    def _choice(
        self, raw: Any, place: int, event: Mapping[str, Any], out: list[Chunk], bad: list[Any]
    ) -> None:
        item = opened(raw)
        if not isinstance(item, dict) or (index := _index(item, place)) is None:
            bad.append(raw)
            return
        choice = known = self._choices.get(index)
        if choice is None:
            choice = Choice(self._fields, index)
        start, wrong = len(out), len(bad)
        named = choice.response_id, choice.model
        origin = None if None not in named else _name(choice, event)
        self._read(choice, item, raw, out, bad)
        if len(bad) > wrong and len(out) == start:
            # Nothing of it was good, so nothing is remembered of it.
            choice.name(*named)
            return
        if origin is not None:
            out.insert(start, origin)
        if known is None:
            if len(self._choices) < _MOST_CHOICES:
                self._choices[index] = choice
            else:
                del out[start:]
                bad.append(raw)

    def _read(
        self, choice: Choice, item: Mapping[str, Any], raw: Any, out: list[Chunk], bad: list[Any]
    ) -> None:
        start = len(out)
        reason = item.get("finish_reason")
        if isinstance(delta := opened(item.get("delta")), dict):
            if delta:
                choice.read(delta, out, bad)
                choice.spoke = choice.spoke or len(out) > start
        elif delta is None and isinstance(message := opened(item.get("message")), dict):
            if not choice.spoke:
                choice.read(message, out, bad)
        elif delta is not None or not (isinstance(reason, str) or _SILENT & item.keys()):
            bad.append(raw)
            return
        if reason:
            if isinstance(reason, str):
                choice.finish(reason, out)
            else:
                bad.append({"finish_reason": reason})
        if "usage" in item or "error" in item:
            # Moonshot reports the usage of a stream here, OpenRouter an error.
            _read_usage(item.get("usage"), self._contract, out, bad)
            _read_error(item.get("error"), choice.index, out, bad)

    def _without_choices(self, event: dict[str, Any], raw: Any) -> list[Chunk]:
        """An event beside the protocol's own: a host's, an error, or usage alone."""
        kind = event.get("type")
        if kind == "chunk" and event.get("chunk") is not None:
            return self.parse_chunk(event["chunk"])
        out: list[Chunk] = []
        if isinstance(kind, str):
            if kind.startswith(_DERIVED):
                return []
            out = thinking_events.parse_event(event, self._fields.provider)
            if not (out and isinstance(out[0], UnknownChunk)):
                return out
            out = []
        bad: list[Any] = []
        self._beside(event, out, bad)
        if not out and event.get("object") == "error":
            out.append(ErrorChunk(raw=event))
        if event.get("choices") is not None:
            bad.append({"choices": event["choices"]})
        if bad or not out:
            out.append(UnknownChunk(raw=_kept(bad, out, raw)))
        return out

    def _beside(self, event: Mapping[str, Any], out: list[Chunk], bad: list[Any]) -> None:
        """What stands beside the choices: usage, and an error; Groq has a place of its own."""
        out += _about(event)
        groq = opened(event.get("x_groq"))
        for holder in (event, groq if isinstance(groq, dict) else {}):
            _read_usage(holder.get("usage"), self._contract, out, bad)
            _read_error(holder.get("error"), 0, out, bad)


def parse_response(body: Any, contract: Contract) -> list[Chunk]:
    """Return a whole response as the chunks that a stream of it would have given."""
    response = opened(body)
    if not isinstance(response, dict):
        raise WireError(f"{contract.api}: the response is not an object")
    choices = response.get("choices")
    if not isinstance(choices, list) or not choices:
        what = "is an error" if response.get("error") else "has no choices"
        raise WireError(f"{contract.api}: the response {what}")
    fields = Fields(contract)
    out: list[Chunk] = []
    bad: list[Any] = []
    for place, raw in enumerate(choices):
        item = opened(raw)
        message = opened(item.get("message")) if isinstance(item, dict) else None
        if not isinstance(message, dict):
            raise WireError(f"{contract.api}: choices[{place}] has no message")
        reason, index = item.get("finish_reason"), _index(item, place)
        choice = Choice(fields, place if index is None else index, whole=True)
        if (origin := _name(choice, response)) is not None:
            out.append(origin)
        choice.read(message, out, bad)
        choice.finish(reason if isinstance(reason, str) else None, out)
        _read_error(item.get("error"), choice.index, out, bad)
    out += _about(response)
    _read_usage(response.get("usage"), contract, out, bad)
    _read_error(response.get("error"), 0, out, bad)
    return [*out, UnknownChunk(raw=_kept(bad, out, body))] if bad else out


def usage(report: Mapping[str, Any], contract: Contract) -> Usage | None:
    """Return what a report of the protocol says, ``None`` where it counts nothing."""
    counts = {name: _count(report, places) for name, places in _COUNTS.items()}
    if all(number is None for number in counts.values()):
        return None
    output, reasoning = counts["output"], counts["reasoning"]
    if output is not None and reasoning and _is_beside(report, counts, contract):
        counts["output"] = output + reasoning
    return Usage(**counts, raw=report)


def _count(report: Mapping[str, Any], places: Iterable[tuple[str, ...]]) -> int | None:
    for place in places:
        value: Any = report
        for name in place:
            value = value.get(name) if isinstance(value, dict) else None
        if (number := whole_number(value)) is not None:
            return number
    return None


def _is_beside(
    report: Mapping[str, Any], counts: Mapping[str, int | None], contract: Contract
) -> bool:
    """Whether the output count leaves the reasoning out; the total, if any, tells it best."""
    total = whole_number(report.get("total_tokens"))
    spent = (counts["input"] or 0) + (counts["output"] or 0)
    if total is not None and total in (spent, spent + (counts["reasoning"] or 0)):
        return total != spent
    return contract.reasoning_beside_output


def _about(event: Mapping[str, Any]) -> list[Chunk]:
    """Return what an event says of the response as a whole and of none of its choices."""
    found = {name: plain(value) for name in _WHOLE if (value := event.get(name))}
    return [OriginChunk(metadata=found)] if found else []


def _read_usage(raw: Any, contract: Contract, out: list[Chunk], bad: list[Any]) -> None:
    report = plain(raw)
    if isinstance(report, dict):
        if (read := usage(report, contract)) is not None:
            out.append(UsageChunk(usage=read))
    elif report is not None:
        bad.append({"usage": raw})


def _read_error(raw: Any, choice: int, out: list[Chunk], bad: list[Any]) -> None:
    error = plain(raw)
    if not error:
        return
    if isinstance(error, str | dict):
        out.append(ErrorChunk(raw=error, choice=choice))
    else:
        bad.append({"error": raw})


def _index(item: Mapping[str, Any], place: int) -> int | None:
    """Return a choice's number; where it has none, its place among the others is as good."""
    index = item.get("index")
    return place if index is None else index if is_index(index) else None


def _name(choice: Choice, event: Mapping[str, Any]) -> OriginChunk | None:
    """Return which response this is a choice of, as far as that is news."""
    response_id, model = (
        text if isinstance(text := event.get(name), str) and text else None
        for name in ("id", "model")
    )
    if not ((response_id and not choice.response_id) or (model and not choice.model)):
        return None
    choice.name(choice.response_id or response_id, choice.model or model)
    return OriginChunk(response_id=choice.response_id, model=choice.model, choice=choice.index)


def _kept(bad: list[Any], out: list[Chunk], raw: Any) -> Any:
    """What to keep of an event with something bad in it: all of it, or what gave no chunk."""
    if not out:
        return raw
    return bad[0] if len(bad) == 1 else bad
