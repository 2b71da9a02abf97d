"""What happens to a chat when the store, the client or the provider fails in the middle."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest

import reasoning_store as rs
from reasoning_store.ledger.database import sqlite_connections
from reasoning_store.server.listening import raise_file_limit
from reasoning_store.server.options import ServerOptions
from tests.docs.provider import Provider, weather
from tests.durability.disk import Disk, watched
from tests.durability.server import server
from tests.durability.whole import check_whole
from tests.server.served import Served
from tests.server.serving import serving

PATHS = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}
QUESTION = {"role": "user", "content": "How is Oslo?"}


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider().listening() as listening:
        yield listening


def options(provider: Provider, **more: Any) -> ServerOptions:
    return ServerOptions(upstream=f"{provider.address}/v1", provider="deepseek", **more)


def body(**more: Any) -> dict[str, Any]:
    return {"model": "deepseek-reasoner", "messages": [QUESTION], **more}


def post(address: str, path: str = PATHS["openai"], **more: Any) -> Any:
    return httpx2.post(f"{address}{path}", json=body(**more), timeout=60)


@pytest.fixture
def disk() -> Iterator[Disk]:
    """A disk that may be full."""
    with watched(sqlite_connections.library(), Disk(full=True)) as made:
        yield made


def test_a_chat_goes_on_while_the_store_is_full(
    provider: Provider, tmp_path: Path, disk: Disk
) -> None:
    """A whole reply names the error; what was acknowledged is there, and what comes after."""
    url = f"sqlite:///{tmp_path}/chat.db"
    with rs.Store(url) as store, serving(store, options(provider)) as address:
        before = post(address)
        disk.break_at(1, for_good=True)
        whole, streamed = post(address), post(address, stream=True)
        disk.mend()
        after = post(address, stream=True)
        kept = [store.session(one.headers["X-Reasoning-Session"]) for one in (before, after)]
        texts = [session.history()[-1].message.text for session in kept]

    assert whole.json()["choices"][0]["message"]["content"]
    assert streamed.content.endswith(b"data: [DONE]\n\n")
    assert whole.headers["X-Reasoning-Store-Error"] == "StoreFull"
    assert "X-Reasoning-Store-Error" not in after.headers
    assert texts == ["It is 4 C in Oslo."] * 2
    check_whole(url)


def test_a_disk_that_is_full_in_mid_stream_breaks_no_reply(
    provider: Provider, tmp_path: Path, disk: Disk
) -> None:
    """The client gets all of it, or an error as its last event; the next request stores it."""
    ends = {}
    for on_store_error in ("pass", "fail"):
        hold = threading.Event()
        provider.script = lambda asked, hold=hold: replace(  # type: ignore[misc]
            weather(asked), pieces=8, hold_after=6, until=hold
        )
        url = f"sqlite:///{tmp_path}/{on_store_error}.db"
        given = options(provider, on_store_error=on_store_error)
        with rs.Store(url) as store, serving(store, given) as address:
            with httpx2.stream(
                "POST", f"{address}{PATHS['openai']}", json=body(stream=True)
            ) as answer:
                pieces = answer.iter_bytes()
                ends[on_store_error] = next(pieces)
                disk.break_at(1, for_good=True)
                hold.set()
                ends[on_store_error] += b"".join(pieces)
            disk.mend()
            post(address)
            session = store.session(answer.headers["X-Reasoning-Session"])
            reply = session.history()[-1].message
            assert (reply.status, reply.text) == ("complete", "It is 4 C in Oslo.")
            assert reply.thinking
        check_whole(url)

    assert ends["pass"].endswith(b"data: [DONE]\n\n")
    error = json.loads(ends["fail"].rpartition(b"data: ")[2])["error"]
    assert error["message"].startswith("the store failed")


@pytest.mark.parametrize("host", PATHS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("fault", ["full", "read-only"])
def test_a_store_that_must_not_fail_refuses_with_503(
    provider: Provider, tmp_path: Path, disk: Disk, host: str, stream: bool, fault: str
) -> None:
    """In the client's shape, and the provider is not asked."""
    url = f"sqlite:///{tmp_path}/chat.db"
    rs.Store(url).close()
    with (
        rs.Store(url, read_only=fault == "read-only") as store,
        serving(store, options(provider, on_store_error="fail")) as address,
    ):
        if fault == "full":
            disk.break_at(1, for_good=True)
        answer = post(address, PATHS[host], stream=stream, max_tokens=9)
        disk.mend()

    assert answer.status_code == 503
    assert answer.json()["error"]["type"] in ("api_error", "overloaded_error")
    assert provider.asked == []


@pytest.mark.long
@pytest.mark.parametrize("on_store_error", ["pass", "fail"])
def test_a_database_server_that_is_away_ends_no_chat(
    provider: Provider, on_store_error: Any
) -> None:
    """Stopped in the middle of a stream; what was acknowledged is there when it is back."""
    hold = threading.Event()
    with server() as own:
        url = own.url.set(query={**own.url.query, "retry_seconds": "0"})
        text = url.render_as_string(hide_password=False)
        given = options(provider, on_store_error=on_store_error)
        with rs.Store(text) as store, serving(store, given) as address:
            before = post(address)
            provider.script = lambda asked: replace(
                weather(asked), pieces=8, hold_after=6, until=hold
            )
            path = f"{address}{PATHS['openai']}"
            with httpx2.stream("POST", path, json=body(stream=True), timeout=60) as answer:
                pieces = answer.iter_bytes()
                next(pieces)
                own.stop_at_once()
                hold.set()
                rest = b"".join(pieces)
            provider.script = weather
            away = post(address)
            own.start()
            after = post(address)
            history = store.session(before.headers["X-Reasoning-Session"]).history()
            cut = store.session(answer.headers["X-Reasoning-Session"]).history()
        check_whole(text)

    assert [one.message.text for one in history] == ["How is Oslo?", "It is 4 C in Oslo."]
    assert (cut[-1].message.status, cut[-1].message.text) == ("complete", "It is 4 C in Oslo.")
    assert "X-Reasoning-Store-Error" not in after.headers
    if on_store_error == "pass":
        assert rest.endswith(b"data: [DONE]\n\n")
        assert (away.status_code, away.headers["X-Reasoning-Store-Error"]) == (200, "StoreBusy")
    else:
        assert b"the store failed" in rest
        assert away.status_code == 503


CHUNK = {"id": "c", "object": "chat.completion.chunk", "model": "m"}


def event(text: str, finish: str | None = None) -> bytes:
    """Return an event of Chat Completions."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return b"data: " + json.dumps({**CHUNK, "choices": [choice]}).encode() + b"\n\n"


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
DONE = b"data: [DONE]\n\n"


def body_length(head: bytes) -> int:
    """Return the length of a request's body: what is not read breaks the connection."""
    return int(head.lower().partition(b"content-length: ")[2].split(b"\r")[0])


@contextmanager
def flooding(piece: bytes, number: int) -> Iterator[tuple[str, threading.Event]]:
    """A provider that writes as fast as it can, and notes that it had to wait."""
    waited = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def write() -> None:
        connection, _ = listener.accept()
        with connection, connection.makefile("rb") as asked:
            head = b"".join(iter(asked.readline, b"\r\n"))
            asked.read(body_length(head))
            for data in (HEAD, *[piece] * number, event("", "stop"), DONE):
                if not select.select((), [connection], (), 1)[1]:
                    waited.set()
                connection.sendall(data)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1", waited
    finally:
        thread.join(60)
        listener.close()


def test_a_client_that_reads_slowly_holds_the_provider_back(tmp_path: Path) -> None:
    """The server does not take more than the client does; then all of it arrives."""
    piece, number = b": " + b"x" * 65_000 + b"\n\n", 1000
    with (
        flooding(piece, number) as (upstream, waited),
        rs.Store(f"sqlite:///{tmp_path}/chat.db") as store,
        serving(store, ServerOptions(upstream=upstream)) as address,
        httpx2.stream(
            "POST", f"{address}{PATHS['openai']}", json=body(stream=True), timeout=60
        ) as answer,
    ):
        pieces = answer.iter_bytes()
        size = len(next(pieces))
        assert waited.wait(60)
        size += sum(map(len, pieces))

    assert size == len(piece) * number + len(event("", "stop") + DONE)


class Crowd:
    """A provider whose streams are all open before one of them goes on."""

    def __init__(self, number: int) -> None:
        self._all_open = asyncio.Barrier(number)
        self.events = [event(f"{n} " * 50) for n in range(20)]
        self.url = ""

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0, backlog=2048)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        async with server:
            yield

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(body_length(head))
        writer.write(HEAD + self.events[0])
        await self._all_open.wait()
        for data in (*self.events[1:], event("", "stop"), DONE):
            writer.write(data)
            await writer.drain()
        writer.close()


@pytest.mark.parametrize("number", [50, pytest.param(1000, marks=pytest.mark.long)])
def test_many_streams_at_once_need_little_memory_each(tmp_path: Path, number: int) -> None:
    """All are open at the same time; each arrives whole and is stored."""

    async def ask(address: str, nth: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))
        asked = json.dumps(
            body(stream=True, messages=[{"role": "user", "content": f"{nth}"}])
        ).encode()
        writer.write(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
            b"Content-Length: %d\r\n\r\n" % len(asked) + asked
        )
        answer = await reader.read()
        writer.close()
        return answer

    async def run() -> tuple[list[bytes], int]:
        crowd = Crowd(number)
        async with crowd.listening():
            served = await asyncio.to_thread(Served, tmp_path, crowd.url)
            try:
                await asyncio.to_thread(count_once, served.address)
                before = served.memory("VmRSS")
                asked = (ask(served.address, nth) for nth in range(number))
                answers = await asyncio.gather(*asked)
                return answers, served.memory("VmHWM") - before
            finally:
                await asyncio.to_thread(served.end, signal.SIGTERM)

    def count_once(address: str) -> None:
        """Have the server load its vocabulary, which is no stream's."""
        at = f"{address}/v1/conversations"
        items = [{"type": "message", "role": "user", "content": "Hello"}]
        made = httpx2.post(at, json={"items": items}).json()
        httpx2.delete(f"{at}/{made['id']}").raise_for_status()

    raise_file_limit()
    answers, grown = asyncio.run(run())

    assert [one for one in answers if not one.startswith(b"HTTP/1.1 200") or DONE not in one] == []
    assert grown < 20_000_000 + number * 300_000
    with rs.Store(f"sqlite:///{tmp_path}/chat.db") as store:
        found = [session.history() for session in store.sessions(limit=number).items]
    assert [one[-1].message.status for one in found] == ["complete"] * number


def test_a_server_that_drains_lets_a_reply_end(provider: Provider, tmp_path: Path) -> None:
    """It takes no new request meanwhile."""
    hold = threading.Event()
    provider.script = lambda asked: replace(weather(asked), pieces=8, hold_after=6, until=hold)
    served = Served(tmp_path, f"{provider.address}/v1", "--drain", "60")
    path = f"{served.address}{PATHS['openai']}"
    with httpx2.stream("POST", path, json=body(stream=True), timeout=60) as answer:
        pieces = answer.iter_bytes()
        next(pieces)
        os.kill(served.process.pid, signal.SIGTERM)
        served.wait_until_closed()
        hold.set()
        rest = b"".join(pieces)

    assert served.process.wait(60) == -signal.SIGTERM
    assert rest.endswith(DONE)
    with rs.Store(f"sqlite:///{tmp_path}/chat.db") as store:
        (session,) = store.sessions().items
        assert session.history()[-1].message.status == "complete"
