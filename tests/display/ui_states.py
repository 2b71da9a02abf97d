"""Histories whose last part is a tool's, in each state that the AI SDK knows."""

from __future__ import annotations

from typing import Any

import reasoning_store as rs
from tests.egress.histories import answer, call

FAILED = rs.ToolResponseBlock(
    call_id="call_1", tool_name="get_weather", result={"why": "no net"}, is_error=True
)
CUT = rs.ToolCallBlock(id="call_1", name="get_weather", arguments='{"city": "Os')
STATES: list[tuple[str, list[rs.Message], dict[str, Any]]] = [
    ("input-available", [rs.assistant(call())], {"input": {"city": "Oslo"}}),
    ("input-streaming", [rs.assistant(call(), status="streaming")], {"input": {"city": "Oslo"}}),
    ("input-streaming", [rs.assistant(CUT, status="streaming")], {}),
    ("output-available", [rs.assistant(call()), answer()], {"output": "4 C"}),
    ("output-error", [rs.assistant(call()), rs.tool(FAILED)], {"errorText": '{"why":"no net"}'}),
    ("output-error", [rs.assistant(CUT, status="interrupted")], {"rawInput": '{"city": "Os'}),
    ("output-available", [answer()], {"toolCallId": "call_1", "output": "4 C"}),
]
