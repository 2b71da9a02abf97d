"""LangChain on the store: a message history, and a middleware for agents.

from reasoning_store.integrations.langchain import ReasoningMiddleware, StoredMessageHistory
"""

from __future__ import annotations

from reasoning_store.integrations.store_access import explain_import

try:
    from reasoning_store.integrations.langchain.history import StoredMessageHistory
    from reasoning_store.integrations.langchain.messages import read_message, write_messages
    from reasoning_store.integrations.langchain.middleware import ReasoningMiddleware
except ImportError as error:
    named = "langchain_core" if (error.name or "").startswith("langchain_core") else "langchain"
    raise explain_import(error, named, extra="langchain") from None

__all__ = ["ReasoningMiddleware", "StoredMessageHistory", "read_message", "write_messages"]
