"""Unchanged chat models of LangChain pass a strict provider through the HTTP transport."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_deepseek import ChatDeepSeek
from langchain_openai import ChatOpenAI

import reasoning_store as rs
from reasoning_store.integrations import http
from tests.docs.provider import Provider
from tests.integrations.loops import STEPS, twenty_steps

MODELS = {
    "ChatDeepSeek": (ChatDeepSeek, "api_base"),
    "ChatOpenAI": (ChatOpenAI, "base_url"),
}


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider(twenty_steps()).listening() as listening:
        yield listening


@tool
def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return "4 C"


def run_loop(model: Any, *, streamed: bool) -> Any:
    bound = model.bind_tools([get_weather])
    messages: list[Any] = [HumanMessage("How is the weather?")]
    while True:
        reply = None
        if streamed:
            for piece in bound.stream(messages):
                reply = piece if reply is None else reply + piece
        else:
            reply = bound.invoke(messages)
        assert reply is not None
        messages.append(reply)
        if not reply.tool_calls:
            return reply.content
        messages += [ToolMessage("4 C", tool_call_id=call["id"]) for call in reply.tool_calls]


def make_model(name: str, provider: Provider, **options: Any) -> Any:
    kind, address = MODELS[name]
    where = {address: f"{provider.address}/v1"}
    return kind(model="deepseek-chat", api_key="k", max_retries=0, **where, **options)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", MODELS)
def test_a_loop_of_twenty_steps_passes(provider: Provider, name: str, streamed: bool) -> None:
    """The thinking is in the store, and goes back where the provider demands it."""
    with rs.Store("sqlite://") as store:
        client = http.client(store, provider="deepseek")
        answer = run_loop(make_model(name, provider, http_client=client), streamed=streamed)

        (session,) = store.sessions().items
        history = session.history()

    assert answer.startswith("Done at")
    assert provider.refused == []
    assert len(history) == 2 + 2 * STEPS


@pytest.mark.parametrize("name", MODELS)
def test_without_the_transport_the_same_loop_is_refused(provider: Provider, name: str) -> None:
    """The framework drops the thinking on its way out."""
    with pytest.raises(Exception, match="reasoning_content"):
        run_loop(make_model(name, provider), streamed=False)
