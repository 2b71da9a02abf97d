"""Which reader a stream gets: decided once, when its message starts.

An explicit api always wins, and so does one that only the address says. Else the first of
these that can handle the model and provider: OpenAI, Anthropic, DeepSeek, the protocol of a
known provider, and the tag fallback, which reads what an unknown host is most likely to send
and whose text is searched for delimiters.
The choice names the reader; what it reads by is the contract, so those of one protocol read
alike. Every stream gets an instance of its own.

The tables are all there is; nothing registers itself. This module knows which protocols
there are. It must not know what any of them says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from reasoning_store.wire import (
    anthropic,
    anthropic_requests,
    bedrock,
    bedrock_requests,
    cohere,
    cohere_requests,
    contracts,
    gemini,
    gemini_requests,
    mistral,
    mistral_requests,
    ollama,
    ollama_requests,
    openai_chat,
    openai_chat_requests,
    openai_responses,
    openai_responses_requests,
    thinking_events,
    thinking_events_requests,
)
from reasoning_store.wire.base import ResponseParser, StreamAdapter
from reasoning_store.wire.contracts import Contract
from reasoning_store.wire.pages import RequestWriter

_ADAPTERS: Final[Mapping[str, Callable[[Contract], StreamAdapter]]] = {
    "anthropic.messages": anthropic.Adapter,
    "bedrock.converse": bedrock.Adapter,
    "cohere.chat": cohere.Adapter,
    "gemini.generate_content": gemini.Adapter,
    "mistral.chat": mistral.Adapter,
    "ollama.chat": ollama.Adapter,
    "openai.chat": openai_chat.Adapter,
    "openai.responses": openai_responses.Adapter,
    "thinking_events": thinking_events.Adapter,
}
_PARSERS: Final[Mapping[str, ResponseParser]] = {
    "anthropic.messages": anthropic.parse_response,
    "bedrock.converse": bedrock.parse_response,
    "cohere.chat": cohere.parse_response,
    "gemini.generate_content": gemini.parse_response,
    "mistral.chat": mistral.parse_response,
    "ollama.chat": ollama.parse_response,
    "openai.chat": openai_chat.parse_response,
    "openai.responses": openai_responses.parse_response,
    "thinking_events": thinking_events.parse_response,
}
_WRITERS: Final[Mapping[str, RequestWriter]] = {
    "anthropic.messages": anthropic_requests,
    "bedrock.converse": bedrock_requests,
    "cohere.chat": cohere_requests,
    "gemini.generate_content": gemini_requests,
    "mistral.chat": mistral_requests,
    "ollama.chat": ollama_requests,
    "openai.chat": openai_chat_requests,
    "openai.responses": openai_responses_requests,
    "thinking_events": thinking_events_requests,
}


class OpenAIAdapter(openai_chat.Adapter):
    """OpenAI's own reasoning models."""

    id = "openai"

    def can_handle(self, model: str | None, provider: str | None) -> bool:
        return contracts.provider_id(provider) == "openai" and _name(model).startswith(
            ("o1", "o3", "o4")
        )


class AnthropicAdapter(anthropic.Adapter):
    """Anthropic, whatever the model."""

    id = "anthropic"

    def can_handle(self, model: str | None, provider: str | None) -> bool:
        return contracts.provider_id(provider) == "anthropic"


class DeepSeekAdapter(openai_chat.Adapter):
    """DeepSeek's reasoning models, also where a gateway serves them in the same protocol.

    Elsewhere the name has to say that the model is DeepSeek's: ``r1`` alone is in too many.
    A host that speaks a protocol of its own (Bedrock, Ollama) is read in that protocol.
    """

    id = "deepseek"

    def can_handle(self, model: str | None, provider: str | None) -> bool:
        name = _name(model)
        if "reasoner" not in name and "r1" not in name:
            return False
        if contracts.provider_id(provider) == "deepseek":
            return True
        return (
            "deepseek" in name and contracts.resolve(provider, model).api == openai_chat.Adapter.id
        )


class TagFallbackAdapter(openai_chat.Adapter):
    """Everything else: the usual chat protocol, with thoughts perhaps inside the text."""

    id = "tag-fallback"

    def can_handle(self, model: str | None, provider: str | None) -> bool:
        return True


_FIRST: Final[tuple[Callable[[Contract], StreamAdapter], ...]] = (
    OpenAIAdapter,
    AnthropicAdapter,
    DeepSeekAdapter,
)


def resolve(
    model: str | None = None,
    provider: str | None = None,
    api: str | None = None,
    base_url: str | None = None,
) -> StreamAdapter:
    """Return a fresh reader for one stream."""
    contract = contracts.resolve(provider, model, api, base_url)
    known = contracts.provider_id(provider, base_url)
    if api is not None or contract.api != contracts.resolve(known, model).api:
        return _ADAPTERS[contract.api](contract)
    for make in (*_FIRST, _ADAPTERS[contract.api]):
        adapter = make(contract)
        if adapter.can_handle(model, known):
            return adapter
    return TagFallbackAdapter(contract)


def parser(api: str) -> ResponseParser:
    """Return what reads a whole response of an api."""
    return _PARSERS[contracts.api_name(api)]


def writer(api: str) -> RequestWriter:
    """Return what writes requests of an api."""
    return _WRITERS[contracts.api_name(api)]


def _name(model: str | None) -> str:
    return (model or "").strip().lower()
