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
from starlette.datastructures import Headers

from reasoning_store.integrations.exchange import SESSION_HEADER, STORE_HEADER
from reasoning_store.server.access import KEY_HEADERS, TOKEN_HEADER
from reasoning_store.server.options import ServerOptions, token_digest

MODE_HEADER: Final = "X-Reasoning-Mode"
NO_ROUTE: Final = frozenset({404, 405, 501})
"""The statuses of a provider that has no such route."""
_CONNECT: Final = 10.0
_IN_A_PATH: Final = "/:@!$&'()*+,;=~"
_PACKED: Final = frozenset({"gzip", "x-gzip", "deflate"})
"""The encodings of replies that are unpacked, though none is asked for."""
_PIECE: Final = 64 * 1024
_VERSION: Final = re.compile(r"/v\d+\w*$")
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
    ) -> httpx2.Response:
        """Send a request; the body of its response is not yet read.

        A token of ours is left out, in whatever header or parameter a client has put it.
        """
        query = "&".join(pair for pair in query.split("&") if not self._has_token(pair))
        url = self._address(quote(path, safe=_IN_A_PATH)) + (f"?{query}" if query else "")
        given = self._headers(path, headers)
        request = self._client.build_request(method, url, headers=given, content=content)
        response = await self._client.send(request, stream=True)
        encoding = response.headers.pop("content-encoding", "identity")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = Unpacked(response.stream, encoding, self._most)
        return response

    async def close(self) -> None:
        await self._client.aclose()

    def _address(self, path: str) -> str:
        """Return the URL of a path below /v1, however the base URL is written."""
        below = path.removeprefix("/v1")
        base = self.base_url
        is_anthropic = below.startswith("/messages")
        if _VERSION.search(base) or (urlsplit(base).path and not is_anthropic):
            return base + below
        return f"{base}/v1{below}"

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
            is_anthropic = path.startswith("/v1/messages")
            headers.append(
                ("x-api-key", self._key)
                if is_anthropic
                else ("Authorization", f"Bearer {self._key}")
            )
        return headers

    def _has_token(self, text: str) -> bool:
        """Whether a token of ours is a word of a header or of a part of a query."""
        words = {word for value in (text, unquote_plus(text)) for word in _words(value)}
        return any(token_digest(word) in self._tokens for word in words)


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
        if self._encoding not in _PACKED:
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
