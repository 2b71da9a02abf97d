"""Chat Completions: choices, usage, and faults."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reasoning_store.conversation.blocks import (
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Usage,
)
from reasoning_store.conversation.chunks import (
    ErrorChunk,
    FinishChunk,
    OriginChunk,
    TextChunk,
    ToolCallChunk,
    UnknownChunk,
    UsageChunk,
)
from reasoning_store.conversation.errors import WireError
from reasoning_store.ingress.normalizer import StreamNormalizer, normalize_response
from reasoning_store.wire import contract_lookup
from reasoning_store.wire.openai_chat import reader as openai_chat
from tests.properties import each
from tests.wire.chat_events import (
    ARRAY,
    adapter,
    call,
    chunks,
    delta,
    response,
    streamed,
    whole,
)
from tests.wire.chat_readings import calls

# --- choices, origin, finish -------------------------------------------------------------


def test_choices_are_kept_apart() -> None:
    """Each has its own fields, calls and end, and knows which response it belongs to."""
    normalizer = StreamNormalizer("deepseek", api="openai.chat")
    for event in (
        delta(0, reasoning_content="A"),
        delta(1, reasoning_content="B"),
        delta(1, content="b", finish="length"),
        delta(0, content="a", finish="stop"),
    ):
        normalizer.feed(event)
    first = normalizer.finish()
    second = normalizer.others[0]

    assert [(m.thinking[0].thought, m.text, m.finish_reason) for m in (first, second)] == [
        ("A", "a", "stop"),
        ("B", "b", "length"),
    ]
    assert {m.origin and m.origin.response_id for m in (first, second)} == {"r-1"}


def test_choices_without_a_number_are_told_by_their_place() -> None:
    """A host that leaves the index out sends them in order."""
    event = {"choices": [{"delta": {"content": "a"}}, {"delta": {"content": "b"}}]}

    assert [(chunk.text, chunk.choice) for chunk in chunks(event) if chunk.type == "text"] == [
        ("a", 0),
        ("b", 1),
    ]


def test_the_origin_is_told_once_and_completed_when_more_is_known() -> None:
    """Azure's first event names nothing."""
    reader = adapter()
    unnamed = {**delta(role="assistant"), "id": "", "model": ""}
    found = [
        chunk
        for event in (unnamed, {**delta(content="a"), "model": ""}, delta(content="b"), delta())
        for chunk in reader.parse_chunk(event)
        if isinstance(chunk, OriginChunk)
    ]

    assert [(chunk.response_id, chunk.model) for chunk in found] == [("r-1", None), ("r-1", "m")]


def test_azure_choices_without_a_delta_say_nothing() -> None:
    """Content filter results come in events and choices of their own."""
    filtered: dict[str, Any] = {"index": 0, "finish_reason": None, "content_filter_results": {}}

    assert chunks({"choices": [], "prompt_filter_results": []}, {"choices": [filtered]}) == []


def test_a_message_in_place_of_a_delta_is_read() -> None:
    """Some hosts name it so in their streams."""
    events = [
        {"choices": [{"index": 0, "message": {"reasoning_content": "T"}}]},
        {"choices": [{"index": 0, "message": {"content": "S"}, "finish_reason": "stop"}]},
    ]

    assert [block.type for block in streamed(*events).blocks] == ["thinking", "text"]


def test_a_message_behind_the_deltas_repeats_them() -> None:
    """Next to a delta or after the last one it is the whole text once more."""
    beside = delta(content="Say")
    beside["choices"][0]["message"] = {"content": "Say"}
    after = {"choices": [{"index": 0, "message": {"content": "Say."}, "finish_reason": "stop"}]}
    message = streamed(beside, delta(content="."), after)

    assert (message.text, message.finish_reason) == ("Say.", "stop")


def test_an_empty_finish_reason_ends_nothing() -> None:
    """Some hosts send an empty string in every event."""
    message = streamed(delta(content="a", finish=""), delta(content="b", finish="stop"))

    assert (message.text, message.finish_reason) == ("ab", "stop")


def test_a_reset_reader_is_as_new() -> None:
    """Nothing of the first stream is left: no call, no entry, no origin."""
    detail = {"type": "reasoning.text", "text": "T", "signature": "cw==", "index": 0}
    events = [
        delta(reasoning_details=[detail], tool_calls=[call(0, id="c1", name="f")]),
        delta(content="S"),
    ]
    reader = adapter("minimax")
    first = [reader.parse_chunk(event) for event in events]
    reader.reset()

    assert [reader.parse_chunk(event) for event in events] == first


# --- usage -------------------------------------------------------------------------------


@each(
    "report, counts",
    [
        ({"prompt_tokens": 20, "completion_tokens": 30, "total_tokens": 50}, (20, 30, None, None)),
        (
            {
                "prompt_tokens": 20,
                "completion_tokens": 30,
                "completion_tokens_details": {"reasoning_tokens": 18},
                "prompt_tokens_details": {"cached_tokens": 5},
            },
            (20, 30, 18, 5),
        ),
        ({"prompt_tokens": 20, "prompt_cache_hit_tokens": 0}, (20, None, None, 0)),
        ({"prompt_tokens": 20, "cached_tokens": 4}, (20, None, None, 4)),
        (
            {
                "input_tokens": 20,
                "output_tokens": 30,
                "output_tokens_details": {"reasoning_tokens": 0},
                "input_tokens_details": {"cached_tokens": 3},
            },
            (20, 30, 0, 3),
        ),
        ({"completion_tokens": 30, "reasoning_tokens": 18}, (None, 30, 18, None)),
        ({"prompt_tokens": "20", "completion_tokens": float("nan")}, None),
        ({"prompt_tokens": -1, "completion_tokens": 30.0}, (None, 30, None, None)),
        ({"completion_tokens": 30, "completion_tokens_details": None}, (None, 30, None, None)),
        ({}, None),
    ],
)
def test_usage_is_read_in_every_shape_and_absent_is_not_zero(
    report: dict[str, Any], counts: tuple[int | None, ...] | None
) -> None:
    """Counts are where hosts put them; the report is kept as it came."""
    found = chunks({"id": "r-1", "choices": [], "usage": report})
    named = (
        []
        if counts is None
        else [
            Usage(
                **dict(zip(("input", "output", "reasoning", "cached"), counts, strict=True)),
                raw=report,
            )
        ]
    )

    assert [chunk.usage for chunk in found if isinstance(chunk, UsageChunk)] == named
    assert len(found) == len(named)


@each(
    "provider, total, output",
    [
        ("xai", None, 48),
        ("xai", 68, 48),
        ("xai", 50, 30),
        ("deepseek", None, 30),
        ("deepseek", 50, 30),
        (None, 68, 48),
        (None, 7, 30),
    ],
)
def test_reasoning_beside_the_output_is_added_to_it(
    provider: str | None, total: int | None, output: int
) -> None:
    """The contract says which hosts count so; a total that tells is believed before it."""
    report = {
        "prompt_tokens": 20,
        "completion_tokens": 30,
        "total_tokens": total,
        "completion_tokens_details": {"reasoning_tokens": 18},
    }
    found = chunks({"choices": [], "usage": report}, provider=provider)

    assert [chunk.usage.output for chunk in found if isinstance(chunk, UsageChunk)] == [output]


@pytest.mark.parametrize(
    "event",
    [
        {"choices": [], "usage": {"completion_tokens": 3}},
        {"usage": {"completion_tokens": 3}},
        {**delta(content="."), "x_groq": {"id": "q", "usage": {"completion_tokens": 3}}},
        {"choices": [{"index": 0, "delta": {}, "usage": {"completion_tokens": 3}}]},
        {**delta(content="."), "usage": {"completion_tokens": 3}},
    ],
)
def test_usage_is_found_wherever_a_host_puts_it(event: dict[str, Any]) -> None:
    """An event of its own, Groq's corner, Moonshot's choice, or next to a delta."""
    usage = streamed(delta(content="Say"), event).usage

    assert usage is not None
    assert (usage.output, usage.reasoning) == (3, None)


# --- errors and bad input ----------------------------------------------------------------


@each(
    "event, raw",
    [
        ({"error": {"message": "overloaded", "code": 529}}, {"message": "overloaded", "code": 529}),
        ({"error": "overloaded"}, "overloaded"),
        ({**delta(content=""), "error": {"code": 502}}, {"code": 502}),
        ({"choices": [{"index": 0, "delta": {}, "error": {"code": 1}}]}, {"code": 1}),
        ({"x_groq": {"error": "busy"}, "choices": []}, "busy"),
        (
            {"object": "error", "message": "m", "code": 400},
            {"object": "error", "message": "m", "code": 400},
        ),
    ],
)
def test_an_error_inside_a_stream_interrupts_what_arrived(event: Any, raw: Any) -> None:
    """What came before it is kept."""
    assert [chunk.raw for chunk in chunks(event) if isinstance(chunk, ErrorChunk)] == [raw]
    message = streamed(delta(content="Sa"), event)
    assert (message.text, message.status) == ("Sa", "interrupted")


def test_the_finish_that_comes_with_an_error_is_told_too() -> None:
    """OpenRouter ends a choice in the same event."""
    event = {**delta(content="", finish="error"), "error": {"code": 502}}

    assert [type(chunk) for chunk in chunks(event)] == [FinishChunk, ErrorChunk]


MALFORMED: list[Any] = [
    None,
    5,
    "text",
    b"bytes",
    [],
    {},
    {"id": "x"},
    {"choices": 5},
    {"choices": None},
    {"choices": [5]},
    {"choices": [None]},
    {"choices": [{}]},
    {"choices": [{"index": 0, "delta": None}]},
    {"choices": [{"index": 0, "delta": 5}]},
    {"choices": [{"index": 0, "delta": []}]},
    {"choices": [{"index": 0, "message": 5}]},
    {"choices": [{"index": 0, "delta": {"content": 5}}]},
    {"choices": [5, {"index": 0, "delta": {"tool_calls": 1, "refusal": 1}}]},
    {"choices": [{"index": 0, "delta": {"content": [5, None]}}]},
    {"choices": [{"index": 0, "delta": {"reasoning_content": 5}}]},
    {"choices": [{"index": 0, "delta": {"reasoning_content": [{"type": "text"}]}}]},
    {"choices": [{"index": 0, "delta": {"reasoning": {"text": "x"}}}]},
    {"choices": [{"index": 0, "delta": {"reasoning_details": "x"}}]},
    {"choices": [{"index": 0, "delta": {"reasoning_details": [5, {"type": 5}, {}]}}]},
    {
        "choices": [
            {"index": 0, "delta": {"reasoning_details": [{"type": "reasoning.text", "text": 5}]}}
        ]
    },
    {
        "choices": [
            {"index": 0, "delta": {"thinking_blocks": [{"type": "thinking", "signature": 5}]}}
        ]
    },
    {"choices": [{"index": 0, "delta": {"reasoning_details": [{"type": "new", "x": object()}]}}]},
    {"choices": [{"index": 0, "delta": {"encrypted_content": 5}}]},
    {"choices": [{"index": 0, "delta": {"provider_specific_fields": 5}}]},
    {"choices": [{"index": 0, "delta": {"tool_calls": 5}}]},
    {"choices": [{"index": 0, "delta": {"tool_calls": [5]}}]},
    {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": {}}]}}]},
    {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "function": 5}]}}]},
    {"choices": [{"index": 0, "delta": {"tool_calls": [{"function": {"name": 5}}]}}]},
    {"choices": [{"index": 0, "delta": {"tool_calls": [{"function": {"arguments": 5}}]}}]},
    {"choices": [{"index": 0, "delta": {"function_call": 5}}]},
    {"choices": [{"index": 0, "delta": {"refusal": 5}}]},
    {"choices": [{"index": 0, "delta": {"audio": 5}}]},
    {"choices": [{"index": 0, "delta": {"audio": {"data": "!"}}}]},
    {"choices": [{"index": 0, "delta": {"audio": {"transcript": 5}}}]},
    {"choices": [{"index": 0, "delta": {"images": 5}}]},
    {"choices": [{"index": 0, "delta": {"annotations": 5}}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": 5}]},
    {"choices": [], "usage": 5},
    {"choices": [], "usage": [1]},
    {"choices": [], "error": 5},
    {"type": "never.heard.of"},
    {"object": "chat.completion.chunk"},
]


def around(event: Any) -> list[Any]:
    """A good stream with another event in the middle of everything."""
    return [
        delta(reasoning_content="Thi"),
        *event,
        delta(reasoning_content="nk."),
        *event,
        delta(tool_calls=[call(0, id="c1", name="f", arguments="{")]),
        *event,
        delta(tool_calls=[call(0, arguments="}")]),
        delta(finish="tool_calls"),
    ]


@each("event", MALFORMED)
def test_a_bad_event_is_one_unknown_chunk_and_leaves_no_trace(event: Any) -> None:
    """However much of it is bad, it is counted once, and the good ones give what they give."""
    assert [type(chunk) for chunk in chunks(event)] == [UnknownChunk]
    good, both = streamed(*around([])), streamed(*around([event]))
    assert both.blocks == good.blocks
    assert both.origin == good.origin
    assert both.metadata is not None
    assert both.metadata["unknownChunks"] == 3


def test_a_bad_part_of_a_good_event_is_counted_and_the_rest_is_read() -> None:
    """What is kept of it is the bad part, not a second copy of the good ones."""
    event = delta(content="Say.", reasoning_content=5, tool_calls=[7], finish="stop")
    found = chunks(event)

    assert [type(chunk) for chunk in found] == [TextChunk, FinishChunk, UnknownChunk]
    assert found[-1] == UnknownChunk(raw=[{"reasoning_content": 5}, {"tool_calls": 7}])


def test_a_field_that_nobody_named_is_counted_and_kept() -> None:
    """It may hold a thought; the answer next to it is read, fields of no content are not noted."""
    normalizer = StreamNormalizer(provider="my-gateway")
    deltas: list[dict[str, Any]] = [
        {"role": "assistant", "cot": "Hidden ", "obfuscation": "x8"},
        {"content": "Four.", "cot": "plan", "weight": 1},
    ]
    shown = [
        chunk
        for delta in deltas
        for chunk in normalizer.feed({"choices": [{"index": 0, "delta": delta}]})
    ]
    message = normalizer.finish()

    event = {"choices": [{"index": 0, "delta": deltas[0]}]}
    assert [one.raw for one in shown if isinstance(one, UnknownChunk)] == [event, {"cot": "plan"}]
    assert message.text == "Four."
    assert message.metadata == {"unknownChunks": 2, "unknownEvents": [event, {"cot": "plan"}]}


def test_bad_events_do_not_take_the_place_of_choices() -> None:
    """There is room for as many choices as the API gives, and a bad one takes none."""
    reader = adapter()
    bad = [reader.parse_chunk(delta(index + 1_000, content=5)) for index in range(500)]
    good = [reader.parse_chunk(delta(index, content="x")) for index in range(200)]

    assert all(isinstance(found[-1], UnknownChunk) for found in bad)
    assert sum(isinstance(found[-1], TextChunk) for found in good) == 128
    assert [type(chunk) for chunk in good[-1]] == [UnknownChunk]


@pytest.mark.parametrize("raw", ["[DONE]", {"choices": []}])
def test_what_ends_a_stream_or_says_nothing_is_not_unknown(raw: Any) -> None:
    """The mark of an event stream's end may reach the reader."""
    assert chunks(raw) == []


@each(
    "body, missing",
    [
        (None, "not an object"),
        ([], "not an object"),
        ({}, "no choices"),
        ({"choices": []}, "no choices"),
        ({"choices": 5}, "no choices"),
        ({"error": {"message": "secret"}}, "is an error"),
        ({"choices": [5]}, r"choices\[0\] has no message"),
        ({"choices": [{"index": 0, "delta": {}}]}, r"choices\[0\] has no message"),
        (
            {"choices": [{"message": {"content": "secret"}}, {"message": "secret"}]},
            r"choices\[1\] has no message",
        ),
    ],
)
def test_a_body_without_the_protocols_form_is_refused_by_name(body: Any, missing: str) -> None:
    """The error names what is missing and holds nothing of the message."""
    with pytest.raises(WireError, match=missing) as caught:
        openai_chat.parse_response(body, contract_lookup.find_contract("openai"))
    assert "secret" not in str(caught.value)


def test_a_whole_response_with_a_bad_part_gives_the_rest() -> None:
    """As a stream would."""
    body = {**response(content="Say.", reasoning=5), "usage": {"completion_tokens": 1}}
    found = openai_chat.parse_response(body, contract_lookup.find_contract("openrouter"))

    assert [type(chunk) for chunk in found] == [
        OriginChunk,
        TextChunk,
        FinishChunk,
        UsageChunk,
        UnknownChunk,
    ]


def test_a_whole_response_keeps_its_choices_apart() -> None:
    """Each message is a choice, with or without a number."""
    body = {"choices": [{"message": {"content": "a"}}, {"index": 1, "message": {"content": "b"}}]}
    found = openai_chat.parse_response(body, contract_lookup.find_contract("openai"))

    assert [(chunk.text, chunk.choice) for chunk in found if chunk.type == "text"] == [
        ("a", 0),
        ("b", 1),
    ]


def test_everything_read_survives_as_json() -> None:
    """What is kept of a provider's own must be storable."""
    message = whole(
        response(
            content=[{"type": "hologram"}, {"type": "text", "text": "x", "annotations": [1]}],
            reasoning_details=ARRAY,
            tool_calls=[call(0, id="c", name="f", extra_content={"google": {}})],
        )
    )

    assert all(
        isinstance(block, ToolCallBlock | RawBlock | TextBlock | ThinkingBlock)
        for block in message.blocks
    )
    json.dumps([block.provider_metadata for block in message.blocks])


def test_a_call_chunk_names_its_call_once() -> None:
    """Later fragments carry arguments alone, so that an application can append them."""
    found = chunks(
        delta(tool_calls=[call(0, id="c1", name="f", arguments="")]),
        delta(tool_calls=[call(0, id="c1", name="f", arguments="{}")]),
    )

    assert found == [
        ToolCallChunk(index=0, id="c1", name="f"),
        ToolCallChunk(index=0, arguments="{}"),
    ]


def test_a_call_whose_id_comes_behind_its_name_is_one_call() -> None:
    """It has an id of our making by then, and keeps it."""
    found = calls(
        delta(tool_calls=[call(0, name="f", arguments="{")]),
        delta(tool_calls=[call(0, id="c1", name="f", arguments="}")]),
    )

    assert [(name, arguments) for _, name, arguments in found] == [("f", "{}")]


@pytest.mark.parametrize("field", [{"function_call": {}}, {"tool_calls": [{"index": 0}]}])
def test_a_fragment_of_nothing_is_no_call(field: dict[str, Any]) -> None:
    """Hosts send empty ones along."""
    assert chunks(delta(**field)) == []


def test_fields_of_the_whole_response_are_kept_with_it() -> None:
    """Search results of Perplexity and xAI, and whom OpenRouter asked, belong to no choice."""
    about_it = {"provider": "Anthropic", "citations": ["https://example.org"]}
    usage = {"usage": {"completion_tokens": 1}}
    event = delta(content="a") | about_it

    for message in (
        streamed(event, event | usage),
        whole(response(content="a") | about_it),
    ):
        assert message.metadata == {"providerMetadata": about_it}


def test_an_answer_that_the_filter_took_is_a_message_without_blocks() -> None:
    """Azure leaves the message out; the reason, the usage and what was found are kept."""
    found = {"hate": {"filtered": True, "severity": "high"}}
    choice = {"index": 0, "finish_reason": "content_filter", "content_filter_results": found}
    usage = {"prompt_tokens": 15, "completion_tokens": 19}
    message = normalize_response(
        {"choices": [choice], "usage": usage}, provider="azure", model="gpt-35-turbo"
    )

    assert (message.blocks, message.status) == ((), "complete")
    assert message.finish_reason == "content_filter"
    assert message.usage is not None
    assert (message.usage.input, message.usage.output) == (15, 19)
    assert message.metadata == {"providerMetadata": {"content_filter_results": found}}


NOTES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "service_tier": ({"service_tier": "flex"}, {}, {}),
    "system_fingerprint": ({"system_fingerprint": "fp_1"}, {}, {}),
    "x_groq": ({"x_groq": {"id": "req_1"}}, {}, {}),
    "native_finish_reason": ({}, {"native_finish_reason": "STOP"}, {}),
    "logprobs": ({}, {"logprobs": {"content": [{"token": "Hi", "logprob": -0.5}]}}, {}),
    "executed_tools": ({}, {}, {"executed_tools": [{"index": 0, "type": "search", "output": "x"}]}),
}


@each("name", NOTES)
def test_what_a_host_says_beside_the_answer_is_in_the_messages_metadata(name: str) -> None:
    """Once, whole and streamed."""
    event, choice, said = NOTES[name]
    spoken = {"role": "assistant", "content": "Hi", **said}
    message = normalize_response(
        {**event, "choices": [{"message": spoken, "finish_reason": "stop", **choice}]},
        api="openai.chat",
    )
    stream = StreamNormalizer(api="openai.chat")
    stream.feed({**event, "choices": [{"index": 0, "delta": spoken, **choice}]})
    stream.feed({**event, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})

    assert message.metadata == {"providerMetadata": {**event, **choice, **said}}
    assert stream.finish() == message


def test_log_probabilities_of_a_stream_are_put_together() -> None:
    """As the whole response has them."""
    stream = StreamNormalizer(api="openai.chat")
    for token in ("H", "i"):
        logprobs = {"content": [{"token": token}], "refusal": None}
        stream.feed({"choices": [{"index": 0, "delta": {"content": token}, "logprobs": logprobs}]})

    assert stream.finish().metadata == {
        "providerMetadata": {"logprobs": {"content": [{"token": "H"}, {"token": "i"}]}}
    }


@pytest.mark.parametrize(
    "body",
    [
        {"function_call": {"name": "", "arguments": ""}},
        {"finish_reason": ""},
        {"type": "ping", "cost": "0"},
    ],
    ids=["an empty function_call", "an empty finish_reason", "a ping"],
)
def test_what_hosts_send_along_and_says_nothing_is_not_unknown(body: dict[str, Any]) -> None:
    """Snowflake's empty fields, OpenCode's ping."""
    stream = StreamNormalizer(api="openai.chat")
    event = body if "type" in body else {"choices": [{"index": 0, "delta": body, **body}]}
    stream.feed({"choices": [{"index": 0, "delta": {"content": "Hi"}}]})
    stream.feed(event)
    whole = {"choices": [{"message": {"content": "Hi", **body}, "finish_reason": ""}]}

    assert (stream.finish().text, stream.finish().metadata) == ("Hi", None)
    assert normalize_response(whole).metadata is None
