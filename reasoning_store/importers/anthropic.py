"""Anthropic's histories: the messages of its Messages protocol, and the system prompt."""

from __future__ import annotations

from functools import partial
from typing import Final

from reasoning_store.importers.conversation_builder import ConversationBuilder
from reasoning_store.importers.conversation_readers import read_conversations
from reasoning_store.importers.source_messages import SourceConversation

API: Final = "anthropic.messages"


def _read_conversation(one: SourceConversation, into: ConversationBuilder) -> None:
    into.add_system_prompts(one, "system")
    into.add_request(one.messages, API)


read = partial(read_conversations, "anthropic", _read_conversation)
