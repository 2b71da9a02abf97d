"""Bodies of requests, read up to a limit."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from reasoning_store.server.problems import problem


class Body(NamedTuple):
    """A JSON object, and its bytes as the client sent them."""

    content: bytes
    value: dict[str, Any]


async def read_body(
    request: Request, largest: int, *, may_be_empty: bool = False
) -> Body | Response:
    """Return a request's body, or why it is refused; one that is too large is not read."""
    path = request.url.path
    length = request.headers.get("content-length", "")
    content: bytes | None = b"" if not length.isdigit() or int(length) <= largest else None
    if content is not None:
        content = await _read_up_to(request, largest)
    if content is None:
        text = f"the body has more than {largest} bytes"
        return problem(path, 413, text, code="body_too_large", headers={"Connection": "close"})
    if may_be_empty and not content:
        return Body(b"", {})
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        return problem(path, 400, "the body is not a JSON object", code="invalid_json")
    return Body(content, value)


async def _read_up_to(request: Request, largest: int) -> bytes | None:
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > largest:
            return None
        pieces.append(piece)
    return b"".join(pieces)
