"""Histories as they are found: leaked tags, copied thoughts, odd parts, and what is in them.

Every history is of our own making. What a fixture holds is counted by hand, next to it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

LONE = "\ud83d"
"""Half of a pair, as Python and JavaScript write it when a text is cut."""
NUL = "a\0b"

SIGNATURE = "c2lnbmVk"
CIPHER = "Y2lwaGVy"

CHAT: list[dict[str, Any]] = [
    {"role": "developer", "content": "Answer in one line. Use <think> if you must."},
    {"role": "user", "content": f"Is 91 prime? </think> {LONE}{NUL}", "name": "ada"},
    {
        "role": "assistant",
        "content": "<think>7 x 13</think>Let me check.",
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "factor", "arguments": '{"n":  91}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "<think>7, 13</think>"},
    {
        "role": "assistant",
        "reasoning_content": "It is 7 x 13.",
        "reasoning": "It is 7 x 13.",
        "content": "No.</think> 91 = 7 x 13.",
        "mood": "sure",
    },
    {
        "role": "user",
        "content": [{"type": "text", "text": "And "}, {"type": "text", "text": "97?"}],
    },
    {
        "role": "assistant",
        "reasoning_details": [
            {
                "type": "reasoning.text",
                "text": "97 has no",
                "signature": SIGNATURE,
                "format": "anthropic-claude-v1",
                "index": 0,
            },
            {"type": "reasoning.encrypted", "data": CIPHER, "id": "rs_1", "index": 1},
        ],
        "content": [
            {"type": "text", "text": "Yes."},
            {"type": "hologram", "data": 1},
        ],
    },
    {"role": "narrator", "content": "Meanwhile"},
    {"role": "assistant", "content": ""},
    {"role": "assistant", "content": "<thinking>I was cut off"},
]
"""Thoughts: a tagged one; two fields with one thought; two entries; an unclosed tag. That is
six, one of them a copy. Texts: nine, of which three had delimiters (2, 1 and 1 of them)."""

CHAT_COUNTS = {
    "messages": 8,
    "reasoning_in": 6,
    "reasoning_stored": 5,
    "copies": 1,
    "texts_unchanged": 5,
    "texts_cleaned": 3,
    "delimiters": 4,
    "kept_raw": 2,  # a part, and a field that nobody named
}

ITEMS: dict[str, Any] = {
    "id": "resp-log-7",
    "model": "gpt-5.2",
    "instructions": "Be brief.",
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "<think>Is 91 prime?"}]},
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "Try 7."}],
            "encrypted_content": CIPHER,
        },
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": "factor",
            "arguments": '{"n":91}',
        },
        {"type": "function_call_output", "call_id": "call_1", "output": "7 13</think>"},
        {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": CIPHER},
        {"role": "assistant", "content": "No.</think>"},
        {"type": "mystery", "id": "m_1"},
        {"role": "user", "content": "Thanks"},
    ],
    "output": [
        {"type": "reasoning", "id": "rs_3", "summary": []},
        {
            "type": "message",
            "id": "msg_3",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Welcome."}],
        },
    ],
}
"""Thoughts: two (the third item holds nothing). Texts: six, of which one had a delimiter."""

ITEM_COUNTS = {
    "messages": 7,
    "reasoning_in": 2,
    "reasoning_stored": 2,
    "copies": 0,
    "texts_unchanged": 5,
    "texts_cleaned": 1,
    "delimiters": 1,
    "kept_raw": 1,
}

MESSAGES: dict[str, Any] = {
    "conversation_id": "claude-3",
    "title": "Primes",
    "created_at": "2026-01-02T03:04:05Z",
    "model": "claude-opus-5",
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {
            "role": "user",
            "content": [
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="},
                },
                {"type": "text", "text": "<thinking>Is this prime?</thinking>"},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "I see 91.", "signature": SIGNATURE},
                {"type": "redacted_thinking", "data": CIPHER},
                {"type": "thinking", "thinking": "", "signature": SIGNATURE},
                {"type": "text", "text": "</think>Let me check."},
                {"type": "tool_use", "id": "toolu_1", "name": "factor", "input": {"n": 91}},
            ],
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 20, "output_tokens": 30},
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": [{"type": "text", "text": "7 x 13</thinking>"}],
                    "is_error": True,
                }
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "<think>so it is not</think>No."},
                {"type": "oracle", "said": "yes"},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "late"},
                {"type": "text", "text": f"Thanks {LONE}{NUL}"},
            ],
        },
        {"role": "assistant", "content": "Welcome."},
    ],
}
"""Thoughts: three of its own and a tagged one. Texts: seven, of which two had delimiters."""

MESSAGE_COUNTS = {
    "messages": 7,
    "reasoning_in": 4,
    "reasoning_stored": 4,
    "copies": 0,
    "texts_unchanged": 5,
    "texts_cleaned": 2,
    "delimiters": 3,
    "kept_raw": 1,
}


def lines(values: Iterable[Any]) -> list[str]:
    """Return values as JSON lines."""
    return [json.dumps(value) for value in values]


def counts(report: Any, of: dict[str, int]) -> dict[str, int]:
    """Return what a report says of these names."""
    return {name: getattr(report, name) for name in of}
