"""A stream on its way from the provider to the client: passed on event by event, and recorded.

If the provider breaks the connection, the client's breaks, too, after the last whole event. A
reply whose end the store refused is kept, and stored once the store answers again.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from typing import Final

import httpx2
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

import reasoning_store as rs
from reasoning_store.integrations.exchange import Exchange
from reasoning_store.server.problems import problem_body
from reasoning_store.server.reply_modes import Rewriter
from reasoning_store.server.threads import run_to_end
from reasoning_store.server.tracing import CLIENT_LEFT, Call, find_call

_OUR_LIMITS: Final = (httpx2.TimeoutException, httpx2.DecodingError)
"""The failures that the client reads as an event; of any other the connection breaks."""
_MOST_UNSAVED: Final = 1000
"""How many replies wait in memory; the oldest is left out for the next."""


class Relay(Response):
    """A stream that is passed on event by event, and recorded on its way."""

    def __init__(
        self,
        path: str,
        upstream: httpx2.Response,
        exchange: Exchange | None,
        rewriter: Rewriter | None,
        headers: dict[str, str],
        unsaved: UnsavedReplies,
    ) -> None:
        self.status_code = upstream.status_code
        self.background = None
        self.init_headers(headers)
        self._path = path
        self._upstream = upstream
        self._exchange = exchange
        self._rewriter = rewriter
        self._unsaved = unsaved

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = find_call(scope)
        pump = asyncio.ensure_future(self._pump(send, call))
        left = asyncio.ensure_future(_wait_until_left(receive))
        try:
            await asyncio.wait({pump, left}, return_when=asyncio.FIRST_COMPLETED)
            if call is not None and not pump.done():
                call.fail(CLIENT_LEFT)
        except asyncio.CancelledError:
            # The server stops, and cancels again whatever waits: store without waiting.
            if self._exchange is not None:
                self._exchange.leave()
            raise
        finally:
            for task in (pump, left):
                task.cancel()
            await asyncio.gather(pump, left, return_exceptions=True)
            await self._upstream.aclose()
            if self._exchange is not None:
                await run_to_end(self._exchange.leave)
                self._unsaved.add(self._exchange)

    async def _pump(self, send: Send, call: Call | None) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": self.status_code,
                "headers": self.raw_headers,
            }
        )

        async def emit(piece: bytes) -> None:
            if piece:
                await send({"type": "http.response.body", "body": piece, "more_body": True})

        exchange, rewriter = self._exchange, self._rewriter
        try:
            async for piece in self._upstream.aiter_bytes():
                if call is not None:
                    call.note_chunk()
                if exchange is not None and exchange.feed(piece):
                    await run_to_end(exchange.finish)
                await emit(piece if rewriter is None else rewriter.feed(piece))
                if exchange is not None and exchange.is_ready:
                    # After the first event, which waits for no disk.
                    await run_to_end(exchange.begin_stream)
                if exchange is not None and exchange.is_stopped:
                    break
            if exchange is not None:
                await run_to_end(exchange.finish)
            if rewriter is not None:
                await emit(rewriter.finish())
        except httpx2.HTTPError as error:
            if call is not None:
                call.fail(type(error).__name__)
            if exchange is not None:
                await run_to_end(exchange.leave)
            if rewriter is None or not isinstance(error, _OUR_LIMITS):
                return  # an answer without its end: the server closes the connection
            await emit(_error_event(self._path, *describe_failure(error)))
        except rs.ReasoningStoreError as error:
            # on_store_error is "fail": the client reads why its reply ends here.
            if call is not None:
                call.fail(type(error).__name__)
            await emit(_error_event(self._path, 503, f"the store failed: {error}"))
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class UnsavedReplies:
    """The replies that wait for the store, oldest first."""

    def __init__(self) -> None:
        self._waiting: deque[Exchange] = deque(maxlen=_MOST_UNSAVED)

    @property
    def is_waiting(self) -> bool:
        """Whether there is a reply to store."""
        return bool(self._waiting)

    def add(self, exchange: Exchange | None) -> None:
        """Keep a reply that came to its end and is not stored."""
        if exchange is not None and exchange.is_unsaved:
            self._waiting.append(exchange)

    def save(self) -> None:
        """Store what waits, until the store refuses again."""
        while self._waiting:
            try:
                exchange = self._waiting.popleft()
            except IndexError:  # another thread was first
                return
            if not exchange.save():
                self._waiting.appendleft(exchange)
                return


async def _wait_until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def describe_failure(error: httpx2.HTTPError) -> tuple[int, str]:
    """Return the status and the text of an error by which the provider did not answer."""
    if isinstance(error, httpx2.TimeoutException):
        return 504, "the provider did not answer in time"
    if isinstance(error, httpx2.ConnectError):
        return 502, "the provider cannot be reached"
    if isinstance(error, httpx2.DecodingError):
        return 502, str(error)
    return 502, "the provider broke the connection"


def _error_event(path: str, status: int, text: str) -> bytes:
    body = json.dumps(problem_body(path, status, text, code="upstream_failed"))
    return f"event: error\ndata: {body}\n\n".encode()
