"""Reads Mistral's chat: Chat Completions with thoughts among the content.

While a model thinks its content is a list of ``thinking`` chunks, and a plain string when it
answers. The official SDK wraps each event of a stream in ``data``. Usage has no count of
reasoning.
"""

from __future__ import annotations

from typing import Any

from reasoning_store.conversation.chunks import Chunk
from reasoning_store.wire.event_fields import shallow_dict
from reasoning_store.wire.openai_chat import reader as openai_chat

parse_response = openai_chat.parse_response


class MistralReader(openai_chat.ChatReader):
    """The reader of one stream."""

    id = "mistral.chat"

    def parse_chunk(self, raw: Any) -> list[Chunk]:
        event = shallow_dict(raw)
        if isinstance(event, dict) and "choices" not in event and "data" in event:
            event = event["data"]
        return super().parse_chunk(event)
