"""Bodies of requests, read within the limits."""

from __future__ import annotations

import asyncio
import json
import zlib
from typing import Any, Final, NoReturn

from starlette.requests import Request

from reasoning_store.server.limits import Limits
from reasoning_store.server.problems import Refused, problem

PACKED: Final = frozenset({"gzip", "x-gzip", "deflate"})
"""The encodings of bodies that are unpacked."""
_LISTS = ("messages", "input", "items", "contents")
"""The names under which a body has its messages."""


async def read_body(request: Request, *, may_be_empty: bool = False) -> dict[str, Any]:
    """Return the JSON object of a request's body; raise ``Refused`` for any other body.

    Send it on as JSON of our own: of a key given twice we have read the last value, and another
    parser might read the first.
    """
    path, limits = request.url.path, request.state.limits
    content = _unpack(request, await read_up_to(request, limits.body_bytes))
    if may_be_empty and not content:
        return {}
    try:
        value = json.loads(content, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Refused(problem(path, 400, "the body is not a JSON object", code="invalid_json"))
    if text := _find_excess(value, limits):
        raise Refused(problem(path, 400, text, code="body_too_large"))
    return value


async def read_up_to(request: Request, largest: int) -> bytes:
    """Return a request's body; raise ``Refused`` if it is too large or does not come in time."""
    seconds = request.state.limits.body_seconds
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > largest:
        _refuse_rest(request, 413, f"the body has more than {largest} bytes")
    pieces, size = [], 0
    try:
        async with asyncio.timeout(seconds):
            async for piece in request.stream():
                size += len(piece)
                if size > largest:
                    _refuse_rest(request, 413, f"the body has more than {largest} bytes")
                pieces.append(piece)
    except TimeoutError:
        _refuse_rest(request, 408, f"the body did not come within {seconds:g} seconds")
    return b"".join(pieces)


def _unpack(request: Request, content: bytes) -> bytes:
    """Return a body without its encoding; refuse one that is too large without it."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding in ("identity", ""):
        return content
    path, most = request.url.path, request.state.limits.body_bytes
    if encoding not in PACKED:
        text = "Content-Encoding: gzip or deflate, or none"
        raise Refused(problem(path, 415, text, code="unknown_encoding"))
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        unpacked = unpacking.decompress(content, most + 1)
    except zlib.error:
        unpacked = b""
    if len(unpacked) > most:
        text = f"the body has more than {most} bytes"
        raise Refused(problem(path, 413, text, code="body_too_large"))
    if not unpacking.eof:
        text = f"the body is not in the encoding {encoding}"
        raise Refused(problem(path, 400, text, code="invalid_encoding"))
    return unpacked


def _refuse_rest(request: Request, status: int, text: str) -> NoReturn:
    """Refuse a request whose body is not read to its end."""
    code = "body_too_large" if status == 413 else "body_too_slow"
    headers = {"Connection": "close"}
    raise Refused(problem(request.url.path, status, text, code=code, headers=headers))


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _find_excess(body: dict[str, Any], limits: Limits) -> str | None:
    """Return what a body has too much of, in words."""
    for name in _LISTS:
        found = body.get(name)
        if isinstance(found, list) and len(found) > limits.messages:
            return f"{name}: more than {limits.messages} messages"
    level: list[Any] = [body]
    for _ in range(limits.nesting):
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return None
    return f"the body is nested deeper than {limits.nesting}"
