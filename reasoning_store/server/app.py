"""The application: every route, with the checks of access before it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from reasoning_store import ReasoningStoreError, Store
from reasoning_store.server.access import METRICS, Access
from reasoning_store.server.conversations import conversation_routes
from reasoning_store.server.gateway import Gateway
from reasoning_store.server.inspector import endpoints as inspector
from reasoning_store.server.journal import Journal
from reasoning_store.server.metrics import Metrics
from reasoning_store.server.options import OPERATOR, ServerOptions
from reasoning_store.server.problems import (
    Refused,
    answer_fault,
    answer_refused,
    answer_store_error,
    answer_unknown,
)
from reasoning_store.server.responses import Responses
from reasoning_store.server.tracing import Tracing, export_spans, find_tracer
from reasoning_store.server.upstream import Addresses


def make_app(store: Store, options: ServerOptions | None = None) -> Starlette:
    """Return the application of a store. Its owners are separated by token."""
    options = options or ServerOptions()
    gateway = None if options.upstream is None else Gateway(options)
    tracer = find_tracer()

    @asynccontextmanager
    async def run(app: Starlette) -> AsyncIterator[None]:
        if gateway is not None:
            await asyncio.to_thread(gateway.make_ready, store)
        yield
        if gateway is not None:
            await gateway.close()
        if tracer is not None:
            await asyncio.to_thread(export_spans)

    metrics = defaultdict[str | None, Metrics](Metrics)
    routes = [Route(METRICS, _metrics_route(metrics, options)), *_routes(options, gateway)]
    return Starlette(
        routes=routes,
        lifespan=run,
        middleware=[
            Middleware(Addresses),
            Middleware(Journal, metrics=metrics, routes=routes),
            *([] if tracer is None else [Middleware(Tracing, tracer=tracer)]),
            *_cors(options),
            Middleware(Access, store=store, options=options),
        ],
        exception_handlers={
            HTTPException: answer_unknown,
            ReasoningStoreError: answer_store_error,
            Refused: answer_refused,
            Exception: answer_fault,
        },
    )


def _routes(options: ServerOptions, gateway: Gateway | None) -> list[BaseRoute]:
    return [
        Route("/healthz", _answer_health),
        *conversation_routes(),
        *Responses(options, gateway).routes(),
        *(gateway.routes() if gateway is not None else ()),
        *inspector.ROUTES,
    ]


def _metrics_route(
    metrics: dict[str | None, Metrics], options: ServerOptions
) -> Callable[[Request], Awaitable[Response]]:
    """Return the route of the numbers: an owner's own, or all where no owner is named."""

    async def answer(request: Request) -> Response:
        name = request.state.owner_name
        sees_all = options.owners <= {""} or name == OPERATOR
        text = metrics[None if sees_all else name].text()
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    return answer


def _cors(options: ServerOptions) -> list[Middleware]:
    """Let the pages of the allowed origins read the answers; by default no origin is allowed."""
    if not options.origins:
        return []
    return [
        Middleware(
            CORSMiddleware,
            allow_origins=sorted(options.origins),
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=["*"],
        )
    ]


async def _answer_health(request: Request) -> Response:
    return PlainTextResponse("ok\n")
