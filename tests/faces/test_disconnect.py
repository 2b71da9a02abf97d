"""A browser that leaves in mid-stream: a real server, a real socket, nothing lost."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

import reasoning_store as rs
from reasoning_store.ledger import stored_drafts
from reasoning_store.recording import draft_writer

from .recorder import event

PIECES = ["<think>first I th", "ink</think>", "Half", " an", " answer"]


class Gate:
    """Lets the model speak up to a point, then holds it until the client has left."""

    def __init__(self) -> None:
        self.gone = threading.Event()
        self.over = threading.Event()

    def sync_stream(self) -> Iterator[dict[str, Any]]:
        for text in PIECES:
            yield event(text)
        while not self.gone.wait(0.02):
            yield event(".")
        while not self.over.wait(0.02):
            yield event(".")

    async def async_stream(self) -> AsyncIterator[dict[str, Any]]:
        for text in PIECES:
            yield event(text)
        while not self.over.is_set():
            await asyncio.sleep(0.02)
            yield event(".")


def application(url: str, gate: Gate) -> FastAPI:
    app = FastAPI()

    @app.get("/sync")
    def sync_endpoint() -> StreamingResponse:
        def body() -> Iterator[str]:
            with rs.Store(url) as store:
                session = store.session("sync", create=True)
                with session.record(gate.sync_stream(), model="m") as reply:
                    for chunk in reply:
                        if isinstance(chunk, rs.TextChunk):
                            yield chunk.text

        return StreamingResponse(body(), media_type="text/plain")

    @app.get("/async")
    async def async_endpoint() -> StreamingResponse:
        async def body() -> AsyncIterator[str]:
            async with rs.AsyncStore(url) as store:
                session = await store.session("async", create=True)
                async with session.record(gate.async_stream(), model="m") as reply:
                    async for chunk in reply:
                        if isinstance(chunk, rs.TextChunk):
                            yield chunk.text

        return StreamingResponse(body(), media_type="text/plain")

    return app


@contextmanager
def serving(app: FastAPI) -> Iterator[int]:
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(120)
        listener.close()


def read_and_leave(port: int, path: str, until: bytes) -> bytes:
    """Read a streamed answer up to some words, then close the socket without a goodbye."""
    with socket.create_connection(("127.0.0.1", port), timeout=120) as client:
        client.sendall(f"GET /{path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        got = b""
        while until not in got:
            piece = client.recv(4096)
            assert piece, got
            got += piece
    return got


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server may keep an abandoned stream for long; the lease does not wait for it."""
    monkeypatch.setattr(draft_writer, "PART_SECONDS", 0.05)
    monkeypatch.setattr(stored_drafts, "LEASE", 1.0)


@pytest.mark.parametrize("face", ["sync", "async"])
def test_a_client_that_leaves_loses_nothing_of_the_reply(face: str, tmp_path: Path) -> None:
    """What arrived is stored as interrupted, its thinking whole, and no delimiter was shown."""
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    gate = Gate()
    with serving(application(url, gate)) as port:
        shown = read_and_leave(port, face, b"answer")
        with rs.Store(url) as store:
            session = store.session(face)
            until(lambda: latest(session).text.startswith("Half an answer"), gate)
            gate.gone.set()
            until(lambda: latest(session).status == "interrupted", gate)
            session.append(rs.user("I am back."))
            message = session.history()[0].message
        gate.over.set()

    assert message.status == "interrupted"
    assert b"think" not in shown.split(b"\r\n\r\n", 1)[1]
    assert message.text.startswith("Half an answer")
    assert [block.thought for block in message.thinking] == ["first I think"]


def latest(session: rs.Session) -> rs.Message:
    """What was said last, which is nothing before anything is written."""
    return [rs.assistant(), *(item.message for item in session.history())][-1]


def until(true: Callable[[], bool], gate: Gate) -> None:
    """Wait until something can be read, whichever noticed that the client has left."""
    for _ in range(1500):
        if true():
            return
        time.sleep(0.02)
    gate.over.set()
    raise AssertionError("it never came true")
