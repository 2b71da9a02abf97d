"""An HTTP client that keeps a conversation's thinking, for any SDK that takes one.

    from openai import OpenAI
    from reasoning_store.integrations import http

    client = OpenAI(http_client=http.client(store))

Requests of Chat Completions, Responses, Messages and Gemini's generateContent go out with the
thinking that their client lost, and their replies are stored; other requests pass through. The
reply is stored before its
last event is passed on, because an SDK stops reading there. Responses carry what was done in
``X-Reasoning-Restored``, ``X-Reasoning-Session`` and ``X-Reasoning-Store-Error``; a request may
name its session in ``X-Reasoning-Session``. A reply that an adapter stores is stored once.

Works with httpx2 and with httpx, synchronous and asynchronous.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from functools import cache, partial
from importlib import import_module
from types import ModuleType
from typing import Any, Final

import reasoning_store as rs
from reasoning_store.integrations.client_bodies import write_json
from reasoning_store.integrations.echo_matcher import EchoMatcher
from reasoning_store.integrations.exchange import (
    SESSION_HEADER,
    STORE_HEADER,
    Exchange,
    why_unstored,
)
from reasoning_store.integrations.gemini_bodies import host_of
from reasoning_store.integrations.store_access import (
    Settings,
    check_owner,
    recorded_session,
    run_in_thread,
)
from reasoning_store.results import Owner

_MODULES: Final = ("httpx2", "httpx")
_TIMEOUT: Final = 600.0
_STREAM: Final = "text/event-stream"


def client(store: Owner, *, module: str | None = None, **options: Any) -> Any:
    """Return a synchronous HTTP client for an SDK.

    ``module`` is ``"httpx2"`` or ``"httpx"``, the one that your SDK uses; without it, the first
    that is installed. ``settings`` are laid over those of the sessions. ``provider`` names the
    host where its address does not. ``session_id`` is the session of a request that names none.
    ``on_store_error`` is "pass" or "fail". Every other option is the client's own.
    """
    return _client(store, "Client", module, options)


def async_client(store: Owner, *, module: str | None = None, **options: Any) -> Any:
    """Return an asynchronous HTTP client for an SDK. See ``client``.

    ``aclose`` closes its connections; the client can be used again, also in another event loop.
    """
    return _client(store, "AsyncClient", module, options)


def transport(store: Owner, inner: Any, **options: Any) -> Any:
    """Return a transport around ``inner``, a transport of httpx or httpx2, of either kind."""
    name = type(inner).__mro__[-2].__module__.split(".")[0]
    module = _load(name if name in _MODULES else None)
    is_async = isinstance(inner, module.AsyncBaseTransport)
    return _transport_class(module, is_async)(_Keeper(store, module, **options), inner)


def _client(store: Owner, kind: str, name: str | None, options: dict[str, Any]) -> Any:
    module = _load(name)
    own = {key: options.pop(key) for key in _OWN & options.keys()}
    inner = options.pop("transport", None)
    is_async = kind == "AsyncClient"
    if inner is None:
        inner = module.AsyncHTTPTransport() if is_async else module.HTTPTransport()
    made = _transport_class(module, is_async)(_Keeper(store, module, **own), inner)
    options = {"timeout": _TIMEOUT, "follow_redirects": True, **options}
    return _client_class(module, is_async)(transport=made, **options)


_OWN: Final = {"settings", "provider", "session_id", "on_store_error"}


def _load(name: str | None) -> ModuleType:
    if name is not None and name not in _MODULES:
        raise rs.InvalidCall(f"module: one of {', '.join(_MODULES)}", hint='module="httpx2"')
    for one in _MODULES if name is None else (name,):
        try:
            return import_module(one)
        except ImportError:
            continue
    raise rs.MissingExtra(f"{name or 'httpx2 or httpx'} is not installed", extra="http")


class _Keeper:
    """One client's conversations: what is done before a request and after its response."""

    def __init__(
        self,
        store: Owner,
        module: ModuleType,
        *,
        settings: Settings = None,
        provider: str | None = None,
        session_id: str | None = None,
        on_store_error: str = "pass",
    ) -> None:
        self._store = check_owner(store)
        self._matcher_of = partial(EchoMatcher, provider=provider, on_store_error=on_store_error)
        self._matcher = self._matcher_of(store, settings=settings)
        self._session_id = session_id
        self._module = module

    def begin(self, request: Any) -> tuple[Any, Exchange | None]:
        """Return the request to send, and its exchange if it carries a conversation."""
        body = _read_object(request.content) if request.method == "POST" else None
        if body is None:
            return request, None
        url = request.url
        named = request.headers.get(SESSION_HEADER) or self._session_id
        recorded = recorded_session(self._store)
        matcher, unstored = self._matcher, why_unstored(body, request.headers)
        if recorded is not None and named in (None, recorded[1]):
            owner, named = recorded
            matcher = self._matcher_of(owner, settings=_DEMANDED_ALONE)
            unstored = "an adapter stores it"
        exchange = matcher.begin(
            body,
            path=url.path,
            base_url=_base_url(str(url)),
            session_id=named,
            unstored=unstored,
            headers=request.headers,
        )
        if exchange is None:
            return request, None
        headers = [
            (name, value)
            for name, value in request.headers.multi_items()
            if name.lower() not in _REPLACED
        ]
        # A stream is read on its way, and so it must not be compressed.
        headers += [("Accept-Encoding", "identity")]
        changed = self._module.Request(
            request.method,
            url,
            headers=headers,
            content=write_json(exchange.body),
            extensions=request.extensions,
        )
        return changed, exchange


_DEMANDED_ALONE: Final = {"reasoning.includeInContext": False}
"""An adapter that stores the replies has chosen the thoughts: those that it loses are added."""
_REPLACED: Final = frozenset(
    {"content-length", "accept-encoding", SESSION_HEADER.lower(), STORE_HEADER.lower()}
)


def _read_object(content: bytes) -> dict[str, Any] | None:
    """Return the JSON object that a request sends, if it sends one."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _base_url(url: str) -> str:
    """Return the address of a host without the path of one request."""
    without_query = host_of(url.partition("?")[0])
    for end in ("/chat/completions", "/responses", "/messages"):
        without_query = without_query.removesuffix(end)
    return without_query


def _is_recorded(response: Any) -> bool:
    return 200 <= int(response.status_code) < 300


def _is_stream(response: Any) -> bool:
    return str(response.headers.get("content-type", "")).startswith(_STREAM)


@cache
def _client_class(module: ModuleType, is_async: bool) -> Any:
    if not is_async:
        return module.Client

    class AsyncClient(module.AsyncClient):  # type: ignore[name-defined, misc]
        """Stays usable where an SDK is opened and closed for each request, as by Strands."""

        def __init__(self, *, transport: Any, **options: Any) -> None:
            super().__init__(transport=transport, **options)
            self._kept = transport

        async def aclose(self) -> None:
            await self._kept.aclose()

    return AsyncClient


@cache
def _transport_class(module: ModuleType, is_async: bool) -> Any:
    """Return the class of transports of a library: the same steps, waited for or awaited."""
    return _async_class(module) if is_async else _sync_class(module)


def _sync_class(module: ModuleType) -> Any:
    class Events(module.SyncByteStream):  # type: ignore[name-defined, misc]
        """A stream that is recorded while it is passed on."""

        def __init__(self, exchange: Exchange, inner: Any) -> None:
            self._exchange = exchange
            self._inner = inner

        def __iter__(self) -> Iterator[bytes]:
            exchange = self._exchange
            for piece in self._inner:
                is_last = exchange.feed(piece)
                if exchange.is_ready:
                    exchange.begin_stream()
                if is_last:
                    exchange.finish()
                yield piece
                if exchange.is_stopped:
                    break
            exchange.finish()

        def close(self) -> None:
            try:
                self._inner.close()
            finally:
                self._exchange.leave()

    class Transport(module.BaseTransport):  # type: ignore[name-defined, misc]
        """Keeps the thinking of the conversations that pass through it."""

        def __init__(self, keeper: _Keeper, inner: Any) -> None:
            self._keeper = keeper
            self._inner = inner

        def handle_request(self, request: Any) -> Any:
            if request.method == "POST":
                request.read()
            request, exchange = self._keeper.begin(request)
            response = self._inner.handle_request(request)
            if exchange is None:
                return response
            exchange.is_refused = not _is_recorded(response)
            if not exchange.is_refused:
                if _is_stream(response):
                    response.stream = Events(exchange, response.stream)
                else:
                    exchange.record(response.read())
            response.headers.update(exchange.headers)
            return response

        def close(self) -> None:
            self._inner.close()

    return Transport


def _async_class(module: ModuleType) -> Any:
    class Events(module.AsyncByteStream):  # type: ignore[name-defined, misc]
        """A stream that is recorded while it is passed on."""

        def __init__(self, exchange: Exchange, inner: Any) -> None:
            self._exchange = exchange
            self._inner = inner

        async def __aiter__(self) -> AsyncIterator[bytes]:
            exchange = self._exchange
            async for piece in self._inner:
                is_last = exchange.feed(piece)
                if exchange.is_ready:
                    await run_in_thread(exchange.begin_stream)
                if is_last:
                    await run_in_thread(exchange.finish)
                yield piece
                if exchange.is_stopped:
                    break
            await run_in_thread(exchange.finish)

        async def aclose(self) -> None:
            try:
                await self._inner.aclose()
            finally:
                await run_in_thread(self._exchange.leave)

    class AsyncTransport(module.AsyncBaseTransport):  # type: ignore[name-defined, misc]
        """Keeps the thinking of the conversations that pass through it."""

        def __init__(self, keeper: _Keeper, inner: Any) -> None:
            self._keeper = keeper
            self._inner = inner

        async def handle_async_request(self, request: Any) -> Any:
            if request.method == "POST":
                await request.aread()
            request, exchange = await run_in_thread(self._keeper.begin, request)
            response = await self._inner.handle_async_request(request)
            if exchange is None:
                return response
            exchange.is_refused = not _is_recorded(response)
            if not exchange.is_refused:
                if _is_stream(response):
                    response.stream = Events(exchange, response.stream)
                else:
                    await run_in_thread(exchange.record, await response.aread())
            response.headers.update(exchange.headers)
            return response

        async def aclose(self) -> None:
            await self._inner.aclose()

    return AsyncTransport
