"""Our server as foreign suites want it: the conversation that their tests name is always there."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.types import ASGIApp, Receive, Scope, Send

import reasoning_store as rs
from reasoning_store.server.app import make_app
from reasoning_store.server.conversation_items import read_items
from reasoning_store.server.options import ServerOptions
from tests.server.serving import listening
from tests.suites.provider import make_provider

CONVERSATION, ITEM = "conv_123", "msg_abc"
RESPONSES = ("resp_677efb5139a88190b512bc3fef8e535d", "previous_response_id", "response_id")
"""The ids that the tests of OpenAI's SDK name, and delete."""

_SEEDING = threading.Lock()


@contextmanager
def serving_seeded() -> Iterator[str]:
    """Serve a store before the provider, and give the server's address."""
    with rs.Store("sqlite://") as store, listening(make_provider()) as provider:
        app = make_app(store, ServerOptions(upstream=f"{provider}/v1"))
        with listening(_seeding(app, store)) as address:
            yield address


def _seeding(app: ASGIApp, store: rs.Store) -> ASGIApp:
    """Return the application, which has its conversation anew before each request."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await asyncio.to_thread(_seed, store)
        await app(scope, receive, send)

    return answer


def _seed(store: rs.Store) -> None:
    with _SEEDING:
        _seed_alone(store)


def _seed_alone(store: rs.Store) -> None:
    store.session(CONVERSATION, create=True).delete()
    session = store.session(CONVERSATION, create=True, metadata={"topic": "weather"})
    session.append(read_items([{"id": ITEM, "role": "user", "content": "How is Oslo?"}]))
    for id in RESPONSES:
        origin = rs.Origin(provider="openai", api="openai.responses", model="a-model")
        usage = rs.Usage(input=40, output=12)
        session.append(rs.assistant("4 C.", origin=origin, usage=usage), id=id)
        session.append(rs.user("Sure?"))


if __name__ == "__main__":
    with serving_seeded() as address:
        print(address, flush=True)
        while sys.stdin.read(1):
            time.sleep(0.1)
