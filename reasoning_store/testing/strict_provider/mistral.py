"""Mistral's chat: its own order of roles, its own ids, and no field that it does not know."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from reasoning_store.testing.strict_provider import openai_chat
from reasoning_store.testing.strict_provider.rules import (
    EFFORTS,
    Rule,
    Sent,
    first_unknown,
    matches_pattern,
    numbered_objects,
    value_at,
)

FIELDS: Mapping[str, tuple[str, ...]] = {
    "system": ("role", "content"),
    "user": ("role", "content"),
    "assistant": ("role", "content", "tool_calls", "prefix"),
    "tool": ("role", "content", "tool_call_id", "name"),
}
NEXT: Mapping[str, tuple[str, ...]] = {
    "system": ("system", "user", "assistant"),
    "user": ("user", "system", "assistant"),
    "assistant": ("user", "assistant", "tool"),
    "tool": ("user", "assistant", "tool"),
}
"""The roles that may follow each role; a user after a tool was accepted in 2026."""
TOP = frozenset(
    "model messages temperature top_p max_tokens stream stop random_seed metadata response_format "
    "tools tool_choice presence_penalty frequency_penalty min_tokens repetition_penalty top_k "
    "logprobs top_logprobs prompt_logprobs top_prompt_logprobs n prediction parallel_tool_calls "
    "reasoning_effort prompt_mode guardrails prompt_cache_key service_tier safe_prompt "
    "stream_options".split()
)
CHUNKS = ("text", "image_url", "thinking", "reference", "document_url", "file", "input_audio")


def known_fields(sent: Sent) -> str | None:
    if name := first_unknown(sent.body, TOP):
        return _extra(["body", name])
    for n, message in numbered_objects(sent.body["messages"]):
        role = message["role"]
        if role not in FIELDS:
            return f"Input tag '{role}' found using 'role' does not match any of the expected tags"
        if name := first_unknown(message, FIELDS[role]):
            return _extra(["body", "messages", n, role, name])
    return None


def _extra(where: list[Any]) -> str:
    return f"extra_forbidden: {where}: Extra inputs are not permitted"


def order(sent: Sent) -> str | None:
    messages = sent.body["messages"]
    for one, other in pairwise(messages):
        if other["role"] not in NEXT[one["role"]]:
            return f"Unexpected role '{other['role']}' after role '{one['role']}'"
    last = messages[-1]
    if last["role"] not in ("user", "tool") and not last.get("prefix"):
        return (
            "Expected last role User or Tool (or Assistant with prefix True) for serving but got "
            f"{last['role']}"
        )
    return None


def assistant_says_something(sent: Sent) -> str | None:
    for _, message in numbered_objects(sent.body["messages"]):
        if message["role"] == "assistant" and not (
            message.get("content") or message.get("tool_calls")
        ):
            return "Assistant message must have either content or tool_calls, but not none."
    return None


def ids(sent: Sent) -> str | None:
    for _, message in numbered_objects(sent.body["messages"]):
        given = [call["id"] for _, call in numbered_objects(message.get("tool_calls"))]
        if message["role"] == "tool":
            given.append(message["tool_call_id"])
        for id in given:
            if not matches_pattern(r"[a-zA-Z0-9]{9}", id):
                return f"Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9."
    return None


def chunks(sent: Sent) -> str | None:
    for n, message in numbered_objects(sent.body["messages"]):
        for c, chunk in numbered_objects(message.get("content")):
            where = ["body", "messages", n, message["role"], "content", c]
            if chunk.get("type") not in CHUNKS:
                return f"union_tag_invalid: {where}"
            if chunk["type"] == "thinking":
                if message["role"] not in ("assistant", "system"):
                    return f"union_tag_invalid: {where}"
                thought = chunk.get("thinking")
                if not isinstance(thought, list) or any(
                    value_at(part, "type") not in ("text", "reference", "tool_reference")
                    for part in thought
                ):
                    return f"list_type: {[*where, 'thinking']}: Input should be a valid list"
    return None


def thoughts_are_read(sent: Sent) -> str | None:
    for _, message in numbered_objects(sent.body["messages"]):
        for _, chunk in numbered_objects(message.get("content")):
            if chunk["type"] == "thinking":
                return "Reasoning input is not enabled for this model"
    return None


def parameters(sent: Sent) -> str | None:
    effort = sent.body.get("reasoning_effort")
    if effort not in (None, *EFFORTS):
        return f"literal_error: ['body', 'reasoning_effort']: {effort}"
    if sent.body.get("prompt_mode") not in (None, "reasoning"):
        return "literal_error: ['body', 'prompt_mode']"
    return None


_NEVER_THINK = (
    *("codestral*", "devstral*", "ministral*", "mistral-large*", "mistral-nemo*"),
    *("mistral-small-2[45]*", "open-mistral*", "open-mixtral*", "pixtral*"),
)
_TYPES = "mistralai SDK types: ChatCompletionRequest"

RULES = (
    Rule(check=openai_chat.structure, source=_TYPES),
    Rule(check=openai_chat.tools, source=_TYPES),
    Rule(check=known_fields, source=_TYPES),
    Rule(check=chunks, source=_TYPES),
    Rule(
        check=thoughts_are_read,
        models=_NEVER_THINK,
        source="github.com/suitenumerique/conversations/issues/402; "
        "docs.mistral.ai/capabilities/reasoning: the models that think",
    ),
    Rule(
        check=order,
        source="mistral-common protocol/instruct/validator.py; avante.nvim/pull/2695 (code 3230)",
    ),
    Rule(check=openai_chat.answered_calls, source="the 400 of api.mistral.ai: calls and responses"),
    Rule(check=assistant_says_something, source="the 400 of api.mistral.ai (code 3240)"),
    Rule(check=ids, source="the 400 of api.mistral.ai (code 3280)"),
    Rule(check=parameters, source="mistralai SDK types: ReasoningEffort"),
)
