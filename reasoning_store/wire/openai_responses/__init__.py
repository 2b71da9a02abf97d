"""OpenAI's Responses protocol."""

from __future__ import annotations

from typing import Final

from reasoning_store.wire.openai_responses.reader import ResponsesReader, has_mark, parse_response
from reasoning_store.wire.openai_responses.writer import ResponsesWriter, sdk_arguments
from reasoning_store.wire.protocol import Protocol

PROTOCOL: Final = Protocol(
    reader=ResponsesReader,
    parse=parse_response,
    writer=ResponsesWriter,
    sdk_arguments=sdk_arguments,
    owned_keys=frozenset({"model", "instructions", "input", "tools"}),
    messages_key="input",
    has_mark=has_mark,
)
