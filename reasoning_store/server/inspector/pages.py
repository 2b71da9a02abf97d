"""The answers with pages: the headers of each, and the token of every form."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from reasoning_store.server.bodies import read_up_to
from reasoning_store.server.inspector.rendering import template

_CSP: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": _CSP,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # without one a form's origin would be "null"
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_COOKIE: Final = "reasoning_store_form"
_FIELD: Final = "form_token"


def render_page(request: Request, name: str, values: dict[str, Any], status: int = 200) -> Response:
    """Return a page, and the cookie that its forms' token is compared with."""
    token = request.cookies.get(_COOKIE) or secrets.token_urlsafe(24)
    text = template(name).render(form_token=token, **values)
    response = HTMLResponse(text, status, headers=HEADERS)
    response.set_cookie(
        _COOKIE, token, httponly=True, samesite="strict", secure=request.url.scheme == "https"
    )
    return response


async def read_form(request: Request) -> list[tuple[str, str]]:
    """Return the fields of a form that one of our own pages has sent."""
    body = await read_up_to(request, request.state.limits.form_bytes)
    fields = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
    given, cookie = dict(fields).get(_FIELD, ""), request.cookies.get(_COOKIE, "")
    if not cookie or not secrets.compare_digest(given.encode(), cookie.encode()):
        raise HTTPException(403)
    return [(name, value) for name, value in fields if name != _FIELD]


def pairs(request: Request) -> Sequence[tuple[str, str]]:
    """Return the names and values of an address."""
    return request.query_params.multi_items()
