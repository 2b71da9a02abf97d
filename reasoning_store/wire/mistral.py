"""Mistral's chat, the reading direction: Chat Completions with thoughts among the content.

While a model thinks its content is a list of ``thinking`` chunks, and a plain string when it
answers; ``openai_chat_content`` reads both. The official SDK wraps each event of a stream in
``data``. Usage has no count of reasoning.

This module knows what is Mistral's own; everything else is ``openai_chat``.
"""

from __future__ import annotations

from typing import Any

from reasoning_store.chunks import Chunk
from reasoning_store.wire import openai_chat
from reasoning_store.wire.sdk_objects import opened

parse_response = openai_chat.parse_response


class Adapter(openai_chat.Adapter):
    """The reader of one stream."""

    id = "mistral.chat"

    def parse_chunk(self, raw: Any) -> list[Chunk]:
        event = opened(raw)
        if isinstance(event, dict) and "choices" not in event and "data" in event:
            event = event["data"]
        return super().parse_chunk(event)
