"""The marks of each format of JSON: names that only one format has.

A mark is searched where JSON has a name; the text of a message cannot match, because its
quotation marks are escaped. Marks are the only thing that is known of a file here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

GEMINI: Final = "gemini"
"""A format that is known and cannot be imported yet."""


def _field_pattern(*names: str) -> str:
    return rf'(?<!\\)"(?:{"|".join(names)})"\s*:'


def _type_pattern(*kinds: str) -> str:
    return rf'(?<!\\)"type"\s*:\s*"(?:{"|".join(kinds)})"'


def _value_pattern(name: str, begin: str) -> str:
    return rf'(?<!\\)"{name}"\s*:\s*{re.escape(begin)}'


_MARKS: Final[Sequence[tuple[str, Sequence[str]]]] = (
    ("chatgpt", (_value_pattern("mapping", "{"), _field_pattern("create_time", "current_node"))),
    ("claude-ai", (_value_pattern("chat_messages", "["),)),
    (
        "claude-code",
        (
            _field_pattern("parentUuid", "leafUuid"),
            _field_pattern("isSidechain", "sessionId", "leafUuid"),
        ),
    ),
    (
        "codex",
        (
            _type_pattern("session_meta", "response_item", "turn_context", "event_msg"),
            _value_pattern("payload", "{"),
        ),
    ),
    ("codex", (_value_pattern("record_type", '"state"'),)),
    (
        "open-webui",
        (_value_pattern("chat", "{"), _field_pattern("user_id", "history", "currentId")),
    ),
    (
        "librechat",
        (
            _field_pattern("conversationId"),
            _field_pattern("messageId", "parentMessageId", "exportAt"),
        ),
    ),
    (
        "langchain",
        (
            _type_pattern("human", "ai", "system", "tool", "AIMessageChunk")
            + r'\s*,\s*"data"\s*:\s*\{|'
            + r'(?<!\\)"lc"\s*:\s*\d|'
            + _field_pattern("additional_kwargs")
            + r"(?s:.*)"
            + _type_pattern("human", "ai"),
        ),
    ),
    ("pydantic-ai", (_field_pattern("part_kind"),)),
    ("llama-index", (_field_pattern("block_type"),)),
    ("sharegpt", (_value_pattern("conversations", "["), _field_pattern("from"))),
    (GEMINI, (_value_pattern("chunkedPrompt", "{"),)),
    (
        GEMINI,
        (
            _field_pattern("parts"),
            r'(?<!\\)"role"\s*:\s*"model"|' + _value_pattern("contents", "["),
        ),
    ),
    ("ai-sdk", (_field_pattern("role"), _value_pattern("parts", "[") + r'\s*\{\s*"type"')),
    (
        "anthropic",
        (_type_pattern("tool_use", "tool_result") + "|" + _field_pattern("tool_use_id"),),
    ),
    (
        "openai",
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
    ),
    (
        "anthropic",
        (
            _type_pattern("thinking", "redacted_thinking")
            + "|"
            + _field_pattern("anthropic_version", "stop_reason", "system", "cache_control")
            + r'|(?<!\\)"source"\s*:\s*\{\s*"type"\s*:\s*"(?:base64|url|text|file)"',
        ),
    ),
    ("openai", (_field_pattern("role", "messages"),)),
)
"""Each format and marks that it has together; the first row that matches counts."""


def find(text: str) -> str | None:
    """Return the format of the beginning of a file."""
    rows = (name for name, marks in _MARKS if all(re.search(mark, text) for mark in marks))
    return next(rows, None)
