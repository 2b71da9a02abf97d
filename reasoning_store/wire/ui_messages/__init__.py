"""The AI SDK's UI messages, and the events of hosts that normalise streams."""

from __future__ import annotations

from typing import Final

from reasoning_store.wire.protocol import Protocol
from reasoning_store.wire.ui_messages.reader import UIMessageReader, parse_response
from reasoning_store.wire.ui_messages.writer import UIMessageWriter

PROTOCOL: Final = Protocol(
    reader=UIMessageReader,
    parse=parse_response,
    writer=UIMessageWriter,
    sdk_arguments=dict,
    owned_keys=frozenset({"model", "system", "messages", "tools"}),
    needs_model=False,
)
