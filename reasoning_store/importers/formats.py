"""The formats of kept histories: the marks of each, and its reader.

A file is recognised by its first bytes: a database by its magic, the store's own lines by their
header, JSON by names that only one format has. A mark is searched where JSON has a name; the
text of a message cannot match, because its quotation marks are escaped.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Literal, TypeAlias, cast

from reasoning_store.conversation import json_values
from reasoning_store.conversation.errors import InvalidCall
from reasoning_store.conversation.validation import describe
from reasoning_store.importers.documents import Source
from reasoning_store.importers.values import Conversation
from reasoning_store.ledger.database import files

Format: TypeAlias = Literal["openai", "anthropic", "llm", "lines"]

READERS: Final[dict[str, str]] = {
    "openai": "reasoning_store.importers.openai",
    "anthropic": "reasoning_store.importers.anthropic",
    "llm": "reasoning_store.importers.llm",
}
"""The module that reads each format; ``lines`` is the store's own export."""

_HEAD_BYTES: Final = 1 << 16
_SQLITE_MAGIC: Final = b"SQLite format 3\0"
_OWN_LINES: Final = re.compile(
    r'\s*\{\s*"type"\s*:\s*"(?:reasoning-store|profile|session|branch)"\s*[,}]'
)
"""Our export's header, or a line that follows it: its reader refuses an export without a header."""
_OWN_ANSWER: Final = re.compile(r'\s*\{\s*"schema"\s*:\s*"reasoning-store/')


def _field_pattern(*names: str) -> str:
    return rf'(?<!\\)"(?:{"|".join(names)})"\s*:'


def _type_pattern(*kinds: str) -> str:
    return rf'(?<!\\)"type"\s*:\s*"(?:{"|".join(kinds)})"'


def _value_pattern(name: str, begin: str) -> str:
    return rf'(?<!\\)"{name}"\s*:\s*{re.escape(begin)}'


@dataclass(frozen=True, slots=True)
class _Marked:
    """A format and marks that it has together; without a reader, only its name is known."""

    name: str
    marks: tuple[str, ...]
    format: Format | None = None


_TABLE: Final[tuple[_Marked, ...]] = (
    _Marked(
        "a ChatGPT export",
        (_value_pattern("mapping", "{"), _field_pattern("create_time", "current_node")),
    ),
    _Marked("a Claude.ai export", (_value_pattern("chat_messages", "["),)),
    _Marked(
        "a Claude Code session",
        (_field_pattern("parentUuid", "leafUuid"), _field_pattern("sessionId", "leafUuid")),
    ),
    _Marked(
        "a Codex session",
        (
            _type_pattern("session_meta", "response_item", "turn_context", "event_msg"),
            _value_pattern("payload", "{"),
        ),
    ),
    _Marked(
        "an Open WebUI export",
        (_value_pattern("chat", "{"), _field_pattern("user_id", "history", "currentId")),
    ),
    _Marked(
        "a LibreChat export",
        (
            _field_pattern("conversationId"),
            _field_pattern("messageId", "parentMessageId", "exportAt"),
        ),
    ),
    _Marked(
        "a LangChain history",
        (
            _type_pattern("human", "ai", "system", "tool", "AIMessageChunk")
            + r'\s*,\s*"data"\s*:\s*\{|'
            + r'(?<!\\)"lc"\s*:\s*\d',
        ),
    ),
    _Marked("a Pydantic AI history", (_field_pattern("part_kind"),)),
    _Marked("a LlamaIndex history", (_field_pattern("block_type"),)),
    _Marked("a ShareGPT history", (_value_pattern("conversations", "["), _field_pattern("from"))),
    _Marked("a Gemini history", (_value_pattern("chunkedPrompt", "{"),)),
    _Marked(
        "a Gemini history",
        (
            _field_pattern("parts"),
            r'(?<!\\)"role"\s*:\s*"model"|' + _value_pattern("contents", "["),
        ),
    ),
    _Marked(
        "a history of AI SDK UIMessages",
        (_field_pattern("role"), _value_pattern("parts", "[") + r'\s*\{\s*"type"'),
    ),
    _Marked(
        "Anthropic messages with tools",
        (_type_pattern("tool_use", "tool_result") + "|" + _field_pattern("tool_use_id"),),
        "anthropic",
    ),
    _Marked(
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
    _Marked(
        "Anthropic messages",
        (
            _type_pattern("thinking", "redacted_thinking")
            + "|"
            + _field_pattern("anthropic_version", "stop_reason", "system", "cache_control")
            + r'|(?<!\\)"source"\s*:\s*\{\s*"type"\s*:\s*"(?:base64|url|text|file)"',
        ),
        "anthropic",
    ),
    _Marked("messages of either", (_field_pattern("role", "messages"),), "openai"),
)
"""The first row that matches counts."""


def detect(source: str | os.PathLike[str] | bytes) -> Format:
    """Return the name of the format of a file, or of its first bytes."""
    head = source if isinstance(source, bytes) else _read_head(source)
    if head.startswith(_SQLITE_MAGIC):
        if not isinstance(source, bytes):
            import_module(READERS["llm"]).check(source)
        return "llm"
    json_values.check_encoding(head)
    text = head.decode("utf-8", "replace").removeprefix("\ufeff").lstrip()
    if _OWN_LINES.match(text):
        return "lines"
    if _OWN_ANSWER.match(text):
        raise InvalidCall(
            "this is the JSON answer of a command, not a history",
            hint="import the output of export without --json",
        )
    if text[:1] in ("[", "{"):
        for row in _TABLE:
            if all(re.search(mark, text) for mark in row.marks):
                if row.format is not None:
                    return row.format
                raise InvalidCall(
                    f"this looks like {row.name}, which cannot be imported yet",
                    hint="if it is not, name the format: openai or anthropic",
                )
    raise InvalidCall(
        "this is not a history that can be imported",
        hint="import openai or anthropic messages as JSON or JSON lines, a logs database of llm, "
        "or the lines of an export",
    )


def _read_head(path: str | os.PathLike[str]) -> bytes:
    files.check_to_read_again(path)
    with files.opened(path) as file:
        return file.read(_HEAD_BYTES)


def conversations(
    source: Source, *, format: str | None = None, **options: Any
) -> Iterator[Conversation]:
    """Return the conversations of a source in a format, by default the one that it is in.

    ``options`` are those of the format's own reader.
    """
    if format is None:
        if not isinstance(source, str | os.PathLike):
            raise InvalidCall("lines do not say what format they are in", hint="give format=")
        format = detect(source)
    home = READERS.get(format)
    if home is None:
        raise InvalidCall(
            f"there is no importer for {describe(format)}"
            if format != "lines"
            else "lines of this package's own export are imported as they are",
            hint="one of: " + ", ".join(READERS)
            if format != "lines"
            else "store.import_lines(lines)",
        )
    read = cast(Callable[..., Iterator[Conversation]], import_module(home).conversations)
    return read(source, **options)
