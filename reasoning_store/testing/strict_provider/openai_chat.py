"""Chat Completions: the structure that every host checks, and what OpenAI adds to it.

Roles, contents, calls and their answers, in the words of api.openai.com. Hosts that copied
the protocol check the same structure; servers that hand messages to a template do not ask
whether calls were answered. The demands of single hosts on reasoning are in ``chat_hosts``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from reasoning_store.testing.strict_provider.rules import (
    Rule,
    Sent,
    first_unknown,
    host_names,
    is_list,
    is_text,
    matches_pattern,
    numbered_objects,
)

Message: TypeAlias = Mapping[str, Any]

ROLES = ("system", "assistant", "user", "function", "tool", "developer")
PARTS = frozenset(
    "text image_url input_audio file refusal thinking video_url document_url reference".split()
)
"""Rules of all hosts; some hosts have further rules."""
NAME = r"[a-zA-Z0-9_-]{1,64}"

FIELDS: Mapping[str, Sequence[str]] = {
    "developer": ("role", "content", "name"),
    "system": ("role", "content", "name"),
    "user": ("role", "content", "name"),
    "assistant": ("role", "content", "name", "tool_calls", "function_call", "refusal", "audio"),
    "tool": ("role", "content", "tool_call_id"),
    "function": ("role", "content", "name"),
}
"""The keys of a message at OpenAI itself, which has no field for reasoning."""

PARAMETERS = frozenset(
    "audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens "
    "max_tokens messages metadata modalities model moderation n parallel_tool_calls prediction "
    "presence_penalty prompt_cache_key prompt_cache_options prompt_cache_retention "
    "reasoning_effort response_format safety_identifier seed service_tier stop store stream "
    "stream_options temperature tool_choice tools top_logprobs top_p user verbosity "
    "web_search_options".split()
)


def structure(sent: Sent) -> str | None:
    messages = sent.body.get("messages")
    if not is_list(messages):
        return "Invalid 'messages': expected a non-empty array."
    assert isinstance(messages, list)
    for n, message in enumerate(messages):
        if not isinstance(message, Mapping):
            return f"Invalid type for 'messages[{n}]': expected an object."
        role = message.get("role")
        if role not in ROLES:
            return f"Invalid value: '{role}'. Supported values are: {', '.join(ROLES)}."
        if objection := _content(n, message) or _calls(n, message):
            return objection
        if role == "tool" and not is_text(message.get("tool_call_id")):
            return f"Missing required parameter: 'messages[{n}].tool_call_id'."
    return None


def _content(n: int, message: Mapping[str, Any]) -> str | None:
    content = message.get("content")
    if content is None:
        if message["role"] == "assistant" and any(
            message.get(name) for name in ("tool_calls", "function_call", "refusal", "audio")
        ):
            return None
        return f"Invalid value for 'content': expected a string, got null. (messages[{n}])"
    if isinstance(content, str):
        return None
    if not is_list(content):
        return f"Invalid type for 'messages[{n}].content': expected a string or an array of parts."
    for p, part in enumerate(content):
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind not in PARTS:
            return f"Invalid value: '{kind}' for 'messages[{n}].content[{p}].type'."
        if kind == "text" and not isinstance(part.get("text"), str):
            return f"Missing required parameter: 'messages[{n}].content[{p}].text'."
    return None


def _calls(n: int, message: Mapping[str, Any]) -> str | None:
    if "tool_calls" not in message:
        return None
    where = f"messages[{n}].tool_calls"
    if message["role"] != "assistant":
        return f"Unknown parameter: '{where}'."
    if not is_list(message["tool_calls"]):
        return f"Invalid '{where}': empty array. Expected an array with minimum length 1."
    for c, call in enumerate(message["tool_calls"]):
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping) or not is_text(call.get("id")):
            return f"Missing required parameter: '{where}[{c}].id'."
        if call.get("type") != "function":
            return f"Missing required parameter: '{where}[{c}].type'."
        if not matches_pattern(NAME, function.get("name")):
            return (
                f"Invalid '{where}[{c}].function.name': string does not match pattern. "
                "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
            )
        if not isinstance(function.get("arguments"), str):
            return f"Invalid type for '{where}[{c}].function.arguments': expected a string."
    return None


def tools(sent: Sent) -> str | None:
    if "tools" in sent.body and not is_list(sent.body["tools"]):
        return "Invalid 'tools': empty array. Expected an array with minimum length 1."
    for n, tool in numbered_objects(sent.body.get("tools")):
        if _is_own(sent, tool):
            continue
        function = tool.get("function")
        if tool.get("type") != "function" or not isinstance(function, Mapping):
            return f"Missing required parameter: 'tools[{n}].function'."
        if not matches_pattern(NAME, function.get("name")):
            return f"Invalid 'tools[{n}].function.name': string does not match pattern."
    return None


def _is_own(sent: Sent, tool: Mapping[str, Any]) -> bool:
    """Whether a tool is of another type than a function, which hosts other than OpenAI have."""
    kind = tool.get("type")
    if sent.provider in _OPENAI:
        return kind == "custom" and isinstance(tool.get("custom"), Mapping)
    return is_text(kind) and kind != "function"


def answered_calls(sent: Sent) -> str | None:
    """Each call gets its response before the next message, and no other call does."""
    due: list[str] = []
    open_to: set[str] = set()
    for n, message in numbered_objects(sent.body["messages"]):
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_to:
                return (
                    f"Invalid parameter: messages with role 'tool' must be a response to a "
                    f"preceeding message with 'tool_calls'. (messages[{n}])"
                )
            due = [call for call in due if call != message["tool_call_id"]]
            continue
        if due:
            break
        due = [call["id"] for _, call in numbered_objects(message.get("tool_calls"))]
        open_to = set(due)
    if due:
        return (
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            "to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
            + ", ".join(due)
        )
    return None


def known_fields(sent: Sent) -> str | None:
    for n, message in numbered_objects(sent.body["messages"]):
        if name := first_unknown(message, FIELDS[message["role"]]):
            return f"Unknown parameter: 'messages[{n}].{name}'."
    return None


def known_parameters(sent: Sent) -> str | None:
    name = first_unknown(sent.body, PARAMETERS)
    return f"Unknown parameter: '{name}'." if name else None


def short_ids(sent: Sent) -> str | None:
    for n, message in numbered_objects(sent.body["messages"]):
        for c, call in numbered_objects(message.get("tool_calls")):
            if len(call["id"]) > 40:
                return (
                    f"Invalid 'messages[{n}].tool_calls[{c}].id': string too long. Expected a "
                    f"string with maximum length 40, but got a string with length "
                    f"{len(call['id'])} instead."
                )
    return None


def tools_while_reasoning(sent: Sent) -> str | None:
    usual = "medium" if sent.is_model("gpt-5.6*", "gpt-6*") else "none"
    if not sent.body.get("tools") or sent.body.get("reasoning_effort", usual) == "none":
        return None
    return (
        f"Function tools with reasoning_effort are not supported for {sent.model} in "
        "/v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort "
        "to 'none'."
    )


def replies(sent: Sent, *, since: int = 0) -> Iterator[tuple[int, Message]]:
    """Yield the numbered messages of the model."""
    for n, message in numbered_objects(sent.body["messages"]):
        if n >= since and message["role"] == "assistant":
            yield n, message


def open_turn(messages: Sequence[Any]) -> int:
    """Return the index of the last real user message; 0 without one."""
    starts = [n for n, message in numbered_objects(messages) if message["role"] == "user"]
    return starts[-1] if starts else 0


_OPENAI = host_names("openai azure")
_ANSWERED = host_names(
    "openai azure deepseek moonshot alibaba zai minimax openrouter groq cerebras xai google vertex "
    "mistral github-copilot vercel litellm"
)
"""Not the servers that hand messages to a template: they render whatever there is."""

RULES = (
    Rule(check=structure, source="openai SDK types: ChatCompletionMessageParam"),
    Rule(check=tools, source="openai SDK types: ChatCompletionToolParam"),
    Rule(
        check=answered_calls,
        providers=_ANSWERED,
        source="platform.openai.com/docs/guides/function-calling: the 400 it answers",
    ),
    Rule(
        check=known_fields,
        providers=_OPENAI,
        source="api.openai.com must receive no field of other hosts",
    ),
    Rule(
        check=known_parameters,
        providers=_OPENAI,
        source="openai SDK types: CompletionCreateParams",
    ),
    Rule(
        check=short_ids,
        providers=_OPENAI,
        source="the 400 of api.openai.com for ids longer than 40",
    ),
    Rule(
        check=tools_while_reasoning,
        providers=_OPENAI,
        models=("gpt-5.4*", "gpt-5.5*", "gpt-5.6*", "gpt-6*"),
        source="developers.openai.com/api/docs/guides/responses-vs-chat-completions; "
        ".../guides/deployment-checklist; github.com/onyx-dot-app/onyx/issues/15008: gpt-6-sol",
    ),
)
