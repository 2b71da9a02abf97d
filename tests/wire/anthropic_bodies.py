"""Bodies of requests in the Messages protocol."""

from __future__ import annotations

import reasoning_store as rs
from tests.wire.writing import (
    case,
)

CASE = case("anthropic_messages")


SIGNED = rs.ThinkingBlock(thought="Hm.", source_field="thinking", signature="c2ln")


CALL = rs.ToolCallBlock(id="toolu_1", name="get_weather", parameters={"city": "Oslo"})
