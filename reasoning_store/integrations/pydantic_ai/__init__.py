"""Pydantic AI on the store: a conversation store, and a capability that chooses the reasoning.

from reasoning_store.integrations.pydantic_ai import ReasoningPolicy, SessionConversationStore
"""

from __future__ import annotations

import reasoning_store as rs

try:
    from reasoning_store.integrations.pydantic_ai.conversations import SessionConversationStore
    from reasoning_store.integrations.pydantic_ai.messages import read_message, write_message
    from reasoning_store.integrations.pydantic_ai.policy import ReasoningPolicy
except ModuleNotFoundError as error:
    if not (error.name or "").startswith("pydantic_ai"):
        raise
    raise rs.MissingExtra(
        "pydantic-ai with conversation stores (2.66) is not installed", extra="pydantic-ai"
    ) from None

__all__ = ["ReasoningPolicy", "SessionConversationStore", "read_message", "write_message"]
