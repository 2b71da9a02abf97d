"""What the reader of Gemini's generateContent promises."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import (
    MediaBlock,
    Message,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Usage,
)
from reasoning_store.conversation.chunks import ReasoningChunk, UnknownChunk
from reasoning_store.conversation.errors import WireError
from reasoning_store.ingress.normalizer import StreamNormalizer, normalize_response
from reasoning_store.wire import call_ids, contracts
from reasoning_store.wire.gemini.reader import GeminiReader, parse_response
from tests.properties import each

CASES = Path(__file__).parents[1] / "cases" / "wire"
VARIANTS: list[dict[str, Any]] = json.loads((CASES / "gemini_generate_content.json").read_text())[
    "variants"
]
SIGNATURE = "c2lnLWFiYw=="
CONTRACT = contracts.resolve("google")


def chunk(*parts: Any, **more: Any) -> dict[str, Any]:
    """One event of a stream with these parts."""
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}}
    return {"candidates": [candidate | more.pop("candidate", {})], "responseId": "r1"} | more


def text(text: str, **more: Any) -> dict[str, Any]:
    return {"text": text} | more


def thought(text: str, **more: Any) -> dict[str, Any]:
    return {"text": text, "thought": True} | more


def call(name: str | None = None, **more: Any) -> dict[str, Any]:
    return {"functionCall": ({"name": name} if name else {}) | more}


def normalizer_after(events: Iterable[Any]) -> StreamNormalizer:
    normalizer = StreamNormalizer(provider="google")
    for event in events:
        normalizer.feed(event)
    normalizer.finish()
    return normalizer


def streamed(events: Iterable[Any]) -> Message:
    return normalizer_after(events).finish()


def whole(body: Any) -> Message:
    return normalize_response(body, provider="google")


def sealed(signature: str = SIGNATURE) -> dict[str, Any]:
    return {"thoughtSignature": signature}


# Captured shapes


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant["name"])
def test_sdk_objects_give_what_dicts_give(variant: dict[str, Any]) -> None:
    """The SDK's own types accept the captured shapes, and read the same (bytes and enums)."""
    make = types.GenerateContentResponse.model_validate_json
    body = make(json.dumps(variant["nonstream"]))
    events = [make(json.dumps(event)) for event in variant["stream"]]

    assert whole(body) == whole(variant["nonstream"])
    assert streamed(events) == streamed(variant["stream"])


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant["name"])
def test_snake_case_gives_what_camel_case_gives(variant: dict[str, Any]) -> None:
    """A dump of the SDK's object without aliases is read like the wire's JSON."""
    response = types.GenerateContentResponse.model_validate_json(json.dumps(variant["nonstream"]))

    assert whole(response.model_dump(exclude_none=True)).blocks == whole(response).blocks


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant["name"])
def test_what_an_sdk_object_gives_is_json(variant: dict[str, Any]) -> None:
    """No bytes and no enumeration of the SDK's gets into a block or the usage."""
    body = types.GenerateContentResponse.model_validate_json(json.dumps(variant["nonstream"]))
    message = whole(body)

    assert (
        codec.message_from_json(json.loads(codec.dumps(codec.message_to_json(message)))) == message
    )


# Thoughts, texts and their signatures


def test_a_signature_alone_makes_no_thought() -> None:
    """Only the flag makes a part a thought; a signed text is text."""
    assert whole(chunk(text("a", **sealed()))).blocks == (
        TextBlock(text="a", provider_metadata=sealed()),
    )


def test_consecutive_parts_of_one_kind_are_one_block() -> None:
    """The pieces of a stream add up, also where one chunk brings several."""
    events = [chunk(thought("a")), chunk(thought("b"), thought("c")), chunk(text("d"), text("e"))]

    assert streamed(events).blocks == (
        ThinkingBlock(thought="abc", source_field="thought"),
        TextBlock(text="de"),
    )


def test_thought_after_text_is_a_thought_of_its_own() -> None:
    """Order is kept: nothing is merged across a part of another kind."""
    message = streamed([chunk(thought("a")), chunk(text("b")), chunk(thought("c"))])

    assert [block.type for block in message.blocks] == ["thinking", "text", "thinking"]


def test_thought_ends_where_another_kind_begins() -> None:
    """An application sees the end of the thought before the text that follows it."""
    normalizer = StreamNormalizer(provider="google")
    phases = [
        piece.phase if isinstance(piece, ReasoningChunk) else piece.type
        for event in (chunk(thought("a")), chunk(text("b")))
        for piece in normalizer.feed(event)
        if piece.type in ("reasoning", "text")
    ]

    assert phases == ["start", "delta", "end", "text"]


def test_signature_on_a_last_empty_part_seals_the_text_before_it() -> None:
    """Streams bring the signature after the text: it is attached, not dropped."""
    message = streamed([chunk(text("a")), chunk(text("b")), chunk(text("", **sealed()))])

    assert message.blocks == (TextBlock(text="ab", provider_metadata=sealed()),)


def test_signature_without_any_text_field_seals_too() -> None:
    """JSON of a protocol buffer may leave the empty text out."""
    message = streamed([chunk(text("a")), chunk(sealed())])

    assert message.blocks == (TextBlock(text="a", provider_metadata=sealed()),)


def test_signed_text_is_a_block_of_its_own() -> None:
    """A signed part is merged neither with an unsigned nor with another signed one."""
    message = streamed(
        [
            chunk(text("a")),
            chunk(text("b", **sealed("s1"))),
            chunk(text("c", **sealed("s2"))),
            chunk(text("d")),
        ]
    )

    assert message.blocks == (
        TextBlock(text="a"),
        TextBlock(text="b", provider_metadata=sealed("s1")),
        TextBlock(text="c", provider_metadata=sealed("s2")),
        TextBlock(text="d"),
    )


def test_second_lone_signature_is_not_lost() -> None:
    """A sealed block takes no second seal: the next stands on an empty text of its own."""
    message = streamed(
        [chunk(text("a")), chunk(text("", **sealed("s1"))), chunk(text("", **sealed("s2")))]
    )

    assert [block.provider_metadata for block in message.blocks] == [sealed("s1"), sealed("s2")]


def test_a_lone_signature_after_a_call_is_a_part_of_its_own() -> None:
    """It seals no text that stands before something else."""
    message = streamed([chunk(text("a")), chunk(call("f", id="c1")), chunk(text("", **sealed()))])

    assert [block.type for block in message.blocks] == ["text", "tool_call", "text"]
    assert message.blocks[2] == TextBlock(text="", provider_metadata=sealed())


def test_signature_of_a_thought_is_the_blocks_own() -> None:
    """A sealed thought is opaque: its signature is the block's, streamed or whole."""
    expected = (ThinkingBlock(thought="ab", source_field="thought", signature=SIGNATURE),)

    assert whole(chunk(thought("ab", **sealed()))).blocks == expected
    assert streamed(
        [chunk(thought("a")), chunk(thought("b")), chunk(thought("", **sealed()))]
    ).blocks == (expected)


def test_bytes_of_a_signature_are_base64() -> None:
    """The SDK's bytes are kept as the wire's text."""
    part = text("a", thought_signature=b64decode(SIGNATURE))

    assert whole(chunk(part)).blocks == (TextBlock(text="a", provider_metadata=sealed()),)


PARTS = st.one_of(
    st.builds(text, st.text("ab ", max_size=3)),
    st.builds(thought, st.text("ab ", max_size=3)),
    st.builds(lambda said, seal: text(said, **sealed(seal)), st.text("ab"), st.sampled_from("st")),
    st.builds(lambda said: thought(said, **sealed()), st.text("ab")),
    st.just(call("f")),
    st.just({"executableCode": {"code": "1"}}),
)


@given(st.lists(st.lists(PARTS, max_size=4), max_size=6))
def test_how_parts_are_spread_over_events_does_not_matter(events: list[list[Any]]) -> None:
    """Any grouping of the same parts gives the blocks of one response that holds them all."""
    at_once = whole(chunk(*(part for parts in events for part in parts)))

    assert streamed(chunk(*parts) for parts in events).blocks == at_once.blocks


@given(st.lists(st.sampled_from([text, thought]), max_size=4), st.data())
def test_where_an_unsigned_part_is_cut_does_not_matter(kinds: list[Any], data: Any) -> None:
    """A part that is cut in two is the part that it was."""
    parts = [kind(f"{number} and more") for number, kind in enumerate(kinds)]
    cut = [
        piece
        for kind, part in zip(kinds, parts, strict=True)
        for at in [data.draw(st.integers(0, len(part["text"])))]
        for piece in (kind(part["text"][:at]), kind(part["text"][at:]))
    ]

    assert streamed(map(chunk, cut)).blocks == whole(chunk(*parts)).blocks


# Calls


def test_signature_of_a_call_survives() -> None:
    """Gemini 3 refuses a turn whose first call lost its signature."""
    first, second = whole(chunk(call("f", id="c1") | sealed(), call("g", id="c2"))).tool_calls

    assert (first.provider_metadata, second.provider_metadata) == (sealed(), None)


def test_call_without_id_gets_the_same_one_whole_and_streamed() -> None:
    """The id made for it depends on the response and the call's place, on nothing else."""
    calls = [call("f", args={"a": 1}), call("f", args={"a": 1})]
    at_once = whole(chunk(*calls)).tool_calls
    one_by_one = streamed([chunk(thought("t")), *(chunk(item) for item in calls)]).tool_calls

    assert at_once == one_by_one
    assert len({item.id for item in at_once}) == 2
    assert all(call_ids.is_made_here(item.id) for item in at_once)


def test_made_ids_differ_between_responses() -> None:
    """The same call in two responses is two calls, also where a response has no id."""
    named = [whole(chunk(call("f")) | {"responseId": name}) for name in ("r1", "r2")]
    unnamed = [whole({"candidates": chunk(call("f", args={"a": n}))["candidates"]}) for n in (1, 2)]

    assert len({message.tool_calls[0].id for message in (*named, *unnamed)}) == 4


def test_call_without_arguments_has_none() -> None:
    """Absent arguments are an empty object."""
    assert whole(chunk(call("f", id="c1"))).tool_calls == (
        ToolCallBlock(id="c1", name="f", parameters={}),
    )


def test_arguments_that_arrive_in_pieces_are_put_together() -> None:
    """Vertex streams arguments by JSON path; an empty call says that they are complete."""
    pieces = [
        call("f", id="c1", willContinue=True) | sealed(),
        call(
            partialArgs=[{"jsonPath": "$.where.city", "stringValue": "Os", "willContinue": True}],
            willContinue=True,
        ),
        call(
            partialArgs=[
                {"jsonPath": "$.where.city", "stringValue": "lo"},
                {"jsonPath": "$['days'][0]", "numberValue": 1},
                {"jsonPath": "$.days[1]", "numberValue": 2},
                {"jsonPath": "$.exact", "boolValue": True},
                {"jsonPath": "$.unit", "nullValue": "NULL_VALUE"},
            ],
            willContinue=True,
        ),
        call(),
    ]
    arguments = {"where": {"city": "Oslo"}, "days": [1, 2], "exact": True, "unit": None}

    assert streamed([chunk(piece) for piece in pieces]).tool_calls == (
        ToolCallBlock(id="c1", name="f", parameters=arguments, provider_metadata=sealed()),
    )


def test_a_seal_on_a_later_piece_of_a_call_is_the_calls() -> None:
    """Without it the call would be refused when it goes back."""
    events = [chunk(call("f", id="c1", willContinue=True)), chunk(call() | sealed())]

    assert streamed(events).tool_calls[0].provider_metadata == sealed()


def test_a_nameless_call_does_not_end_the_one_that_is_under_way() -> None:
    """Whole arguments are another call's, of which no one knows the name."""
    piece = {"jsonPath": "$.a", "stringValue": "x"}
    message = streamed(
        [
            chunk(call("f", id="c1", willContinue=True)),
            chunk(call(args={"b": 1})),
            chunk(call(partialArgs=[piece]), candidate={"finishReason": "STOP"}),
        ]
    )

    assert [(c.name, c.parameters) for c in message.tool_calls] == [("f", {"a": "x"})]
    assert message.metadata is not None
    assert message.metadata["unknownEvents"] == [call(args={"b": 1})]


@pytest.mark.parametrize("name", [None, "", 7], ids=["none", "empty", "a number"])
def test_a_call_without_a_name_is_kept_aside_and_nothing_else_is(name: Any) -> None:
    """Whole and streamed alike; what stood around it is not kept a second time."""
    nameless = {"functionCall": {"name": name, "args": {"a": 1}}} | sealed()
    body = chunk(thought("Hm."), nameless, text("So."), candidate={"finishReason": "STOP"})

    for message in (streamed([body]), whole(body)):
        assert [block.type for block in message.blocks] == ["thinking", "text"]
        assert message.metadata == {"unknownChunks": 1, "unknownEvents": [nameless]}


def test_call_whose_arguments_just_stop_is_complete_at_the_finish() -> None:
    """The finish of the candidate ends the call that is still open."""
    piece = {"jsonPath": "$.a", "stringValue": "x"}
    events = [
        chunk(call("f", id="c1", willContinue=True)),
        chunk(call(partialArgs=[piece], willContinue=True), candidate={"finishReason": "STOP"}),
    ]

    assert streamed(events).tool_calls[0].parameters == {"a": "x"}


# Everything else that parts hold


def test_inline_data_is_media() -> None:
    """Bytes that the model made are a media block; their signature stays with them."""
    blob = {"mimeType": "image/png", "data": b64encode(b"picture").decode()}

    assert whole(chunk({"inlineData": blob} | sealed())).blocks == (
        MediaBlock(
            kind="image", mime_type="image/png", data=b"picture", provider_metadata=sealed()
        ),
    )


def test_file_data_is_media_with_its_address() -> None:
    """A file keeps its address and its name."""
    file = {"mimeType": "application/pdf", "fileUri": "gs://a/b.pdf", "displayName": "b"}

    assert whole(chunk({"fileData": file})).blocks == (
        MediaBlock(kind="file", mime_type="application/pdf", url="gs://a/b.pdf", name="b"),
    )


@pytest.mark.parametrize(
    "part",
    [
        {"executableCode": {"language": "PYTHON", "code": "1 + 1"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}},
        {"somethingNew": {"a": 1}, "thoughtSignature": SIGNATURE},
        {"thought": True, "inlineData": {"mimeType": "image/png", "data": "QQ=="}},
        {"text": "both", "functionCall": {"name": "f"}},
    ],
    ids=["code", "result", "unknown", "picture in a thought", "two things"],
)
def test_other_parts_are_kept_as_they_came(part: dict[str, Any]) -> None:
    """What has no block of ours survives whole, between its neighbours."""
    message = streamed([chunk(text("a")), chunk(part), chunk(text("b"))])

    assert message.blocks == (TextBlock(text="a"), RawBlock(data=part), TextBlock(text="b"))


def test_empty_text_next_to_a_call_hides_nothing() -> None:
    """Some proxies send an empty text in the same part as the call."""
    assert whole(chunk({"text": ""} | call("f", id="c1"))).tool_calls[0].id == "c1"


def test_sources_stay_with_the_text() -> None:
    """Grounding says where the text comes from, and is kept on its block."""
    grounding = {"webSearchQueries": ["weather"]}
    message = streamed([chunk(text("a")), chunk(candidate={"groundingMetadata": grounding})])

    assert message.blocks == (
        TextBlock(text="a", provider_metadata={"groundingMetadata": grounding}),
    )


def test_candidates_are_kept_apart() -> None:
    """Each candidate is a choice of its own, whatever chunk its parts come in."""
    first = {"content": {"parts": [text("a")]}}
    second = {"index": 1, "content": {"parts": [text("b")]}, "finishReason": "STOP"}
    normalizer = normalizer_after(
        [{"candidates": [first, second]}, chunk(text("c")), {"candidates": [first | {"index": 0}]}]
    )

    assert normalizer.finish().text == "aca"
    assert [(other.text, other.finish_reason) for other in normalizer.others] == [("b", "STOP")]


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


def test_already_normalised_events_are_read() -> None:
    """A host's thinking events mean here what they mean everywhere."""
    events = [
        {"type": "thinking_delta", "contentIndex": 0, "delta": "t"},
        {"type": "text_delta", "contentIndex": 1, "delta": "a"},
    ]

    assert [block.type for block in streamed(events).blocks] == ["thinking", "text"]


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


@each("event", MALFORMED)
def test_malformed_event_is_one_unknown_chunk(event: Any) -> None:
    """However much of an event is wrong, it is counted once."""
    chunks = GeminiReader(CONTRACT).parse_chunk(event)

    assert [type(piece) for piece in chunks] == [UnknownChunk]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant["name"])
def test_malformed_events_do_not_change_the_good_ones(variant: dict[str, Any]) -> None:
    """With bad events between all good ones the message is the same, and each is counted."""
    good = variant["stream"]
    message = streamed([event for one in good for event in (*MALFORMED, one)])

    assert message.blocks == streamed(good).blocks
    assert message.metadata is not None
    assert message.metadata["unknownChunks"] == len(MALFORMED) * len(good)


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


def test_reset_forgets_the_stream() -> None:
    """After a reset the next event is the first of another response."""
    adapter = GeminiReader(CONTRACT)
    first = adapter.parse_chunk(chunk(thought("a"), call("f")))
    adapter.parse_chunk(chunk(thought("b"), call("f")))
    adapter.reset()

    assert adapter.parse_chunk(chunk(thought("a"), call("f"))) == first


@pytest.mark.parametrize(
    ("provider", "expected"),
    [("google", True), ("gemini", True), ("openai", False), ("", False), (None, False)],
)
def test_adapter_handles_only_hosts_that_speak_it(provider: str | None, expected: bool) -> None:
    """A host is known to speak the protocol, or it is not."""
    assert GeminiReader(CONTRACT).can_handle("gemini-3.8-flash", provider) is expected


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
