"""OpenAI's Agents SDK on the store: a session, and an input filter that chooses the reasoning.

from reasoning_store.integrations.openai_agents import StoredSession
"""

from __future__ import annotations

import reasoning_store as rs

try:
    from reasoning_store.integrations.openai_agents.items import read_items, write_items
    from reasoning_store.integrations.openai_agents.session import StoredSession
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "agents":
        raise
    raise rs.MissingExtra("openai-agents is not installed", extra="openai-agents") from None

__all__ = ["StoredSession", "read_items", "write_items"]
