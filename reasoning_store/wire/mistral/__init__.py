"""Mistral's chat: Chat Completions with thoughts among the content."""

from __future__ import annotations

from typing import Final

from reasoning_store.wire.mistral.reader import MistralReader, parse_response
from reasoning_store.wire.mistral.writer import OWNED_KEYS, MistralWriter, sdk_arguments
from reasoning_store.wire.protocol import Protocol

PROTOCOL: Final = Protocol(
    id="mistral.chat",
    reader=MistralReader,
    parse=parse_response,
    writer=MistralWriter,
    sdk_arguments=sdk_arguments,
    owned_keys=OWNED_KEYS,
)
