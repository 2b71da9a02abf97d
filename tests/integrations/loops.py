"""A tool loop of twenty steps, as a client of each protocol runs it: thinking is not kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import reasoning_store as rs
from tests.docs.provider import THINKS, Answer, Asked

STEPS = 20
TOOL = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
}


def twenty_steps() -> Callable[[Asked], Answer]:
    """Return a script: think and call a tool twenty times, then answer."""
    numbers: Iterator[int] = iter(range(10_000))

    def answer(asked: Asked) -> Answer:
        number = next(numbers)
        think, call_metadata = THINKS[asked.api]
        name = f"s{number}"
        usage = rs.Usage(input=40, output=12, reasoning=5)
        thought = think(f"Step {number} needs the tool.", name)
        if number % (STEPS + 1) < STEPS:
            call = rs.ToolCallBlock(
                id=f"call_{name}",
                name="get_weather",
                parameters={"city": f"city {number}"},
                provider_metadata=call_metadata(name, 0),
            )
            return Answer(message=rs.assistant(*thought, call, usage=usage))
        said = {"item_id": f"msg_{name}"} if asked.api == "openai.responses" else None
        text = rs.TextBlock(text=f"Done at {number}.", provider_metadata=said)
        return Answer(message=rs.assistant(*thought, text, usage=usage))

    return answer


def thoughts_in(body: Any) -> int:
    """Return how many thoughts a request carries."""
    text = json.dumps(body)
    marks = ('"type": "thinking"', '"type": "reasoning"', '"reasoning_content"')
    return sum(text.count(mark) for mark in marks)


def chat_loop(client: Any, model: str, *, streamed: bool, turns: int = 1) -> str:
    """Run turns of Chat Completions as most programs do: role, content and calls go back."""
    messages: list[Any] = []
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": TOOL}}]
    text = ""
    for turn in range(turns):
        messages.append({"role": "user", "content": f"Question {turn}?"})
        while True:
            text, calls = _chat_reply(client, model, messages, tools, streamed=streamed)
            reply: dict[str, Any] = {"role": "assistant", "content": text or None}
            if calls:
                reply["tool_calls"] = calls
            messages.append(reply)
            if not calls:
                break
            messages += [
                {"role": "tool", "tool_call_id": call["id"], "content": "4 C"} for call in calls
            ]
    return text


def _chat_reply(
    client: Any, model: str, messages: list[Any], tools: list[Any], *, streamed: bool
) -> tuple[str, list[dict[str, Any]]]:
    if not streamed:
        whole = client.chat.completions.create(model=model, messages=messages, tools=tools)
        message = whole.choices[0].message
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function.name, "arguments": call.function.arguments},
            }
            for call in message.tool_calls or ()
        ]
        return message.content or "", calls
    text = ""
    parts: dict[int, dict[str, str]] = {}
    for event in client.chat.completions.create(
        model=model, messages=messages, tools=tools, stream=True
    ):
        for choice in event.choices:
            text += choice.delta.content or ""
            for call in choice.delta.tool_calls or ():
                part = parts.setdefault(call.index, {"id": "", "name": "", "arguments": ""})
                part["id"] += call.id or ""
                part["name"] += call.function.name or ""
                part["arguments"] += call.function.arguments or ""
    calls = [
        {
            "id": part["id"],
            "type": "function",
            "function": {"name": part["name"], "arguments": part["arguments"]},
        }
        for part in parts.values()
    ]
    return text, calls


def gemini_loop(client: Any, model: str, *, streamed: bool, turns: int = 1) -> str:
    """Run turns of generateContent as a client that keeps text and calls, and no signature."""
    contents: list[Any] = []
    declared = {"name": "get_weather", "parameters_json_schema": TOOL}
    config = {"tools": [{"function_declarations": [declared]}]}
    text = ""
    for turn in range(turns):
        contents.append({"role": "user", "parts": [{"text": f"Question {turn}?"}]})
        while True:
            asked = {"model": model, "contents": contents, "config": config}
            models = client.models
            replies = (
                models.generate_content_stream(**asked)
                if streamed
                else [models.generate_content(**asked)]
            )
            parts = [part for one in replies for part in one.candidates[0].content.parts or ()]
            text = "".join(part.text for part in parts if part.text and not part.thought)
            calls = [part.function_call for part in parts if part.function_call]
            kept: list[Any] = [{"text": text}] if text else []
            kept += [
                {"function_call": {"id": one.id, "name": one.name, "args": one.args}}
                for one in calls
            ]
            contents.append({"role": "model", "parts": kept})
            if not calls:
                break
            answer = {"name": "get_weather", "response": {"result": "4 C"}}
            results = [{"function_response": {**answer, "id": one.id}} for one in calls]
            contents.append({"role": "user", "parts": results})
    return text


def messages_loop(client: Any, model: str, *, streamed: bool, turns: int = 1) -> str:
    """Run turns of Messages as a client that keeps text and calls, and drops the thinking."""
    messages: list[Any] = []
    tools = [{"name": "get_weather", "input_schema": TOOL}]
    text = ""
    for turn in range(turns):
        messages.append({"role": "user", "content": f"Question {turn}?"})
        while True:
            asked = {
                "model": model,
                "max_tokens": 4096,
                "messages": messages,
                "tools": tools,
                "thinking": {"type": "enabled", "budget_tokens": 1024},
            }
            if streamed:
                with client.messages.stream(**asked) as stream:
                    reply = stream.get_final_message()
            else:
                reply = client.messages.create(**asked)
            kept = [
                block.model_dump(exclude_none=True, include={"type", "text", "id", "name", "input"})
                for block in reply.content
                if block.type in ("text", "tool_use")
            ]
            messages.append({"role": "assistant", "content": kept})
            calls = [block for block in kept if block["type"] == "tool_use"]
            if not calls:
                text = "".join(block["text"] for block in kept)
                break
            results = [
                {"type": "tool_result", "tool_use_id": call["id"], "content": "4 C"}
                for call in calls
            ]
            messages.append({"role": "user", "content": results})
    return text


def responses_loop(client: Any, model: str, *, streamed: bool, turns: int = 1) -> str:
    """Run turns of Responses as a client that keeps messages and calls, and drops reasoning."""
    items: list[Any] = []
    tools = [{"type": "function", "name": "get_weather", "parameters": TOOL, "strict": False}]
    text = ""
    for turn in range(turns):
        items.append({"role": "user", "content": f"Question {turn}?"})
        while True:
            asked = {
                "model": model,
                "input": items,
                "tools": tools,
                "store": False,
                "include": ["reasoning.encrypted_content"],
                "extra_headers": {"X-Reasoning-Store": "yes"},
            }
            if streamed:
                reply = None
                for event in client.responses.create(**asked, stream=True):
                    if event.type == "response.completed":
                        reply = event.response
            else:
                reply = client.responses.create(**asked)
            assert reply is not None
            kept = [
                item.model_dump(exclude_none=True)
                for item in reply.output
                if item.type in ("message", "function_call")
            ]
            items += kept
            calls = [item for item in kept if item["type"] == "function_call"]
            if not calls:
                text = reply.output_text
                break
            items += [
                {"type": "function_call_output", "call_id": call["call_id"], "output": "4 C"}
                for call in calls
            ]
    return text
