"""The checks of Host, Origin and token before every route.

A page of another site cannot call a server on this machine: a name that is not ours is refused
(a site whose name was bound to this address), and so is an origin that is not ours. A token
names its owner, whose sessions alone a request sees.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
from contextlib import suppress
from typing import Final
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from reasoning_store import Store
from reasoning_store.results import Owner
from reasoning_store.server.bodies import read_up_to
from reasoning_store.server.options import OPERATOR, ServerOptions, token_digest
from reasoning_store.server.problems import Refused, problem

TOKEN_HEADER: Final = "X-Reasoning-Token"
KEY_HEADERS: Final = ("authorization", "x-api-key", "api-key", "x-goog-api-key")
"""Headers of a provider's key, in which a client may send our token instead."""
_COOKIE: Final = "reasoning_store"
_SIGN_IN: Final = "/sign-in"
_POLICY: Final = "default-src 'none'; form-action 'self'; frame-ancestors 'none'"
METRICS: Final = "/metrics"
_OPEN: Final = frozenset({"/healthz"})
"""Paths that need no token and are called by any name."""
_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>reasoning-store</title>
<meta name="viewport" content="width=device-width"></head>
<body><main><h1>reasoning-store</h1>
<form method="post" action="/sign-in">
<label>Token <input type="password" name="token" autocomplete="current-password" required></label>
<button>Sign in</button></form></main></body></html>
"""


def request_owner(request: Request) -> Owner:
    """Return the owner of a request: its sessions are all that the request may see."""
    owner = request.state.owner
    assert isinstance(owner, Owner)
    return owner


class Access:
    """Lets a request pass that comes by our name, from our pages, with a token."""

    def __init__(self, app: ASGIApp, store: Store, options: ServerOptions) -> None:
        self._app = app
        self._store = store
        self._options = options
        self._places: dict[str, asyncio.Semaphore] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path, headers = scope["path"], Headers(scope=scope)
        state = scope.setdefault("state", {})
        state["limits"] = self._options.limits
        if path in _OPEN:
            await self._app(scope, receive, send)
            return
        refusal = self._refuse_size(scope, headers) or self._refuse_caller(path, headers)
        if refusal is None and self._options.tokens and path == _SIGN_IN:
            refusal = await self._sign_in(Request(scope, receive))
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        owner = self._find_owner(headers)
        if owner is None or (self._is_operator(owner) and path != METRICS):
            await self._refuse_token(scope, headers)(scope, receive, send)
            return
        most = self._options.limits.parallel_work
        state["places"] = self._places.setdefault(owner, asyncio.Semaphore(most))
        state["owner_name"], state["owner"] = owner, self._store.for_owner(owner)
        await self._app(scope, receive, send)

    def _refuse_size(self, scope: Scope, headers: Headers) -> Response | None:
        most = self._options.limits.header_bytes
        size = len(scope["raw_path"]) + len(scope["query_string"])
        if size + sum(len(name) + len(value) for name, value in headers.raw) <= most:
            return None
        text = f"the path and the headers have more than {most} bytes"
        return problem(scope["path"], 431, text, code="headers_too_large")

    def _refuse_caller(self, path: str, headers: Headers) -> Response | None:
        named = headers.get("host", "")
        name = _host_name(named)
        if not (_is_address(name) or name == "localhost" or name in self._options.hosts):
            return problem(
                path,
                403,
                "this server is not called by the name in the header Host; pass --allow-host NAME",
                code="unknown_host",
            )
        origin = headers.get("origin")
        if origin is None or origin in self._options.origins:
            return None
        if _origin_place(origin) == named.lower():
            return None
        return problem(
            path,
            403,
            "scripts of this origin may not call this server; pass --allow-origin URL",
            code="unknown_origin",
        )

    def _find_owner(self, headers: Headers) -> str | None:
        """Return the owner of a request."""
        options = self._options
        if not options.tokens:
            return options.owner
        given = headers.get(TOKEN_HEADER)
        if given is not None:
            return options.tokens.get(token_digest(given))
        for name in KEY_HEADERS:
            key = headers.get(name, "").rpartition(" ")[2]  # after a scheme, such as Bearer
            if (owner := options.tokens.get(token_digest(key))) is not None:
                return owner
        cookie = Request({"type": "http", "headers": headers.raw}).cookies.get(_COOKIE, "")
        return self._cookie_owner(cookie)

    def _is_operator(self, owner: str) -> bool:
        return bool(self._options.tokens) and owner == OPERATOR

    def _refuse_token(self, scope: Scope, headers: Headers) -> Response:
        if scope["method"] == "GET" and "text/html" in headers.get("accept", ""):
            return _sign_in_page(401)
        return problem(
            scope["path"],
            401,
            f"a token of this server is needed: in {TOKEN_HEADER}, or as the API key",
            code="invalid_api_key",
            headers={"WWW-Authenticate": "Bearer"},
        )

    async def _sign_in(self, request: Request) -> Response:
        """Give a browser whose form has a token a cookie instead of the token."""
        if request.method != "POST":
            return _sign_in_page(200)
        try:
            form = await read_up_to(request, self._options.limits.form_bytes)
        except Refused as refused:
            return refused.response
        token = parse_qs(form.decode("latin-1")).get("token", [""])[0]
        owner = self._options.tokens.get(token_digest(token))
        if owner is None or owner == OPERATOR:
            return _sign_in_page(401)
        response = RedirectResponse("/", 303)
        secure = request.url.scheme == "https"
        value = self._cookie_of(owner)
        response.set_cookie(_COOKIE, value, httponly=True, samesite="strict", secure=secure)
        return response

    def _cookie_of(self, owner: str) -> str:
        """Return the signed cookie of an owner; any worker of the server reads it."""
        name = owner.encode()
        signed = hmac.digest(self._options.cookie_key, name, "sha256")
        return f"{name.hex()}.{signed.hex()}"

    def _cookie_owner(self, cookie: str) -> str | None:
        with suppress(ValueError):
            owner = bytes.fromhex(cookie.partition(".")[0]).decode()
            if hmac.compare_digest(cookie.encode(), self._cookie_of(owner).encode()):
                return owner
        return None


def _sign_in_page(status: int) -> Response:
    return HTMLResponse(_PAGE, status, headers={"Content-Security-Policy": _POLICY})


def _host_name(host: str) -> str:
    """Return the name of a Host header, without its port."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _origin_place(origin: str) -> str | None:
    """Return the name and the port of an Origin header."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _is_address(name: str) -> bool:
    """Whether a name is a bare address, which no site can bind to another machine."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
