"""The limits of the server: each is crossed once, and the server answers as its page says."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import threading
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import reasoning_store as rs
from reasoning_store.server.limits import Limits
from reasoning_store.server.options import ServerOptions, read_tokens
from reasoning_store.server.upstream import Unpacked
from tests.docs.provider import Provider, weather
from tests.server.serving import listening, serving

CHAT = "/v1/chat/completions"
QUESTION = {"role": "user", "content": "How is Oslo?"}
BODY: dict[str, Any] = {"model": "deepseek-chat", "messages": [QUESTION]}
TOKENS = {"me": "token-of-me-0123456789", "you": "token-of-you-0123456789"}


@contextmanager
def limited(
    upstream: str | None = None, store: rs.Store | None = None, **limits: Any
) -> Iterator[str]:
    """A server with these limits, and its address."""
    options = ServerOptions(upstream=upstream, provider="deepseek", limits=Limits(**limits))
    with rs.Store("sqlite://") as own, serving(store or own, options) as address:
        yield address


def open_socket(address: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", httpx2.URL(address).port or 0), timeout=60)


def read_to_end(connection: socket.socket) -> bytes:
    """Return all that comes until the server ends the connection."""
    with connection, connection.makefile("rb") as got:
        return got.read()


def cross_header_bytes(tmp_path: Path) -> None:
    with limited(header_bytes=2_000) as address:
        long = {"x-long": "x" * 2_000}
        assert httpx2.get(f"{address}/v1/models", headers=long).status_code == 431
        unfinished = open_socket(address)
        unfinished.sendall(b"GET / HTTP/1.1\r\nX-Long: " + b"x" * 20_000)
        assert read_to_end(unfinished).startswith(b"HTTP/1.1 400 ")


def cross_header_seconds(tmp_path: Path) -> None:
    hold = threading.Event()
    with Provider().listening() as provider, ThreadPoolExecutor() as pool:
        provider.script = lambda asked: replace(weather(asked), hold_after=1, until=hold)
        with limited(f"{provider.address}/v1", header_seconds=0.05) as address:
            slow = pool.submit(httpx2.post, f"{address}{CHAT}", json=BODY, timeout=60)
            idle, half, second = (open_socket(address) for _ in range(3))
            half.sendall(b"GET /healthz HTTP/1.1\r\nHost: loc")
            second.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /heal")
            assert [read_to_end(idle), read_to_end(half)] == [b"", b""]
            assert read_to_end(second).count(b"HTTP/1.1") == 1
            hold.set()  # a reply may take longer than the headers of its request
            assert slow.result().status_code == 200


def cross_idle_seconds(tmp_path: Path) -> None:
    with limited(idle_seconds=0.05) as address:
        used = open_socket(address)
        used.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert read_to_end(used).endswith(b"ok\n")


def cross_body_bytes(tmp_path: Path) -> None:
    with limited(body_bytes=1_000) as address:
        large = b" " * 1_001
        for content in (large, iter([large])):  # with its length, and without
            answer = httpx2.post(f"{address}/v1/conversations", content=content)
            assert (answer.status_code, answer.json()["error"]["code"]) == (413, "body_too_large")


def cross_body_seconds(tmp_path: Path) -> None:
    with limited(body_seconds=0.05) as address:
        half = open_socket(address)
        head = b"POST /v1/conversations HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"
        half.sendall(head + b"{")
        assert read_to_end(half).startswith(b"HTTP/1.1 408 ")


def cross_form_bytes(tmp_path: Path) -> None:
    with limited(form_bytes=100) as address:
        answer = httpx2.post(f"{address}/session/undo", data={"id": "x" * 100})
        assert answer.status_code == 413


def cross_nesting(tmp_path: Path) -> None:
    def nested(levels: int) -> bytes:
        return b'{"metadata": ' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"

    with limited(nesting=20) as address:
        for levels, text in ((20, "metadata: an object of strings"), (21, "deeper than 20")):
            answer = httpx2.post(f"{address}/v1/conversations", content=nested(levels))
            assert answer.status_code == 400
            assert text in answer.json()["error"]["message"]


def cross_messages(tmp_path: Path) -> None:
    with Provider().listening() as provider, limited(f"{provider.address}/v1", messages=3) as at:
        for path in (CHAT, "/v1/messages", "/v1/responses"):
            name = "input" if path == "/v1/responses" else "messages"
            body = {"model": "m", "max_tokens": 9, name: [QUESTION] * 4}
            answer = httpx2.post(f"{at}{path}", json=body)
            assert answer.status_code == 400
            assert "more than 3 messages" in answer.json()["error"]["message"]
        assert provider.asked == []


class Waiting:
    """A masker whose work takes until it is let go, for the texts that ask for it."""

    lookback = 0

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.begun = threading.Semaphore(0)
        self.at_once = self.most_at_once = 0
        self._lock = threading.Lock()

    def mask(self, text: str) -> str:
        if "wait" in text:
            with self._lock:
                self.at_once += 1
                self.most_at_once = max(self.at_once, self.most_at_once)
            self.begun.release()
            self.go_on.wait(60)
            with self._lock:
                self.at_once -= 1
        return text


def cross_parallel_work(tmp_path: Path) -> None:
    masker = Waiting()
    tokens = read_tokens([f"{token} {owner}" for owner, token in TOKENS.items()], "tokens")
    with (
        Provider().listening() as provider,
        rs.Store(f"sqlite:///{tmp_path}/chat.db", masker=masker) as store,
        ThreadPoolExecutor() as pool,
    ):
        options = ServerOptions(
            upstream=f"{provider.address}/v1",
            provider="deepseek",
            tokens=tokens,
            limits=Limits(parallel_work=1),
        )
        with serving(store, options) as address:

            def ask(owner: str, text: str) -> Future[Any]:
                body = {**BODY, "messages": [{"role": "user", "content": text}]}
                token = {"X-Reasoning-Token": TOKENS[owner]}
                return pool.submit(
                    httpx2.post, f"{address}{CHAT}", json=body, headers=token, timeout=60
                )

            mine = [ask("me", f"wait {number}") for number in range(4)]
            masker.begun.acquire()
            assert ask("you", "at once").result().status_code == 200
            masker.go_on.set()
            assert {one.result().status_code for one in mine} == {200}
    assert masker.most_at_once == 1


def cross_work_seconds(tmp_path: Path) -> None:
    masker = Waiting()
    with (
        Provider().listening() as provider,
        rs.Store(f"sqlite:///{tmp_path}/chat.db", masker=masker) as store,
        limited(f"{provider.address}/v1", store, work_seconds=0.05, parallel_work=1) as address,
    ):
        body = {**BODY, "messages": [{"role": "user", "content": "wait"}]}
        late = httpx2.post(f"{address}{CHAT}", json=body, timeout=60)
        masker.go_on.set()
        after = httpx2.get(f"{address}/v1/conversations/none", timeout=60)
    assert (late.status_code, late.json()["error"]["code"]) == (503, "too_much_work")
    assert after.status_code == 404  # its place is free again


def cross_provider_seconds(tmp_path: Path) -> None:
    hold = threading.Event()
    with Provider().listening() as provider:
        provider.script = lambda asked: replace(weather(asked), hold_after=1, until=hold)
        with limited(f"{provider.address}/v1", provider_seconds=0.2) as address:
            body = {**BODY, "stream": True}
            streamed = httpx2.post(f"{address}{CHAT}", json=body, timeout=60).content
            hold.set()
    error = json.loads(streamed.rpartition(b"data: ")[2])["error"]
    assert error["message"] == "the provider did not answer in time"


@contextmanager
def replying(content: bytes, **headers: str) -> Iterator[str]:
    """A provider that gives each request the same bytes."""

    async def answer(request: Request) -> Response:
        return Response(content, headers={name.replace("_", "-"): v for name, v in headers.items()})

    with listening(Starlette(routes=[Route("/{path:path}", answer, methods=["POST"])])) as at:
        yield f"{at}/v1"


LARGE = json.dumps({"choices": [{"message": {"role": "assistant", "content": " " * 300_000}}]})
EVENTS = f"data: {json.dumps({'choices': [{'delta': {'content': ' ' * 300_000}}]})}\n\n"


def cross_reply_bytes(tmp_path: Path) -> None:
    """A packed reply is read, too, and one that is packed otherwise is refused."""
    packed = gzip.compress(LARGE.encode())
    for content, encoding, most, status in (
        (packed, "gzip", 400_000, 200),
        (packed, "gzip", 200_000, 502),
        (LARGE.encode(), "identity", 200_000, 502),
        (packed, "br", 400_000, 502),
        (zlib.compress(LARGE.encode()), "deflate", 400_000, 200),
        (b"no gzip", "gzip", 400_000, 502),
    ):
        json_type = {"content_type": "application/json", "content_encoding": encoding}
        with replying(content, **json_type) as upstream, limited(upstream, reply_bytes=most) as at:
            answer = httpx2.post(f"{at}{CHAT}", json=BODY)
            assert answer.status_code == status
            assert "content-encoding" not in answer.headers
    stream = {"content_type": "text/event-stream", "content_encoding": "gzip"}
    with (
        replying(gzip.compress(EVENTS.encode()), **stream) as upstream,
        limited(upstream, reply_bytes=200_000) as address,
    ):
        streamed = httpx2.post(f"{address}{CHAT}", json={**BODY, "stream": True}).content
    assert b"event: error" in streamed
    assert len(streamed) < 201_000


CROSSINGS: dict[str, Callable[[Path], None]] = {
    name.removeprefix("cross_"): crossing
    for name, crossing in list(globals().items())
    if name.startswith("cross_")
}


@pytest.mark.parametrize("name", [field.name for field in fields(Limits)])
def test_a_request_beyond_a_limit_is_answered_as_the_page_says(name: str, tmp_path: Path) -> None:
    """Each limit that there is."""
    CROSSINGS[name](tmp_path)


class Bytes(httpx2.AsyncByteStream):
    """The bytes of a reply, in pieces."""

    def __init__(self, content: bytes, size: int) -> None:
        self._pieces = [content[at : at + size] for at in range(0, len(content), size)]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


@given(content=st.binary(max_size=300), times=st.integers(1, 2_000), cut=st.integers(1, 500))
def test_a_reply_is_unpacked_in_bounded_pieces_wherever_it_is_cut(
    content: bytes, times: int, cut: int
) -> None:
    """Of gzip and of deflate."""

    async def unpack(packed: bytes, encoding: str) -> list[bytes]:
        return [piece async for piece in Unpacked(Bytes(packed, cut), encoding, len(whole))]

    whole = content * times
    for packed, encoding in ((gzip.compress(whole), "gzip"), (zlib.compress(whole), "deflate")):
        pieces = asyncio.run(unpack(packed, encoding))

        assert b"".join(pieces) == whole
        assert max(map(len, pieces), default=0) <= 64 * 1024
