"""Reads Gemini's generateContent: responses of candidates, whole or chunk by chunk.

A chunk is a response with the next parts of its candidates, which ``parts`` reads. The count
of thought tokens is reported apart from the candidates' tokens, as the contract has it. Events
of the Interactions API are recognised by their form and read by ``interactions``.

The protocol has no end mark: code execution names a finish reason before the answer, and proxies
name one in every chunk. So a candidate finishes with its stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from reasoning_store.conversation.chunks import (
    Chunk,
    ErrorChunk,
    FinishChunk,
    OriginChunk,
)
from reasoning_store.conversation.errors import WireError
from reasoning_store.wire.contract import Contract
from reasoning_store.wire.event_fields import (
    Malformed,
    is_index,
    optional_mapping,
    plain_value,
)
from reasoning_store.wire.event_reader import EventReader
from reasoning_store.wire.gemini import interactions as gemini_interactions
from reasoning_store.wire.gemini.parts import Candidate
from reasoning_store.wire.gemini.spellings import as_json, field, spellings, text_of
from reasoning_store.wire.protocol import Event

_RESPONSE: Final = frozenset(
    {
        "candidates",
        *spellings("promptFeedback"),
        *spellings("usageMetadata"),
        *spellings("modelVersion"),
        *spellings("responseId"),
        *spellings("createTime"),
    }
)
"""Any of these makes an object a response, or a chunk of one."""
_SOURCES: Final = ("groundingMetadata", "citationMetadata", "urlContextMetadata")
"""The sources of a candidate's text; stored with the text."""
_WHOLE: Final = ("finishMessage", "safetyRatings")
"""Fields of a candidate as a whole."""

_COUNTS: Final = {
    "input": spellings("promptTokenCount"),
    "output": spellings("candidatesTokenCount"),
    "reasoning": spellings("thoughtsTokenCount"),
    "cached": spellings("cachedContentTokenCount"),
}

_REASONS: Final = dict(
    enumerate(
        (
            "FINISH_REASON_UNSPECIFIED",
            "STOP",
            "MAX_TOKENS",
            "SAFETY",
            "RECITATION",
            "OTHER",
            "BLOCKLIST",
            "PROHIBITED_CONTENT",
            "SPII",
            "MALFORMED_FUNCTION_CALL",
        )
    )
)
"""The finish reasons by number, as Vertex AI's own SDK has its JSON written."""


class GeminiReader(EventReader):
    """The reader of one stream."""

    id = "gemini.generate_content"

    def reset(self) -> None:
        self._candidates: dict[int, Candidate] = {}
        self._finishes: dict[int, FinishChunk] = {}
        self._origin: tuple[str | None, str | None] = (None, None)
        self._interaction = gemini_interactions.InteractionsReader(self._contract)

    def read_event(self, event: Event) -> list[Chunk]:
        if gemini_interactions.is_event(event):
            return self._interaction.read_event(event)
        if not event.keys().isdisjoint(_RESPONSE):
            return self._read_response(event)
        if isinstance(event.get("error"), Mapping) and "type" not in event:
            return [ErrorChunk(raw=as_json(event))]
        return super().read_event(event)

    def flush(self) -> list[Chunk]:
        """Return what was still arriving when the stream ended."""
        out = self._interaction.flush()
        for number, state in self._candidates.items():
            finish = self._finishes.get(number)
            out += state.cut_off_call() if finish is None else state.end_call()
        out += self._finishes.values()
        self._finishes = {}
        return out

    def _read_response(self, event: Mapping[str, Any]) -> list[Chunk]:
        candidates = event.get("candidates")
        if not isinstance(candidates, list | None):
            raise Malformed
        origin = self._id_and_model(event)
        out: list[Chunk] = []
        for position, candidate in enumerate(candidates or ()):
            # The first candidate's index is 0, which JSON of a protocol buffer leaves out.
            number = candidate.get("index") if isinstance(candidate, Mapping) else None
            number = position if number is None else number
            if not isinstance(candidate, Mapping) or not is_index(number):
                self.wrong.append(candidate)
                continue
            out += self._read_candidate(candidate, number, origin[0])
            if reason := _finish_reason(candidate):
                self._finishes[number] = FinishChunk(reason=reason, choice=number)
        feedback = (
            optional_mapping(field(event, "promptFeedback"), "promptFeedback", self.wrong) or {}
        )
        if feedback:
            out.append(OriginChunk(metadata={"promptFeedback": as_json(feedback)}))
        if reason := text_of(field(feedback, "blockReason")):
            self._finishes[0] = FinishChunk(reason=reason)
        report = as_json(field(event, "usageMetadata"))
        out += self.read_usage(report, _COUNTS, name="usageMetadata")
        if origin != self._origin and (out or not self.wrong):
            self._origin = origin
            out.insert(0, OriginChunk(response_id=origin[0], model=origin[1]))
        return out

    def _read_candidate(
        self, candidate: Event, number: int, response_id: str | None
    ) -> list[Chunk]:
        content = candidate.get("content")
        parts = content.get("parts") if isinstance(content, Mapping) else content
        given = field(candidate, "finishReason")
        if not isinstance(parts, list | None):
            self.wrong.append(content)
        if given is not None and _read_reason(given) is None:
            self.wrong.append(given)
        state = self._candidates.get(number) or Candidate(number, self._provider)
        state.response_id = response_id
        out: list[Chunk] = []
        for part in parts if isinstance(parts, list) else ():
            try:
                out += state.read(part)
            except (Malformed, RecursionError):
                self.wrong.append(part)
        for name in _SOURCES:
            if (value := as_json(field(candidate, name))) is not None:
                out += state.about_text({name: value})
        found = {name: as_json(field(candidate, name)) for name in _WHOLE}
        if about := {name: value for name, value in found.items() if value}:
            out.append(OriginChunk(metadata=about, choice=number))
        if out:
            self._candidates[number] = state
        return out

    def _id_and_model(self, event: Mapping[str, Any]) -> tuple[str | None, str | None]:
        """Return the response's id and model, as far as they are known with this event."""
        response_id, model = self._origin
        return (
            response_id or text_of(field(event, "responseId")),
            model or text_of(field(event, "modelVersion")),
        )


def _finish_reason(candidate: Mapping[str, Any]) -> str | None:
    reason = _read_reason(field(candidate, "finishReason"))
    return None if reason is None or reason.endswith("_UNSPECIFIED") else reason


def _read_reason(given: Any) -> str | None:
    return _REASONS.get(given) if is_index(given) else text_of(given)


def has_mark(event: Mapping[str, Any]) -> bool:
    """Whether an event carries a mark that no other protocol has."""
    kind = event.get("event_type", event.get("type"))
    if isinstance(kind, str):
        return kind.startswith(("interaction.", "step."))
    return isinstance(event.get("candidates"), list)


def parse_response(body: Any, contract: Contract) -> list[Chunk]:
    """Return a whole response as chunks; a list is the chunks of one, as sent without SSE."""
    response = plain_value(body)
    if isinstance(response, Mapping) and gemini_interactions.is_response(response):
        return gemini_interactions.parse_response(response, contract)
    adapter = GeminiReader(contract)
    out: list[Chunk] = []
    for item in response if isinstance(response, list) else [response]:
        event = plain_value(item)
        if not isinstance(event, Mapping):
            raise WireError("gemini.generate_content: the response is not an object")
        if event.keys().isdisjoint(_RESPONSE | {"error"}):
            raise WireError("gemini.generate_content: the response has no candidates")
        if not isinstance(event.get("candidates"), list | None):
            raise WireError("gemini.generate_content: the response's candidates are not a list")
        out += adapter.parse_chunk(event)
    return out + adapter.flush()
