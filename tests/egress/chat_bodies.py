"""Bodies of requests in Chat Completions."""

from __future__ import annotations

from typing import Any

import reasoning_store as rs

KEEP = {"reasoning.includeInContext": True}


def body(*messages: rs.Message, provider: str | None = None, **given: Any) -> dict[str, Any]:
    return rs.build_request(messages, provider=provider, **given).body


def sent(*messages: rs.Message, provider: str | None = None, **given: Any) -> list[Any]:
    found: list[Any] = body(*messages, provider=provider, **given)["messages"]
    return found
