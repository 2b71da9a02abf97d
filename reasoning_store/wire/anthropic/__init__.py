"""Anthropic's Messages protocol."""

from __future__ import annotations

from typing import Final

from reasoning_store.wire.anthropic.reader import AnthropicReader, has_mark, parse_response
from reasoning_store.wire.anthropic.writer import AnthropicWriter, sdk_arguments
from reasoning_store.wire.protocol import Protocol

PROTOCOL: Final = Protocol(
    reader=AnthropicReader,
    parse=parse_response,
    writer=AnthropicWriter,
    sdk_arguments=sdk_arguments,
    owned_keys=frozenset({"model", "system", "messages", "tools"}),
    has_mark=has_mark,
)
