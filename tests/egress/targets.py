"""Whom a request may be for, and how each of them answers: a row a host and model.

``TARGETS`` is the table that the tests of acceptance, of leaks and of counts share; a
further host joins them by a row. A reply is spoken in the host's own protocol by
``reasoning_store.testing`` and read at the door, so that what stands in a history is what a
real stream would have left there: ids, seals, fields and all.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import reasoning_store as rs
from reasoning_store.testing import response

Thoughts = Callable[[str, str], tuple[rs.ThinkingBlock, ...]]
"""Makes the thinking of one reply of a text and a name that nothing else has."""


def sealed(name: str) -> str:
    return base64.b64encode(f"seal {name}".encode()).decode()


def plain(source: str) -> Thoughts:
    def think(text: str, name: str) -> tuple[rs.ThinkingBlock, ...]:
        return (rs.ThinkingBlock(thought=text, source_field=source),)

    return think


def signed(text: str, name: str) -> tuple[rs.ThinkingBlock, ...]:
    return (rs.ThinkingBlock(thought=text, source_field="thinking", signature=sealed(name)),)


def redacted(text: str, name: str) -> tuple[rs.ThinkingBlock, ...]:
    """A signed thought, and one of which nothing can be read."""
    hidden = rs.ThinkingBlock(
        source_field="redacted_thinking",
        encrypted=sealed(name + " redacted"),
        redacted=True,
        is_hidden=True,
    )
    return (*signed(text, name), hidden)


def converse(text: str, name: str) -> tuple[rs.ThinkingBlock, ...]:
    source = "reasoningContent.reasoningText"
    return (rs.ThinkingBlock(thought=text, source_field=source, signature=sealed(name)),)


def summary(text: str, name: str) -> tuple[rs.ThinkingBlock, ...]:
    return (
        rs.ThinkingBlock(
            thought=text,
            source_field="reasoning.summary",
            encrypted="gAAAA" + sealed(name).replace("+", "-").replace("/", "_"),
            provider_metadata={"item_id": f"rs_{name}"},
        ),
    )


def details(text: str, name: str) -> tuple[rs.ThinkingBlock, ...]:
    source = "reasoning_details"
    return (
        rs.ThinkingBlock(thought=text, source_field=source, signature=sealed(name)),
        rs.ThinkingBlock(source_field=source, encrypted=sealed(name + " data"), is_hidden=True),
    )


def beside(source: str) -> Thoughts:
    """A readable string in one field, and what seals it in another."""

    def think(text: str, name: str) -> tuple[rs.ThinkingBlock, ...]:
        return (rs.ThinkingBlock(thought=text, source_field=source, encrypted=sealed(name)),)

    return think


def blocks_of_claude(text: str, name: str) -> tuple[rs.ThinkingBlock, ...]:
    source = "thinking_blocks"
    return (rs.ThinkingBlock(thought=text, source_field=source, signature=sealed(name)),)


def nothing(text: str, name: str) -> tuple[rs.ThinkingBlock, ...]:
    return ()


CallMetadata = Callable[[str, int], dict[str, Any] | None]
"""Makes what a host puts on the calls of one reply, by their name and number."""


def sealed_call(name: str, number: int) -> dict[str, Any] | None:
    """The seal that Gemini puts on the first of parallel calls."""
    return None if number else {"thoughtSignature": sealed(name)}


def sealed_compat_call(name: str, number: int) -> dict[str, Any] | None:
    """The same in its copy of Chat Completions."""
    return None if number else {"extra_content": {"google": {"thought_signature": sealed(name)}}}


def named_call(name: str, number: int) -> dict[str, Any] | None:
    """The id of the item, next to the id of the call."""
    return {"item_id": f"fc_{name}"}


def bare_call(name: str, number: int) -> dict[str, Any] | None:
    return None


@dataclass(frozen=True, slots=True)
class Target:
    """One host and model, how it thinks, and what is asked of it."""

    provider: str | None
    model: str
    api: str
    think: Thoughts
    asks: Mapping[str, Any] = field(default_factory=dict)
    """Settings without which this model does not think."""
    off_is_refused: bool = False
    """Whether it refuses an open loop whose reasoning the settings withhold."""
    call_metadata: CallMetadata = bare_call

    def __str__(self) -> str:
        return f"{self.provider} {self.model} {self.api}"

    @property
    def to(self) -> dict[str, Any]:
        return {"provider": self.provider, "model": self.model, "api": self.api}

    def reply(self, name: str, *, text: str = "", thought: str = "", calls: int = 0) -> rs.Message:
        """Return what this model answered, as it is stored; ``name`` is in all its ids."""
        blocks: list[rs.Block] = [*(self.think(thought, name) if thought else ())]
        if text:
            said = {"item_id": f"msg_{name}"} if self.api == "openai.responses" else None
            blocks.append(rs.TextBlock(text=text, provider_metadata=said))
        for number in range(calls):
            of_call = f"{name}_{number}"
            blocks.append(
                rs.ToolCallBlock(
                    id=f"call_{of_call}",
                    name="look_up",
                    parameters={"word": of_call},
                    provider_metadata=self.call_metadata(of_call, number),
                )
            )
        spoken = response(rs.assistant(*blocks), **self.to)
        return rs.normalize_response(spoken, **self.to)


MANUAL = {"reasoning.budgetTokens": 2_048}

TARGETS: tuple[Target, ...] = (
    Target(None, "some-model", "openai.chat", plain("reasoning_content")),
    Target("openai", "gpt-5.6", "openai.chat", nothing),
    Target("openai", "gpt-5.6", "openai.responses", summary, call_metadata=named_call),
    Target("azure", "gpt-5.6", "openai.responses", summary, call_metadata=named_call),
    Target("anthropic", "claude-opus-5", "anthropic.messages", redacted),
    Target("anthropic", "claude-opus-5-5", "anthropic.messages", signed),
    Target("anthropic", "claude-haiku-4-5", "anthropic.messages", signed, MANUAL),
    Target(
        "anthropic", "claude-opus-4-7", "anthropic.messages", signed, {"reasoning.enabled": True}
    ),
    Target("aws", "us.anthropic.claude-opus-5-v1:0", "bedrock.converse", converse),
    Target("aws", "us.anthropic.claude-sonnet-4-5-v1:0", "bedrock.converse", converse, MANUAL),
    Target("aws", "us.anthropic.claude-opus-5-v1:0", "anthropic.messages", redacted),
    Target("azure", "claude-opus-5-5", "anthropic.messages", signed),
    Target("vertex", "claude-haiku-4-5@20251001", "anthropic.messages", signed, MANUAL),
    Target(
        "aws", "us.deepseek.r1-v1:0", "bedrock.converse", plain("reasoningContent.reasoningText")
    ),
    Target(
        "google",
        "gemini-3-pro",
        "gemini.generate_content",
        plain("thought"),
        call_metadata=sealed_call,
    ),
    Target(
        "vertex",
        "gemini-3-pro",
        "gemini.generate_content",
        plain("thought"),
        call_metadata=sealed_call,
    ),
    Target("google", "gemini-2.5-flash", "gemini.generate_content", plain("thought")),
    Target("google", "gemini-3-pro", "openai.chat", nothing, call_metadata=sealed_compat_call),
    Target(
        "deepseek",
        "deepseek-reasoner",
        "openai.chat",
        plain("reasoning_content"),
        off_is_refused=True,
    ),
    Target(
        "deepseek", "deepseek-v4", "openai.chat", plain("reasoning_content"), off_is_refused=True
    ),
    Target(
        "deepseek", "deepseek-flash", "anthropic.messages", plain("thinking"), off_is_refused=True
    ),
    Target(
        "moonshot",
        "kimi-k2-thinking",
        "openai.chat",
        plain("reasoning_content"),
        off_is_refused=True,
    ),
    Target("moonshot", "kimi-k2.6", "openai.chat", plain("reasoning_content"), off_is_refused=True),
    Target(
        "moonshot", "kimi-k2.7-code", "openai.chat", plain("reasoning_content"), off_is_refused=True
    ),
    Target("moonshot", "kimi-k3", "openai.chat", plain("reasoning_content"), off_is_refused=True),
    Target("openrouter", "anthropic/claude-opus-5", "openai.chat", details),
    Target("openrouter", "anthropic/claude-sonnet-4.5", "openai.chat", details, MANUAL),
    Target("openrouter", "google/gemini-3-pro", "openai.chat", details, off_is_refused=True),
    Target("openrouter", "deepseek/deepseek-v4", "openai.chat", plain("reasoning")),
    Target("moonshot", "kimi-k2.5", "anthropic.messages", plain("thinking"), off_is_refused=True),
    Target("minimax", "MiniMax-M2", "openai.chat", plain("reasoning_details")),
    Target("zai", "glm-5.3", "openai.chat", plain("reasoning_content")),
    Target("alibaba", "qwen3-max", "openai.chat", plain("reasoning_content")),
    Target("alibaba", "qwen4-max", "openai.chat", beside("reasoning_content")),
    Target("litellm", "anthropic/claude-opus-5", "openai.chat", blocks_of_claude),
    Target("groq", "qwen3-32b", "openai.chat", plain("reasoning")),
    Target("cerebras", "gpt-oss-120b", "openai.chat", plain("reasoning")),
    Target("cerebras", "zai-glm-4.7", "openai.chat", plain("reasoning")),
    Target("xai", "grok-5", "openai.chat", plain("reasoning_content")),
    Target("vllm", "qwen3", "openai.chat", plain("reasoning")),
    Target("llama.cpp", "qwen3", "openai.chat", plain("reasoning_content")),
    Target("mistral", "magistral-medium", "mistral.chat", plain("content.thinking")),
    Target("cohere", "command-a-reasoning", "cohere.chat", plain("content.thinking")),
    Target("ollama", "qwen3", "ollama.chat", plain("thinking")),
    Target("vllm", "gpt-oss-120b", "openai.responses", plain("reasoning.content")),
    Target("vercel-ai-sdk", "any-model", "thinking_events", signed),
)
