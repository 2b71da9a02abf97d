"""What is made from a message is what a provider would send, and reads as that message.

The official SDKs judge the events, our own readers the round trip: neither knows the other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import anthropic

# botocore has no types of its own.
import botocore.session  # type: ignore[import-untyped]
import httpx2
import ollama
import openai
import pytest
from anthropic.types import Message as AnthropicMessage
from anthropic.types import RawMessageStreamEvent
from botocore.validate import ParamValidator  # type: ignore[import-untyped]
from cohere.v2.types import V2ChatResponse, V2ChatStreamResponse
from google.genai.types import GenerateContentResponse
from hypothesis import given
from hypothesis import strategies as st
from mistralai.client.models import ChatCompletionResponse, CompletionEvent
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from reasoning_store.conversation.blocks import (
    Block,
    MediaBlock,
    Message,
    Origin,
    RawBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Usage,
    assistant,
    user,
)
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.ingress.normalizer import StreamNormalizer, normalize_response
from reasoning_store.testing import carries, response, sse, stream
from reasoning_store.wire.contract_lookup import apis
from reasoning_store.wire.sse import JSONEvents, NDJSONDecoder
from tests.properties import each, examples
from tests.strategies import REASONS, carried

USAGE = Usage(input=20, output=30, reasoning=18, cached=4)
CALL = ToolCallBlock(
    id="call_1", name="get_weather", parameters={"city": "Oslo"}, arguments='{"city": "Oslo"}'
)
REDACTED = ThinkingBlock(encrypted="RU5D", is_hidden=True, redacted=True)
SIGNED = ThinkingBlock(thought="Need the tool.", signature="c2ln")
PLAIN = ThinkingBlock(thought="Need the tool.")

FULL: dict[str, tuple[Block, ...]] = {
    "anthropic.messages": (
        SIGNED,
        REDACTED,
        TextBlock(text="It is 4 C."),
        CALL,
        RawBlock(
            data={
                "type": "server_tool_use",
                "id": "srvtoolu_1",
                "name": "web_search",
                "input": {"query": "Oslo"},
            }
        ),
    ),
    "bedrock.converse": (SIGNED, REDACTED, TextBlock(text="It is 4 C."), CALL),
    "cohere.chat": (
        ThinkingBlock(thought="I will look.", source_field="tool_plan"),
        PLAIN,
        TextBlock(text="It is 4 C."),
        CALL,
    ),
    "gemini.generate_content": (
        PLAIN,
        TextBlock(text="It is 4 C.", provider_metadata={"thoughtSignature": "c2ln"}),
        MediaBlock(kind="image", mime_type="image/png", name="a.png", data=b"png"),
        RawBlock(data={"executableCode": {"language": "PYTHON", "code": "print(1)"}}),
        replace(CALL, provider_metadata={"thoughtSignature": "c2ln"}),
    ),
    "mistral.chat": (SIGNED, TextBlock(text="It is 4 C."), CALL),
    "ollama.chat": (PLAIN, TextBlock(text="It is 4 C."), CALL),
    "openai.chat": (SIGNED, TextBlock(text="It is 4 C."), CALL),
    "openai.responses": (
        ThinkingBlock(
            thought="Plan A.\n\nPlan B.",
            source_field="reasoning.summary",
            encrypted="gAAAAA",
            provider_metadata={"summary": ["Plan A.", "Plan B."]},
        ),
        ThinkingBlock(thought="Need the tool.", source_field="reasoning.content"),
        TextBlock(text="It is 4 C.", provider_metadata={"phase": "commentary"}),
        RawBlock(data={"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"}),
        CALL,
    ),
    "thinking_events": (SIGNED, REDACTED, TextBlock(text="It is 4 C."), CALL),
}
"""For each api, blocks of every kind that it has a place for."""

HOSTS = [
    ("openai.chat", "openrouter", None),
    ("openai.chat", "litellm", None),
    ("openai.chat", "deepseek", None),
    ("openai.chat", "xai", None),
    ("openai.chat", "alibaba", "qwen4-max"),
    ("openai.chat", "github-copilot", None),
    ("openai.chat", "openai", None),
    ("openai.responses", "openai", None),
    ("openai.responses", "openrouter", None),
    ("anthropic.messages", "anthropic", None),
    ("thinking_events", "vercel-ai-sdk", None),
]


def full(api: str) -> Message:
    return assistant(*FULL[api], usage=USAGE)


def normalized(
    events: Iterable[Any],
    api: str,
    *,
    provider: str | None = None,
    model: str | None = None,
    interrupted: bool = False,
) -> Message:
    normalizer = StreamNormalizer(provider, model, api)
    for event in events:
        normalizer.feed(event)
    return normalizer.finish(interrupted)


# The round trip


def within(said: Any, got: Any) -> bool:
    """Whether all that metadata said came back; a protocol may add to it."""
    if isinstance(said, Mapping) and isinstance(got, Mapping):
        return all(name in got and within(value, got[name]) for name, value in said.items())
    return bool(said == got)


def comparable(said: Block, got: Block) -> tuple[Block, Block]:
    """Return two blocks without what only the protocol adds, or has no spelling for."""
    assert within(said.provider_metadata or {}, got.provider_metadata or {})
    got = replace(got, provider_metadata=said.provider_metadata)
    if isinstance(said, ThinkingBlock) and isinstance(got, ThinkingBlock):
        return said, replace(got, source_field=said.source_field and got.source_field)
    if (
        isinstance(said, ToolCallBlock)
        and isinstance(got, ToolCallBlock)
        and None in (said.arguments, got.arguments)
    ):
        return replace(said, arguments=None), replace(got, arguments=None)
    return said, got


def assert_same(said: Message, got: Message) -> None:
    assert [block.type for block in said.blocks] == [block.type for block in got.blocks]
    for one, other in zip(said.blocks, got.blocks, strict=True):
        wanted, came = comparable(one, other)
        assert wanted == came
    assert said.usage == (replace(got.usage, raw=None) if got.usage else None)
    assert said.finish_reason in (None, got.finish_reason)
    assert said.status == got.status


PIECES = st.integers(1, 9)
SEEDS = st.none() | st.integers(0, 99)


@pytest.mark.parametrize("api", apis())
@given(st.data(), PIECES, SEEDS)
@examples(60)
def test_a_stream_reads_as_the_message_it_was_made_from(
    api: str, data: st.DataObject, pieces: int, seed: int | None
) -> None:
    """``normalize(stream(m)) == m``, however the stream is cut."""
    message = data.draw(carried(api))
    events = stream(message, api=api, pieces=pieces, seed=seed, strict=True)

    assert_same(message, normalized(events, api))


@pytest.mark.parametrize("api", apis())
@given(st.data(), PIECES)
@examples(40)
def test_a_whole_body_reads_as_the_same_message_as_its_stream(
    api: str, data: st.DataObject, pieces: int
) -> None:
    """Streamed and whole give the same blocks, usage and reason."""
    message = data.draw(carried(api, whole=True))
    whole = normalize_response(response(message, api=api, strict=True), api=api)

    assert_same(message, whole)
    if carries(message, api):
        streamed = normalized(stream(message, api=api, pieces=pieces), api)
        assert_same(replace(whole, usage=message.usage), streamed)


@pytest.mark.parametrize(("api", "provider", "model"), HOSTS)
@given(st.data(), PIECES)
@examples(25)
def test_each_host_is_spoken_as_it_speaks(
    api: str, provider: str, model: str | None, data: st.DataObject, pieces: int
) -> None:
    """Hosts of one protocol name and seal reasoning in their own ways."""
    message = data.draw(carried(api, provider=provider, model=model))
    events = stream(message, api=api, provider=provider, model=model, pieces=pieces, strict=True)

    assert_same(message, normalized(events, api, provider=provider, model=model))


@each("api", apis())
@each("pieces", [1, 2, 5, 100])
def test_every_kind_of_block_survives(api: str, pieces: int) -> None:
    """Each protocol's own repertoire, as a message without any oddity."""
    message = full(api)
    streamed = normalized(stream(message, api=api, pieces=pieces), api)
    whole = normalize_response(response(message, api=api), api=api)

    assert carries(replace(message, usage=None), api)
    for got in (streamed, whole):
        assert got.usage is not None
        assert_same(replace(message, usage=None), replace(got, usage=None))
        assert within({"input": 20, "output": 30}, {"input": got.usage.input, "output": 30})


@each("api", apis())
@each("block", [PLAIN, CALL, TextBlock(text="It is 4 C.")])
def test_a_message_that_was_interrupted_gives_a_stream_that_breaks_off(
    api: str, block: Block
) -> None:
    """Its last block is left open, and nothing says an end or counts tokens."""
    if isinstance(block, ThinkingBlock):
        block = replace(block, interrupted=True)
    if isinstance(block, ToolCallBlock) and api not in ("gemini.generate_content", "ollama.chat"):
        block = replace(block, parameters=None, arguments='{"city": "Os')
    message = assistant("First", block, status="interrupted")
    if isinstance(block, TextBlock):
        message = assistant(PLAIN, block, status="interrupted")
    if api == "thinking_events" and isinstance(block, ToolCallBlock):
        message = assistant("First", CALL, status="interrupted")
    events = stream(message, api=api, pieces=3, strict=True)

    assert_same(message, normalized(events, api, interrupted=True))


# What the official SDKs say


def test_openai_reads_chat_completions() -> None:
    """Every chunk is one of the SDK's, and its client reads the bytes."""
    events = stream(full("openai.chat"), api="openai.chat", pieces=3, provider="deepseek")
    client = openai.OpenAI(api_key="none", http_client=serving(sse(events, api="openai.chat")))
    chunks = client.chat.completions.create(model="m", messages=[], stream=True)
    thoughts = [
        getattr(chunk.choices[0].delta, "reasoning_content", "")
        for chunk in chunks
        if chunk.choices
    ]

    for event in events:
        ChatCompletionChunk.model_validate(event)
    ChatCompletion.model_validate(response(full("openai.chat"), api="openai.chat"))
    assert "".join(thoughts) == "Need the tool."


def test_openai_reads_responses() -> None:
    """Every event is one of the SDK's union, and its client assembles the response."""
    message = replace(full("openai.responses"), usage=replace(USAGE, cache_write=2))
    events = stream(message, api="openai.responses", pieces=3)
    union: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
    client = openai.OpenAI(api_key="none", http_client=serving(sse(events, api="openai.responses")))
    with client.responses.stream(model="m", input="x") as streamed:
        final = streamed.get_final_response()

    for event in events:
        union.validate_python(event)
    Response.model_validate(response(message, api="openai.responses"))
    assert [item.type for item in final.output] == [
        *("reasoning", "reasoning", "message", "compaction", "function_call")
    ]


def test_anthropic_reads_messages() -> None:
    """Every event but the ping, which the SDK drops, is one of its union."""
    message = full("anthropic.messages")
    events = stream(message, api="anthropic.messages", pieces=3)
    union: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)
    body = sse(events, api="anthropic.messages")
    client = anthropic.Anthropic(api_key="none", http_client=serving(body))
    with client.messages.stream(model="m", max_tokens=1, messages=[]) as streamed:
        final = streamed.get_final_message()

    for event in events:
        if event["type"] != "ping":
            union.validate_python(event)
    AnthropicMessage.model_validate(response(message, api="anthropic.messages"))
    assert [block.type for block in final.content] == [
        *("thinking", "redacted_thinking", "text", "tool_use", "server_tool_use")
    ]
    assert final.usage.output_tokens == 30


SDK_TYPES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "cohere.chat": (
        TypeAdapter[Any](V2ChatStreamResponse).validate_python,
        V2ChatResponse.model_validate,
    ),
    "gemini.generate_content": (
        lambda event: GenerateContentResponse.model_validate_json(json.dumps(event)),
        lambda event: GenerateContentResponse.model_validate_json(json.dumps(event)),
    ),
    "mistral.chat": (
        lambda event: CompletionEvent.model_validate({"data": event}),
        ChatCompletionResponse.model_validate,
    ),
    "ollama.chat": (ollama.ChatResponse.model_validate, ollama.ChatResponse.model_validate),
}


@each("api", SDK_TYPES)
@each("pieces", [1, 4])
def test_an_sdk_takes_every_event_and_the_body(api: str, pieces: int) -> None:
    """Each is an object of the provider's own types, read as the same message."""
    event_type, body_type = SDK_TYPES[api]
    message = full(api)
    events = [event_type(event) for event in stream(message, api=api, pieces=pieces)]
    body_type(response(message, api=api))

    assert normalized(events, api).text == message.text


def test_botocore_knows_every_member_of_converse() -> None:
    """The service's own model has each name, and each value is of its type."""
    service = botocore.session.get_session().get_service_model("bedrock-runtime")
    body = response(full("bedrock.converse"), api="bedrock.converse")
    objects = [
        *((event, "ConverseStreamOutput") for event in bedrock_events()),
        (body, "ConverseResponse"),
    ]
    reports = [
        ParamValidator().validate(value, service.shape_for(name)).generate_report()
        for value, name in objects
    ]

    assert "".join(reports) == ""


def bedrock_events() -> list[dict[str, Any]]:
    return stream(full("bedrock.converse"), api="bedrock.converse", pieces=3)


def serving(body: bytes) -> httpx2.Client:
    """A client whose every request is answered by this stream, without a network."""
    headers = {"content-type": "text/event-stream"}
    answer = httpx2.MockTransport(
        lambda request: httpx2.Response(200, content=body, headers=headers)
    )
    return httpx2.Client(transport=answer)


# Pieces


def texts_of(events: list[dict[str, Any]]) -> list[str]:
    return [
        event["delta"]["text"]
        for event in events
        if event["type"] == "content_block_delta" and event["delta"]["type"] == "text_delta"
    ]


def test_pieces_are_even_and_as_many_as_asked_for() -> None:
    """A text shorter than that gives one for each of its characters."""
    message = assistant("abcdefg", "hi")
    even = texts_of(stream(message, api="anthropic.messages", pieces=3))

    assert even == ["ab", "cd", "efg", "h", "i"]
    assert texts_of(stream(message, api="anthropic.messages")) == ["abcdefg", "hi"]


def test_a_seed_cuts_anywhere_and_always_alike() -> None:
    """What failed once fails again."""
    message = assistant("abcdefghij" * 9)

    def cut(seed: int) -> list[str]:
        return texts_of(stream(message, api="anthropic.messages", pieces=7, seed=seed))

    assert cut(1) == cut(1) != cut(2)
    assert "".join(cut(1)) == message.text
    assert len(cut(1)) == 7


@pytest.mark.parametrize("pieces", [0, -1, True, 2.0])
def test_pieces_is_a_number_of_pieces(pieces: Any) -> None:
    """Anything else is refused before an event is made."""
    with pytest.raises(InvalidCall, match="pieces"):
        stream(assistant("a"), api="openai.chat", pieces=pieces)


# What is left out


@each("api", apis())
def test_usage_can_be_left_out(api: str) -> None:
    """As where a client did not ask for it; the message may have none at all."""
    without = stream(full(api), api=api, include_usage=False)

    assert normalized(without, api).usage is None
    assert normalized(stream(assistant("a"), api=api), api).usage is None
    assert normalize_response(response(assistant("a"), api=api), api=api).usage is None


@each("api", apis())
def test_an_answer_ends_as_the_protocol_has_it(api: str) -> None:
    """Without a reason of its own, a message ends for the usual one."""
    plain = normalized(stream(assistant("a"), api=api), api)
    calls = normalized(stream(assistant("a", CALL), api=api), api)

    assert plain.finish_reason in REASONS[api]
    assert calls.finish_reason in REASONS[api]


@each(
    "api, message, lost",
    [
        (
            "openai.chat",
            assistant(replace(PLAIN, source_field="reasoning"), "a", PLAIN),
            "thoughts in different fields",
        ),
        ("openai.chat", assistant(PLAIN, PLAIN), "where one thought ends"),
        ("openai.chat", assistant("a", "b"), "where one text ends"),
        ("openai.chat", assistant("<think>a</think>"), "a delimiter in a text"),
        ("openai.chat", assistant("<thi", CALL, "nk>"), "a delimiter in a text"),
        ("openai.responses", assistant(REDACTED), "a thought that is redacted"),
        ("openai.responses", assistant("a", finish_reason="tired"), "the finish reason tired"),
        ("anthropic.messages", assistant(replace(PLAIN, encrypted="x")), "that is summary"),
        ("anthropic.messages", assistant(replace(PLAIN, is_hidden=True)), "is hidden"),
        ("anthropic.messages", assistant(replace(PLAIN, interrupted=True)), "was interrupted"),
        ("anthropic.messages", assistant(replace(PLAIN, source_field="x")), "the source field x"),
        ("anthropic.messages", assistant(TextBlock(text="")), "an empty text"),
        ("anthropic.messages", assistant(ThinkingBlock()), "an empty thought"),
        ("anthropic.messages", assistant("a", metadata={"a": 1}), "the message's own metadata"),
        ("anthropic.messages", assistant("a", status="erased"), "the status erased"),
        ("anthropic.messages", assistant(CALL, CALL), "two calls of one id"),
        ("anthropic.messages", assistant(replace(CALL, arguments="{}")), "arguments lack"),
        ("anthropic.messages", assistant(replace(CALL, id="")), "without id"),
        ("anthropic.messages", assistant(*FULL["gemini.generate_content"][2:3]), "type media"),
        ("anthropic.messages", user("a"), "of the role user"),
        (
            "anthropic.messages",
            assistant("a", status="interrupted", finish_reason="end_turn"),
            "the end of a message that was interrupted",
        ),
        ("bedrock.converse", assistant(replace(REDACTED, encrypted="?")), "not base64"),
        ("bedrock.converse", assistant("a", usage=USAGE), "the count of reasoning tokens"),
        ("cohere.chat", assistant(SIGNED), "a thought that is signed"),
        ("gemini.generate_content", assistant(PLAIN, SIGNED), "where one thinking ends"),
        (
            "gemini.generate_content",
            assistant(replace(CALL, parameters=[1], arguments=None)),
            "parameters that are not an object",
        ),
        (
            "gemini.generate_content",
            assistant(TextBlock(text="a", provider_metadata={"phase": "b"})),
            "the metadata phase",
        ),
        ("mistral.chat", assistant("a", usage=USAGE), "the count of reasoning tokens"),
        ("ollama.chat", assistant(SIGNED), "a thought that is signed"),
        ("thinking_events", assistant(replace(PLAIN, encrypted="x")), "that is summary"),
    ],
)
def test_what_a_protocol_has_no_place_for_is_named(api: str, message: Message, lost: str) -> None:
    """It is left out of the events, or with ``strict`` refused."""
    events = stream(message, api=api)
    got = normalized(events, api, interrupted=message.status == "interrupted")

    assert not carries(message, api)
    assert got.role == "assistant"
    with pytest.raises(InvalidCall, match=lost):
        stream(message, api=api, strict=True)


def test_a_whole_body_may_carry_less_than_a_stream() -> None:
    """Chat Completions has one string for all text, and its calls after it."""
    message = assistant("First.", CALL, "Then.")

    assert carries(message, "openai.chat")
    assert not carries(message, "openai.chat", whole=True)
    with pytest.raises(InvalidCall, match="order"):
        response(message, api="openai.chat", strict=True)
    assert normalize_response(response(message, api="openai.chat"), api="openai.chat").text == (
        "First.Then."
    )


def test_an_unknown_api_is_refused() -> None:
    """The error names those that there are."""
    with pytest.raises(InvalidCall, match="unknown api"):
        stream(assistant("a"), api="openai.assistants")


# Whose words


@each(
    "provider, model, block, delta",
    [
        (None, None, PLAIN, {"reasoning_content": "Need the tool."}),
        ("deepseek", None, PLAIN, {"reasoning_content": "Need the tool."}),
        ("groq", None, PLAIN, {"reasoning": "Need the tool."}),
        ("github-copilot", None, PLAIN, {"reasoning_text": "Need the tool."}),
        (None, None, replace(PLAIN, source_field="reasoning"), {"reasoning": "Need the tool."}),
        (
            None,
            None,
            replace(PLAIN, source_field="think_tags"),
            {"content": "<think>Need the tool.</think>"},
        ),
        ("openrouter", None, PLAIN, {"reasoning": "Need the tool."}),
        (
            "openrouter",
            None,
            replace(PLAIN, source_field="reasoning_details"),
            {
                "reasoning": "Need the tool.",
                "reasoning_details": [
                    {
                        "type": "reasoning.text",
                        "format": "unknown",
                        "index": 0,
                        "text": "Need the tool.",
                    }
                ],
            },
        ),
        (
            "litellm",
            None,
            REDACTED,
            {"thinking_blocks": [{"type": "redacted_thinking", "data": "RU5D"}]},
        ),
    ],
)
def test_a_thought_is_in_the_hosts_own_field(
    provider: str | None, model: str | None, block: ThinkingBlock, delta: dict[str, Any]
) -> None:
    """The contract names the field, unless the block says which it came from."""
    events = stream(assistant(block), api="openai.chat", provider=provider, model=model)

    assert events[1]["choices"][0]["delta"] == delta


def test_a_host_without_a_field_for_thoughts_hides_them() -> None:
    """OpenAI's own Chat Completions never show reasoning."""
    events = stream(assistant(PLAIN, "Hi"), api="openai.chat", provider="openai")

    assert [event["choices"][0]["delta"] for event in events] == [
        *({"role": "assistant", "content": ""}, {"content": "Hi"}, {})
    ]


def test_the_origin_of_a_message_is_in_its_events() -> None:
    """The response's id and the model go along, as a provider would send them."""
    message = assistant("a", origin=Origin(model="claude-opus-5", response_id="msg_7"))
    got = normalized(stream(message, api="anthropic.messages"), "anthropic.messages").origin

    assert got is not None
    assert (got.model, got.response_id) == ("claude-opus-5", "msg_7")


# Bytes


@each(
    "api, first, last",
    [
        (
            "anthropic.messages",
            b'event: message_start\ndata: {"type":"message_start",',
            b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
        ),
        ("openai.responses", b"event: response.created\ndata: {", b"}\n\n"),
        ("openai.chat", b'data: {"id":', b"data: [DONE]\n\n"),
        ("mistral.chat", b'data: {"id":', b"data: [DONE]\n\n"),
        ("cohere.chat", b"event: message-start\ndata: {", b"data: [DONE]\n\n"),
        ("gemini.generate_content", b"data: {", b"}\r\n\r\n"),
        ("ollama.chat", b'{"model":', b"}\n"),
        ("thinking_events", b'data: {"type":"start",', b"data: [DONE]\n\n"),
    ],
)
def test_each_api_frames_its_events_in_its_own_way(api: str, first: bytes, last: bytes) -> None:
    """Named events, bare data, or lines; with an end or without one."""
    body = sse(stream(assistant("caf\u00e9"), api=api), api=api)

    assert body.startswith(first)
    assert body.endswith(last)
    assert "caf\u00e9".encode() in body


@pytest.mark.parametrize("api", [api for api in apis() if api != "bedrock.converse"])
@given(st.data())
@examples(15)
def test_the_bytes_hold_the_events_however_they_are_cut(api: str, data: st.DataObject) -> None:
    """Line ends and all."""
    events = stream(data.draw(carried(api)), api=api, pieces=3)
    body = sse(events, api=api)
    cuts = sorted({0, len(body), *data.draw(st.lists(st.integers(0, len(body)), max_size=20))})
    decoder = NDJSONDecoder() if api == "ollama.chat" else JSONEvents()
    decoded = [event for a, b in pairwise(cuts) for event in decoder.feed(body[a:b])]

    assert [*decoded, *decoder.finish()] == json.loads(json.dumps(events))


def test_a_binary_framing_is_refused() -> None:
    """Bedrock's events do not travel as text."""
    with pytest.raises(InvalidCall, match="binary"):
        sse([], api="bedrock.converse")
