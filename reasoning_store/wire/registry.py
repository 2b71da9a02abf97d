"""The protocols, and which of them reads a stream.

A stream's reader is chosen once, when its message starts. An explicit api always wins; then the
one that the first event names itself; then the one that the path of the address names. Else
the first of these that can handle the model and provider: OpenAI, Anthropic, DeepSeek, the
protocol of a known provider, and the tag fallback, which reads the usual chat protocol. The four
adapters below differ from the reader of their protocol in ``id`` and ``can_handle`` alone: their
order decides the id, and not the result of reading. Adapters that an application registered come
before all of these, unless the api was named.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final
from urllib.parse import urlsplit

from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.conversation.validation import type_name
from reasoning_store.wire import (
    anthropic,
    bedrock,
    cohere,
    contract_lookup,
    gemini,
    mistral,
    ollama,
    openai_chat,
    openai_responses,
    ui_messages,
)
from reasoning_store.wire.anthropic.reader import AnthropicReader
from reasoning_store.wire.contract_tables import Contracts, default_contracts
from reasoning_store.wire.event_fields import plain_value
from reasoning_store.wire.openai_chat.reader import ChatReader
from reasoning_store.wire.protocol import Protocol, ReasoningStreamAdapter

PROTOCOLS: Final[tuple[Protocol, ...]] = (
    anthropic.PROTOCOL,
    bedrock.PROTOCOL,
    cohere.PROTOCOL,
    gemini.PROTOCOL,
    mistral.PROTOCOL,
    ollama.PROTOCOL,
    openai_chat.PROTOCOL,
    openai_responses.PROTOCOL,
    ui_messages.PROTOCOL,
)
_BY_ID: Final[Mapping[str, Protocol]] = {protocol.id: protocol for protocol in PROTOCOLS}


def find_protocol(api: str) -> Protocol:
    """Return the protocol of an api, by any of its names."""
    return _BY_ID[contract_lookup.api_name(api)]


def api_named_by(raw: Any) -> str | None:
    """Return the api whose mark an event carries, or ``None`` where it may be any."""
    event = plain_value(raw)
    if not isinstance(event, Mapping):
        return None
    return next((protocol.id for protocol in PROTOCOLS if protocol.has_mark(event)), None)


def only_read_form(api: str | None, base_url: str | None = None) -> str | None:
    """Return the name of a form that is read and not written, where one is named."""
    if api is None and base_url and contract_lookup.is_address(base_url):
        api = urlsplit(base_url).path.rstrip("/").rpartition("/")[2]
    name = (api or "").strip().lower()
    return next((item.only_read[0] for item in PROTOCOLS if name in item.only_read), None)


class OpenAIAdapter(ChatReader):
    """OpenAI's own reasoning models."""

    id = "openai"

    def can_handle(self, model: str | None, provider: str | None) -> bool:
        return contract_lookup.provider_id(provider) == "openai" and _name(model).startswith(
            ("o1", "o3", "o4")
        )


class AnthropicAdapter(AnthropicReader):
    """Anthropic, with any model."""

    id = "anthropic"

    def can_handle(self, model: str | None, provider: str | None) -> bool:
        return contract_lookup.provider_id(provider) == "anthropic"


class DeepSeekAdapter(ChatReader):
    """DeepSeek's reasoning models, also where a gateway serves them in the same protocol.

    Elsewhere the name must contain DeepSeek's: ``r1`` alone is in too many. A host that speaks
    a protocol of its own (Bedrock, Ollama) is read in that protocol.
    """

    id = "deepseek"

    def can_handle(self, model: str | None, provider: str | None) -> bool:
        name = _name(model)
        if "reasoner" not in name and "r1" not in name:
            return False
        if contract_lookup.provider_id(provider) == "deepseek":
            return True
        return (
            "deepseek" in name
            and contract_lookup.find_contract(provider, model).api == ChatReader.id
        )


class TagFallbackAdapter(ChatReader):
    """Everything else: the usual chat protocol, with thoughts perhaps inside the text."""

    id = "tag-fallback"

    def can_handle(self, model: str | None, provider: str | None) -> bool:
        return True


class AdapterRegistry:
    """The adapters of this process: those that an application registered, then the package's."""

    def __repr__(self) -> str:
        return "a results.AdapterRegistry"

    def __init__(self) -> None:
        self._own: tuple[ReasoningStreamAdapter, ...] = ()

    def register(self, adapter: ReasoningStreamAdapter) -> None:
        """Put an adapter before all others; each stream is read by a copy of it."""
        if not isinstance(adapter, ReasoningStreamAdapter):
            raise InvalidCall(
                f"an adapter, not {type_name(adapter)}",
                hint="an instance of a subclass of rs.ReasoningStreamAdapter",
            )
        self._own = (adapter, *self._own)

    def unregister(self, adapter: ReasoningStreamAdapter) -> None:
        """Take back an adapter that was registered."""
        self._own = tuple(one for one in self._own if one is not adapter)

    def resolve(
        self, model: str | None = None, provider: str | None = None
    ) -> ReasoningStreamAdapter:
        """Return a fresh adapter for one stream of this model of this provider."""
        return self.find_own(model, provider) or make_reader(model, provider)

    def find_own(self, model: str | None, provider: str | None) -> ReasoningStreamAdapter | None:
        """Return a fresh copy of a registered adapter, if one can handle the stream."""
        found = next((one for one in self._own if one.can_handle(model, provider)), None)
        if found is not None:
            found = deepcopy(found)
            found.reset()
        return found


adapters: Final = AdapterRegistry()


def make_reader(
    model: str | None = None,
    provider: str | None = None,
    api: str | None = None,
    base_url: str | None = None,
    contracts: Contracts | None = None,
) -> ReasoningStreamAdapter:
    """Return a fresh reader for one stream."""
    contracts = contracts or default_contracts()
    contract = contract_lookup.find_contract(provider, model, api, base_url, contracts)
    reader = _BY_ID[contract.api].reader
    known = contract_lookup.provider_id(provider, base_url, contracts)
    usual = contract_lookup.find_contract(known, model, contracts=contracts).api
    if api is None and contract.api == usual:
        for kind in (OpenAIAdapter, AnthropicAdapter, DeepSeekAdapter):
            if issubclass(kind, reader) and kind(contract).can_handle(model, known):
                return kind(contract)
        if contract_lookup.find_host(known, None, contracts) is None:
            return TagFallbackAdapter(contract)
    return reader(contract)


def _name(model: str | None) -> str:
    return (model or "").strip().lower()
