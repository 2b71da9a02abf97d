"""LangChain on the store: a message history, and a middleware for agents.

from reasoning_store.integrations.langchain import ReasoningMiddleware, StoredMessageHistory
"""

from __future__ import annotations

import reasoning_store as rs

try:
    from reasoning_store.integrations.langchain.history import StoredMessageHistory
    from reasoning_store.integrations.langchain.messages import read_message, write_messages
    from reasoning_store.integrations.langchain.middleware import ReasoningMiddleware
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in ("langchain", "langchain_core", "langgraph"):
        raise
    raise rs.MissingExtra("langchain is not installed", extra="langchain") from None

__all__ = ["ReasoningMiddleware", "StoredMessageHistory", "read_message", "write_messages"]
