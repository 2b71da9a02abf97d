"""The provider before which the server stands while foreign suites run: whole, and strict.

It refuses a request that misses the reasoning which its protocol demands, and answers any other
in full: every field that a strict client wants is there.
"""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import reasoning_store as rs
from reasoning_store.testing import refusal, response, sse, stream

_PROVIDERS = {
    "openai.chat": "openai",
    "openai.responses": "openai",
    "anthropic.messages": "anthropic",
}
_USAGE = rs.Usage(input=40, output=12, reasoning=5, cached=0, cache_write=0)
_SETTINGS: dict[str, Any] = {
    "background": False,
    "error": None,
    "frequency_penalty": 0.0,
    "incomplete_details": None,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "presence_penalty": 0.0,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": None,
    "safety_identifier": None,
    "service_tier": "default",
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
}
_numbers = count(1)


def make_provider() -> Starlette:
    """Return the provider."""
    return Starlette(
        routes=[
            Route("/v1/chat/completions", _answer("openai.chat"), methods=["POST"]),
            Route("/v1/responses", _answer("openai.responses"), methods=["POST"]),
            Route("/v1/responses/compact", _compact, methods=["POST"]),
            Route("/v1/messages", _answer("anthropic.messages"), methods=["POST"]),
            Route("/v1/messages/count_tokens", _count, methods=["POST"]),
            Route("/v1/models", _list_models),
            Route("/v1/models/{id:path}", _model),
        ]
    )


def _answer(api: str) -> Any:
    async def answer(request: Request) -> Response:
        body = await request.json()
        model, provider = body.get("model") or "a-model", _PROVIDERS[api]
        refused = refusal(body, provider=provider, model=model, api=api) if _asks(body) else None
        if refused is not None:
            return JSONResponse({"error": {"message": refused, "type": "x"}}, 400)
        names: dict[str, Any] = {"api": api, "provider": provider, "model": model}
        number = next(_numbers)
        message = await asyncio.to_thread(_reply, body, f"resp_{number:040}")
        is_whole = api == "openai.responses"
        if body.get("stream"):
            events = [
                _whole(event, body) if is_whole else event for event in stream(message, **names)
            ]
            return Response(sse(events, api=api), media_type="text/event-stream")
        made = response(message, **names)
        return JSONResponse(_whole_response(made, body) if is_whole else made)

    return answer


def _asks(body: dict[str, Any]) -> bool:
    """Whether a body has messages: OpenAI's may have a prompt that is stored there instead."""
    return any(isinstance(body.get(name), list) for name in ("messages", "input"))


def _reply(body: dict[str, Any], id: str) -> rs.Message:
    text = rs.TextBlock(text="It is 4 C in Oslo.", provider_metadata={"item_id": f"msg_{id[5:]}"})
    blocks: list[rs.Block] = [text]
    tools = [tool for tool in body.get("tools") or () if tool.get("type", "custom") == "function"]
    if tools and body.get("tool_choice") != "none":
        tool = tools[0].get("function") or tools[0]
        metadata = {"item_id": f"fc_{id[5:]}"}
        name = str(tool["name"])
        call = rs.ToolCallBlock(
            id=f"call_{id[-8:]}",
            name=name,
            parameters={"location": "Oslo"},
            provider_metadata=metadata,
        )
        blocks = [call]
    return rs.assistant(*blocks, usage=_USAGE, origin=rs.Origin(response_id=id))


def _whole(event: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """Return an event of a stream with every field that a strict client wants."""
    found = dict(event)
    if "response" in found:
        found["response"] = _whole_response(found["response"], body)
    if "item" in found:
        found["item"] = _whole_item(found["item"])
    if "part" in found:
        found["part"] = _whole_part(found["part"])
    if found["type"].startswith("response.output_text."):
        found["logprobs"] = []
    return found


def _whole_response(made: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """Return a response with the settings of its request, which it repeats."""
    echoed = {name: body[name] for name in _SETTINGS if body.get(name) is not None}
    ended = {"completed_at": 2 if made["status"] == "completed" else None}
    output = [_whole_item(item) for item in made["output"]]
    tools = [{"description": None, "strict": True, **one} for one in body.get("tools") or ()]
    whole = {"usage": None, **_SETTINGS, **made, **echoed, **ended, "output": output}
    return {**whole, "tools": tools}


def _whole_item(item: dict[str, Any]) -> dict[str, Any]:
    content = [_whole_part(part) for part in item.get("content") or ()]
    return {"status": "completed", **item, **({"content": content} if "content" in item else {})}


def _whole_part(part: dict[str, Any]) -> dict[str, Any]:
    return {**part, "logprobs": []} if part.get("type") == "output_text" else part


async def _compact(request: Request) -> Response:
    body = await request.json()
    if not body.get("model"):
        return JSONResponse({"error": {"message": "model is missing", "type": "x"}}, 400)
    sealed = {"id": "cmp_1", "type": "compaction", "encrypted_content": "gAAAAB"}
    return JSONResponse(
        {
            "id": "resp_compacted",
            "object": "response.compaction",
            "created_at": 1,
            "output": [sealed],
            "usage": response(
                rs.assistant("x", usage=_USAGE), api="openai.responses", provider="openai"
            )["usage"],
        }
    )


async def _count(request: Request) -> Response:
    return JSONResponse({"input_tokens": 7})


def _one_model(request: Request, id: str) -> dict[str, Any]:
    if "anthropic-version" in request.headers:
        at = "2026-01-01T00:00:00Z"
        made = {"type": "model", "display_name": id, "created_at": at, "lifecycle": "active"}
        return {"id": id, **made}
    return {"id": id, "object": "model", "created": 1, "owned_by": "us"}


async def _list_models(request: Request) -> Response:
    models = [_one_model(request, "a-model")]
    page = {"data": models, "has_more": False, "first_id": "a-model", "last_id": "a-model"}
    return JSONResponse({"object": "list", **page})


async def _model(request: Request) -> Response:
    return JSONResponse(_one_model(request, request.path_params["id"]))
