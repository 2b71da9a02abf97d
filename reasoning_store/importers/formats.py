"""Which format a file is in, and the reader of each.

Theory. A file says what it is in its first bytes: a database by its magic, lines of ours by
their header, JSON by the names that one protocol has and the other has not. A name counts
where it stands as a name, which text in a message never does: its quotation marks are
escaped.

Knows the marks of formats. It must not know how they are read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Final, Literal, TypeAlias, cast

from reasoning_store import files, strict
from reasoning_store.errors import UsageError
from reasoning_store.importers.documents import Source
from reasoning_store.importers.values import Conversation
from reasoning_store.quoting import shown

Format: TypeAlias = Literal["openai", "anthropic", "llm", "lines"]

READERS: Final[dict[str, str]] = {
    "openai": "reasoning_store.importers.openai",
    "anthropic": "reasoning_store.importers.anthropic",
    "llm": "reasoning_store.importers.llm",
}
"""The formats that are read here, and where; ``lines`` is the store's own export."""

_HEAD: Final = 1 << 16
_SQLITE: Final = b"SQLite format 3\0"
_LINES: Final = re.compile(
    r'\s*\{\s*"type"\s*:\s*"(?:reasoning-store|profile|session|branch)"\s*[,}]'
)
"""The header of our own lines, or one that stands behind it: what lost its header is refused
as such, by its reader, rather than read as somebody else's."""
_ANSWER: Final = re.compile(r'\s*\{\s*"schema"\s*:\s*"reasoning-store/')


def _named(*names: str) -> str:
    return rf'(?<!\\)"(?:{"|".join(names)})"\s*:'


def _typed(*kinds: str) -> str:
    return rf'(?<!\\)"type"\s*:\s*"(?:{"|".join(kinds)})"'


_MARKS: Final[tuple[tuple[Format, re.Pattern[str]], ...]] = (
    ("anthropic", re.compile(_typed("tool_use", "tool_result") + "|" + _named("tool_use_id"))),
    (
        "openai",
        re.compile(
            _named(
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
            + _typed("input_text", "output_text", "input_image", "function_call", "reasoning")
            + r'|(?<!\\)"role"\s*:\s*"(?:developer|tool|function)"'
            + r'|(?<!\\)"thinking"\s*:\s*\['
        ),
    ),
    (
        "anthropic",
        re.compile(
            _typed("thinking", "redacted_thinking")
            + "|"
            + _named("anthropic_version", "stop_reason", "system", "cache_control")
            + r'|(?<!\\)"source"\s*:\s*\{\s*"type"\s*:\s*"(?:base64|url|text|file)"'
        ),
    ),
    ("openai", re.compile(_named("role", "messages"))),
)
"""What tells formats apart, the surest first; a history that has no mark reads the same in
both, and is openai."""


def detect(source: str | os.PathLike[str] | bytes) -> Format:
    """Return the name of the format of a file, or of its first bytes."""
    head = source if isinstance(source, bytes) else _head(source)
    if head.startswith(_SQLITE):
        if not isinstance(source, bytes):
            import_module(READERS["llm"]).check(source)
        return "llm"
    strict.check_encoding(head)
    text = head.decode("utf-8", "replace").removeprefix("\ufeff").lstrip()
    if _LINES.match(text):
        return "lines"
    if _ANSWER.match(text):
        raise UsageError(
            "this is an answer of a command in JSON, and no history",
            hint="what export writes without --json can be imported",
        )
    if text[:1] in ("[", "{"):
        for format, marks in _MARKS:
            if marks.search(text):
                return format
    raise UsageError(
        "this is no history that can be imported",
        hint="what can be: openai or anthropic messages as JSON or JSON lines, a logs database "
        "of llm, and lines that this package exported",
    )


def _head(path: str | os.PathLike[str]) -> bytes:
    files.check_to_read_again(path)
    with files.opened(path) as file:
        return file.read(_HEAD)


def conversations(
    source: Source, *, format: str | None = None, **options: Any
) -> Iterator[Conversation]:
    """Return the conversations of a source in a format, by default the one that it is in.

    ``options`` are those of the format's own reader.
    """
    if format is None:
        if not isinstance(source, str | os.PathLike):
            raise UsageError("lines do not say what format they are in", hint="give format=")
        format = detect(source)
    home = READERS.get(format)
    if home is None:
        raise UsageError(
            f"there is no importer for {shown(format)}"
            if format != "lines"
            else "lines of this package's own export are imported as they are",
            hint="one of: " + ", ".join(READERS)
            if format != "lines"
            else "store.import_lines(lines)",
        )
    read = cast(Callable[..., Iterator[Conversation]], import_module(home).conversations)
    return read(source, **options)
