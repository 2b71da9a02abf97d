"""A strict provider: the error that it answers to a request that it refuses.

    from reasoning_store.testing import refusal

    assert refusal(request.body, provider="deepseek", model="deepseek-flash") is None

Each rule is written from a provider's documentation or a refusal that people met, with its source;
nothing comes from ``contracts.toml`` or egress, which these rules test. If services differ, the
strictest rule holds, unless a recorded exchange shows that the named host takes the request. Only a
``Record`` can distinguish a real seal from an invented one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.conversation.validation import describe
from reasoning_store.testing.strict_provider import (
    anthropic,
    bedrock,
    chat_hosts,
    cohere,
    efforts,
    gateways,
    gemini,
    mistral,
    ollama,
    openai_chat,
    openai_responses,
)
from reasoning_store.testing.strict_provider.record import Record, Sealed
from reasoning_store.testing.strict_provider.rules import Rule, Sent, first_objection

__all__ = ["Record", "Sealed", "refusal"]

ALIASES: Mapping[str, str] = {
    alias: name
    for name, aliases in {
        "alibaba": "qwen dashscope modelstudio model-studio bailian aliyun",
        "anthropic": "claude",
        "aws": "bedrock amazon-bedrock aws-bedrock bedrock-runtime",
        "azure": "azure-openai azure_openai",
        "google": "gemini google-gla google-genai google-gemini",
        "llama.cpp": "llamacpp llama-cpp llama-server",
        "mistral": "mistralai",
        "moonshot": "moonshotai moonshot-ai kimi",
        "vertex": "vertexai vertex-ai google-vertex",
        "xai": "grok x-ai x.ai",
        "zai": "glm z.ai z-ai zhipu zhipuai bigmodel",
    }.items()
    for alias in aliases.split()
}

PROTOCOLS: Mapping[str, tuple[Rule, ...]] = {
    "anthropic.messages": anthropic.RULES,
    "bedrock.converse": bedrock.RULES,
    "cohere.chat": cohere.RULES,
    "gemini.generate_content": gemini.RULES,
    "mistral.chat": mistral.RULES,
    "ollama.chat": ollama.RULES,
    "openai.chat": (
        *openai_chat.RULES,
        *efforts.RULES,
        *chat_hosts.RULES,
        *gateways.RULES,
    ),
    "openai.responses": (*openai_responses.RULES, *efforts.RULES),
    "thinking_events": (),
}
"""The rules of each protocol; an application's own events have none."""
PROTOCOL_OF_HOST: Mapping[str, str] = {
    "anthropic": "anthropic.messages",
    "aws": "bedrock.converse",
    "cohere": "cohere.chat",
    "google": "gemini.generate_content",
    "mistral": "mistral.chat",
    "ollama": "ollama.chat",
    "vercel-ai-sdk": "thinking_events",
    "vertex": "gemini.generate_content",
}


def refusal(
    body: Mapping[str, Any],
    *,
    provider: str,
    model: str | None = None,
    api: str | None = None,
    record: Record | None = None,
) -> str | None:
    """Return the error text that a strict provider would answer; None if it accepts the request.

    ``model`` is for protocols that send it in the address. Without ``api``, the form of the body
    decides the protocol. ``record`` holds the seals that the provider gave.
    """
    try:
        json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (TypeError, ValueError) as error:
        return f"We could not parse the JSON body of your request. ({type(error).__name__})"
    protocol, sent = received_request(body, provider=provider, model=model, api=api, record=record)
    return first_objection(rule.objection(sent) for rule in PROTOCOLS[protocol])


def received_request(
    body: Mapping[str, Any],
    *,
    provider: str,
    model: str | None = None,
    api: str | None = None,
    record: Record | None = None,
) -> tuple[str, Sent]:
    """Return the protocol of a body, and the request as its host receives it."""
    if api is not None and api not in PROTOCOLS:
        raise InvalidCall(
            f"{describe(api)} is not an api", hint=f"one of: {', '.join(sorted(PROTOCOLS))}"
        )
    name = provider.strip().lower()
    host = ALIASES.get(name, name)
    model_name = str(model or body.get("model") or body.get("modelId") or "").lower()
    return api or _protocol(host, model_name, body), Sent(body, host, model_name, record)


def _protocol(host: str, model: str, body: Mapping[str, Any]) -> str:
    """Return the protocol of a body, by its form and its host."""
    if "input" in body:
        return "openai.responses"
    if "contents" in body:
        return "gemini.generate_content"
    if "claude" in model and host in ("azure", "vertex"):
        return "anthropic.messages"
    usual = PROTOCOL_OF_HOST.get(host, "openai.chat")
    # Gemini's copy of Chat Completions.
    return "openai.chat" if usual == "gemini.generate_content" else usual
