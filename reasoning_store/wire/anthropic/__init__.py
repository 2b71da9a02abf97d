"""Anthropic's Messages protocol."""

from __future__ import annotations

from typing import Final

from reasoning_store.wire.anthropic.reader import AnthropicReader, has_mark, parse_response
from reasoning_store.wire.anthropic.writer import OWNED_KEYS, AnthropicWriter, sdk_arguments
from reasoning_store.wire.protocol import Protocol

PROTOCOL: Final = Protocol(
    id="anthropic.messages",
    reader=AnthropicReader,
    parse=parse_response,
    writer=AnthropicWriter,
    sdk_arguments=sdk_arguments,
    owned_keys=OWNED_KEYS,
    has_mark=has_mark,
)
