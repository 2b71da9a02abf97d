"""Requests in each protocol, and small edits that break them.

One scenario everywhere, as in ``tests/cases/wire``: the weather in Oslo is asked, a tool is called
and answers.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from reasoning_store.testing import Record

Body: TypeAlias = dict[str, Any]
Edit: TypeAlias = Callable[[Any], object]

ARGUMENTS = '{"city":"Oslo"}'
SIGNATURE = "c2lnLWFiYw=="
CIPHER = "gAAAAAB-enc"


def tool_call(id: str = "call_1") -> Body:
    function = {"name": "get_weather", "arguments": ARGUMENTS}
    return {"id": id, "type": "function", "function": function}


def chat(model: str, *, calls: str = "call_1", reply: Body | None = None, **top: Any) -> Body:
    """Return an open loop in Chat Completions; ``reply`` is laid over the model's message."""
    return {
        "model": model,
        "messages": [
            {"role": "user", "content": "Weather in Oslo?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [tool_call(calls)],
                **(reply or {}),
            },
            {"role": "tool", "tool_call_id": calls, "content": "4 C"},
        ],
        **top,
    }


def closed(body: Body) -> Body:
    """Return the same conversation with an answer and a further question after it."""
    said = [
        {"role": "assistant", "content": "It is 4 C in Oslo."},
        {"role": "user", "content": "And Bergen?"},
    ]
    return {**body, "messages": [*body["messages"], *said]}


def thought(field: str = "reasoning_content") -> Body:
    return {field: "Need the weather tool."}


def messages(model: str, *, think: bool = True, **top: Any) -> Body:
    """Return an open loop in the Messages protocol."""
    use = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Oslo"}}
    sealed = [
        {"type": "thinking", "thinking": "Need the weather tool.", "signature": SIGNATURE},
        {"type": "redacted_thinking", "data": "RU5D"},
    ]
    return {
        "model": model,
        "max_tokens": 4_096,
        "messages": [
            {"role": "user", "content": "Weather in Oslo?"},
            {"role": "assistant", "content": [*(sealed if think else []), use]},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "4 C"}],
            },
        ],
        **top,
    }


def at_vertex(model: str, **top: Any) -> Body:
    """Return the same for the host that has the model in its address."""
    named = {"anthropic_version": "vertex-2023-10-16"}
    return {**named, **{key: v for key, v in messages(model, **top).items() if key != "model"}}


def remembered(loop: Body) -> Record:
    """Return what the provider remembers of having led to a loop of one call."""
    record = Record()
    record.answered({**loop, "messages": loop["messages"][:1]}, loop["messages"][1]["content"])
    return record


def remembered_items() -> Record:
    """Return what the provider remembers of having answered in ``items``."""
    record = Record()
    record.answered({}, items()["input"][1:3])
    return record


def converse(*, think: bool = True, **top: Any) -> Body:
    """Return an open loop in Converse."""
    use = {"toolUse": {"toolUseId": "tu_1", "name": "get_weather", "input": {"city": "Oslo"}}}
    sealed = [
        {"reasoningContent": {"reasoningText": {"text": "Plan.", "signature": SIGNATURE}}},
        {"reasoningContent": {"redactedContent": "RU5D"}},
    ]
    return {
        "messages": [
            {"role": "user", "content": [{"text": "Weather in Oslo?"}]},
            {"role": "assistant", "content": [*(sealed if think else []), use]},
            {
                "role": "user",
                "content": [{"toolResult": {"toolUseId": "tu_1", "content": [{"text": "4 C"}]}}],
            },
        ],
        "toolConfig": {"tools": [{"toolSpec": {"name": "get_weather"}}]},
        **top,
    }


def contents(*, signature: str | None = SIGNATURE, **top: Any) -> Body:
    """Return an open loop of two parallel calls in generateContent."""
    call = {"functionCall": {"id": "1", "name": "get_weather", "args": {"city": "Oslo"}}}
    answer = {"functionResponse": {"id": "1", "name": "get_weather", "response": {"result": "4 C"}}}
    sealed = {**call, "thoughtSignature": signature} if signature else call
    return {
        "contents": [
            {"role": "user", "parts": [{"text": "Weather in Oslo and Bergen?"}]},
            {
                "role": "model",
                "parts": [{"text": "Need the tool.", "thought": True}, sealed, call],
            },
            {"role": "user", "parts": [answer, answer]},
        ],
        **top,
    }


def items(model: str = "gpt-5.6", **top: Any) -> Body:
    """Return an open loop in Responses, stateless."""
    return {
        "model": model,
        "store": False,
        "input": [
            {"role": "user", "content": "Weather in Oslo?"},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": CIPHER},
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "call_1",
                "name": "get_weather",
                "arguments": ARGUMENTS,
            },
            {"type": "function_call_output", "call_id": "call_1", "output": "4 C"},
        ],
        **top,
    }


DETAILS = [
    {
        "type": "reasoning.text",
        "text": "Need the weather tool.",
        "signature": SIGNATURE,
        "format": "anthropic-claude-v1",
        "index": 0,
    },
    {
        "type": "reasoning.encrypted",
        "data": "RU5D",
        "format": "anthropic-claude-v1",
        "index": 1,
    },
]
FRAGMENTS = [
    {"type": "reasoning.text", "text": "Need the ", "index": 0},
    {"type": "reasoning.text", "text": "weather tool.", "index": 0},
]


def edited(body: Body, edit: Edit) -> Body:
    """Return a copy of a body, with something done to it."""
    out = copy.deepcopy(body)
    edit(out)
    return out


@dataclass(frozen=True, slots=True)
class Case:
    """What is refused, by whom, with which words; ``mended`` is accepted."""

    says: str
    provider: str
    broken: Body
    mended: Body
    model: str | None = None
    api: str | None = None
    record: Record | None = None


def case(says: str, provider: str, mended: Body, edit: Edit, **given: Any) -> Case:
    """Return a case whose broken body is the mended one with something done to it."""
    return Case(says, provider, edited(mended, edit), mended, **given)


def put(*path: Any) -> Edit:
    """Return an edit: the last of ``path`` is put where the rest leads."""
    *keys, last, value = path

    def edit(body: Any) -> None:
        for key in keys:
            body = body[key]
        body[last] = value

    return edit


def drop(*path: Any) -> Edit:
    """Return an edit that takes out what stands at a path."""
    *keys, last = path

    def edit(body: Any) -> None:
        for key in keys:
            body = body[key]
        del body[last]

    return edit


def insert(*path: Any) -> Edit:
    """Return an edit: the last of ``path`` is inserted into a list, before it."""
    *keys, place, value = path

    def edit(body: Any) -> None:
        for key in keys:
            body = body[key]
        body.insert(place, value)

    return edit


V4 = "deepseek-flash"
MANUAL: dict[str, Any] = {"thinking": {"type": "enabled", "budget_tokens": 2_048}}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {}}}]
M = "messages"
