"""A streamed reply through a gateway: how late its chunks come, and how late its first byte.

A provider in a process of its own writes a chunk each 5 ms, which holds the time when it was
written, by a clock that all processes of a machine share. Its first chunk holds the time when the
request came, too. The gateways are processes as well; this one is the client.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from benchmarks.process import CHECKOUT
from benchmarks.workload import Prepare, Sample, Setting

_PAUSE = 0.005
_PATIENCE = 60
_STAMP = re.compile(rb"@(\d+\.\d+)@")
Gateway: TypeAlias = Callable[[Setting, str], AbstractContextManager[str]]
"""Starts a gateway to a provider's address, and gives its own."""


def chunk_delay(gateway: Gateway) -> Prepare:
    """Return a contender: how late the 99th of a hundred chunks comes, of as many as the size."""
    return _client(gateway, _late)


def first_byte(gateway: Gateway) -> Prepare:
    """Return a contender: what a request and the first byte of its reply take on their way."""
    return _client(gateway, _waited)


def _client(gateway: Gateway, ask: Callable[[str, int], float]) -> Prepare:
    @contextmanager
    def prepare(setting: Setting) -> Iterator[Sample]:
        with _provider() as upstream, gateway(setting, upstream) as address:
            yield lambda: ask(address, setting.size)

    return prepare


@contextmanager
def direct(setting: Setting, upstream: str) -> Iterator[str]:
    """Give the provider's own address."""
    yield upstream


@contextmanager
def ours(setting: Setting, upstream: str) -> Iterator[str]:
    """Start ours, which stores each reply."""
    words = ("-m", "reasoning_store", "serve", "--upstream", upstream, "--port", "0")
    with _process(*words, "--db", str(setting.folder / "chat.db")) as address:
        yield address


@contextmanager
def bare(setting: Setting, upstream: str) -> Iterator[str]:
    """Start a proxy of the libraries that ours uses: it passes bytes on, and does nothing else."""
    with _process("-m", __name__, upstream) as address:
        yield address


@contextmanager
def litellm(setting: Setting, upstream: str) -> Iterator[str]:
    """Start LiteLLM's proxy, which stores nothing."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = Path(sys.executable).parent / "litellm"
    words = ("--model", "openai/thinker-1", "--api_base", f"{upstream}/v1", "--port", str(port))
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    environment = os.environ | {"OPENAI_API_KEY": "none", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    with subprocess.Popen([program, *words], env=environment, **quiet) as process:
        try:
            _wait_for(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


@contextmanager
def _provider() -> Iterator[str]:
    with _process("-m", __name__) as address:
        yield address


@contextmanager
def _process(*arguments: str) -> Iterator[str]:
    """Start ``python`` with these arguments; give the first line that it prints."""
    words = [sys.executable, *arguments]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(words, cwd=CHECKOUT, **pipes) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


# The client


def _late(address: str, chunks: int) -> float:
    late: list[float] = []
    for now, stamps in _stamps(address, chunks):
        late += [now - stamp for stamp in stamps]
    if len(late) < chunks:
        raise RuntimeError(f"{len(late)} of {chunks} chunks came")
    return sorted(late)[len(late) * 99 // 100]


def _waited(address: str, chunks: int) -> float:
    """Return the median over as many requests as the size says, each of one chunk."""
    waited = []
    for _ in range(chunks):
        began = time.monotonic()
        now, (came, sent) = next(_stamps(address, 1))
        waited.append(came - began + now - sent)
    return sorted(waited)[len(waited) // 2]


def _stamps(address: str, chunks: int) -> Iterator[tuple[float, list[float]]]:
    """Send a request; yield what came at once: when, and the times that are in it."""
    place = urlsplit(address)
    connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=_PATIENCE)
    body = {
        "model": "thinker-1",
        "stream": True,
        "messages": [{"role": "user", "content": f"{chunks} chunks, please"}],
    }
    headers = {"Content-Type": "application/json", "Authorization": "Bearer none"}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
    response = connection.getresponse()
    if response.status != 200:
        raise RuntimeError(f"{address} answered {response.status}: {response.read(300)!r}")
    left = b""
    try:
        while piece := response.read1(65536):
            now = time.monotonic()
            *whole, left = (left + piece).split(b"\n\n")
            stamps = [float(stamp) for event in whole for stamp in _STAMP.findall(event)]
            if stamps:
                yield now, stamps
    finally:
        connection.close()


# The provider


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        body = await reader.readexactly(int(length[1]) if length else 0)
        came = time.monotonic()
        asked = json.loads(body)["messages"][-1]["content"]
        chunks = int(re.findall(r"\d+", str(asked))[0])
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
            b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        )
        for number in range(chunks):
            now = time.monotonic()
            text = f"@{now}@" if number or chunks > 1 else f"@{came}@@{now}@"
            _write(writer, _event({"role": "assistant", "content": text}))
            await writer.drain()
            if chunks > 1:
                await asyncio.sleep(_PAUSE)
        _write(writer, _event({}, "stop"))
        _write(writer, "[DONE]")
        writer.write(b"0\r\n\r\n")
        await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


def _event(delta: dict[str, str], reason: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    said = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1}
    return json.dumps({**said, "model": "thinker-1", "choices": [choice]})


def _write(writer: asyncio.StreamWriter, data: str) -> None:
    event = f"data: {data}\n\n".encode()
    writer.write(b"%x\r\n%b\r\n" % (len(event), event))


async def _serve() -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    print(f"http://127.0.0.1:{port}", flush=True)
    await server.serve_forever()


# The bare proxy


def _proxy(upstream: str) -> None:
    """Pass each request on, and each piece of its reply."""
    import httpx2
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import StreamingResponse
    from starlette.routing import Route

    client = httpx2.AsyncClient(base_url=upstream)

    async def pass_on(request: Request) -> StreamingResponse:
        sent = client.build_request("POST", request.url.path, content=await request.body())
        reply = await client.send(sent, stream=True)
        return StreamingResponse(reply.aiter_raw(), media_type="text/event-stream")

    app = Starlette(routes=[Route("/{path:path}", pass_on, methods=["POST"])])
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        bound.listen()
        print(f"http://127.0.0.1:{bound.getsockname()[1]}", flush=True)
        uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False)).run([bound])


if __name__ == "__main__":
    _proxy(sys.argv[1]) if sys.argv[1:] else asyncio.run(_serve())
