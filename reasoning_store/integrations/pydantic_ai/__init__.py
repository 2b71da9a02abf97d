"""Pydantic AI on the store: a conversation store, and a capability that chooses the reasoning.

from reasoning_store.integrations.pydantic_ai import ReasoningPolicy, SessionConversationStore
"""

from __future__ import annotations

from reasoning_store.integrations.store_access import explain_import

try:
    from reasoning_store.integrations.pydantic_ai.conversations import SessionConversationStore
    from reasoning_store.integrations.pydantic_ai.messages import read_message, write_message
    from reasoning_store.integrations.pydantic_ai.policy import ReasoningPolicy
except ImportError as error:
    raise explain_import(error, "pydantic_ai", extra="pydantic-ai") from None

__all__ = ["ReasoningPolicy", "SessionConversationStore", "read_message", "write_message"]
