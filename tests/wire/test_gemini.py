"""What the reader of Gemini's generateContent promises."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import Any

import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

from reasoning_store.conversation import codec
from reasoning_store.conversation.blocks import (
    MediaBlock,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from reasoning_store.conversation.chunks import ReasoningChunk
from reasoning_store.ingress.normalizer import StreamNormalizer
from reasoning_store.wire import call_ids
from tests.wire.gemini_events import (
    VARIANTS,
    call,
    chunk,
    normalizer_after,
    streamed,
    text,
    thought,
    whole,
)

SIGNATURE = "c2lnLWFiYw=="


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
