"""OpenAI's histories: the messages of Chat Completions and its kin, and items of Responses.

A list whose entries have types of the Responses protocol is one of items. Fields that no one reads
are kept in the message's metadata under ``source``.
"""

from __future__ import annotations

from functools import partial

from reasoning_store.importers.conversation_builder import ConversationBuilder
from reasoning_store.importers.conversation_readers import read_conversations
from reasoning_store.importers.source_messages import (
    SourceConversation,
    SourceMessage,
    list_field,
)


def _read_conversation(one: SourceConversation, into: ConversationBuilder) -> None:
    into.add_system_prompts(one, "instructions", "system")
    output = [
        SourceMessage(place=f"line {one.line}: output[{number}]", line=one.line, value=value)
        for number, value in enumerate(list_field(one.about, "output"))
        if isinstance(value, dict)
    ]
    into.add_request([*one.messages, *output], api=None)


read = partial(read_conversations, "openai", _read_conversation)
