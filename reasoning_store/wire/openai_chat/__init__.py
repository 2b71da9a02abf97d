"""OpenAI Chat Completions and its kin."""

from __future__ import annotations

from typing import Final

from reasoning_store.wire.openai_chat.reader import ChatReader, has_mark, parse_response
from reasoning_store.wire.openai_chat.writer import ChatWriter, sdk_arguments
from reasoning_store.wire.protocol import Protocol

PROTOCOL: Final = Protocol(
    reader=ChatReader,
    parse=parse_response,
    writer=ChatWriter,
    sdk_arguments=sdk_arguments,
    owned_keys=frozenset({"model", "messages", "tools"}),
    has_mark=has_mark,
)
