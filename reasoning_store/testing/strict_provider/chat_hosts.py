"""The demands of single Chat Completions hosts on reasoning, each in its own words.

The scopes differ: DeepSeek and Kimi look at every message with a call, Kimi's later models at
every message, Gemini's copy of the protocol at the seal on a call. Groq and Cerebras refuse a
field that others demand.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from reasoning_store.testing.strict_provider.openai_chat import FIELDS, Message, replies
from reasoning_store.testing.strict_provider.rules import (
    EFFORTS,
    Check,
    Rule,
    Sent,
    first_unknown,
    host_names,
    numbered_objects,
    value_at,
)


def _lacks(message: Message, field: str) -> bool:
    """Whether the field is not there; an empty string is there."""
    return not isinstance(message.get(field), str)


def _fields(allowed: Mapping[str, Any], more: tuple[str, ...], text: str) -> Check:
    """Return a check that refuses fields of messages that a host does not know."""

    def check(sent: Sent) -> str | None:
        for n, message in numbered_objects(sent.body["messages"]):
            role = message["role"]
            names = (*allowed[role], *(more if role == "assistant" else ()))
            if name := first_unknown(message, names):
                return text.format(n=n, role=role, name=name)
        return None

    return check


def _thinking_type(allowed: tuple[str, ...], text: str) -> Check:
    def check(sent: Sent) -> str | None:
        chosen = value_at(sent.body, "thinking", "type")
        return text if chosen is not None and chosen not in allowed else None

    return check


# --- DeepSeek


def deepseek_thinks(sent: Sent) -> bool:
    """Whether a model of DeepSeek thinks; the one named for chat does not unasked."""
    chosen = value_at(sent.body, "thinking", "type")
    return chosen != "disabled" if chosen is not None else not sent.is_model("deepseek-chat*")


def deepseek_v4_missing(sent: Sent) -> str | None:
    for _, message in replies(sent) if deepseek_thinks(sent) else ():
        if message.get("tool_calls") and _lacks(message, "reasoning_content"):
            return "The `reasoning_content` in the thinking mode must be passed back to the API."
    return None


def deepseek_v3_missing(sent: Sent) -> str | None:
    for n, message in replies(sent) if deepseek_thinks(sent) else ():
        if message.get("tool_calls") and _lacks(message, "reasoning_content"):
            return (
                f"Missing `reasoning_content` field in the assistant message at message index {n}"
            )
    return None


def deepseek_r1_present(sent: Sent) -> str | None:
    for n, message in replies(sent):
        if "reasoning_content" in message:
            return (
                f"The `reasoning_content` field is not allowed in input messages. (messages[{n}])"
            )
    return None


def deepseek_choice(sent: Sent) -> str | None:
    choice = sent.body.get("tool_choice")
    if deepseek_thinks(sent) and choice not in (None, "auto", "none"):
        return "Thinking mode does not support this tool_choice"
    return None


def deepseek_says_something(sent: Sent) -> str | None:
    for _, message in replies(sent):
        if message.get("content") is None and not message.get("tool_calls"):
            return "Invalid assistant message: content or tool_calls must be set"
    return None


def deepseek_takes_text(sent: Sent) -> str | None:
    for n, message in numbered_objects(sent.body["messages"]):
        content = message.get("content")
        for _, part in numbered_objects(content if isinstance(content, list) else ()):
            if part.get("type") != "text":
                return (
                    f"Failed to deserialize the JSON body into the target type: messages[{n}]: "
                    f"unknown variant `{part.get('type')}`, expected `text`"
                )
    return None


def deepseek_effort(sent: Sent) -> str | None:
    effort = sent.body.get("reasoning_effort")
    known = (*EFFORTS[1:], "ultra")
    return f"Invalid reasoning_effort: {effort}" if effort not in (None, *known) else None


# --- Moonshot


def _kimi_thinks(sent: Sent) -> bool:
    return bool(value_at(sent.body, "thinking", "type") != "disabled")


def kimi_missing(sent: Sent) -> str | None:
    """The field is demanded in every turn, and may be empty."""
    for n, message in replies(sent) if _kimi_thinks(sent) else ():
        if message.get("tool_calls") and _lacks(message, "reasoning_content"):
            return (
                "thinking is enabled but reasoning_content is missing in assistant tool call "
                f"message at index {n}"
            )
    return None


def kimi_missing_anywhere(sent: Sent) -> str | None:
    for n, message in replies(sent):
        if _lacks(message, "reasoning_content"):
            kind = "tool call message" if message.get("tool_calls") else "message"
            return (
                f"thinking is enabled but reasoning_content is missing in assistant {kind} at "
                f"index {n}"
            )
    return None


def kimi_choice(sent: Sent) -> str | None:
    choice = sent.body.get("tool_choice")
    if not _kimi_thinks(sent) or choice in (None, "auto", "none"):
        return None
    said = "'required'" if choice == "required" else "specified"
    return f"tool_choice {said} is incompatible with thinking enabled"


def kimi_empty(sent: Sent) -> str | None:
    for n, message in numbered_objects(sent.body["messages"]):
        if not message.get("content") and not message.get("tool_calls"):
            if message["role"] == "tool":
                continue
            return (
                f"Invalid request: the message at position {n} with role '{message['role']}' "
                "must not be empty"
            )
    return None


def kimi_effort(sent: Sent) -> str | None:
    effort = sent.body.get("reasoning_effort")
    if effort is None:
        return None
    if not sent.is_model("kimi-k3*"):
        return "Invalid request: reasoning_effort is not supported for this model"
    return "Invalid request: reasoning_effort must not be none" if effort == "none" else None


def kimi_keep(sent: Sent) -> str | None:
    keep = value_at(sent.body, "thinking", "keep")
    if keep not in (None, "all"):
        return f"invalid thinking: unknown keep {keep!r}"
    if keep and sent.is_model("kimi-k2.5*", "kimi-k2-thinking*"):
        return "invalid thinking: keep is not supported for this model"
    return None


# --- others


def arguments_are_json(sent: Sent) -> str | None:
    for n, message in replies(sent):
        for _, call in numbered_objects(message.get("tool_calls")):
            try:
                json.loads(call["function"]["arguments"])
            except ValueError:
                return (
                    '<400> InternalError.Algo.InvalidParameter: The "function.arguments" parameter '
                    f"of the code model must be in JSON format. (messages[{n}])"
                )
    return None


def groq_format(sent: Sent) -> str | None:
    body = sent.body
    if body.get("reasoning_format") is not None and body.get("include_reasoning") is not None:
        return "cannot specify both `include_reasoning` and `reasoning_format`"
    if body.get("reasoning_format") == "raw" and body.get("tools"):
        return "reasoning_format `raw` is not supported with tool use"
    return None


_DEEPSEEK = "api-docs.deepseek.com/guides/thinking_mode"
_KIMI = "platform.kimi.ai/docs/guide/use-kimi-k2-thinking-model"
_V3 = ("deepseek-chat*", "deepseek-reasoner*", "*v3*")
_R1 = ("*-r1", "*-r1-*")
_KIMI_LATER = ("kimi-k2.7*", "kimi-k3*")
_KIMI_PLAIN = ("moonshot-v1*", "kimi-latest*", "kimi-k2-0*", "kimi-k2-turbo*", "kimi-k2-instruct*")


def _but_for(check: Check, *models: str) -> Check:
    return lambda sent: None if sent.is_model(*models) else check(sent)


RULES = (
    Rule(
        check=deepseek_r1_present,
        providers=host_names("deepseek"),
        models=_R1,
        source="api-docs.deepseek.com/guides/reasoning_model",
    ),
    Rule(
        check=_but_for(deepseek_v3_missing, *_R1),
        providers=host_names("deepseek"),
        models=_V3,
        source=_DEEPSEEK,
    ),
    Rule(
        check=_but_for(deepseek_v4_missing, *_V3, *_R1),
        providers=host_names("deepseek"),
        source=_DEEPSEEK,
    ),
    Rule(
        check=deepseek_choice,
        providers=host_names("deepseek"),
        source="github.com/deepseek-ai/DeepSeek-V3/issues/1376",
    ),
    Rule(
        check=_thinking_type(("enabled", "disabled"), "Invalid thinking.type"),
        providers=host_names("deepseek"),
        source=_DEEPSEEK,
    ),
    Rule(
        check=deepseek_takes_text,
        providers=host_names("deepseek"),
        models=(*_V3, *_R1, "deepseek-v4", "deepseek-v4-pro*"),
        source="github.com/rikkahub/rikkahub/issues/1433",
    ),
    Rule(check=deepseek_effort, providers=host_names("deepseek"), source=_DEEPSEEK),
    Rule(
        check=deepseek_says_something,
        providers=host_names("deepseek"),
        source="the 400 of api.deepseek.com for a message with neither",
    ),
    Rule(
        check=kimi_missing_anywhere,
        providers=host_names("moonshot"),
        models=_KIMI_LATER,
        source=_KIMI,
    ),
    Rule(
        check=_but_for(kimi_missing, *_KIMI_PLAIN),
        providers=host_names("moonshot"),
        source=_KIMI,
    ),
    Rule(
        check=_thinking_type(
            ("enabled",), "invalid thinking: only type=enabled is allowed for this model"
        ),
        providers=host_names("moonshot"),
        models=("kimi-k2-thinking*", *_KIMI_LATER),
        source="github.com/MoonshotAI/Kimi-K2/issues/141",
    ),
    Rule(
        check=_thinking_type(("enabled", "disabled"), "invalid thinking: unknown type"),
        providers=host_names("moonshot"),
        source=_KIMI,
    ),
    Rule(check=kimi_keep, providers=host_names("moonshot"), source=_KIMI),
    Rule(check=kimi_effort, providers=host_names("moonshot"), source=_KIMI),
    Rule(
        check=_but_for(kimi_choice, *_KIMI_PLAIN),
        providers=host_names("moonshot"),
        source="github.com/AstrBotDevs/AstrBot/issues/7805",
    ),
    Rule(
        check=kimi_empty,
        providers=host_names("moonshot"),
        source="the 400 of api.moonshot.ai for an empty message",
    ),
    Rule(
        check=_thinking_type(
            ("adaptive",), "invalid params, this model requires adaptive thinking (2013)"
        ),
        providers=host_names("minimax"),
        models=("minimax-m3.1*",),
        source="platform.minimax.io/docs: reasoning_split",
    ),
    Rule(
        check=_thinking_type(("adaptive", "disabled"), "invalid params, thinking.type (2013)"),
        providers=host_names("minimax"),
        source="platform.minimax.io/docs/api-reference/text-openai-api",
    ),
    Rule(
        check=_thinking_type(("enabled",), "thinking cannot be disabled for this model"),
        providers=host_names("zai"),
        models=("glm-5.3*", "glm-4.5v*"),
        source="docs.z.ai/guides/capabilities/thinking-mode",
    ),
    Rule(
        check=_thinking_type(("enabled", "disabled"), "invalid parameter: thinking.type"),
        providers=host_names("zai"),
        source="docs.z.ai/guides/capabilities/thinking-mode",
    ),
    Rule(
        check=arguments_are_json,
        providers=host_names("alibaba vllm"),
        source="the 400 of dashscope.aliyuncs.com; vllm/entrypoints/chat_utils.py",
    ),
    Rule(
        check=_fields(
            FIELDS, ("reasoning",), "'messages.{n}' : property '{name}' is unsupported for {role}"
        ),
        providers=host_names("groq"),
        source="groq SDK types: ChatCompletionAssistantMessageParam",
    ),
    Rule(check=groq_format, providers=host_names("groq"), source="console.groq.com/docs/reasoning"),
    Rule(
        check=_fields(
            FIELDS,
            ("reasoning",),
            "body.messages.{n}.{role}.{name}: property '{name}' is unsupported",
        ),
        providers=host_names("cerebras"),
        source="inference-docs.cerebras.ai/capabilities/reasoning; cerebras SDK types",
    ),
)
