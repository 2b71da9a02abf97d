"""What the registry of readers promises: who handles what, and the rows it needs next to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.conversation.blocks import (
    Message,
    TextBlock,
    ThinkingBlock,
)
from reasoning_store.conversation.chunks import ReasoningChunk
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.ingress.normalizer import StreamNormalizer
from reasoning_store.testing import stream
from reasoning_store.wire import (
    contract_lookup,
    registry,
)
from reasoning_store.wire.anthropic import reader as anthropic
from reasoning_store.wire.gemini import reader as gemini
from reasoning_store.wire.openai_chat import reader as openai_chat
from reasoning_store.wire.registry import (
    AnthropicAdapter,
    DeepSeekAdapter,
    OpenAIAdapter,
    TagFallbackAdapter,
)
from tests.properties import each

ADAPTERS = {
    "openai": ("openai", "o3-mini"),
    "anthropic": ("anthropic", "claude-opus-4-6"),
    "deepseek": ("deepseek", "deepseek-reasoner"),
    "tag-fallback": ("nobody-knows", "some-model"),
}

LIFECYCLE: list[dict[str, Any]] = [
    {"type": "thinking_start", "contentIndex": 0, "partial": {}},
    {"type": "thinking_delta", "contentIndex": 0, "delta": "Need the ", "partial": {}},
    {"type": "thinking_delta", "contentIndex": 0, "delta": "", "partial": {}},
    {"type": "thinking_delta", "contentIndex": 0, "delta": "tool.", "partial": {}},
    {"type": "thinking_end", "contentIndex": 0, "content": "Need the tool.", "partial": {}},
]


def adapters() -> list[Any]:
    contract = contract_lookup.find_contract()
    return [
        OpenAIAdapter(contract),
        AnthropicAdapter(contract),
        DeepSeekAdapter(contract),
        TagFallbackAdapter(contract),
    ]


def fallback(*pieces: str) -> Message:
    """What the tag fallback makes of text deltas."""
    normalizer = StreamNormalizer()
    for piece in pieces:
        normalizer.feed({"type": "text_delta", "contentIndex": 0, "delta": piece, "partial": {}})
    return normalizer.finish()


# can_handle


@each(
    "model, provider, expected",
    [
        ("o1", "openai", True),
        ("o1-preview", "openai", True),
        ("o3-mini", "openai", True),
        ("o4-mini", "OpenAI", True),
        ("O3", "openai", True),
        ("gpt-4o", "openai", False),
        ("gpt-5.6", "openai", False),
        ("not-o1", "openai", False),
        ("o3-mini", "openrouter", False),
        ("o3-mini", None, False),
    ],
)
def test_openai_handles_its_reasoning_models(
    model: str, provider: str | None, expected: bool
) -> None:
    """Models that start with o1, o3 or o4, of the provider openai."""
    assert OpenAIAdapter(contract_lookup.find_contract()).can_handle(model, provider) is expected


@pytest.mark.parametrize(
    ("model", "provider", "expected"),
    [
        ("claude-opus-4-6", "anthropic", True),
        ("", "anthropic", True),
        (None, "ANTHROPIC", True),
        ("claude-opus-4-6", "aws", False),
        ("claude-opus-4-6", None, False),
    ],
)
def test_anthropic_handles_its_provider(
    model: str | None, provider: str | None, expected: bool
) -> None:
    """Whatever the model."""
    assert AnthropicAdapter(contract_lookup.find_contract()).can_handle(model, provider) is expected


@each(
    "model, provider, expected",
    [
        ("deepseek-reasoner", "deepseek", True),
        ("deepseek-r1", "deepseek", True),
        ("DeepSeek-R1-0528", "deepseek", True),
        ("r1", "deepseek", True),
        ("deepseek-chat", "deepseek", False),
        ("", "deepseek", False),
        ("deepseek/deepseek-r1", "openrouter", True),
        ("deepseek-ai/DeepSeek-R1", "together", True),
        ("deepseek-r1", "my-own-gateway", True),
        ("command-r1", "openrouter", False),
        ("us.deepseek.r1-v1:0", "bedrock", False),
        ("deepseek-r1:8b", "ollama", False),
    ],
)
def test_deepseek_handles_its_reasoning_models(model: str, provider: str, expected: bool) -> None:
    """Of its own API, and through gateways that speak the same protocol."""
    assert DeepSeekAdapter(contract_lookup.find_contract()).can_handle(model, provider) is expected


@each("model", ["gpt-4o", "", None])
@each("provider", ["openai", "nobody", "", "   ", None])
def test_fallback_handles_everything(model: str | None, provider: str | None) -> None:
    """It is the last, and always true."""
    assert TagFallbackAdapter(contract_lookup.find_contract()).can_handle(model, provider) is True


@each("adapter", adapters())
@each("name", ["", " ", None, "\ud800", "x" * 100_000])
def test_can_handle_never_raises(adapter: Any, name: str | None) -> None:
    """Empty, missing or absurd names are just not handled."""
    assert isinstance(adapter.can_handle(name, name), bool)


# resolve


@pytest.mark.parametrize(("provider", "model"), ADAPTERS.values(), ids=ADAPTERS)
def test_the_four_adapters_are_found(
    provider: str, model: str, request: pytest.FixtureRequest
) -> None:
    """OpenAI, Anthropic, DeepSeek, then the fallback: the first that can handle it."""
    adapter = registry.make_reader(model=model, provider=provider)

    assert adapter.id == request.node.callspec.id


@each(
    "provider, model, expected",
    [
        ("openai", "gpt-5.6", "openai.chat"),
        ("deepseek", "deepseek-chat", "openai.chat"),
        ("google", "gemini-3.8-flash", "gemini.generate_content"),
        ("gemini", None, "gemini.generate_content"),
        ("aws", "anthropic.claude-opus-4-6", "bedrock.converse"),
        ("bedrock", "us.deepseek.r1-v1:0", "bedrock.converse"),
        ("mistral", "magistral-medium", "mistral.chat"),
        ("ollama", "deepseek-r1:8b", "ollama.chat"),
        ("cohere", "command-a-reasoning", "cohere.chat"),
        ("vercel-ai-sdk", None, "thinking_events"),
        ("", "", "tag-fallback"),
        (None, None, "tag-fallback"),
        (None, "o3-mini", "tag-fallback"),
        ("unheard-of", "claude-opus-4-6", "tag-fallback"),
    ],
)
def test_known_providers_get_their_protocol(
    provider: str | None, model: str | None, expected: str
) -> None:
    """Behind the first adapters stands each known provider's own; the fallback is last."""
    assert registry.make_reader(model=model, provider=provider).id == expected


def test_address_names_the_provider() -> None:
    """A base URL is as good as a name."""
    adapter = registry.make_reader(model="claude-opus-4-6", base_url="https://api.anthropic.com/v1")

    assert adapter.id == "anthropic"


@each("api", contract_lookup.apis())
@each("provider", [None, "openai", "anthropic", "google"])
def test_explicit_api_always_wins(api: str, provider: str | None) -> None:
    """Whatever provider and model say, the named protocol is read."""
    assert registry.make_reader(model="o3-mini", provider=provider, api=api).id == api


@pytest.mark.parametrize(
    ("address", "model", "adapter"),
    [
        ("https://api.deepseek.com/anthropic", "deepseek-reasoner", "anthropic.messages"),
        ("https://r.services.ai.azure.com/anthropic", "production", "anthropic.messages"),
        ("https://example.org/anthropic", "m", "anthropic.messages"),
        ("https://api.groq.com/openai/v1", "deepseek-r1-distill-llama-70b", "deepseek"),
        ("https://aiplatform.googleapis.com/v1", "claude-opus-5", "anthropic.messages"),
    ],
)
def test_an_address_may_say_the_api(address: str, model: str, adapter: str) -> None:
    """Where it says the usual one, nothing is decided by it."""
    assert registry.make_reader(model=model, base_url=address).id == adapter


def test_api_may_be_named_by_an_alias() -> None:
    """Other names of an api are its names."""
    assert isinstance(registry.make_reader(api="gemini.interactions"), gemini.GeminiReader)


def test_unknown_api_is_refused() -> None:
    """A name that no protocol has is a mistake of the caller, and says what is allowed."""
    with pytest.raises(InvalidCall) as raised:
        registry.make_reader(api="smoke.signals")

    assert "openai.chat" in str(raised.value.hint)


def test_every_stream_gets_an_instance_of_its_own() -> None:
    """Two streams never share state."""
    for provider, model in ADAPTERS.values():
        first, second = (registry.make_reader(model=model, provider=provider) for _ in range(2))
        assert first is not second


@each("api", contract_lookup.apis())
def test_every_api_has_a_reader_and_a_parser(api: str) -> None:
    """The tables are complete."""
    assert registry.make_reader(api=api).id == api
    assert callable(registry.find_protocol(api).parse)


def test_parser_is_found_by_alias() -> None:
    """A parser is looked up like a reader."""
    assert registry.find_protocol("messages").parse is anthropic.parse_response
    assert registry.find_protocol("chat").parse is openai_chat.parse_response


# A host's own events, through each of the adapters


@pytest.mark.parametrize(("provider", "model"), ADAPTERS.values(), ids=ADAPTERS)
def test_a_lifecycle_is_read_by_every_adapter(provider: str, model: str) -> None:
    """Start, deltas, end; an empty delta says nothing; the end is complete."""
    adapter = registry.make_reader(model=model, provider=provider)
    chunks = [chunk for event in LIFECYCLE for chunk in adapter.parse_chunk(event)]
    thoughts = [chunk for chunk in chunks if isinstance(chunk, ReasoningChunk)]

    assert len(thoughts) == len(chunks)
    assert [(chunk.phase, chunk.text, chunk.is_complete) for chunk in thoughts] == [
        ("start", "", False),
        ("delta", "Need the ", False),
        ("delta", "tool.", False),
        ("end", "Need the tool.", True),
    ]


@pytest.mark.parametrize(("provider", "model"), ADAPTERS.values(), ids=ADAPTERS)
def test_a_lifecycle_is_one_block(provider: str, model: str) -> None:
    """The end that repeats the text does not double it, whatever the provider."""
    normalizer = StreamNormalizer(provider=provider, model=model)
    for event in (*LIFECYCLE, {"type": "text_delta", "contentIndex": 1, "delta": "Yes."}):
        normalizer.feed(event)

    assert normalizer.finish().blocks == (
        ThinkingBlock(thought="Need the tool.", source_field="thinking"),
        TextBlock(text="Yes."),
    )


@pytest.mark.parametrize(("provider", "model"), ADAPTERS.values(), ids=ADAPTERS)
def test_reset_makes_an_adapter_as_new(provider: str, model: str) -> None:
    """Between messages all state is cleared."""
    adapter = registry.make_reader(model=model, provider=provider)
    first = [chunk for event in LIFECYCLE for chunk in adapter.parse_chunk(event)]
    adapter.parse_chunk(LIFECYCLE[0])
    adapter.reset()

    assert [chunk for event in LIFECYCLE for chunk in adapter.parse_chunk(event)] == first


# The tag fallback, with the text of such events


@pytest.mark.parametrize(
    "pieces",
    [
        ("<think>why</think>so",),
        ("<thi", "nk>why</think>so"),
        ("<think>why</thi", "nk>so"),
        tuple("<think>why</think>so"),
        ("<think>", "w", "hy", "</think>", "s", "o"),
    ],
)
def test_fallback_finds_tags_across_deltas(pieces: tuple[str, ...]) -> None:
    """A delimiter cut in two is a delimiter."""
    assert fallback(*pieces).blocks == (
        ThinkingBlock(thought="why", source_field="think_tags"),
        TextBlock(text="so"),
    )


def test_fallback_without_tags_is_text() -> None:
    """Nothing is held back and nothing is lost."""
    assert fallback("no ", "thoughts", " here").blocks == (TextBlock(text="no thoughts here"),)


def test_fallback_keeps_blocks_of_one_delta_apart() -> None:
    """A tag that closes and opens again in one delta is two thoughts."""
    message = fallback("<think>a</think>x<think>b</think>y")

    assert [block.thought for block in message.thinking] == ["a", "b"]
    assert message.text == "xy"


def test_fallback_does_not_nest() -> None:
    """An open inside a thought is its text, and the first close ends it; none leaks."""
    message = fallback("<think>a<think>b</think>c</think>d")

    assert message.text == "cd"
    assert [block.thought for block in message.thinking] == ["a<think>b"]


def test_fallback_releases_a_partial_tag_at_the_end() -> None:
    """What only looked like a delimiter is given out."""
    assert fallback("is a <", "th").text == "is a <th"


def test_fallback_keeps_a_thought_that_never_closed() -> None:
    """It is not visible, not lost, and said to be interrupted."""
    message = fallback("<think>half a tho", "ught")

    assert message.text == ""
    assert message.thinking == (
        ThinkingBlock(thought="half a thought", source_field="think_tags", interrupted=True),
    )


def test_fallback_takes_native_thoughts_first() -> None:
    """Native events count; a tagged copy is taken out of the text and not added."""
    normalizer = StreamNormalizer()
    copy = {"type": "text_delta", "contentIndex": 1, "delta": "<think>Need the tool.</think>Yes."}
    for event in (*LIFECYCLE, copy):
        normalizer.feed(event)
    message = normalizer.finish()

    assert message.text == "Yes."
    assert [block.thought for block in message.thinking] == ["Need the tool."]


def test_fallback_reads_the_usual_chat_protocol_too() -> None:
    """An unknown host most likely speaks it."""
    normalizer = StreamNormalizer(provider="nobody-knows")
    for delta in ({"reasoning_content": "why"}, {"content": "so"}):
        normalizer.feed({"choices": [{"index": 0, "delta": delta}]})

    assert [block.type for block in normalizer.finish().blocks] == ["thinking", "text"]


# What an event names itself


HI = Message(role="assistant", blocks=(TextBlock(text="Hi"),))


@each("api", sorted(set(contract_lookup.apis()) - {"mistral.chat", "thinking_events"}))
def test_the_first_event_names_its_protocol(api: str) -> None:
    """By a mark that no other protocol has."""
    assert registry.api_named_by(next(iter(stream(HI, api=api)))) == api


@each(
    "event",
    [
        5,
        {},
        {"type": "ping"},
        {"type": "error", "error": {}},
        {"type": "start"},
        {"type": "message_start", "message": {"role": "assistant", "content": []}},
        {"choices": []},
        {"message": "Hello", "done": 1},
        {"metadata": {}, "id": "x"},
        {"event_type": "stream-start"},
    ],
)
def test_an_event_without_a_mark_names_nothing(event: Any) -> None:
    """It is read where address, host and model say."""
    assert registry.api_named_by(event) is None


@each("api", contract_lookup.apis())
def test_a_stream_is_read_in_the_protocol_that_its_events_name(api: str) -> None:
    """Whatever host, model or an earlier request say."""
    for usual in contract_lookup.apis():
        normalizer = StreamNormalizer(usual_api=usual)
        for event in stream(HI, api=api):
            normalizer.feed(event)
        message = normalizer.finish()

        assert (message.text, message.status) == ("Hi", "complete"), usual


def test_mistrals_events_stay_mistrals() -> None:
    """Its protocol has the marks of Chat Completions, of which it is a form."""
    normalizer = StreamNormalizer(provider="mistral")
    for event in stream(HI, api="openai.chat"):
        normalizer.feed(event)

    assert (normalizer.api, normalizer.finish().text) == ("mistral.chat", "Hi")


# An adapter of one's own


class Carets(rs.ReasoningStreamAdapter):
    """Events of a made-up host: a text that begins with a caret is a thought."""

    id = "carets"

    def can_handle(self, model: str | None, provider: str | None) -> bool:
        return provider == "carets" or (model or "").startswith("caret-")

    def parse_chunk(self, raw: Any) -> list[rs.Chunk]:
        self.said.append(raw["say"])
        if raw["say"].startswith("^"):
            return [ReasoningChunk(text=raw["say"][1:], metadata={"sourceField": "caret"})]
        return [rs.TextChunk(text=raw["say"])]

    def reset(self) -> None:
        self.said: list[str] = []


CARETS = [{"say": "^why"}, {"say": "so"}]


@pytest.fixture
def carets() -> Iterator[Carets]:
    mine = Carets()
    rs.adapters.register(mine)
    yield mine
    rs.adapters.unregister(mine)


def test_an_adapter_of_ones_own_comes_first(carets: Carets) -> None:
    """It is asked before the package's; each stream gets a copy that is as new."""
    carets.reset()
    carets.parse_chunk(CARETS[0])
    first, second = (rs.adapters.resolve(model="m", provider="carets") for _ in range(2))

    assert isinstance(first, Carets)
    assert first.said == []
    assert len({id(first), id(second), id(carets)}) == 3
    assert rs.adapters.resolve(model="o3-mini", provider="openai").id == "openai"


def test_an_adapter_of_ones_own_reads_streams_and_recordings(carets: Carets) -> None:
    """Unless the call names another protocol."""
    expected = (ThinkingBlock(thought="why", source_field="caret"), TextBlock(text="so"))
    normalizer = StreamNormalizer(model="caret-1")
    for event in CARETS:
        normalizer.feed(event)
    with rs.Store("sqlite://") as store:
        session = store.session()
        session.append(rs.user("Why?"))
        request = session.build_request(provider="carets", model="m")
        with session.record(iter(CARETS), request=request) as reply:
            assert [*reply]

        assert normalizer.finish().blocks == session.history()[-1].message.blocks == expected
    assert StreamNormalizer(model="caret-1", api="openai.chat").feed(CARETS[1])[0].type == "unknown"


@pytest.mark.parametrize("given", [Carets, None, "carets"])
def test_only_an_adapter_is_registered(given: Any) -> None:
    """A class is none: the registry copies what it was given."""
    with pytest.raises(InvalidCall, match="an adapter, not"):
        rs.adapters.register(given)
