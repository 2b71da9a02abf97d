"""LangChain's ``SQLChatMessageHistory``: JSON rows through the ORM, synchronous."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from benchmarks.conversation import MODEL, USAGE, Turn


class _History:
    def __init__(self, at: str, session: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the package is on its way out
            sql = import_module("langchain_community.chat_message_histories.sql")
            self._messages = import_module("langchain_core.messages")
            self._history: Any = sql.SQLChatMessageHistory(session, connection=at)

    def items(self, turn: Turn) -> Sequence[Any]:
        return [
            self._messages.HumanMessage(turn.asked),
            self._messages.AIMessage(
                turn.answered,
                additional_kwargs={"reasoning_content": turn.thought},
                response_metadata={
                    "token_usage": USAGE,
                    "model_name": MODEL,
                    "finish_reason": "stop",
                },
            ),
        ]

    async def add(self, items: Sequence[Any]) -> None:
        self._history.add_messages(items)

    async def load(self) -> Sequence[Any]:
        loaded: Sequence[Any] = self._history.messages
        return loaded

    async def close(self) -> None:
        self._history.engine.dispose()


open = _History
