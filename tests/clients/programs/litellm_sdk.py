"""``litellm``: the program keeps a reply's text and calls."""

from __future__ import annotations

import sys
from typing import Any

import litellm

from tests.integrations.loops import TOOL

address, kind, model, form, *questions = sys.argv[1:]
tools = [{"type": "function", "function": {"name": "get_weather", "parameters": TOOL}}]
asked: dict[str, Any] = {"model": model, "tools": tools, "api_base": address, "api_key": "k"}
if kind == "messages":
    asked |= {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 4096}
else:
    asked["api_base"] = f"{address}/v1"
messages: list[Any] = []
for question in questions:
    messages.append({"role": "user", "content": question})
    calls: Any = True
    while calls:
        if form == "streamed":
            chunks = list(litellm.completion(messages=messages, stream=True, **asked))
            reply = litellm.stream_chunk_builder(chunks, messages=messages)
        else:
            reply = litellm.completion(messages=messages, **asked)
        said = reply.choices[0].message
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function.name, "arguments": call.function.arguments},
            }
            for call in said.tool_calls or ()
        ]
        kept = {"role": "assistant", "content": said.content}
        messages.append({**kept, "tool_calls": calls} if calls else kept)
        messages += [
            {"role": "tool", "tool_call_id": call["id"], "content": "4 C"} for call in calls
        ]
    print(said.content)
