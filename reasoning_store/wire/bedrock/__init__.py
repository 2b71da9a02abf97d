"""Amazon Bedrock's Converse protocol."""

from __future__ import annotations

from typing import Final

from reasoning_store.wire.bedrock.reader import BedrockReader, has_mark, parse_response
from reasoning_store.wire.bedrock.writer import BedrockWriter, sdk_arguments
from reasoning_store.wire.protocol import Protocol

PROTOCOL: Final = Protocol(
    reader=BedrockReader,
    parse=parse_response,
    writer=BedrockWriter,
    sdk_arguments=sdk_arguments,
    owned_keys=frozenset({"modelId", "messages", "system", "toolConfig"}),
    has_mark=has_mark,
)
