"""The gateway: a client's requests go to the provider with the thinking that the client lost.

A reply is passed on as it comes, and stored before its last event is passed on. A store that
fails does not end the chat, unless ``on_store_error`` is fail. Echo matching is that of the HTTP
transport.
"""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import httpx2
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

import reasoning_store as rs
from reasoning_store import Store
from reasoning_store.integrations.client_bodies import find_form, write_json
from reasoning_store.integrations.clients import Titles
from reasoning_store.integrations.echo_matcher import EchoMatcher
from reasoning_store.integrations.exchange import SESSION_HEADER, Exchange, why_unstored
from reasoning_store.results import Contracts, Owner
from reasoning_store.server.access import request_owner
from reasoning_store.server.bodies import read_body, read_up_to
from reasoning_store.server.counting import count_body
from reasoning_store.server.journal import log
from reasoning_store.server.options import MODES, Mode, ServerOptions
from reasoning_store.server.problems import Refused, problem, store_problem
from reasoning_store.server.relay import Relay, UnsavedReplies, describe_failure
from reasoning_store.server.reply_modes import (
    Rewriter,
    WholeEvents,
    make_rewriter,
    rewrites,
)
from reasoning_store.server.stored_responses import (
    NamedConversation,
    ResponseFields,
    ask_for_seals,
    find_named,
)
from reasoning_store.server.threads import run_to_end, run_work
from reasoning_store.server.tracing import find_call
from reasoning_store.server.upstream import (
    MODE_HEADER,
    NO_ROUTE,
    Upstream,
    asked_path,
    returned_headers,
    stores_nothing,
)

EXPLANATION_HEADER: Final = "X-Reasoning-Explanation"
_MOST_EXPLAINED: Final = 64 * 1024
_LEADS_AWAY: Final = re.compile(r"[/\\](\.{1,2}(;[^/\\]*)?)?[/\\]|[/\\]\.{1,2}(;[^/\\]*)?$")
"""Names in a path by which another one is meant; some hosts leave out what follows a semicolon."""
_AWAY: Final = frozenset({502, 504})
"""The statuses of a provider that does not answer."""
_STREAM: Final = "text/event-stream"
_FIRST_PATH: Final = "/v1/chat/completions"
_FIRST: Final[dict[str, Any]] = {"messages": [{"role": "user", "content": "?"}]}
"""A request as the first may be: a server that has read it has loaded what requests need."""
_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
_UNBUFFERED: Final = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


class Gateway:
    """Passes requests on to one provider, and keeps their conversations."""

    def __init__(self, options: ServerOptions) -> None:
        assert options.upstream is not None
        self._options = options
        self._upstream = Upstream(options.upstream, options)
        self._unsaved = UnsavedReplies()
        self._titles = defaultdict[str, Titles](Titles)
        self._fails = options.on_store_error == "fail"

    def routes(self) -> list[BaseRoute]:
        """Return the routes, each also below the name of a mode: ``/render/v1/...``."""
        routes: list[BaseRoute] = []
        for prefix in ("", *(f"/{mode}" for mode in MODES)):
            routes += [
                Route(f"{prefix}/v1/{name}", self.chat, methods=["POST"])
                for name in ("chat/completions", "responses", "messages")
            ]
            routes += [
                Route(f"{prefix}/{{path:gemini}}", self.chat, methods=["POST"]),
                Route(f"{prefix}/v1/models", self.pass_on, methods=["GET"]),
                Route(f"{prefix}/v1/models/{{model:path}}", self.pass_on, methods=["GET"]),
                Route(f"{prefix}/v1/messages/count_tokens", self.count, methods=["POST"]),
                Route(f"{prefix}/v1/responses/compact", self.compact, methods=["POST"]),
                Route(f"{prefix}/{{path:elsewhere}}", self.pass_unchanged, methods=_METHODS),
            ]
        return routes

    def make_ready(self, store: Store) -> None:
        """Load what all requests share, and read the schema of the store; it may fail meanwhile."""
        load_shared()
        matcher = EchoMatcher(store.for_owner(self._options.owner))
        base_url = self._upstream.base_url
        with suppress(rs.ReasoningStoreError):
            matcher.begin(_FIRST, path=_FIRST_PATH, base_url=base_url, unstored="counted")

    async def close(self) -> None:
        await self._upstream.close()
        await asyncio.to_thread(self._unsaved.save)

    @property
    def names(self) -> dict[str, str | None]:
        """The provider and its address."""
        return {"provider": self._options.provider, "base_url": self._upstream.base_url}

    async def chat(self, request: Request) -> Response:
        """Answer a request that carries a conversation."""
        path, mode = self._split_path(request)
        if (refusal := _refuse_path(path)) is not None:
            return refusal
        if mode is None:
            return _refuse_mode(path, f"{MODE_HEADER}: one of {', '.join(MODES)}")
        if not rewrites(mode, path):
            return _refuse_mode(path, f"{MODE_HEADER}: this protocol is served in mirror alone")
        body: Mapping[str, Any] = await read_body(request)
        session_id, unstored = _named_session(request), why_unstored(body, request.headers)
        named = None
        if path == "/v1/responses":
            contracts = request_owner(request).contracts
            asked = body if unstored else ask_for_seals(body, contracts, **self.names)
            named = await self._find_named(request, asked)
            body, session_id = (asked, session_id) if named is None else named[:2]
        exchange = await self._begin(request, path, body, session_id, unstored=unstored)
        if named is not None and exchange is not None:
            exchange.metadata = named.metadata
        shows = mode == "mirror" or await asyncio.to_thread(
            _shows_thinking, request_owner(request), exchange
        )
        if exchange is not None:
            exchange.is_rendered = mode == "render" and shows
        names = exchange.names if exchange is not None else self.names
        rewriter = make_rewriter(mode, path, shows_thinking=shows, names=names)
        try:
            response = await self._send(request, path, body, exchange)
        except httpx2.HTTPError as error:
            return _refuse_upstream(path, error, exchange)
        if exchange is not None and self._fails and _is_stream(response) and not exchange.needs_id:
            try:
                await run_to_end(exchange.begin_stream)
            except rs.ReasoningStoreError as error:
                await response.aclose()
                raise Refused(store_problem(path, error, 503)) from error
        if named is not None:
            rewriter = ResponseFields(named.answered)
        return await self._relay(path, response, exchange, rewriter)

    async def _begin(
        self,
        request: Request,
        path: str,
        body: Mapping[str, Any],
        session_id: str | None,
        *,
        unstored: str | None = None,
    ) -> Exchange | None:
        """Return the exchange of a request, its thinking put back."""
        matcher = EchoMatcher(
            request_owner(request),
            provider=self._options.provider,
            on_store_error=self._options.on_store_error,
            titles=self._titles[request.state.owner_name],
        )
        try:
            if self._unsaved.is_waiting:
                await asyncio.to_thread(self._unsaved.save)
            return await run_work(
                request,
                matcher.begin,
                body,
                path=path,
                base_url=self._upstream.base_url,
                session_id=session_id,
                headers=request.headers,
                unstored=unstored,
                takes_reply_id=path == "/v1/responses",
            )
        except rs.ReasoningStoreError as error:
            if session_id is not None and isinstance(error, rs.InvalidCall):
                raise  # of the id that the client gave
            raise Refused(store_problem(path, error, 503)) from error
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            # We cannot read it; the provider answers.
            if self._fails:
                raise
            log.warning('{"unread": "%s"}', type(error).__name__)
            return None

    async def _relay(
        self,
        path: str,
        response: httpx2.Response,
        exchange: Exchange | None,
        rewriter: Rewriter,
    ) -> Response:
        """Return a provider's response as the client gets it."""
        if exchange is not None:
            exchange.is_refused = not response.is_success
        headers = returned_headers(response, exchange.headers if exchange else {})
        if _is_stream(response):
            headers |= _UNBUFFERED
            return Relay(path, response, exchange, rewriter, headers, self._unsaved)
        try:
            content = await response.aread()
        except httpx2.HTTPError as error:
            return _refuse_upstream(path, error, exchange)
        finally:
            await response.aclose()
        if not response.is_success:
            headers |= self._explain(content)
            return Response(content, response.status_code, headers)
        if exchange is not None:
            try:
                await run_to_end(exchange.record, content)
            except rs.ReasoningStoreError as error:
                raise Refused(store_problem(path, error, 503)) from error
            finally:
                self._unsaved.add(exchange)
            headers |= exchange.headers
        content = rewriter.rewrite_whole(content)
        return Response(content, response.status_code, headers)

    def _explain(self, content: bytes) -> dict[str, str]:
        """Return the header that explains a provider's refusal, where it is known."""
        text = content[:_MOST_EXPLAINED].decode("utf-8", "replace")
        found = rs.explain_refusal(self._options.provider, text)
        if found is None:
            return {}
        return {EXPLANATION_HEADER: str(found).encode("ascii", "replace").decode()}

    async def pass_on(self, request: Request, body: Mapping[str, Any] | None = None) -> Response:
        """Pass a request on that carries no conversation of ours."""
        path, _ = self._split_path(request)
        return _refuse_path(path) or await self._forward(request, path, body)

    async def pass_unchanged(self, request: Request) -> Response:
        """Pass a request on with its bytes as they are, and its response as it comes."""
        path = request.url.path
        if (refusal := _refuse_path(path)) is not None:
            return refusal
        if self._options.shares_key and not stores_nothing(request):
            text = "the owners here share the provider's key, and it could store something there"
            return problem(path, 403, text, code="shared_key")
        content = await read_up_to(request, request.state.limits.body_bytes)
        query = request.url.query
        try:
            response = await self._upstream.send(
                request.method,
                asked_path(request),
                request.headers,
                content,
                query=query,
                is_read=False,
            )
        except httpx2.HTTPError as error:
            return _refuse_upstream(path, error, None)
        length = response.headers.get("content-length")
        headers = returned_headers(response, {} if length is None else {"Content-Length": length})
        return Relay(path, response, None, None, headers, self._unsaved)

    async def count(self, request: Request) -> Response:
        """Count the tokens of a request as it would be sent: with its thinking."""
        path, _ = self._split_path(request)
        body = await read_body(request)
        asked = path.removesuffix("/count_tokens")
        exchange = await self._begin(
            request, asked, body, _named_session(request), unstored="counted"
        )
        answer = await self._forward(request, path, body, exchange)
        if not _lacks_route(answer, body.get("model")):
            return answer
        # The host has no such route, or it is away: a client that counts goes on all the same.
        sent = exchange.body if exchange else body
        counted = await run_work(
            request, self._count_here, asked, sent, request_owner(request).contracts
        )
        headers = exchange.headers if exchange else {}
        return JSONResponse({"input_tokens": counted}, headers=headers)

    async def compact(self, request: Request) -> Response:
        """Have the provider compact a conversation, which it is sent with its thinking."""
        path, _ = self._split_path(request)
        body: Mapping[str, Any] = await read_body(request)
        session_id = _named_session(request)
        found = await self._find_named(request, body)
        if found is not None:
            body, session_id, _ = found
            body = {name: value for name, value in body.items() if name != "store"}
        exchange = await self._begin(
            request, "/v1/responses", body, session_id, unstored="compacted"
        )
        return await self._forward(request, path, body, exchange)

    async def _forward(
        self,
        request: Request,
        path: str,
        body: Mapping[str, Any] | None,
        exchange: Exchange | None = None,
    ) -> Response:
        """Send a request whose reply is not stored, and return the provider's response."""
        try:
            response = await self._send(request, path, body, exchange)
            return await self._relay(path, response, None, WholeEvents())
        except httpx2.HTTPError as error:
            return _refuse_upstream(path, error, exchange)

    async def _find_named(
        self, request: Request, body: Mapping[str, Any]
    ) -> NamedConversation | None:
        """Return the conversation of ours that a request names."""
        owner, own_alone = request_owner(request), self._options.shares_key
        return await run_work(request, find_named, owner, body, own_alone=own_alone)

    def _count_here(self, path: str, body: Mapping[str, Any], contracts: Contracts) -> int:
        form = find_form(path)
        assert form is not None
        return count_body(form, body, contracts=contracts, **self.names)

    def _split_path(self, request: Request) -> tuple[str, Mode | None]:
        """Return the path below the mode, and the mode: of the path, of a header, or the usual."""
        path = str(request.scope["path"])
        for mode in MODES:
            if path.startswith(f"/{mode}/"):
                return path.removeprefix(f"/{mode}"), mode
        named = request.headers.get(MODE_HEADER) or self._options.mode
        return path, next((mode for mode in MODES if mode == named), None)

    async def _send(
        self,
        request: Request,
        path: str,
        body: Mapping[str, Any] | None,
        exchange: Exchange | None = None,
    ) -> httpx2.Response:
        if exchange is not None:
            body = exchange.body
        call, headers = find_call(request.scope), request.headers
        if call is not None:
            address, provider = self._upstream.base_url, self._options.provider
            model = (body or {}).get("model") if exchange is None else exchange.names["model"]
            headers = call.begin(request, path, base_url=address, provider=provider, model=model)
            call.note_exchange(exchange, self._split_path(request)[1])
        try:
            return await self._upstream.send(
                request.method,
                asked_path(request).rstrip("/"),
                headers,
                b"" if body is None else write_json(body),
                query=request.url.query,
            )
        except httpx2.HTTPError as error:
            if call is not None:
                call.fail(type(error).__name__)
            raise


def load_shared() -> None:
    """Load the modules, the contracts and the vocabulary, which the workers of a server share."""
    form = find_form(_FIRST_PATH)
    assert form is not None
    count_body(form, _FIRST)
    with (
        rs.Store("sqlite://") as scratch,
        scratch.session("ready", create=True).record([]) as recording,
    ):
        list(recording)


def _refuse_path(path: str) -> Response | None:
    """Refuse a path that leads to another route of the provider, which the client is not given."""
    if _LEADS_AWAY.search(path) is None:
        return None
    return problem(path, 404, "a name in the path is empty, . or ..", code="unknown_url")


def _named_session(request: Request) -> str | None:
    """Return the session that a client names; an empty header names none."""
    return request.headers.get(SESSION_HEADER) or None


def _is_stream(response: httpx2.Response) -> bool:
    return response.is_success and str(response.headers.get("content-type", "")).startswith(_STREAM)


def _shows_thinking(owner: Owner, exchange: Exchange | None) -> bool:
    """Whether people see thinking (BR-003), by the settings of the session or the owner."""
    found = exchange and exchange.conversation
    with suppress(rs.ReasoningStoreError):
        settings = ((found and found.session) or owner).settings.resolved()
        return bool(settings["reasoning.includeInResponse"].value)
    return True


def _lacks_route(answer: Response, model: Any) -> bool:
    """Whether an answer means that the host has no such route; one may name an unknown model."""
    if answer.status_code in (*NO_ROUTE, *_AWAY):
        return not (isinstance(model, str) and model.encode() in bytes(answer.body))
    return False


def _refuse_mode(path: str, text: str) -> Response:
    return problem(path, 400, text, code="unknown_mode", param=MODE_HEADER)


def _refuse_upstream(path: str, error: httpx2.HTTPError, exchange: Exchange | None) -> Response:
    status, text = describe_failure(error)
    if exchange is not None:
        exchange.is_refused = True
    headers = exchange.headers if exchange else {}
    return problem(path, status, text, code="upstream_failed", headers=headers)
