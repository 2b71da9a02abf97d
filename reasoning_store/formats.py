"""Foreign messages, read and written: for adapters, importers and gateways.

A client's request holds a conversation in the form of its protocol. ``split_messages`` finds its
messages, and ``read_messages`` reads them as messages to be stored. A history that another program
kept is given to ``store.import_conversations`` as values of ``Conversation``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reasoning_store import load_when_used

__all__ = [
    "CallLinks",
    "Conversation",
    "Item",
    "RequestMessage",
    "SourceBranch",
    "call_arguments",
    "check_encoding",
    "describe_result",
    "message_to_json",
    "open_to_read",
    "parse_arguments",
    "parse_json",
    "read_blocks",
    "read_medium",
    "read_message",
    "read_messages",
    "read_usage",
    "split_messages",
    "tool_response",
    "write_messages",
]

if TYPE_CHECKING:
    from reasoning_store.conversation.codec import message_to_json
    from reasoning_store.conversation.json_values import check_encoding
    from reasoning_store.foreign_messages import (
        parse_json,
        read_message,
        read_messages,
        read_usage,
        write_messages,
    )
    from reasoning_store.kept_histories import Conversation, Item, SourceBranch
    from reasoning_store.ledger.database.files import open_to_read
    from reasoning_store.wire.content_parts import describe_result, read_blocks, read_medium
    from reasoning_store.wire.request_message import CallLinks, RequestMessage, tool_response
    from reasoning_store.wire.request_messages import split_messages
    from reasoning_store.wire.tools import call_arguments, parse_arguments

_HOMES = {
    "conversation.codec": "message_to_json",
    "conversation.json_values": "check_encoding",
    "foreign_messages": "read_messages read_message parse_json read_usage write_messages",
    "kept_histories": "Conversation Item SourceBranch",
    "ledger.database.files": "open_to_read",
    "wire.content_parts": "describe_result read_blocks read_medium",
    "wire.request_message": "CallLinks RequestMessage tool_response",
    "wire.request_messages": "split_messages",
    "wire.tools": "call_arguments parse_arguments",
}

if not TYPE_CHECKING:  # to a type checker every name would be one of ours then
    __getattr__ = load_when_used(__name__, _HOMES)
