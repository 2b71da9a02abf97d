"""Ollama's own chat API."""

from __future__ import annotations

from typing import Final

from reasoning_store.wire.ollama.reader import OllamaReader, has_mark, parse_response
from reasoning_store.wire.ollama.writer import OWNED_KEYS, OllamaWriter, sdk_arguments
from reasoning_store.wire.protocol import Protocol

PROTOCOL: Final = Protocol(
    id="ollama.chat",
    reader=OllamaReader,
    parse=parse_response,
    writer=OllamaWriter,
    sdk_arguments=sdk_arguments,
    owned_keys=OWNED_KEYS,
    has_mark=has_mark,
)
