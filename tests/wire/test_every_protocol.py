"""Promises that the reader of every protocol keeps alike."""

from __future__ import annotations

from typing import Any

import pytest

from reasoning_store.ingress.normalizer import StreamNormalizer
from reasoning_store.wire import contract_lookup, registry
from tests.properties import each
from tests.wire.cases import Case, params

APIS = [protocol.id for protocol in registry.PROTOCOLS]
HANDLES: dict[str, tuple[list[str], list[str | None]]] = {
    "anthropic.messages": (["anthropic", "Anthropic"], ["openrouter", "openai"]),
    "bedrock.converse": (["aws", "bedrock"], ["anthropic"]),
    "cohere.chat": (["cohere"], ["openai"]),
    "gemini.generate_content": (["google", "gemini"], ["openai"]),
    "mistral.chat": ([], ["openai"]),
    "ollama.chat": (["ollama"], ["openai"]),
    "openai.chat": (["deepseek", "qwen", "openai", "vllm", "kimi", "glm"], ["anthropic"]),
    "openai.responses": ([], ["openai"]),
    "thinking_events": (["vercel-ai-sdk"], ["openai"]),
}
"""Hosts that speak a protocol where no other is named, and some that do not."""


def reader_of(api: str, provider: str | None = None) -> Any:
    return registry.find_protocol(api).reader(
        contract_lookup.find_contract(provider=provider, api=api)
    )


@each("api", APIS)
def test_a_reader_handles_the_hosts_that_speak_its_protocol(api: str) -> None:
    """A host is known to speak the protocol, or it is not."""
    reader = reader_of(api)
    hosts, others = HANDLES[api]

    assert reader.id == api
    assert [host for host in hosts if not reader.can_handle(None, host)] == []
    for other in (*others, "unheard-of", "", None):
        assert not reader.can_handle("m", other)


@each("api", APIS)
def test_events_that_a_host_normalised_are_read_in_every_protocol(api: str) -> None:
    """The hosts' own vocabulary is no protocol's, and is understood all the same."""
    normalizer = StreamNormalizer(api=api)
    for event in (
        {"type": "thinking_start", "contentIndex": 0},
        {"type": "thinking_delta", "contentIndex": 0, "delta": "Hm"},
        {"type": "thinking_end", "contentIndex": 0, "content": "Hm"},
        {"type": "text_delta", "contentIndex": 1, "delta": "Yes"},
    ):
        normalizer.feed(event)
    message = normalizer.finish()

    assert ([block.thought for block in message.thinking], message.text) == (["Hm"], "Yes")


@pytest.mark.parametrize("case", params("stream"))
def test_a_reset_reader_is_as_new(case: Case) -> None:
    """Wherever its stream broke off: no block, no call, no name of it is left."""
    events = case.variant["stream"]
    reader = reader_of(case.api, case.provider)
    first = [chunk for event in events for chunk in reader.parse_chunk(event)]
    reader.reset()
    for length in (len(events), len(events) // 2, 1):
        for event in events[:length]:
            reader.parse_chunk(event)
        reader.reset()

        assert [chunk for event in events for chunk in reader.parse_chunk(event)] == first
        reader.reset()
