"""Gateways to other makers' models: OpenRouter, and Gemini's copy of Chat Completions.

Reasoning that they pass on must satisfy the model's own provider, in the form that they gave it:
details complete and in order, a seal on the call that it came with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from reasoning_store.testing.strict_provider import claude
from reasoning_store.testing.strict_provider.openai_chat import Message, open_turn, replies
from reasoning_store.testing.strict_provider.rules import (
    BASE64,
    EFFORTS,
    Rule,
    Sent,
    host_names,
    is_text,
    matches_pattern,
    numbered_objects,
    value_at,
)


def _details(sent: Sent) -> Iterator[tuple[int, list[Any]]]:
    for n, message in replies(sent):
        details = message.get("reasoning_details")
        if details is not None:
            yield n, details if isinstance(details, list) else [None]


def _has_text(item: Message) -> bool:
    return isinstance(item.get("text"), str) or is_text(item.get("signature"))


_NEEDS: Mapping[str, Callable[[Message], bool]] = {
    "reasoning.text": _has_text,
    "reasoning.summary": lambda item: isinstance(item.get("summary"), str),
    "reasoning.encrypted": lambda item: is_text(item.get("data")),
}
"""The keys that an entry of a known type must have; the union is open."""


def details_have_form(sent: Sent) -> str | None:
    for n, details in _details(sent):
        for d, item in enumerate(details):
            kind = str(value_at(item, "type"))
            needs = _NEEDS.get(kind)
            if not kind.startswith("reasoning.") or (needs is not None and not needs(item)):
                return f"Invalid input: messages.{n}.reasoning_details.{d}"
    return None


def details_are_merged(sent: Sent) -> str | None:
    """A stream's pieces of one entry come back as one entry."""
    for n, details in _details(sent):
        for d, (one, other) in enumerate(pairwise(details), 1):
            same = (one.get("type"), one.get("index")) == (other.get("type"), other.get("index"))
            if same and one.get("index") is not None:
                return (
                    f"Invalid input: messages.{n}.reasoning_details.{d} continues the entry before"
                )
    return None


def openrouter_parameters(sent: Sent) -> str | None:
    asked = sent.body.get("reasoning")
    if asked is None:
        return None
    if not isinstance(asked, Mapping):
        return "Invalid input: reasoning: expected object"
    if asked.get("effort") is not None and asked.get("max_tokens") is not None:
        return 'Only one of "reasoning.effort" and "reasoning.max_tokens" can be specified'
    effort = asked.get("effort")
    return f"Invalid input: reasoning.effort: {effort}" if effort not in (None, *EFFORTS) else None


def openrouter_to_claude(sent: Sent) -> str | None:
    """Manual thinking: the thought that led to the first call of an open loop comes before it.

    Replies that follow each other become one, as the model's own protocol has it.
    """
    asked = sent.body.get("reasoning")
    if not isinstance(asked, Mapping) or asked.get("enabled") is False:
        return None
    if asked.get("effort") == "none" or not claude.known(sent.model).is_manual:
        return None
    messages = sent.body["messages"]
    begun: Message | None = None
    for n, message in numbered_objects(messages[open_turn(messages) :]):
        if message["role"] == "assistant":
            begun = begun or message
            if message.get("tool_calls"):
                at_first = begun.get("reasoning_details")
                return None if at_first else claude.expected(open_turn(messages) + n, "tool_use")
        elif message["role"] != "system":
            begun = None
    return None


def openrouter_seals(sent: Sent) -> str | None:
    for n, details in _details(sent):
        for d, item in enumerate(details):
            if item["type"] == "reasoning.text" and item.get("format") == "anthropic-claude-v1":
                signature = item.get("signature")
                if not is_text(signature) or not matches_pattern(BASE64, signature):
                    return f"messages.{n}.content.{d}: Invalid `signature` in `thinking` block"
    return None


def openrouter_to_gemini(sent: Sent) -> str | None:
    for n, message in replies(sent, since=open_turn(sent.body["messages"])):
        if message.get("tool_calls"):
            details = [item for _, item in numbered_objects(message.get("reasoning_details"))]
            if not any(item["type"] == "reasoning.encrypted" for item in details):
                return _unsealed(n)
    return None


def openrouter_to_deepseek(sent: Sent) -> str | None:
    """Its own host wants the thought of every call in an open loop, while it thinks."""
    asked = sent.body.get("reasoning")
    if isinstance(asked, Mapping) and (
        asked.get("enabled") is False or asked.get("effort") == "none"
    ):
        return None
    for _, message in replies(sent, since=open_turn(sent.body["messages"])):
        if message.get("tool_calls") and not any(message.get(name) for name in _THOUGHTS):
            return "The `reasoning_content` in the thinking mode must be passed back to the API."
    return None


_THOUGHTS = ("reasoning", "reasoning_details", "reasoning_content")


def _unsealed(n: int) -> str:
    return (
        "Function call is missing a thought_signature in functionCall parts. This is required for "
        f"tools to work correctly. (message {n})"
    )


def gemini_compat(sent: Sent) -> str | None:
    for n, message in replies(sent, since=open_turn(sent.body["messages"])):
        for _, call in list(numbered_objects(message.get("tool_calls")))[:1]:
            if not is_text(value_at(call, "extra_content", "google", "thought_signature")):
                return _unsealed(n)
    return None


RULES = (
    Rule(
        check=details_have_form, providers=host_names("openrouter"), source="openrouter SDK types"
    ),
    Rule(
        check=details_are_merged,
        providers=host_names("openrouter"),
        source="github.com/agno-agi/agno/pull/5802",
    ),
    Rule(
        check=openrouter_parameters,
        providers=host_names("openrouter"),
        source="openrouter SDK types",
    ),
    Rule(
        check=openrouter_seals,
        providers=host_names("openrouter"),
        models=("anthropic/*",),
        source="github.com/can1357/oh-my-pi/issues/3399",
    ),
    Rule(
        check=openrouter_to_claude,
        providers=host_names("openrouter"),
        models=("anthropic/*",),
        source="openrouter.ai/docs/use-cases/reasoning-tokens",
    ),
    Rule(
        check=openrouter_to_deepseek,
        providers=host_names("openrouter"),
        models=("deepseek/deepseek-v3.2*", "deepseek/deepseek-v4*"),
        source="github.com/danny-avila/LibreChat/issues/13366",
    ),
    Rule(
        check=openrouter_to_gemini,
        providers=host_names("openrouter"),
        models=("gemini-3*",),
        source="openrouter.ai/docs/use-cases/reasoning-tokens",
    ),
    Rule(
        check=gemini_compat,
        providers=host_names("google vertex"),
        models=("gemini-3*",),
        source="ai.google.dev/gemini-api/docs/thought-signatures",
    ),
)
