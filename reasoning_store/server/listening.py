"""A server that listens, until a signal stops it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Any, Final

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from reasoning_store import InvalidCall
from reasoning_store.server.gateway import load_shared
from reasoning_store.server.options import ServerOptions
from reasoning_store.server.workers import check_workers, run_workers

_BACKLOG: Final = 2048


def listen(
    open_app: Callable[[], AbstractContextManager[Starlette]],
    options: ServerOptions,
    *,
    workers: int = 1,
    on_ready: Callable[[str], None] | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT. ``on_ready`` gets the address once it takes connections.

    Each worker opens the application for itself.
    """
    raise_file_limit()
    check_workers(workers)
    if options.upstream is not None:
        load_shared()
    bound = bind(options.host, options.port)
    address = address_of(bound, options.host)

    def serve() -> None:
        with open_app() as app:
            if workers == 1:
                listen_now()
            uvicorn.Server(configure(app, options)).run(sockets=[bound])

    def listen_now() -> None:
        bound.listen(_BACKLOG)  # a client may come before the server has started
        if on_ready is not None:
            on_ready(address)

    try:
        if workers == 1:
            serve()
        else:
            run_workers(workers, serve, on_ready=listen_now, on_stop=bound.close)
    finally:
        bound.close()


def configure(app: ASGIApp, options: ServerOptions) -> uvicorn.Config:
    """Return the configuration of a server of the application."""
    limits = options.limits
    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        http=partial(_Connection, limits.header_seconds),  # type: ignore[arg-type]
        timeout_keep_alive=limits.idle_seconds,  # type: ignore[arg-type]
        h11_max_incomplete_event_size=limits.header_bytes,
        ws="none",
        lifespan="on",
        # A reply that is left is stored as interrupted; 0 would wait for ever.
        timeout_graceful_shutdown=options.drain or 0.001,  # type: ignore[arg-type]
    )


class _Connection(H11Protocol):
    """A connection that ends if the headers of a request do not come in time."""

    def __init__(self, seconds: float, /, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._seconds = seconds
        self._end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_headers()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._await_headers()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.trailing_data[0]:  # the next request has begun
            self._await_headers()

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._await_headers()

    def _await_headers(self) -> None:
        """Keep the end of the connection in mind while its next request has not come whole."""
        is_waiting = self.conn.their_state is h11.IDLE and not self.transport.is_closing()
        if is_waiting and self._end is None:
            self._end = self.loop.call_later(self._seconds, self.timeout_keep_alive_handler)
        elif not is_waiting and self._end is not None:
            self._end.cancel()
            self._end = None


def raise_file_limit() -> None:
    """Allow this process all the files that it may open: a stream has two, its ends."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to an address; port 0 is any free one."""
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, place = found[0]
        bound = socket.socket(family, kind, protocol)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(place)
        except OSError:
            bound.close()
            raise
    except OSError as error:
        raise InvalidCall(
            f"cannot listen at {host}, port {port}: {error.strerror or error}",
            hint="--port 0 takes any free port",
        ) from None
    return bound


def address_of(bound: socket.socket, host: str) -> str:
    """Return the URL by which a person reaches a socket."""
    place: Any = bound.getsockname()
    if host in ("0.0.0.0", "::"):
        host = "localhost"
    name = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"http://{name}:{place[1]}"
