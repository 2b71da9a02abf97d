"""Bodies of requests in the Responses protocol."""

from __future__ import annotations

from typing import Any

import reasoning_store as rs
from tests.wire.writing import (
    written,
)

API = "openai.responses"


CALL = rs.ToolCallBlock(id="call_1", name="f", arguments='{"x": 1}')


def sent(
    *messages: rs.Message, provider: str | None = "openai", model: str = "gpt-5.6"
) -> list[Any]:
    found: list[Any] = written(messages, provider, model, API).body["input"]
    return found


def received(items: list[dict[str, Any]], model: str = "gpt-5.6") -> rs.Message:
    return rs.normalize_response(
        {"id": "resp_1", "model": model, "output": items}, provider="openai", api=API
    )


SEALED = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
