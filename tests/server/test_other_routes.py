"""The routes that have no part in the store: passed on with their bytes, with and without /v1."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

import reasoning_store as rs
from reasoning_store.server.limits import Limits
from reasoning_store.server.options import ServerOptions, read_tokens
from tests.docs.provider import Provider
from tests.server.serving import listening, serving

BODY: dict[str, Any] = {
    "model": "deepseek-chat",
    "messages": [{"role": "user", "content": "How is Oslo?"}],
    "max_tokens": 9,
}
OF_GEMINI = {"contents": [{"role": "user", "parts": [{"text": "How is Oslo?"}]}]}
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
BYTES = bytes(range(256)) * 40
TOKENS = read_tokens(["token-of-me-0123456789 me", "token-of-you-0123456789 you"], "tokens")


class Asked:
    """What a provider was asked, the last request."""

    def __init__(self) -> None:
        self.method = self.url = ""
        self.headers: dict[str, str] = {}
        self.content = b""


@contextmanager
def answering(**options: Any) -> Iterator[tuple[str, Asked]]:
    """A gateway before a provider that answers each request with the same bytes."""
    asked = Asked()

    async def answer(request: Request) -> Response:
        asked.method, asked.headers = request.method, dict(request.headers)
        asked.url = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        asked.content = await request.body()
        return Response(BYTES, 201, {"x-request-id": "req_1"}, "audio/mpeg")

    app = Starlette(routes=[Route("/{path:path}", answer, methods=METHODS)])
    app.router.redirect_slashes = False
    base = options.pop("base", "")
    with (
        listening(app) as upstream,
        rs.Store("sqlite://") as store,
        serving(store, ServerOptions(upstream=upstream + base, **options)) as address,
    ):
        yield address, asked


@pytest.fixture(scope="module")
def gateway() -> Iterator[tuple[str, Asked]]:
    with answering() as found:
        yield found


CASES: dict[str, tuple[str, str, bytes, dict[str, str]]] = {
    "a key twice": ("POST", "/v1/embeddings", b'{"input": 1, "input": 2}', {}),
    "without /v1": ("POST", "/completions", b"{}", {}),
    "a last slash": ("POST", "/v1/embeddings/", b"{}", {}),
    "a query": ("GET", "/v1/batches?limit=2&after=b", b"", {}),
    "head": ("HEAD", "/v1/files/f/content", b"", {}),
    "delete": ("DELETE", "/v1/files/f", b"", {}),
    "packed": ("POST", "/v1/embeddings", gzip.compress(b"{}"), {"content-encoding": "gzip"}),
    "zstd": ("POST", "/v1/embeddings", b"\x28\xb5\x2f\xfd", {"content-encoding": "zstd"}),
    "a form": ("POST", "/v1/files", b"--x\r\n\r\n\xff\r\n--x--", {"content-type": "multipart/x"}),
    "Anthropic's": ("POST", "/v1/messages/batches", b"{}", {"anthropic-version": "2023-06-01"}),
    "Gemini's": ("POST", "/v1beta/models/gemini-3:countTokens?key=k", b"{}", {}),
    "DeepSeek's": ("GET", "/user/balance", b"", {}),
    "a stored completion": ("GET", "/v1/chat/completions/c", b"", {}),
    "another version": ("GET", "/v1alpha/files", b"", {}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_request_of_another_route_is_passed_on_as_it_is(
    gateway: tuple[str, Asked], name: str
) -> None:
    """Its address, its bytes, the client's key and the answer's status, headers and bytes."""
    method, path, content, headers = CASES[name]
    address, asked = gateway
    given = {"authorization": "Bearer sk-own", **headers}
    answer = httpx2.request(method, f"{address}{path}", content=content, headers=given)

    assert (asked.method, asked.url, asked.content) == (method, path, content)
    assert {*given.items()} <= {*asked.headers.items()}
    assert (answer.status_code, answer.headers["x-request-id"]) == (201, "req_1")
    assert answer.headers["content-length"] == str(len(BYTES))
    assert answer.content == (b"" if method == "HEAD" else BYTES)


@pytest.mark.parametrize(
    ("base", "path", "url"),
    [
        ("/v1", "/v1/embeddings", "/v1/embeddings"),
        ("/v1", "/embeddings", "/v1/embeddings"),
        ("/v1", "/v1beta/models", "/v1beta/models"),
        ("/v1beta", "/v1beta/files", "/v1beta/files"),
        ("/api/v3", "/v1/embeddings", "/api/v3/embeddings"),
        ("/openai", "/v1/embeddings", "/openai/embeddings"),
        ("/anthropic", "/v1/messages/batches", "/anthropic/v1/messages/batches"),
        ("/anthropic", "/messages/batches", "/anthropic/v1/messages/batches"),
        ("", "/render/v1/embeddings", "/v1/embeddings"),
    ],
)
def test_a_route_is_asked_below_the_base_url(base: str, path: str, url: str) -> None:
    """However that is written, and however the client's is."""
    with answering(base=base) as (address, asked):
        httpx2.get(f"{address}{path}")

    assert asked.url == url


@pytest.mark.parametrize("base", ["", "/v1"])
def test_the_clients_of_other_routes_need_no_second_address(base: str) -> None:
    """OpenAI's SDK, with the base URL that DeepSeek documents and with its own; Anthropic's."""
    with answering() as (address, asked):
        with openai.OpenAI(api_key="k", base_url=f"{address}{base}", max_retries=0) as client:
            spoken = client.audio.speech.create(model="tts-1", voice="alloy", input="Oslo").read()
            at = [asked.url]
            client.files.with_raw_response.create(file=("a.txt", b"Oslo"), purpose="user_data")
            at.append(asked.url)
        form = asked.content
        with anthropic.Anthropic(api_key="k", base_url=address, max_retries=0) as claude:
            claude.messages.batches.with_raw_response.list()

    assert spoken == BYTES
    assert at == [f"{base}/audio/speech", f"{base}/files"]
    assert b"Oslo" in form
    assert asked.url.startswith("/v1/messages/batches")


PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "identity": bytes,
}


@pytest.mark.parametrize("encoding", PACK)
@pytest.mark.parametrize(
    "path",
    [
        *("/chat/completions", "/v1/chat/completions/", "/messages"),
        *("/v1beta/models/gemini-3:generateContent", "/v1/models/m:streamGenerateContent?alt=sse"),
        "/v1/projects/p/locations/l/publishers/google/models/m:generateContent",
    ],
)
def test_a_conversation_is_stored_by_each_address_and_in_each_encoding(
    path: str, encoding: str
) -> None:
    """Without /v1, with a last slash, packed."""
    body = OF_GEMINI if "models" in path else BODY
    content = PACK[encoding](json.dumps(body).encode())
    with (
        Provider().listening() as provider,
        rs.Store("sqlite://") as store,
        serving(store, ServerOptions(upstream=provider.address, provider="deepseek")) as address,
    ):
        answer = httpx2.post(
            f"{address}{path}",
            content=content,
            headers={"content-encoding": encoding, "content-type": "application/json"},
        )
        history = store.session(answer.headers["X-Reasoning-Session"]).history()

    assert answer.status_code == 200
    assert [one.message.role for one in history] == ["user", "assistant"]


@pytest.mark.parametrize(
    ("encoding", "content", "status", "code"),
    [
        ("gzip", gzip.compress(b" " * 20_000), 413, "body_too_large"),
        ("gzip", b"no gzip", 400, "invalid_encoding"),
        ("gzip", gzip.compress(b"{}")[:-1], 400, "invalid_encoding"),
        ("zstd", b"\x28\xb5\x2f\xfd", 415, "unknown_encoding"),
    ],
    ids=["large", "not packed", "cut off", "unknown"],
)
def test_a_packed_body_is_read_within_the_limits(
    encoding: str, content: bytes, status: int, code: str
) -> None:
    """Of a conversation."""
    with answering(limits=Limits(body_bytes=10_000)) as (address, _):
        headers = {"content-encoding": encoding}
        answer = httpx2.post(f"{address}/v1/messages", content=content, headers=headers)
        other = httpx2.post(f"{address}/v1/chat/completions", content=content, headers=headers)
        large = httpx2.post(f"{address}/v1/files", content=b" " * 10_001)

    assert (answer.status_code, other.status_code) == (status, status)
    assert other.json()["error"]["code"] == code
    assert large.status_code == 413


def test_owners_who_share_a_key_ask_for_nothing_that_the_provider_keeps() -> None:
    """What is refused reads as the provider's own refusal; what passes has the shared key."""
    mine = {"authorization": "Bearer token-of-me-0123456789"}
    with answering(upstream_key="sk-shared", tokens=TOKENS) as (address, asked):
        for path in (
            *("/v1/embeddings", "/embeddings", "/v1/audio/speech", "/v1/images/generations"),
            *("/v1/moderations", "/v1/completions"),
        ):
            assert httpx2.post(f"{address}{path}", headers=mine).status_code == 201
            assert asked.headers["authorization"] == "Bearer sk-shared"
        assert httpx2.get(f"{address}/v1/models", headers=mine).status_code == 201
        asked.url = ""
        errors = {
            (method, path): httpx2.request(method, f"{address}{path}", headers=mine)
            for method, path in (
                *(("POST", "/v1/files"), ("GET", "/v1/files"), ("GET", "/batches")),
                *(("DELETE", "/v1/models/ft"), ("GET", "/v1/chat/completions/c")),
                *(("GET", "/v1/embeddings"), ("POST", "/v1/audio/voices")),
                *(("POST", "/v1/messages/batches"), ("GET", "/v1beta/files")),
                ("POST", "/v1/models/m:batchGenerateContent"),
            )
        }
        stranger = httpx2.post(f"{address}/v1/embeddings", headers={"authorization": "Bearer no"})

    assert {one.status_code for one in errors.values()} == {403}
    assert asked.url == ""
    shapes = {path: one.json() for (_, path), one in errors.items()}
    assert shapes["/v1/files"]["error"]["code"] == "shared_key"
    assert shapes["/v1/messages/batches"]["error"]["type"] == "permission_error"
    assert shapes["/v1beta/files"]["error"]["status"] == "PERMISSION_DENIED"
    assert stranger.status_code == 401


def test_an_answer_that_breaks_off_breaks_off_for_the_client() -> None:
    """And nothing of ours is added to it."""

    async def pieces() -> Any:
        yield b"data: 1"
        raise ConnectionError

    async def answer(request: Request) -> Response:
        return StreamingResponse(pieces(), media_type="text/event-stream")

    def read(address: str) -> None:
        with httpx2.stream("POST", f"{address}/v1/completions") as found:
            got.extend(found.iter_bytes())

    got: list[bytes] = []
    app = Starlette(routes=[Route("/v1/completions", answer, methods=["POST"])])
    with (
        listening(app) as upstream,
        rs.Store("sqlite://") as store,
        serving(store, ServerOptions(upstream=upstream)) as address,
        pytest.raises(httpx2.RemoteProtocolError),
    ):
        read(address)

    assert b"".join(got) in (b"", b"data: 1")
