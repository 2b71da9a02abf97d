"""Adapter and transport on one store: each reply is stored once, by the adapter."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator
from contextlib import nullcontext
from typing import Any

import pytest

import reasoning_store as rs
from reasoning_store.integrations import http
from reasoning_store.integrations.store_access import mark_recorded, recording_replies
from tests.docs.provider import Provider

USER = {"role": "user", "content": "How is Oslo?"}


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider().listening() as listening:
        yield listening


@pytest.fixture
def store() -> Iterator[rs.Store]:
    with rs.Store("sqlite://") as opened:
        yield opened


def ask(store: Any, provider: Provider, *messages: Any, session: str | None = None) -> Any:
    body = {"model": "deepseek-flash", "messages": [USER, *messages]}
    headers = {"X-Reasoning-Session": session} if session else {}
    with http.client(store, provider="deepseek") as client:
        return client.post(f"{provider.address}/v1/chat/completions", json=body, headers=headers)


CASES: dict[str, tuple[str | None, str | None, int]] = {
    "its session is open": ("agent", None, 0),
    "it names that session": ("agent", "agent", 0),
    "it names another session": ("agent", "chat", 1),
    "no adapter stores it": (None, None, 1),
}


@pytest.mark.parametrize("case", CASES)
def test_a_client_stores_no_reply_that_an_adapter_stores(
    store: rs.Store, provider: Provider, case: str
) -> None:
    """Of whichever owner of the store; a request can name a session of its own."""
    marked, named, stored = CASES[case]
    owner = store.for_owner("you")
    with recording_replies(owner, marked) if marked else nullcontext():
        response = ask(store, provider, session=named)

    assert response.status_code == 200
    assert len(store.sessions().items) == stored
    assert owner.sessions().items == []
    told = None if stored else "no (an adapter stores it)"
    assert response.headers.get("X-Reasoning-Stored") == told


def test_another_store_is_not_the_adapters(store: rs.Store, provider: Provider) -> None:
    """Each keeps what passes through it."""
    with rs.Store("sqlite://") as other, recording_replies(other, "agent"):
        ask(store, provider)

    assert len(store.sessions().items) == 1


def test_a_demanded_thought_that_an_adapter_lost_is_put_back(
    store: rs.Store, provider: Provider
) -> None:
    """From the adapter's session; nothing is stored in it."""
    call = rs.ToolCallBlock(id="call_1", name="get_weather", parameters={"city": "Oslo"})
    session = store.session("agent", create=True)
    session.append([rs.user(USER["content"]), rs.assistant(thought("I ask it."), call)])
    sent = rs.write_message(rs.assistant(call), api="openai.chat", provider="deepseek")
    answer = {"role": "tool", "tool_call_id": "call_1", "content": "4 C"}

    with recording_replies(store, "agent"):
        response = ask(store, provider, *sent, answer)

    assert response.status_code == 200
    assert provider.asked[-1].body["messages"][1]["reasoning_content"] == "I ask it."
    assert [one.id for one in store.sessions().items] == ["agent"]
    assert len(session.history()) == 2


def thought(text: str) -> rs.ThinkingBlock:
    return rs.ThinkingBlock(thought=text, source_field="reasoning_content")


def test_a_mark_is_of_its_own_task_and_of_those_that_it_begins(
    store: rs.Store, provider: Provider
) -> None:
    """Another task stores its replies, also while the first one runs."""

    async def post(client: Any) -> None:
        body = {"model": "deepseek-flash", "messages": [USER]}
        address = f"{provider.address}/v1/chat/completions"
        assert (await client.post(address, json=body)).status_code == 200

    async def marked(client: Any, is_marked: asyncio.Event) -> None:
        mark_recorded(store, "agent")
        is_marked.set()
        await asyncio.gather(post(client), asyncio.create_task(post(client)))

    async def main() -> int:
        client, is_marked = http.async_client(store, provider="deepseek"), asyncio.Event()
        running = asyncio.create_task(marked(client, is_marked))
        await is_marked.wait()
        await post(client)
        await running
        await client.aclose()
        return len(store.sessions().items)

    assert asyncio.run(main()) == 1


def test_a_mark_that_ends_in_another_context_leaves_none(
    store: rs.Store, provider: Provider
) -> None:
    """As where a cancelled agent is closed by another task."""

    def agent() -> Generator[None]:
        with recording_replies(store, "agent"):
            yield

    async def main() -> None:
        running = agent()
        await asyncio.to_thread(next, running)  # begun in a context of its own
        running.close()

    asyncio.run(main())
    ask(store, provider)

    assert len(store.sessions().items) == 1
