"""A fault in an event of Bedrock's Converse protocol changes nothing else; and its rows."""

from __future__ import annotations

from typing import Any

import pytest

from reasoning_store.conversation.blocks import (
    RawBlock,
)
from reasoning_store.conversation.chunks import (
    TextChunk,
)
from reasoning_store.conversation.errors import WireError
from reasoning_store.ingress.normalizer import StreamNormalizer, normalize_response
from reasoning_store.wire import contract_lookup
from reasoning_store.wire.bedrock.reader import (
    parse_response,
)
from tests.properties import each
from tests.wire.bedrock_events import (
    CASES,
    CONTRACT,
    MODEL,
    chunks_of,
    delta,
    start,
    stop,
    streamed,
    thinking,
    whole,
)
from tests.wire.steps import steps
from tests.wire.well_formed import assert_no_trace_of

API = "bedrock.converse"


FIRST = CASES[0]


# --- what cannot be read ----------------------------------------------------------------------

MALFORMED: list[Any] = [
    None,
    5,
    "messageStart",
    [],
    {},
    {"type": "text_delta"},
    {"SDK_UNKNOWN_MEMBER": {"name": "eventOfNextYear"}},
    {"messageStart": None},
    {"messageStop": {"stopReason": None}},
    {"messageStop": {"stopReason": "a"}, "metadata": {}},
    {"metadata": 5},
    {"throttlingException": "x"},
    {"contentBlockStart": {"contentBlockIndex": 0}},
    start(0, toolUse={"toolUseId": 5, "name": "f"}),
    start(0, toolUse={"toolUseId": "tu_1"}),
    start(0, toolUse="x"),
    {"contentBlockDelta": {"contentBlockIndex": 0}},
    {"contentBlockDelta": {"delta": {"text": "x"}}},
    delta(0),
    delta(0, text=5),
    delta(0, text="a", toolUse={"input": "b"}),
    delta(0, deltaOfNextYear="x"),
    delta(0, citation=5),
    delta(7, toolUse={"input": "{}"}),
    delta(0, toolUse={}),
    thinking(0, ofNextYear="x"),
    thinking(0, text=5),
    thinking(0, signature=[]),
    thinking(0, text="a", redactedContent=b"b"),
    thinking(0, redactedContent=5),
    thinking(0, redactedContent="not base64!"),
    delta(0, reasoningContent="x"),
    {"contentBlockDelta": {"contentBlockIndex": float("nan"), "delta": {"text": "x"}}},
    {"contentBlockDelta": {"contentBlockIndex": True, "delta": {"text": "x"}}},
    {"contentBlockStop": {}},
    {"contentBlockStop": {"contentBlockIndex": -1}},
]


def test_a_malformed_event_is_one_unknown_chunk_and_leaves_no_trace() -> None:
    """However much of it is wrong, it counts once, and the good ones give what they give."""
    assert_no_trace_of(MALFORMED, "bedrock.converse", FIRST["stream"])


def test_an_empty_thought_is_nothing() -> None:
    """In a stream and in a whole response."""
    message = whole({"reasoningContent": {}}, {"text": "Yes"})

    assert StreamNormalizer(api="bedrock.converse").feed(thinking(0)) == []
    assert (len(message.blocks), message.metadata) == (1, None)


def test_the_good_parts_of_a_response_count_and_its_bad_ones_are_one_unknown() -> None:
    """A whole response is one event."""
    bad = [
        5,
        {},
        {"text": 5},
        {"citationsContent": {}},
        {"image": {"format": "png", "source": {"bytes": 5}}},
    ]

    message = whole({"text": "Yes"}, *bad, usage=5, stopReason=5)

    assert (message.text, len(message.blocks)) == ("Yes", 1)
    assert (message.metadata or {})["unknownChunks"] == 1


def test_long_blocks_are_read_in_steps_in_proportion() -> None:
    """The last of many deltas and pieces of bytes costs what the first one did."""

    def work(count: int) -> int:
        events = [delta(0, text="word ")] * count
        events += [delta(0, citation={"title": "A"})] * count
        events += [thinking(1, redactedContent=b"bytes ")] * count
        return steps(lambda: chunks_of([*events, stop(0), stop(1)]))


@each(
    "body",
    [None, 5, [], {}, {"output": "secret"}, {"output": {"message": {"content": "secret"}}}],
)
def test_a_body_of_another_form_is_refused_without_its_content(body: Any) -> None:
    """The error names what is missing and repeats nothing of the conversation."""
    with pytest.raises(WireError) as caught:
        parse_response(body, CONTRACT)

    assert str(caught.value).startswith("bedrock.converse: ")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("provider", "model", "echo", "opaque", "signed", "floor"),
    [
        (None, None, "reasoningContent.reasoningText", True, False, "none"),
        ("aws", MODEL, "reasoningContent.reasoningText", True, True, "open_turn_with_call"),
        ("aws", "us.deepseek.r1-v1:0", None, False, False, "none"),
        (
            "bedrock",
            "openai.gpt-oss-120b-1:0",
            "reasoningContent.reasoningText",
            True,
            False,
            "none",
        ),
    ],
)
def test_the_rows_of_the_protocol(
    provider: str | None,
    model: str | None,
    echo: str | None,
    opaque: bool,
    signed: bool,
    floor: str,
) -> None:
    """Claude refuses unsigned thoughts, DeepSeek any, the others neither."""
    row = contract_lookup.find_contract(provider, model, API)

    assert (row.provider, row.reading.tags) == (None if provider is None else "aws", False)
    assert (
        row.returning.returns_in,
        row.returning.opaque,
        row.returning.signed,
        row.returning.floor,
    ) == (echo, opaque, signed, floor)


def test_claude_on_bedrock_is_a_family_of_its_own() -> None:
    """Its signatures are not read by the other models there."""
    claude, other = (
        contract_lookup.find_contract("aws", MODEL),
        contract_lookup.find_contract("aws", "amazon.nova-2"),
    )

    assert contract_lookup.family(claude) != contract_lookup.family(other)


def test_fields_of_the_whole_response_are_kept_with_it() -> None:
    """Fields that were asked for by path, and what a guardrail found, belong to no block."""
    fields, trace = {"stop_sequence": "##"}, {"guardrail": {"modelOutput": ["x"]}}
    events = [
        {"messageStop": {"stopReason": "end_turn", "additionalModelResponseFields": fields}},
        {"metadata": {"metrics": {"latencyMs": 1}, "trace": trace}},
    ]
    body = whole(stopReason="end_turn", additionalModelResponseFields=fields, trace=trace)
    kept = {"additionalModelResponseFields": fields, "trace": trace}

    assert streamed(events).metadata == body.metadata == {"providerMetadata": kept}


def test_a_block_of_a_hosted_tool_that_was_cut_off_is_kept() -> None:
    """It is stated whole at its end, and the stream has none: what came of it is there."""
    start = {"toolUseId": "t1", "name": "nova_grounding", "type": "server_tool_use"}
    events = [
        {"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": start}}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"toolUse": {"input": '{"q'}}}},
    ]

    assert streamed(events, interrupted=True).blocks == (
        RawBlock(data={"toolUse": {**start, "input": '{"q'}}),
    )


# --- thoughts in the text

NOVA, KIMI = "us.amazon.nova-micro-v1:0", "moonshot.kimi-k2-thinking"


IN_TEXT = {
    "Nova": (
        NOVA,
        "<thinking> I should call. </thinking>\n\nDone.",
        "end_turn",
        ([" I should call. "], "Done."),
    ),
    "Nova, cut off": (NOVA, "<thinking> I should", "max_tokens", ([" I should"], "")),
    "Kimi": (KIMI, "<think>Plan.</think>\n\n42", "end_turn", (["Plan."], "42")),
    "Kimi, a stray open": (KIMI, " <think> It is 30 C.", "end_turn", ([], "  It is 30 C.")),
    "Kimi, cut off": (KIMI, "<think>Plan", "max_tokens", (["Plan"], "")),
    "Kimi, before a call": (KIMI, "<think>Plan", "tool_use", (["Plan"], "")),
    "Claude": ("us.anthropic.claude-sonnet-5", "a <think>b</think>", "end_turn", ([], None)),
}


@each("case", IN_TEXT)
def test_models_that_write_their_thoughts_into_the_text_have_them_taken_out(case: str) -> None:
    """And no others; a stray open delimiter does not swallow the answer after it."""
    model, text, reason, (thoughts, answer) = IN_TEXT[case]
    body = {
        "output": {"message": {"role": "assistant", "content": [{"text": text}]}},
        "stopReason": reason,
    }
    whole = normalize_response(body, provider="aws", model=model)
    normalizer = StreamNormalizer("aws", model)
    shown = [
        chunk
        for event in (
            *(
                {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": letter}}}
                for letter in text
            ),
            {"contentBlockStop": {"contentBlockIndex": 0}},
            {"messageStop": {"stopReason": reason}},
        )
        for chunk in normalizer.feed(event)
    ]

    assert [block.thought for block in whole.thinking] == thoughts
    assert whole.text == (text if answer is None else answer)
    assert normalizer.finish().blocks == whole.blocks
    assert "".join(c.text for c in shown if isinstance(c, TextChunk)) == whole.text


def test_citations_that_cite_no_text_are_all_kept() -> None:
    """Nova's grounding sends them by themselves, whole and streamed alike."""
    cited = [{"location": {"web": {"url": f"https://{name}.example"}}} for name in "ab"]
    content = [{"text": "Oslo."}, *({"citationsContent": {"citations": [one]}} for one in cited)]
    body = {"output": {"message": {"role": "assistant", "content": content}}}
    message = normalize_response(body, provider="aws", model=NOVA)

    assert [block.provider_metadata for block in message.blocks[1:]] == [
        {"citations": [one]} for one in cited
    ]
    assert message.metadata is None


def test_a_block_that_is_announced_as_nothing_is_not_unknown() -> None:
    """Its first delta opens it."""
    announced = {"contentBlockStart": {"contentBlockIndex": 0, "start": {}}}
    said = {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "Hi"}}}
    message = streamed([announced, said])

    assert (message.text, message.metadata) == ("Hi", None)
