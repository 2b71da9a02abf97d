"""Gemini's answers as a whole: usage, finish, errors, faults."""

from __future__ import annotations

from typing import Any

import pytest

from reasoning_store.conversation.blocks import (
    TextBlock,
    ToolCallBlock,
    Usage,
)
from reasoning_store.conversation.errors import WireError
from reasoning_store.ingress.normalizer import normalize_response
from reasoning_store.wire import contract_lookup
from reasoning_store.wire.gemini.reader import GeminiReader, parse_response
from tests.properties import each
from tests.wire.gemini_events import (
    VARIANTS,
    call,
    chunk,
    streamed,
    text,
    whole,
)
from tests.wire.well_formed import assert_no_trace_of

CONTRACT = contract_lookup.find_contract("google")


# Usage, finish, errors


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        (
            {"promptTokenCount": 20, "candidatesTokenCount": 12, "thoughtsTokenCount": 18},
            (20, 30, 18),
        ),
        ({"promptTokenCount": 20, "candidatesTokenCount": 12}, (20, 12, None)),
        ({"promptTokenCount": 20, "thoughtsTokenCount": 18}, (20, 18, 18)),
        ({"promptTokenCount": 20}, (20, None, None)),
        ({"candidatesTokenCount": "12", "thoughtsTokenCount": -1}, (None, None, None)),
    ],
    ids=["both", "no thoughts", "only thoughts", "only prompt", "not numbers"],
)
def test_output_includes_the_thoughts(
    reported: dict[str, Any], expected: tuple[int | None, ...]
) -> None:
    """Thoughts are reported next to the candidates; absent is not zero."""
    usage = whole(chunk(text("a"), usageMetadata=reported)).usage

    assert usage == Usage(
        input=expected[0], output=expected[1], reasoning=expected[2], raw=reported
    )


def test_cached_tokens_are_reported() -> None:
    """Cached content is part of the prompt, and counted apart."""
    usage = whole(chunk(text("a"), usageMetadata={"cachedContentTokenCount": 7})).usage

    assert usage is not None
    assert usage.cached == 7


def test_no_usage_is_no_usage() -> None:
    """A response without usage has none, rather than zeros."""
    assert whole(chunk(text("a"))).usage is None


def test_finish_reason_is_the_providers_own() -> None:
    """It is kept as it is; an unspecified one is none."""
    reasons = [
        whole(chunk(text("a"), candidate={"finishReason": reason})).finish_reason
        for reason in ("MAX_TOKENS", "FINISH_REASON_UNSPECIFIED")
    ]

    assert reasons == ["MAX_TOKENS", None]


def test_blocked_prompt_is_the_finish_reason() -> None:
    """No candidate was made: the reason of the block is why it ended."""
    message = whole({"promptFeedback": {"blockReason": "SAFETY"}})

    assert (message.blocks, message.finish_reason) == ((), "SAFETY")


def test_error_in_the_stream_interrupts() -> None:
    """What arrived before the error is kept."""
    error = {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}
    message = streamed([chunk(text("a")), error])

    assert (message.status, message.text) == ("interrupted", "a")


def test_response_names_itself_once() -> None:
    """Its id and model are the origin's."""
    adapter = GeminiReader(CONTRACT)
    events = [chunk(text("a"), modelVersion="gemini-x"), chunk(text("b"), modelVersion="gemini-x")]
    origins = [
        piece for event in events for piece in adapter.parse_chunk(event) if piece.type == "origin"
    ]

    assert [(origin.response_id, origin.model) for origin in origins] == [("r1", "gemini-x")]


def test_unstreamed_list_of_chunks_is_a_whole_response() -> None:
    """Without SSE the API sends all chunks as one JSON list."""
    variant = VARIANTS[0]

    assert whole(variant["stream"]).blocks == whole(variant["nonstream"]).blocks


# What is wrong is counted, and changes nothing


MALFORMED: list[Any] = [
    None,
    3,
    "text",
    [],
    {},
    {"type": "x"},
    {"candidates": 1},
    {"candidates": [None]},
    {"candidates": [1, "x", []], "responseId": "another", "modelVersion": "m"},
    {"candidates": [{"index": float("nan"), "content": {"parts": [text("x")]}}]},
    {"candidates": [{"index": -1, "content": {"parts": [text("x")]}}]},
    {"candidates": [{"index": True, "content": {"parts": [text("x")]}}]},
    {"candidates": [{"content": {"parts": text("x")}}]},
    {"candidates": [{"content": "x"}]},
    {"candidates": [{"finishReason": 99}]},
    {"candidates": [{"content": {"parts": [None, 1, "x", []]}}]},
    {"candidates": [{"content": {"parts": [{"text": 1}]}}]},
    {"candidates": [{"content": {"parts": [{"text": "x", "thoughtSignature": 1}]}}]},
    {"candidates": [{"content": {"parts": [{"functionCall": "f"}]}}]},
    {"candidates": [{"content": {"parts": [{"functionCall": {"name": 1}}]}}]},
    {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f", "args": "{}"}}]}}]},
    {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f", "id": 1}}]}}]},
    {"candidates": [{"content": {"parts": [{"functionCall": {}}]}}]},
    {"candidates": [{"content": {"parts": [call("f", partialArgs=[{"jsonPath": "a"}])]}}]},
    {"candidates": [{"content": {"parts": [{"inlineData": {"data": "not base64!"}}]}}]},
    {"candidates": [{"content": {"parts": [{"inlineData": {"mimeType": "image/png"}}]}}]},
    {"candidates": [{"content": {"parts": [{"fileData": {"fileUri": 1}}]}}]},
]


def test_a_malformed_event_is_one_unknown_chunk_and_leaves_no_trace() -> None:
    """However much of it is wrong, it counts once, and the good ones give what they give."""
    for variant in VARIANTS:
        assert_no_trace_of(MALFORMED, "gemini.generate_content", variant["stream"])


def test_bad_part_leaves_the_good_ones_of_its_event() -> None:
    """The good parts count, and the event is counted as unknown once."""
    message = streamed([chunk(text("a"), None, {"text": 1}, text("b"))])

    assert message.blocks == (TextBlock(text="ab"),)
    assert message.metadata is not None
    assert message.metadata["unknownChunks"] == 1


@each("body", [None, 7, {}, {"choices": []}, {"candidates": {}}, [None], [{}]])
def test_body_of_another_form_is_refused(body: Any) -> None:
    """What is no response is a WireError, not an empty message."""
    with pytest.raises(WireError):
        parse_response(body, CONTRACT)


@pytest.mark.parametrize("provider", ["google", "vertex", "nobody-knows"])
def test_contract_holds_wherever_the_protocol_is_spoken(provider: str) -> None:
    """Thoughts are kept out of the text and counted next to it: of the protocol, not of a host."""
    counts = {"candidatesTokenCount": 12, "thoughtsTokenCount": 18}
    body = chunk(text("<think>a</think>"), usageMetadata=counts)
    message = normalize_response(body, provider=provider, api="gemini.generate_content")

    assert message.text == "<think>a</think>"
    assert message.usage is not None
    assert message.usage.output == 30


def test_a_call_that_was_cut_off_keeps_the_arguments_that_came() -> None:
    """They are JSON that breaks off, so that no one takes them for the whole."""
    piece = {"jsonPath": "$.where.city", "stringValue": "Os", "willContinue": True}
    events = [
        chunk(call("f", id="c1", willContinue=True)),
        chunk(call(partialArgs=[piece], willContinue=True)),
    ]

    assert streamed(events).tool_calls == (
        ToolCallBlock(id="c1", name="f", arguments='{"where":{"city":"Os"}'),
    )


def test_fields_of_the_whole_answer_are_kept_with_it() -> None:
    """Why an answer was stopped or refused belongs to no part of it."""
    ratings = [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "HIGH", "blocked": True}]
    stopped = chunk(
        text("a"),
        candidate={"finishReason": "SAFETY", "finishMessage": "why", "safetyRatings": ratings},
    )
    refused = {"promptFeedback": {"blockReason": "SAFETY", "safetyRatings": ratings}}

    kept = {"finishMessage": "why", "safetyRatings": ratings}
    assert streamed([stopped]).metadata == whole(stopped).metadata == {"providerMetadata": kept}
    assert streamed([refused]).metadata == {"providerMetadata": refused}


def test_a_finish_reason_may_be_a_number() -> None:
    """Vertex AI's SDK has it written so in JSON."""
    body = {"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": 1}]}
    message = normalize_response(body, provider="vertex", model="gemini-3-pro")

    assert (message.finish_reason, message.metadata) == ("STOP", None)
