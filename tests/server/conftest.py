"""A provider, a store and a client of its server, one of each for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest

import reasoning_store as rs
from reasoning_store.server.options import ServerOptions
from reasoning_store.testing import stream
from tests.docs.provider import Provider
from tests.server.serving import serving

DEEPSEEK: dict[str, Any] = {"provider": "deepseek", "model": "deepseek-reasoner"}


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with Provider().listening() as listening:
        yield listening


@pytest.fixture(scope="module")
def store() -> Iterator[rs.Store]:
    with rs.Store("sqlite://") as opened:
        yield opened


@pytest.fixture(scope="module")
def client(provider: Provider, store: rs.Store) -> Iterator[openai.OpenAI]:
    options = ServerOptions(upstream=f"{provider.address}/v1", provider="openai")
    with (
        serving(store, options) as address,
        openai.OpenAI(api_key="k", base_url=f"{address}/v1", max_retries=0) as made,
    ):
        yield made


def record_turns(store: rs.Store, id: str) -> rs.Session:
    """Return a session of two turns that were recorded with their requests, and a question."""
    session = store.session(id, create=True, title="Numbers")
    for number, thought in ((1, "Divide by seven."), (2, "Both are odd.")):
        session.append(rs.user(f"Question {number}?"))
        block = rs.ThinkingBlock(thought=thought, source_field="reasoning_content")
        reply = rs.assistant(block, f"Answer {number}.")
        events = stream(reply, api="openai.chat", **DEEPSEEK)
        with session.record(events, request=session.build_request(**DEEPSEEK)) as recorded:
            list(recorded)
    session.append(rs.user("And now?"))
    return session
