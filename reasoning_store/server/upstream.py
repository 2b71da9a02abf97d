"""The provider of the gateway: its addresses, its headers, its connections."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import quote, urlsplit

import httpx2
from starlette.datastructures import Headers

from reasoning_store.integrations.exchange import SESSION_HEADER
from reasoning_store.server.access import KEY_HEADERS, TOKEN_HEADER
from reasoning_store.server.options import ServerOptions

MODE_HEADER: Final = "X-Reasoning-Mode"
NO_ROUTE: Final = frozenset({404, 405, 501})
"""The statuses of a provider that has no such route."""
_CONNECT: Final = 10.0
_IN_A_PATH: Final = "/:@!$&'()*+,;=~"
_VERSION: Final = re.compile(r"/v\d+\w*$")
_HOP: Final = frozenset(
    "connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer "
    "transfer-encoding upgrade content-length content-encoding".split()
)
_NOT_SENT: Final = _HOP | {
    *("host", "accept-encoding", "cookie", "origin", "referer", "forwarded", "expect"),
    *(name.lower() for name in (TOKEN_HEADER, SESSION_HEADER, MODE_HEADER)),
}
"""Headers of a client that are not for the provider."""
_NOT_RETURNED: Final = _HOP | {"server", "date", "set-cookie", "strict-transport-security"}
"""Headers of the provider that are not for a client."""


class Upstream:
    """The connections to a provider. The client's key passes through; it is never stored."""

    def __init__(self, url: str, options: ServerOptions) -> None:
        self.base_url = url.rstrip("/")
        self._key = options.upstream_key
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(options.timeout, connect=min(_CONNECT, options.timeout)),
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
        key_is_token: bool = False,
    ) -> httpx2.Response:
        """Send a request; the body of its response is not yet read."""
        url = self._address(quote(path, safe=_IN_A_PATH)) + (f"?{query}" if query else "")
        given = self._headers(path, headers.items(), key_is_token=key_is_token)
        request = self._client.build_request(method, url, headers=given, content=content)
        return await self._client.send(request, stream=True)

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

    def _headers(
        self, path: str, given: Iterable[tuple[str, str]], *, key_is_token: bool
    ) -> list[tuple[str, str]]:
        withheld = _NOT_SENT
        if self._key is not None or key_is_token:
            withheld = _NOT_SENT | frozenset(KEY_HEADERS)
        headers = [(name, value) for name, value in given if name.lower() not in withheld]
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


def returned_headers(response: httpx2.Response, more: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a response as a client gets them, with ours."""
    encoding = response.headers.encoding  # their bytes are passed on, in whatever it is
    kept: dict[str, Any] = {
        name: value.encode(encoding).decode("latin-1")
        for name, value in response.headers.items()
        if name.lower() not in _NOT_RETURNED and not name.lower().startswith("access-control-")
    }
    return {**kept, **more}
