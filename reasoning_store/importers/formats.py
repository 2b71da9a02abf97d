"""The formats of kept histories: how each is recognised, and its reader.

A file is recognised by its first bytes: a database by its magic, the store's own lines by their
header, JSON by its marks. These are names that only one format has; a mark is searched where JSON
has a name, so the text of a message cannot match: its quotation marks are escaped.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import Final, TypeAlias, cast

from reasoning_store import InvalidCall
from reasoning_store.formats import Conversation, check_encoding
from reasoning_store.importers.archives import (
    archived_files,
    is_archive,
    open_source,
)
from reasoning_store.importers.documents import Source, read_entries, source_name
from reasoning_store.importers.reply_parts import TAGS, AnsweredBy

_Reader: TypeAlias = Callable[[Source, AnsweredBy, str], Iterator[Conversation]]

_ROOM: Final = "reasoning_store.importers"
READERS: Final[dict[str, str]] = {
    "ai-sdk": f"{_ROOM}.frameworks.ai_sdk",
    "anthropic": f"{_ROOM}.anthropic",
    "chatgpt": f"{_ROOM}.programs.chatgpt",
    "claude-ai": f"{_ROOM}.programs.claude_ai",
    "claude-code": f"{_ROOM}.programs.claude_code",
    "codex": f"{_ROOM}.programs.codex",
    "langchain": f"{_ROOM}.frameworks.langchain",
    "librechat": f"{_ROOM}.programs.librechat",
    "llama-index": f"{_ROOM}.frameworks.llama_index",
    "llm": f"{_ROOM}.llm",
    "open-webui": f"{_ROOM}.programs.open_webui",
    "openai": f"{_ROOM}.openai",
    "pydantic-ai": f"{_ROOM}.frameworks.pydantic_ai",
    "sharegpt": f"{_ROOM}.frameworks.sharegpt",
}
"""The module that reads each format; ``lines`` is the store's own export."""
LINES: Final = "lines"
IMPORTED_FROM: Final = "importedFrom"
"""The key of a session's metadata that names its format."""

_HEAD_BYTES: Final = 1 << 16
_SQLITE_MAGIC: Final = b"SQLite format 3\0"
_OWN_LINES: Final = re.compile(
    r'\s*\{\s*"type"\s*:\s*"(?:reasoning-store|profile|session|branch)"\s*[,}]'
)
"""Our export's header, or a line that follows it: its reader refuses an export without a header."""
_OWN_ANSWER: Final = re.compile(r'\s*\{\s*"schema"\s*:\s*"reasoning-store/')


class Foreign(InvalidCall):
    """A file that is not a history; any other error is of one that cannot be read."""


def detect(source: str | os.PathLike[str] | bytes) -> str:
    """Return the name of the format of a file, or of its first bytes."""
    head = source if isinstance(source, bytes) else _read_head(source)
    if head.startswith(_SQLITE_MAGIC):
        if not isinstance(source, bytes):
            import_module(READERS["llm"]).check(source)
        return "llm"
    check_encoding(head)
    text = head.decode("utf-8", "replace").removeprefix("\ufeff").lstrip()
    if _OWN_LINES.match(text):
        return LINES
    if _OWN_ANSWER.match(text):
        raise Foreign(
            "this is the JSON answer of a command, not a history",
            hint="import the output of export without --json",
        )
    found = _find_marks(text) if text[:1] in ("[", "{") else None
    if found == _GEMINI:
        raise Foreign(
            "this looks like a Gemini history, which cannot be imported yet",
            hint=f"if it is not, name the format: {', '.join(READERS)}",
        )
    if found is not None:
        return found
    if not isinstance(source, bytes) and os.fspath(source).endswith(".jsonl"):
        _check_first_line(head)
    raise Foreign(
        "this is not a history that can be imported",
        hint=f"the formats are {', '.join(READERS)} and lines; name one to read it as that",
    )


def _read_head(path: str | os.PathLike[str]) -> bytes:
    with open_source(path, again=True) as file:
        return file.read(_HEAD_BYTES)


def _check_first_line(head: bytes) -> None:
    """Refuse JSON lines of which the first is not JSON, as far as it was read."""
    text = head.lstrip()
    end = head.find(b"\n", len(head) - len(text))
    if text and (end >= 0 or len(head) < _HEAD_BYTES):
        next(read_entries([head[: end if end >= 0 else None]]))


def conversations(
    source: Source,
    *,
    format: str | None = None,
    provider: str | None = None,
    model: str | None = None,
    base_url: str | None = None,
    tags: str | Iterable[str] = TAGS,
    name: str | None = None,
) -> Iterator[Conversation]:
    """Return the conversations of a source in a format, by default the one that it is in.

    ``provider``, ``model`` and ``base_url`` name the model that answered, if the source does
    not: opaque reasoning is sent back to it alone. ``name`` replaces the name
    of the file in the ids of conversations that have none. Of a zip file the histories in it are
    read, each in its format.
    """
    who = AnsweredBy(provider=provider, model=model, base_url=base_url, tags=tags)
    if is_archive(source):
        assert isinstance(source, str | os.PathLike)
        return _read_archive(source, format, who)
    if format is None:
        if not isinstance(source, str | os.PathLike):
            raise InvalidCall("lines do not say what format they are in", hint="give format=")
        format = detect(source)
    if format == LINES:
        raise InvalidCall(
            "lines of this package's own export are imported as they are",
            hint="store.import_lines(lines)",
        )
    if format not in READERS:
        raise InvalidCall(
            f"there is no importer for {format[:20]!r}", hint=f"one of: {', '.join(READERS)}"
        )
    return _read(source, format, who, source_name(source) if name is None else name)


def _read(source: Source, format: str, who: AnsweredBy, name: str) -> Iterator[Conversation]:
    read = cast(_Reader, import_module(READERS[format]).read)
    for one in read(source, who, name):
        yield replace(one, metadata={IMPORTED_FROM: format, **one.metadata})


def _read_archive(
    archive: str | os.PathLike[str], only: str | None, who: AnsweredBy
) -> Iterator[Conversation]:
    """Yield the conversations of the histories in a zip, or of those in a format."""
    for file in archived_files(archive):
        with suppress(Foreign):
            format = detect(file)
            if format == (only or format) and format != LINES:
                yield from _read(file, format, who, source_name(file))


# Marks


_GEMINI: Final = "gemini"
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
    (_GEMINI, (_value_pattern("chunkedPrompt", "{"),)),
    (
        _GEMINI,
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


def _find_marks(text: str) -> str | None:
    """Return the format of the beginning of a file."""
    rows = (name for name, marks in _MARKS if all(re.search(mark, text) for mark in marks))
    return next(rows, None)
