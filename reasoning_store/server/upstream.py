"""The provider of the gateway: its addresses, its headers, its connections."""

from __future__ import annotations

import re
import zlib
from base64 import b64decode
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import quote, unquote_plus, urlsplit

import httpx2
from starlette.convertors import Convertor, register_url_convertor
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from reasoning_store.integrations.exchange import SESSION_HEADER, STORE_HEADER
from reasoning_store.server.access import KEY_HEADERS, TOKEN_HEADER
from reasoning_store.server.bodies import PACKED
from reasoning_store.server.options import MODES, ServerOptions, token_digest

MODE_HEADER: Final = "X-Reasoning-Mode"
NO_ROUTE: Final = frozenset({404, 405, 501})
"""The statuses of a provider that has no such route."""
_CONNECT: Final = 10.0
_IN_A_PATH: Final = "/:@!$&'()*+,;=~"
_PIECE: Final = 64 * 1024
_VERSION: Final = re.compile(r"/v\d+\w*$")
_NAMED: Final = re.compile(r"/v\d+\w*(?=/)")
_HOP: Final = frozenset(
    "connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer "
    "transfer-encoding upgrade content-length content-encoding".split()
)
_NOT_SENT: Final = _HOP | {
    *("host", "accept-encoding", "cookie", "origin", "referer", "forwarded", "expect"),
    *(name.lower() for name in (TOKEN_HEADER, SESSION_HEADER, STORE_HEADER, MODE_HEADER)),
}
"""Headers of a client that are not for the provider."""
_NOT_RETURNED: Final = _HOP | {"server", "date", "set-cookie", "strict-transport-security"}
"""Headers of the provider that are not for a client."""

_ADDRESS: Final = re.compile(rf"(/(?:{'|'.join(MODES)}))?(/v\d+\w*)?(/([^/]+).*)", re.DOTALL)
_NAMES: Final = frozenset(
    "audio batches chat completions conversations embeddings files fine_tuning images messages "
    "models moderations responses uploads user vector_stores".split()
)
"""The first names of routes that are known without /v1."""
_STORING_NOTHING: Final = frozenset(
    "audio/speech audio/transcriptions audio/translations completions embeddings images/edits "
    "images/generations images/variations moderations".split()
)
"""The routes of a POST of which nothing can be asked for later."""


class _Elsewhere(Convertor[str]):
    """The path of a route of the provider's that has no part in the store."""

    regex = r"v\d+\w*/(?!(?:conversations|responses)(?:/|$)).+"

    def convert(self, value: str) -> str:
        return value.partition("/")[2]

    def to_string(self, value: str) -> str:
        return value


class _Gemini(_Elsewhere):
    """The path of a conversation in Gemini's protocol, below whatever names a model there."""

    regex = r"v\d+\w*/.+:(?:g|streamG)enerateContent"


register_url_convertor("elsewhere", _Elsewhere())
register_url_convertor("gemini", _Gemini())


class Addresses:
    """Gives each route of the provider's its address with /v1, and keeps what the client asked."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            found = _ADDRESS.fullmatch(scope["path"])
            if found is not None and (found[2] or found[4] in _NAMES):
                mode, version, below, _ = found.groups()
                scope.setdefault("state", {})["asked"] = (version or "") + below
                scope["path"] = (mode or "") + (version or "/v1") + below.rstrip("/")
        await self._app(scope, receive, send)


def asked_path(request: Request) -> str:
    """Return the path that a client asked, without the mode."""
    return str(request.state.asked)


def stores_nothing(request: Request) -> bool:
    """Whether a provider keeps nothing of a request, so that owners may share its key for it."""
    below = str(request.path_params["path"])
    return request.method == "POST" and below in _STORING_NOTHING


class Upstream:
    """The connections to a provider. The client's key passes through; it is never stored."""

    def __init__(self, url: str, options: ServerOptions) -> None:
        self.base_url = url.rstrip("/")
        self._key = options.upstream_key
        self._tokens = options.tokens
        self._most = options.limits.reply_bytes
        silence = options.limits.provider_seconds
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(silence, connect=min(_CONNECT, silence)),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100),
            follow_redirects=False,
            trust_env=True,
        )

    async def send(
        self,
        method: str,
        path: str,
        headers: Headers,
        content: bytes = b"",
        *,
        query: str = "",
        is_read: bool = True,
    ) -> httpx2.Response:
        """Send a request, whose content we have read or not; the response is not yet read.

        A token of ours is left out, in whatever header or parameter a client has put it.
        """
        query = "&".join(pair for pair in query.split("&") if not self._has_token(pair))
        url = self._address(quote(path, safe=_IN_A_PATH)) + (f"?{query}" if query else "")
        given = self._headers(path, headers)
        if not is_read and "content-encoding" in headers:
            given.append(("Content-Encoding", headers["content-encoding"]))
        request = self._client.build_request(method, url, headers=given, content=content)
        response = await self._client.send(request, stream=True)
        encoding = response.headers.pop("content-encoding", "identity")
        if encoding != "identity":
            response.headers.pop("content-length", None)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = Unpacked(response.stream, encoding, self._most)
        return response

    async def close(self) -> None:
        await self._client.aclose()

    def _address(self, path: str) -> str:
        """Return the URL of a path that a client asked, however the base URL is written."""
        base, named = self.base_url, _NAMED.match(path)
        version, below = (named[0], path[named.end() :]) if named else ("", path)
        is_anthropic = below.startswith("/messages")
        if own := _VERSION.search(base):
            is_other = version not in ("", "/v1", own[0])
            return base.removesuffix(own[0]) + path if is_other else base + below
        if is_anthropic:
            return f"{base}/v1{below}"
        return base + (below if version == "/v1" and urlsplit(base).path else path)

    def _headers(self, path: str, given: Headers) -> list[tuple[str, str]]:
        withheld = _NOT_SENT | _named_by(given.getlist("connection"))
        if self._key is not None:
            withheld |= frozenset(KEY_HEADERS)
        headers = [
            (name, value)
            for name, value in given.items()
            if name.lower() not in withheld and not self._has_token(value)
        ]
        # A stream is read on its way, and so it must not be compressed.
        headers.append(("Accept-Encoding", "identity"))
        if self._key is not None:
            headers.append(_key_header(path, self._key))
        return headers

    def _has_token(self, text: str) -> bool:
        """Whether a token of ours is a word of a header or of a part of a query."""
        words = {word for value in (text, unquote_plus(text)) for word in _words(value)}
        return any(token_digest(word) in self._tokens for word in words)


def _key_header(path: str, key: str) -> tuple[str, str]:
    """Return the header in which the protocol of a path has its key."""
    if _NAMED.sub("", path).startswith("/messages"):
        return "x-api-key", key
    if path.startswith("/v1beta/") or path.endswith("enerateContent"):
        return "x-goog-api-key", key
    return "Authorization", f"Bearer {key}"


class Unpacked(httpx2.AsyncByteStream):
    """The bytes of a reply, unpacked piece by piece: no reply takes more memory than is allowed."""

    def __init__(self, inner: httpx2.AsyncByteStream, encoding: str, most: int) -> None:
        self._inner = inner
        self._encoding = encoding.strip().lower()
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._inner if self._encoding == "identity" else self._unpack():
            size += len(piece)
            if size > self._most:
                raise httpx2.DecodingError(f"the reply has more than {self._most} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _unpack(self) -> AsyncIterator[bytes]:
        if self._encoding not in PACKED:
            # Our request asked for a reply that is not packed.
            raise httpx2.DecodingError("the reply is packed in a way that is not read here")
        unpacking = zlib.decompressobj(zlib.MAX_WBITS | 32)
        try:
            async for piece in self._inner:
                while piece:
                    yield unpacking.decompress(piece, _PIECE)
                    piece = unpacking.unconsumed_tail
            yield unpacking.flush()
        except zlib.error:
            raise httpx2.DecodingError("the reply cannot be unpacked") from None


def _words(text: str) -> Iterator[str]:
    """Yield a text and its parts, each of which may be a token."""
    for word in (text, *re.split(r"[\s,;\"']+", text)):
        yield word
        yield word.partition("=")[2]
        with suppress(ValueError):  # Basic has a name and a token in base64
            yield from b64decode(word, validate=True).decode("latin-1").split(":")


def _named_by(connection: Iterable[str]) -> frozenset[str]:
    """Return the names of the headers that a header ``Connection`` keeps on this connection."""
    names = (name.strip().lower() for value in connection for name in value.split(","))
    return frozenset(names)


def returned_headers(response: httpx2.Response, more: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a response as a client gets them, with ours."""
    encoding = response.headers.encoding  # their bytes are passed on, in whatever it is
    left_out = _NOT_RETURNED | _named_by(response.headers.get_list("connection"))
    kept: dict[str, Any] = {
        name: value.encode(encoding).decode("latin-1")
        for name, value in response.headers.items()
        if name.lower() not in left_out and not name.lower().startswith("access-control-")
    }
    return {**kept, **more}
