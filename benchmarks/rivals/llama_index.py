"""LlamaIndex's ``SQLAlchemyChatStore``: JSON columns through an asynchronous engine."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from benchmarks.conversation import MODEL, USAGE, Turn


class _History:
    def __init__(self, at: str, session: str) -> None:
        self._types = import_module("llama_index.core.base.llms.types")
        store = import_module("llama_index.core.storage.chat_store.sql").SQLAlchemyChatStore
        self._key = session
        self._store: Any = store(table_name="messages", async_database_uri=at)

    def items(self, turn: Turn) -> Sequence[Any]:
        types = self._types
        blocks = [
            types.ThinkingBlock(content=turn.thought, num_tokens=USAGE["reasoning"]),
            types.TextBlock(text=turn.answered),
        ]
        about = {"model": MODEL, "finish_reason": "stop", "usage": USAGE}
        return [
            types.ChatMessage(role="user", content=turn.asked),
            types.ChatMessage(role="assistant", blocks=blocks, additional_kwargs=about),
        ]

    async def add(self, items: Sequence[Any]) -> None:
        await self._store.add_messages(self._key, items)

    async def load(self) -> Sequence[Any]:
        loaded: Sequence[Any] = await self._store.get_messages(self._key)
        return loaded

    async def close(self) -> None:
        await self._store._async_engine.dispose()


open = _History
