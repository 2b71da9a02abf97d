"""What the Agents SDK gives a session: the items of the Responses protocol, as dicts."""

from __future__ import annotations

from typing import Any

from benchmarks.conversation import Turn


def items(turn: Turn) -> list[dict[str, Any]]:
    """Return a turn as the SDK's runner adds it: a question, the reasoning, the answer."""
    thought = {"text": turn.thought, "type": "reasoning_text"}
    answered = {"annotations": [], "text": turn.answered, "type": "output_text"}
    return [
        {"content": turn.asked, "role": "user"},
        {"id": "rs_68c2f1d0a4", "summary": [], "type": "reasoning", "content": [thought]},
        {
            "id": "msg_68c2f1d0a5",
            "content": [answered],
            "role": "assistant",
            "status": "completed",
            "type": "message",
        },
    ]
