"""The marks of each format of JSON: names that only one format has.

A mark is searched where JSON has a name; the text of a message cannot match, because its
quotation marks are escaped. Marks are the only thing that is known of a file here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


def _field_pattern(*names: str) -> str:
    return rf'(?<!\\)"(?:{"|".join(names)})"\s*:'


def _type_pattern(*kinds: str) -> str:
    return rf'(?<!\\)"type"\s*:\s*"(?:{"|".join(kinds)})"'


def _value_pattern(name: str, begin: str) -> str:
    return rf'(?<!\\)"{name}"\s*:\s*{re.escape(begin)}'


@dataclass(frozen=True, slots=True)
class Marked:
    """A format and marks that it has together; without a reader, only its name is known."""

    name: str
    marks: tuple[str, ...]
    format: str | None = None


_TABLE: Final[tuple[Marked, ...]] = (
    Marked(
        "a ChatGPT export",
        (_value_pattern("mapping", "{"), _field_pattern("create_time", "current_node")),
        "chatgpt",
    ),
    Marked("a Claude.ai export", (_value_pattern("chat_messages", "["),), "claude-ai"),
    Marked(
        "a Claude Code session",
        (
            _field_pattern("parentUuid", "leafUuid"),
            _field_pattern("isSidechain", "sessionId", "leafUuid"),
        ),
        "claude-code",
    ),
    Marked(
        "a Codex session",
        (
            _type_pattern("session_meta", "response_item", "turn_context", "event_msg"),
            _value_pattern("payload", "{"),
        ),
        "codex",
    ),
    Marked("a Codex session", (_value_pattern("record_type", '"state"'),), "codex"),
    Marked(
        "an Open WebUI export",
        (_value_pattern("chat", "{"), _field_pattern("user_id", "history", "currentId")),
        "open-webui",
    ),
    Marked(
        "a LibreChat export",
        (
            _field_pattern("conversationId"),
            _field_pattern("messageId", "parentMessageId", "exportAt"),
        ),
        "librechat",
    ),
    Marked(
        "a LangChain history",
        (
            _type_pattern("human", "ai", "system", "tool", "AIMessageChunk")
            + r'\s*,\s*"data"\s*:\s*\{|'
            + r'(?<!\\)"lc"\s*:\s*\d|'
            + _field_pattern("additional_kwargs")
            + r"(?s:.*)"
            + _type_pattern("human", "ai"),
        ),
        "langchain",
    ),
    Marked("a Pydantic AI history", (_field_pattern("part_kind"),), "pydantic-ai"),
    Marked("a LlamaIndex history", (_field_pattern("block_type"),), "llama-index"),
    Marked(
        "a ShareGPT history",
        (_value_pattern("conversations", "["), _field_pattern("from")),
        "sharegpt",
    ),
    Marked("a Gemini history", (_value_pattern("chunkedPrompt", "{"),)),
    Marked(
        "a Gemini history",
        (
            _field_pattern("parts"),
            r'(?<!\\)"role"\s*:\s*"model"|' + _value_pattern("contents", "["),
        ),
    ),
    Marked(
        "a history of AI SDK UIMessages",
        (_field_pattern("role"), _value_pattern("parts", "[") + r'\s*\{\s*"type"'),
        "ai-sdk",
    ),
    Marked(
        "Anthropic messages with tools",
        (_type_pattern("tool_use", "tool_result") + "|" + _field_pattern("tool_use_id"),),
        "anthropic",
    ),
    Marked(
        "OpenAI messages or items",
        (
            _field_pattern(
                "tool_calls",
                "tool_call_id",
                "function_call",
                "call_id",
                "reasoning",
                "reasoning_content",
                "reasoning_details",
                "reasoning_text",
                "thinking_blocks",
                "refusal",
                "encrypted_content",
                "image_url",
                "input_audio",
                "instructions",
            )
            + "|"
            + _type_pattern(
                "input_text", "output_text", "input_image", "function_call", "reasoning"
            )
            + r'|(?<!\\)"role"\s*:\s*"(?:developer|tool|function)"'
            + r'|(?<!\\)"thinking"\s*:\s*\[',
        ),
        "openai",
    ),
    Marked(
        "Anthropic messages",
        (
            _type_pattern("thinking", "redacted_thinking")
            + "|"
            + _field_pattern("anthropic_version", "stop_reason", "system", "cache_control")
            + r'|(?<!\\)"source"\s*:\s*\{\s*"type"\s*:\s*"(?:base64|url|text|file)"',
        ),
        "anthropic",
    ),
    Marked("messages of either", (_field_pattern("role", "messages"),), "openai"),
)
"""The first row that matches counts."""


def find(text: str) -> Marked | None:
    """Return the format of the beginning of a file."""
    return next((row for row in _TABLE if all(re.search(mark, text) for mark in row.marks)), None)
