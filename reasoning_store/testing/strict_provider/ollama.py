"""Ollama's own chat: lenient. It refuses what it cannot unmarshal, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping

from reasoning_store.testing.strict_provider.rules import (
    Rule,
    Sent,
    is_list,
    is_text,
    numbered_objects,
    value_at,
)

ROLES = ("system", "user", "assistant", "tool")
STRINGS = ("content", "thinking", "tool_name")
LEVELS = ("low", "medium", "high", "max")


def structure(sent: Sent) -> str | None:
    if not is_text(sent.body.get("model")):
        return "model is required"
    if not is_list(sent.body.get("messages")):
        return "json: cannot unmarshal into Go struct field ChatRequest.messages"
    for n, message in enumerate(sent.body["messages"]):
        if not isinstance(message, Mapping) or message.get("role") not in ROLES:
            return f"invalid role at messages[{n}]"
        for name in STRINGS:
            if not isinstance(message.get(name, ""), str):
                return (
                    f"json: cannot unmarshal into Go struct field ChatRequest.messages.{name} of "
                    "type string"
                )
        for _, call in numbered_objects(message.get("tool_calls")):
            if not is_text(value_at(call, "function", "name")):
                return f"invalid tool call at messages[{n}]"
            if not isinstance(value_at(call, "function", "arguments"), Mapping):
                return (
                    "json: cannot unmarshal string into Go struct field "
                    "ChatRequest.messages.tool_calls.function.arguments of type "
                    "api.ToolCallFunctionArguments"
                )
    return None


def think(sent: Sent) -> str | None:
    asked = sent.body.get("think")
    if asked is None or isinstance(asked, bool) or asked in LEVELS:
        return None
    return (
        f'invalid think value: "{asked}" (must be "high", "medium", "low", "max", true, or false)'
    )


RULES = (
    Rule(check=structure, source="ollama api/types.go: ChatRequest"),
    Rule(check=think, source="docs.ollama.com/capabilities/thinking"),
)
