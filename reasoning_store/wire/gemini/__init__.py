"""Gemini's generateContent, and Google's Interactions, which are only read."""

from __future__ import annotations

from typing import Final

from reasoning_store.wire.gemini.reader import GeminiReader, has_mark, parse_response
from reasoning_store.wire.gemini.writer import GeminiWriter, sdk_arguments
from reasoning_store.wire.protocol import Protocol

PROTOCOL: Final = Protocol(
    reader=GeminiReader,
    parse=parse_response,
    writer=GeminiWriter,
    sdk_arguments=sdk_arguments,
    owned_keys=frozenset({"model", "contents", "systemInstruction", "tools"}),
    messages_key="contents",
    only_read=("gemini.interactions", "interactions"),
    has_mark=has_mark,
)
