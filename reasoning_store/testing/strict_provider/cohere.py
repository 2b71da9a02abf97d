"""Cohere's chat, version 2: content in items, and responses after their calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reasoning_store.testing.strict_provider.rules import (
    Rule,
    Sent,
    first_unknown,
    is_list,
    is_text,
    numbered_objects,
    value_at,
)

FIELDS: Mapping[str, tuple[str, ...]] = {
    "system": ("role", "content"),
    "user": ("role", "content"),
    "assistant": ("role", "content", "tool_calls", "tool_plan", "citations"),
    "tool": ("role", "content", "tool_call_id"),
}
ITEMS: Mapping[str, tuple[str, ...]] = {
    "system": ("text",),
    "user": ("text", "image_url"),
    "assistant": ("text", "thinking"),
    "tool": ("text", "document"),
}
TOP = frozenset(
    "model messages stream tools strict_tools documents citation_options response_format "
    "safety_mode max_tokens stop_sequences temperature seed frequency_penalty presence_penalty k p "
    "logprobs tool_choice thinking priority raw_prompting return_prompt".split()
)


def structure(sent: Sent) -> str | None:
    body = sent.body
    if name := first_unknown(body, TOP):
        return f"invalid request: unknown field {name}"
    if not is_list(body.get("messages")):
        return "invalid request: message must be at least 1 token long or messages must be given"
    for n, message in enumerate(body["messages"]):
        role = str(value_at(message, "role"))
        if role not in FIELDS:
            return f"invalid request: invalid role at messages[{n}]"
        if name := first_unknown(message, FIELDS[role]):
            return f"invalid request: unknown field {name} at messages[{n}]"
        if objection := _content(n, message) or _calls(n, message):
            return objection
        if role == "tool" and not is_text(message.get("tool_call_id")):
            return f"invalid request: messages[{n}].tool_call_id is required"
    return None


def _content(n: int, message: Mapping[str, Any]) -> str | None:
    role, content = message["role"], message.get("content")
    if content is None:
        if role == "assistant" and (message.get("tool_calls") or message.get("tool_plan")):
            return None
        return f"invalid request: all elements in messages must have content (messages[{n}])"
    if isinstance(content, str):
        return None
    for c, item in enumerate(content if isinstance(content, list) else [content]):
        kind = value_at(item, "type")
        if kind not in ITEMS[role]:
            return f"invalid request: invalid content type at messages[{n}].content[{c}]"
        if kind in ("text", "thinking") and not isinstance(item.get(kind), str):
            return f"invalid request: messages[{n}].content[{c}].{kind} is required"
    return None


def _calls(n: int, message: Mapping[str, Any]) -> str | None:
    for c, call in numbered_objects(message.get("tool_calls")):
        function = call.get("function")
        if (
            not is_text(call.get("id"))
            or call.get("type") != "function"
            or not is_text(value_at(function, "name"))
            or not isinstance(value_at(function, "arguments"), str)
        ):
            return f"invalid request: invalid tool call at messages[{n}].tool_calls[{c}]"
    return None


def calls_are_answered(sent: Sent) -> str | None:
    due: list[str] = []
    open_to: set[str] = set()
    for _, message in numbered_objects(sent.body["messages"]):
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_to:
                return (
                    f"invalid request: tool call id {message['tool_call_id']} not found in "
                    "previous tool calls"
                )
            due = [call for call in due if call != message["tool_call_id"]]
            continue
        if due:
            break
        due = [call["id"] for _, call in numbered_objects(message.get("tool_calls"))]
        open_to = set(due)
    if due:
        return f"invalid request: missing tool results for tool calls with ids {due}"
    return None


def thinking(sent: Sent) -> str | None:
    asked = sent.body.get("thinking")
    if asked is None:
        return None
    if value_at(asked, "type") not in ("enabled", "disabled"):
        return "invalid request: thinking.type must be enabled or disabled"
    budget = asked.get("token_budget")
    if budget is not None and (type(budget) is not int or budget < 1):
        return "invalid request: thinking.token_budget must be a positive integer"
    return None


RULES = (
    Rule(check=structure, source="cohere SDK types: ChatMessageV2"),
    Rule(
        check=calls_are_answered,
        source="github.com/ethz-spylab/agentdojo/pull/200: each call is answered",
    ),
    Rule(check=thinking, source="cohere SDK types: Thinking"),
)
