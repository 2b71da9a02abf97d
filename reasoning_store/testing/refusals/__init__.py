"""A strict provider: what it would answer a request that it refuses.

    from reasoning_store.testing import refusal

    assert refusal(request.body, provider="deepseek", model="deepseek-chat") is None

Written from the providers' rules and from the refusals that people have met, each rule with
its source; it knows nothing of ``contracts.toml`` and nothing of egress, which it is there
to judge. It is strict: where services differ in time or place, it checks what any of them
does. What cannot be seen in a request alone, whether a seal is real, needs a ``Record``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from reasoning_store.testing.refusals import (
    anthropic,
    bedrock,
    chat,
    chat_hosts,
    cohere,
    gateways,
    gemini,
    mistral,
    ollama,
    responses,
)
from reasoning_store.testing.refusals.record import Record, Sealed
from reasoning_store.testing.refusals.rules import Rule, Sent, first

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

# Nobody refuses an application's own events.
PROTOCOLS: Mapping[str, tuple[Rule, ...]] = {
    "anthropic.messages": anthropic.RULES,
    "bedrock.converse": bedrock.RULES,
    "cohere.chat": cohere.RULES,
    "gemini.generate_content": gemini.RULES,
    "mistral.chat": mistral.RULES,
    "ollama.chat": ollama.RULES,
    "openai.chat": (*chat.RULES, *chat_hosts.RULES, *gateways.RULES),
    "openai.responses": responses.RULES,
    "thinking_events": (),
}
USUAL: Mapping[str, str] = {
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
    """Return the error text that a strict provider would answer, or None where it accepts.

    ``model`` is for protocols that have it in the address; else the body says it. ``api``
    is told by the body's own form where it is not given. ``record`` remembers what was
    sealed.
    """
    try:
        json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (TypeError, ValueError) as error:
        return f"We could not parse the JSON body of your request. ({type(error).__name__})"
    protocol, sent = received(body, provider=provider, model=model, api=api, record=record)
    return first(rule.objection(sent) for rule in PROTOCOLS[protocol])


def received(
    body: Mapping[str, Any],
    *,
    provider: str,
    model: str | None = None,
    api: str | None = None,
    record: Record | None = None,
) -> tuple[str, Sent]:
    """Return the protocol that a body is in, and the request as its host receives it."""
    name = provider.strip().lower()
    host = ALIASES.get(name, name)
    said = str(model or body.get("model") or body.get("modelId") or "").lower()
    return api or _protocol(host, said, body), Sent(body, host, said, record)


def _protocol(host: str, model: str, body: Mapping[str, Any]) -> str:
    """Return which protocol a body is in, by its form and its host's habit."""
    if "input" in body:
        return "openai.responses"
    if "contents" in body:
        return "gemini.generate_content"
    if "claude" in model and host in ("azure", "vertex"):
        return "anthropic.messages"
    usual = USUAL.get(host, "openai.chat")
    # Gemini's copy of Chat Completions.
    return "openai.chat" if usual == "gemini.generate_content" else usual
