"""Cohere's v2 chat."""

from __future__ import annotations

from typing import Final

from reasoning_store.wire.cohere.reader import CohereReader, has_mark, parse_response
from reasoning_store.wire.cohere.writer import OWNED_KEYS, CohereWriter, sdk_arguments
from reasoning_store.wire.protocol import Protocol

PROTOCOL: Final = Protocol(
    id="cohere.chat",
    reader=CohereReader,
    parse=parse_response,
    writer=CohereWriter,
    sdk_arguments=sdk_arguments,
    owned_keys=OWNED_KEYS,
    has_mark=has_mark,
)
