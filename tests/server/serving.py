"""A server of ours on a free port, in a thread of the tests or in a process of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import uvicorn
from starlette.types import ASGIApp

import reasoning_store as rs
from reasoning_store.server.app import make_app
from reasoning_store.server.listening import address_of, bind, configure
from reasoning_store.server.options import ServerOptions


@contextmanager
def serving(store: rs.Store, options: ServerOptions | None = None) -> Iterator[str]:
    """Serve a store and give the server's address."""
    with listening(make_app(store, options), options) as address:
        yield address


@contextmanager
def listening(app: ASGIApp, options: ServerOptions | None = None) -> Iterator[str]:
    """Serve an application and give its address."""
    bound = bind("127.0.0.1", 0)
    bound.listen()  # a client may come before the server has started
    options = replace(options or ServerOptions(), drain=5)
    server = uvicorn.Server(configure(app, options))
    thread = threading.Thread(target=server.run, args=([bound],))
    thread.start()
    try:
        yield address_of(bound, "127.0.0.1")
    finally:
        server.should_exit = True
        thread.join()
        bound.close()
