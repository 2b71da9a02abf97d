"""Our history in the place of LangChain's, for its own tests.

It takes what the constructors of their histories take.
"""

from __future__ import annotations

import atexit
from itertools import count
from typing import Any

import langchain_core.chat_history as core

import reasoning_store as rs
from reasoning_store.integrations.langchain import StoredMessageHistory

_STORES: dict[str, rs.Store] = {}
_NUMBERS = count()


def _store_at(url: str) -> rs.Store:
    if url not in _STORES:
        _STORES[url] = rs.Store(url)
        atexit.register(_STORES[url].close)
    return _STORES[url]


class InMemory(StoredMessageHistory):
    """In the place of ``InMemoryChatMessageHistory``."""

    def __init__(self, messages: Any = ()) -> None:
        super().__init__(_store_at("sqlite://"), f"history {next(_NUMBERS)}")
        self.add_messages(list(messages))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InMemory) and self.messages == other.messages

    __hash__ = None  # type: ignore[assignment]


class SQL(StoredMessageHistory):
    """In the place of ``SQLChatMessageHistory``."""

    def __init__(self, session_id: str, connection: str, **_: Any) -> None:
        super().__init__(_store_at(connection.replace("+aiosqlite", "")), session_id)


core.InMemoryChatMessageHistory = InMemory

try:
    import langchain_community.chat_message_histories as community
except ImportError:
    pass
else:
    community.SQLChatMessageHistory = SQL
