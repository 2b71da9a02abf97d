"""Agno's chat models through the HTTP transport."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.models.deepseek import DeepSeek
from agno.models.openai import OpenAIChat

import reasoning_store as rs
from reasoning_store.integrations import http
from tests.docs.provider import Provider
from tests.integrations.loops import STEPS

MODELS: dict[str, tuple[Any, str, str]] = {
    "OpenAIChat at DeepSeek": (OpenAIChat, "deepseek-flash", "deepseek"),
    "OpenAIChat at Kimi": (OpenAIChat, "kimi-k2-thinking", "moonshot"),
    "DeepSeek": (DeepSeek, "deepseek-flash", "deepseek"),
}


def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return "4 C"


def make_agent(name: str, provider: Provider, **options: Any) -> Agent:
    kind, model, _ = MODELS[name]
    chosen = kind(
        id=model,
        api_key="k",
        base_url=f"{provider.address}/v1",
        max_retries=0,
        **options,
    )
    return Agent(
        model=chosen,
        tools=[get_weather],
        db=InMemoryDb(),
        session_id="chat-42",
        add_history_to_context=True,
        telemetry=False,
    )


def run_turns(agent: Agent, *, streamed: bool = False) -> str:
    """Run two turns of an agent, which keeps its messages itself."""
    answer = ""
    for text in ("How is the weather?", "And now?"):
        if streamed:
            answer = "".join(
                str(event.content or "")
                for event in agent.run(text, stream=True)
                if event.event == "RunContent"
            )
        else:
            answer = str(agent.run(text).content)
    return answer


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", MODELS)
def test_an_agent_of_forty_steps_passes(provider: Provider, name: str, streamed: bool) -> None:
    """The thinking is in the store, and goes back where the provider demands it."""
    with rs.Store("sqlite://") as store:
        kept = http.client(store, provider=MODELS[name][2], module="httpx")
        answer = run_turns(make_agent(name, provider, http_client=kept), streamed=streamed)
        (session,) = store.sessions().items
        history = session.history()

    assert answer.startswith("Done at")
    assert provider.refused == []
    assert len(history) == 2 * (2 + 2 * STEPS)


def test_an_asynchronous_agent_passes(provider: Provider) -> None:
    """With a client of its own kind."""
    with rs.Store("sqlite://") as store:
        kept = http.async_client(store, provider="deepseek", module="httpx")
        agent = make_agent("OpenAIChat at DeepSeek", provider, http_client=kept)
        answer = asyncio.run(agent.arun("How is the weather?"))

    assert str(answer.content).startswith("Done at")
    assert provider.refused == []


@pytest.mark.parametrize("name", ["OpenAIChat at DeepSeek", "OpenAIChat at Kimi"])
def test_without_the_transport_the_same_agent_is_refused(provider: Provider, name: str) -> None:
    """``OpenAIChat`` leaves the thinking out."""
    run_turns(make_agent(name, provider))

    assert "reasoning_content" in provider.refused[0]


def test_the_class_for_deepseek_sends_the_thinking_itself(provider: Provider) -> None:
    """It needs no transport for that."""
    answer = run_turns(make_agent("DeepSeek", provider))

    assert answer.startswith("Done at")
    assert provider.refused == []
