"""OpenAI's Agents SDK on the store: a session, and an input filter that chooses the reasoning.

from reasoning_store.integrations.openai_agents import StoredSession
"""

from __future__ import annotations

from reasoning_store.integrations.store_access import explain_import

try:
    from reasoning_store.integrations.openai_agents.items import read_items, write_items
    from reasoning_store.integrations.openai_agents.session import StoredSession
except ImportError as error:
    raise explain_import(error, "agents", extra="openai-agents") from None

__all__ = ["StoredSession", "read_items", "write_items"]
