"""Reasoning switched on, off and stripped in mid-conversation, with a model that demands some.

    export OPENAI_BASE_URL=https://api.deepseek.com OPENAI_API_KEY=...
    python toggle_reasoning.py

Every turn changes a setting and shows what that does to the next request: what it counts,
which thoughts it carries and by which rule. Nothing that is stored changes, and the provider,
which refuses a tool call without its thought, is content throughout.
"""

from __future__ import annotations

import os
from typing import Any

from openai import OpenAI

import reasoning_store as rs

TO: dict[str, Any] = {
    "provider": os.environ.get("PROVIDER", "deepseek"),
    "model": os.environ.get("MODEL", "deepseek-flash"),
}
WEATHER = {
    "name": "get_weather",
    "description": "The weather in a city, now.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}
TURNS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("How is the weather in Oslo?", {}),
    ("And now?", {"reasoning.includeInContext": True}),
    ("Still?", {"reasoning.stripFromContext": "allButLast"}),
    ("Really?", {"reasoning.stripFromContext": "all"}),
    ("Think about it harder.", {"reasoning.effort": "high"}),
    ("Thank you.", {"reasoning.includeInContext": False}),
)


def turn(client: OpenAI, session: rs.Session, text: str) -> str:
    """Let the user speak and the model answer, with as many tool calls as it wants."""
    session.append(rs.user(text))
    while True:
        request = session.build_request(**TO, tools=[WEATHER], extra={"stream": True})
        carried = [verdict.rule for verdict in request.verdicts]
        print(f"  sends {request.tokens.effective:3} tokens, thoughts: {', '.join(carried) or '-'}")
        stream = client.chat.completions.create(**request.kwargs)
        with session.record(stream, request=request) as reply:
            for _ in reply:
                pass
        if not reply.tool_calls:
            return reply.message.text if reply.message else ""
        session.append(
            [
                rs.tool(rs.ToolResponseBlock(call_id=call.id, tool_name=call.name, result="4 C"))
                for call in reply.tool_calls
            ]
        )


def main() -> None:
    with rs.Store("sqlite://") as store, OpenAI() as client:
        session = store.session("toggle", create=True)
        for text, settings in TURNS:
            print(f"user: {text}")
            for key, value in settings.items():
                session.settings.set(key, value)
                print(f"  {key} = {value}")
            print(f"model: {turn(client, session, text)}")
        thoughts = sum(len(item.message.thinking) for item in session.history())
        print(f"{thoughts} thoughts stored, whatever was sent")
        print(session.what_if())


if __name__ == "__main__":
    main()
