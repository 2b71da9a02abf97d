"""Spans of OpenTelemetry: one for each request that goes to the provider.

Names and attributes are those of the conventions for generative AI. No span has text of a
conversation, a key or a token. Without opentelemetry-api nothing of this module is used.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import reasoning_store as rs
from reasoning_store.results import Contracts

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

    from reasoning_store.integrations.exchange import Exchange

SCHEMA: Final = "https://opentelemetry.io/schemas/1.44.0"
"""The version of the conventions; those for generative AI are in development there."""

FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
_USAGE: Final = {
    "input": "gen_ai.usage.input_tokens",
    "output": "gen_ai.usage.output_tokens",
    "reasoning": "gen_ai.usage.reasoning.output_tokens",
    "cached": "gen_ai.usage.cache_read.input_tokens",
    "cache_write": "gen_ai.usage.cache_creation.input_tokens",
}
"""The attribute of each field of ``Usage``."""

_LONGEST_EXPORT: Final = 5000
"""Milliseconds."""
CLIENT_LEFT: Final = "client_left"
_PROVIDERS: Final = {
    "aws": "aws.bedrock",
    "azure": "azure.ai.openai",
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex": "gcp.vertex_ai",
    "xai": "x_ai",
}
"""The names of the conventions for the providers whose ids differ from them."""
_OPERATIONS: Final = (
    ("*enerateContent", "generate_content"),
    ("/v1/messages/count_tokens", "count_tokens"),
    ("/v1/models*", "list_models"),
    ("*", "chat"),
)
_USUAL: Final = (("*enerateContent", "gcp.gemini"), ("/v1/messages*", "anthropic"), ("*", "openai"))
"""The provider of a protocol, where the address names no other."""


def find_tracer() -> Tracer | None:
    """Return the tracer of this server; ``None`` where opentelemetry-api is not installed."""
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace.get_tracer("reasoning_store", rs.__version__, schema_url=SCHEMA)


def export_spans() -> None:
    """Export the spans that have ended: a worker's exporter gets no notice of its end."""
    from opentelemetry import trace

    flush = getattr(trace.get_tracer_provider(), "force_flush", None)
    if flush is not None:
        flush(_LONGEST_EXPORT)


def find_call(scope: Scope) -> Call | None:
    """Return the call of a request, for its facts; ``None`` where nothing is traced."""
    call = scope.get("state", {}).get("call")
    return call if isinstance(call, Call) else None


class Tracing:
    """Ends the span of each request with its reply: whole, broken off, or left by the client."""

    def __init__(self, app: ASGIApp, tracer: Tracer) -> None:
        self._app = app
        self._tracer = tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        call = scope.setdefault("state", {})["call"] = Call(self._tracer)

        async def note(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] >= 400:
                call.fail(str(message["status"]))
            await send(message)

        try:
            await self._app(scope, receive, note)
        except BaseException as error:
            call.fail(type(error).__name__)
            raise
        finally:
            await call.end()


class Call:
    """The facts of one request, for its span. Without a request upstream there is no span."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._span: Span | None = None
        self._begun = 0.0
        self._exchange: Exchange | None = None
        self._facts: dict[str, Any] = {}
        self._error: str | None = None

    def begin(
        self, request: Request, path: str, *, base_url: str, provider: str | None, model: Any
    ) -> Headers:
        """Begin the span; return the headers that continue its trace at the provider."""
        from opentelemetry import context, propagate, trace

        parent = context.get_current()
        if not trace.get_current_span().get_span_context().is_valid:
            parent = propagate.extract(request.headers)
        operation = _first(_OPERATIONS, path)
        known = _provider(provider, base_url) or _first(_USUAL, path)
        named = {"gen_ai.request.model": model} if isinstance(model, str) else {}
        self._begun = time.perf_counter()
        self._span = self._tracer.start_span(
            f"{operation} {model}" if named else operation,
            context=parent,
            kind=trace.SpanKind.CLIENT,
            attributes={
                "gen_ai.operation.name": operation,
                "gen_ai.provider.name": known,
                "server.address": urlsplit(base_url).hostname or "",
                **named,
            },
        )
        headers = MutableHeaders(raw=list(request.headers.raw))
        if self._span.get_span_context().is_valid:
            propagate.inject(headers, trace.set_span_in_context(self._span, parent))
        return headers

    def note_exchange(self, exchange: Exchange | None, mode: str | None) -> None:
        """Note what was put back."""
        if exchange is not None:
            self._exchange = exchange
            self._facts["reasoning_store.mode"] = mode or ""

    def note_chunk(self) -> None:
        """Note that a piece of a stream has come."""
        if FIRST_CHUNK not in self._facts:
            self._facts[FIRST_CHUNK] = time.perf_counter() - self._begun

    def fail(self, error: str) -> None:
        """Note why the reply did not come whole; the first cause stays."""
        self._error = self._error or error

    async def end(self) -> None:
        """End the span, with the usage that the provider reported and our count."""
        from opentelemetry.trace import Status, StatusCode

        span, self._span = self._span, None
        if span is None:
            return
        try:
            if span.is_recording():
                span.set_attributes({**self._facts, **dict(_exchange_facts(self._exchange))})
                if self._error is not None:
                    span.set_attribute("error.type", self._error)
                    span.set_status(Status(StatusCode.ERROR))
                session = self._exchange and self._exchange.session
                with suppress(rs.ReasoningStoreError):
                    usage = await asyncio.to_thread(session.usage) if session else None
                    if usage is not None:
                        span.set_attribute("reasoning_store.effective_tokens", usage.effective)
        finally:
            span.end()


def _exchange_facts(exchange: Exchange | None) -> Iterator[tuple[str, Any]]:
    if exchange is None:
        return
    yield "reasoning_store.restored", exchange.restored
    yield "reasoning_store.missed", len(exchange.missed)
    yield "reasoning_store.left_out", exchange.left_out
    if exchange.conversation is not None:
        yield "gen_ai.conversation.id", exchange.conversation.session_id
    if exchange.error is not None:
        yield "reasoning_store.store_error", exchange.error
    if (reply := exchange.reply) is not None:
        yield from _reply_facts(reply)


def _reply_facts(reply: rs.Message) -> Iterator[tuple[str, Any]]:
    origin, usage = reply.origin, reply.usage
    found: Mapping[str, Any] = {
        "gen_ai.response.model": origin and origin.model,
        "gen_ai.response.id": origin and origin.response_id,
        "gen_ai.response.finish_reasons": reply.finish_reason and [reply.finish_reason],
        **{name: usage and getattr(usage, key) for key, name in _USAGE.items()},
    }
    yield from ((name, value) for name, value in found.items() if value is not None)


def _provider(named: str | None, base_url: str) -> str | None:
    """Return the convention's name of the provider, where its name or its address is known."""
    found = Contracts.default().provider_id(named, base_url)
    return _PROVIDERS.get(found, found) if found else None


def _first(rows: tuple[tuple[str, str], ...], path: str) -> str:
    return next(value for like, value in rows if fnmatchcase(path, like))
