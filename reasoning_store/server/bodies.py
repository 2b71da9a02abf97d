"""Bodies of requests, read up to a limit."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from starlette.requests import Request

from reasoning_store.server.problems import Refused, problem


class Body(NamedTuple):
    """A JSON object, and its bytes as the client sent them."""

    content: bytes
    value: dict[str, Any]


async def read_body(request: Request, largest: int, *, may_be_empty: bool = False) -> Body:
    """Return a request's body; raise ``Refused`` for one that is too large or no JSON object."""
    path = request.url.path
    content = await read_up_to(request, largest)
    if content is None:
        text = f"the body has more than {largest} bytes"
        headers = {"Connection": "close"}
        raise Refused(problem(path, 413, text, code="body_too_large", headers=headers))
    if may_be_empty and not content:
        return Body(b"", {})
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Refused(problem(path, 400, "the body is not a JSON object", code="invalid_json"))
    return Body(content, value)


async def read_up_to(request: Request, largest: int) -> bytes | None:
    """Return a request's body; ``None`` if it is larger, and then its rest is not read."""
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > largest:
        return None
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > largest:
            return None
        pieces.append(piece)
    return b"".join(pieces)
