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
        if body.get("stream"):
            return Response(sse(stream(message, **names), api=api), media_type="text/event-stream")
        made = response(message, **names)
        return JSONResponse({**_echoed(body), **made} if api == "openai.responses" else made)

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


def _echoed(body: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a request, which a response repeats."""
    names = "instructions max_output_tokens metadata temperature top_p tool_choice tools truncation"
    return {name: body[name] for name in names.split() if body.get(name) is not None}


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
